//! Models that are distributed to several processes, each of which trains its own from all tuples.
//!
//! Guarantees: every model is dealt to one process, by nothing but what the models cost and how many processes there
//! are, so that each process can deal for itself and gets what the others think it has. Models of a [`Panel`] stay
//! together by the sixteen, because one lane costs as much as all. What the busiest process has to do is at most 4/3 of
//! what it would be in the best of all deals (Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
//!
//! It prevents a process that waits for the others because its models are the cheap ones: networks with fewer units,
//! points with fewer epochs, folds that learn from less of the past.
//!
//! [`Panel`]: linear::Panel

use simd::LANES;

/// What training a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Is it a lane of a panel?
    pub in_panel: bool,
    /// Its weights times the tuples that it learns from, in any unit.
    pub cost: u64,
}

/// A full panel takes the time of this many models by themselves: from 28 to 784 features it was 1.2 to 5
/// (`make bench PARTS=search`).
const PANEL: u64 = 4;

/// Models that are dealt together, and what they cost.
fn shares(models: &[Load]) -> Vec<(u64, Vec<usize>)> {
    let (lanes, alone): (Vec<usize>, Vec<usize>) = (0..models.len()).partition(|i| models[*i].in_panel);
    let most = |lanes: &[usize]| lanes.iter().map(|i| models[*i].cost).max().unwrap_or_default();
    let panels = lanes.chunks(LANES).map(|lanes| (most(lanes).saturating_mul(PANEL), lanes.to_vec()));
    panels.chain(alone.into_iter().map(|i| (models[i].cost, vec![i]))).collect()
}

/// How many processes have something to do, at most.
pub fn most_processes(models: &[Load]) -> usize {
    shares(models).len()
}

/// The process, from 0, that each model is dealt to: what costs most first, to the one that has least.
pub fn deal(models: &[Load], processes: usize) -> Vec<usize> {
    let mut shares = shares(models);
    shares.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    let (mut dealt, mut sums) = (vec![0; models.len()], vec![0_u64; processes.max(1)]);
    for (cost, models) in shares {
        let least = (0..sums.len()).min_by_key(|process| sums[*process]).unwrap_or_default();
        sums[least] = sums[least].saturating_add(cost);
        models.into_iter().for_each(|model| dealt[model] = least);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lanes(models: usize) -> Vec<Load> {
        vec![Load { in_panel: true, cost: 28 }; models]
    }

    fn sums(models: &[Load], dealt: &[usize], processes: usize) -> Vec<u64> {
        let mut sums = vec![0; processes];
        models.iter().zip(dealt).for_each(|(model, process)| sums[*process] += model.cost);
        sums
    }

    #[test]
    fn models_of_a_panel_are_dealt_by_the_sixteen() {
        // 20 points on 5 folds: six full panels, and one of four models
        let dealt = deal(&lanes(100), 2);
        for panel in dealt.chunks(LANES) {
            assert!(panel.iter().all(|process| *process == panel[0]), "{dealt:?}");
        }
        let of_first = dealt.chunks(LANES).filter(|panel| panel[0] == 0).count();
        assert_eq!((of_first, most_processes(&lanes(100))), (4, 7));
        assert_eq!((most_processes(&lanes(16)), most_processes(&lanes(17)), most_processes(&[])), (1, 2, 0));
    }

    #[test]
    fn forward_folds_of_three_networks_are_dealt_evenly() {
        // fold f learns from f parts of the rows
        let models: Vec<Load> = (1..=5).flat_map(|fold| [Load { in_panel: false, cost: fold * 1000 }; 3]).collect();
        let sums = sums(&models, &deal(&models, 3), 3);
        assert_eq!(sums, [15_000, 15_000, 15_000]);
    }

    /// What the busiest process has in the best of all deals, all of which are tried.
    fn best(models: &[Load], processes: usize) -> u64 {
        let deals = processes.pow(models.len() as u32);
        let deal = |number: usize| (0..models.len()).map(move |i| number / processes.pow(i as u32) % processes);
        let busiest = |number| sums(models, &deal(number).collect::<Vec<_>>(), processes).into_iter().max();
        (0..deals).filter_map(busiest).min().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_busiest_process_has_at_most_a_third_more_than_in_the_best_deal(
            costs in proptest::collection::vec(1_u64..1000, 1..8),
            processes in 1_usize..5,
        ) {
            let models: Vec<Load> = costs.iter().map(|cost| Load { in_panel: false, cost: *cost }).collect();
            let dealt = deal(&models, processes);
            prop_assert!(dealt.iter().all(|process| *process < processes));
            let busiest = sums(&models, &dealt, processes).into_iter().max().unwrap();
            prop_assert!(3 * busiest <= 4 * best(&models, processes), "{busiest}");
        }
    }
}
