//! Which rank of a data-parallel job gets which elements.
//!
//! It guarantees that each element goes to one rank, that the numbers of elements of any two ranks differ by one at
//! most, whichever nodes the ranks are on, and that everybody who knows the nodes of the ranks comes to the same
//! result. So a rank knows its elements before an epoch begins, and reads these and no others if it has to read by
//! itself: each element comes exactly once, also without a leader. It prevents that ranks which have lost each other
//! read the same elements, or that no one reads some.
//!
//! The first hash of [`Placement`] gives an element its home among all nodes of the cluster, whatever the job. A node
//! keeps as many of the elements that are at home there as its ranks want, in an order that is the same for all jobs:
//! of two jobs with a node in common, one keeps there all that the other one keeps, or the other way round. No other
//! deal of the same sizes leaves more elements at home. The second hash gives what is left (its home is full, or no
//! node of the job) to nodes of the job which have room. In the end the elements of a node are distributed to its
//! ranks.
//!
//! The deal is the same in each epoch: other elements on a node would be other reads. What changes is the order.

use joader::{ElementSet, Placement, SamplerError};
use shuffle::SortKeys;

/// The elements of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    /// By rank.
    pub shares: Vec<ElementSet>,
    /// Elements that are not at home: nodes do not share these with each other's jobs for sure.
    pub moved: usize,
}

impl Deal {
    /// Distributes elements to ranks, whose nodes these are, in a cluster of this many nodes.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(seed: i64, nodes: u32, ranks: &[u32], elements: &ElementSet) -> Result<Deal, SamplerError> {
        if ranks.len() == 1 {
            return Ok(Deal { shares: vec![elements.clone()], moved: 0 });
        }
        let (count, world) = (elements.len(), ranks.len());
        let of_rank = |rank: usize| count / world + usize::from(rank < count % world);
        let mut room = vec![0; nodes as usize];
        for (rank, node) in ranks.iter().enumerate() {
            room[*node as usize] += of_rank(rank);
        }
        let placement = Placement::new(nodes, seed);
        let all: Vec<u32> = (0..nodes).collect();
        let mut on_node = vec![Vec::new(); nodes as usize];
        let mut astray = Vec::new();
        for element in in_order(seed, 3, elements.iter()) {
            match placement.node(element.into(), &all) {
                Some(home) if room[home as usize] > 0 => {
                    room[home as usize] -= 1;
                    on_node[home as usize].push(element);
                }
                _ => astray.push(element),
            }
        }
        let moved = astray.len();
        let mut with_room: Vec<u32> = all.iter().copied().filter(|node| room[*node as usize] > 0).collect();
        for element in astray {
            let Some(node) = placement.node(element.into(), &with_room) else { break };
            on_node[node as usize].push(element);
            room[node as usize] -= 1;
            if room[node as usize] == 0 {
                with_room.retain(|other| *other != node);
            }
        }
        let mut dealt: Vec<_> =
            on_node.into_iter().map(|elements| in_order(seed, 4, elements.into_iter()).into_iter()).collect();
        let share = |(rank, node): (usize, &u32)| {
            let elements = dealt[*node as usize].by_ref().take(of_rank(rank));
            ElementSet::from_ranges(elements.map(|element| element..element + 1))
        };
        let shares = ranks.iter().enumerate().map(share).collect::<Result<_, _>>()?;
        Ok(Deal { shares, moved })
    }
}

/// Elements in an order that does not depend on which others there are.
fn in_order(seed: i64, time: u64, elements: impl Iterator<Item = u32>) -> Vec<u32> {
    let keys = SortKeys::placement(seed, time);
    let mut elements: Vec<(i64, u32)> = elements.map(|element| (keys.key(element.into()), element)).collect();
    elements.sort_unstable();
    elements.into_iter().map(|(_, element)| element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const NODES: u32 = 5;

    fn ranks() -> impl Strategy<Value = Vec<u32>> {
        prop::collection::vec(0..NODES, 1..12)
    }

    fn set(elements: &BTreeSet<u32>) -> ElementSet {
        ElementSet::from_ranges(elements.iter().map(|element| *element..element + 1)).unwrap()
    }

    /// The elements on each node.
    fn on_nodes(deal: &Deal, ranks: &[u32]) -> Vec<BTreeSet<u32>> {
        let mut on = vec![BTreeSet::new(); NODES as usize];
        for (share, node) in deal.shares.iter().zip(ranks) {
            on[*node as usize].extend(share.iter());
        }
        on
    }

    fn home(seed: i64, element: u32) -> usize {
        let all: Vec<u32> = (0..NODES).collect();
        Placement::new(NODES, seed).node(element.into(), &all).unwrap() as usize
    }

    proptest! {
        #[test]
        fn each_element_goes_to_one_rank_and_ranks_get_equally_many(
            elements in prop::collection::btree_set(0_u32..2000, 0..400),
            ranks in ranks(),
            seed: i64,
        ) {
            let deal = Deal::new(seed, NODES, &ranks, &set(&elements)).unwrap();
            let mut dealt: Vec<u32> = deal.shares.iter().flat_map(ElementSet::iter).collect();
            dealt.sort_unstable();
            prop_assert_eq!(dealt, elements.into_iter().collect::<Vec<_>>());
            let sizes: Vec<usize> = deal.shares.iter().map(ElementSet::len).collect();
            prop_assert_eq!(sizes.len(), ranks.len());
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{:?}", sizes);
        }

        #[test]
        fn no_deal_of_these_sizes_leaves_more_elements_at_home(
            elements in prop::collection::btree_set(0_u32..2000, 0..400),
            ranks in prop::collection::vec(0..NODES, 2..12),
            seed: i64,
        ) {
            let deal = Deal::new(seed, NODES, &ranks, &set(&elements)).unwrap();
            let mut at_home = 0;
            for (node, on) in on_nodes(&deal, &ranks).iter().enumerate() {
                let home_here = elements.iter().filter(|element| home(seed, **element) == node).count();
                at_home += home_here.min(on.len());
            }
            prop_assert_eq!(deal.moved, elements.len() - at_home);
        }

        #[test]
        fn of_two_jobs_one_keeps_on_a_common_node_what_the_other_one_keeps(
            elements in prop::collection::btree_set(0_u32..2000, 0..400),
            a in prop::collection::vec(0..NODES, 2..12),
            b in prop::collection::vec(0..NODES, 2..12),
            seed: i64,
        ) {
            let kept = |ranks: &[u32]| -> Vec<BTreeSet<u32>> {
                let deal = Deal::new(seed, NODES, ranks, &set(&elements)).unwrap();
                let at_home = |(node, on): (usize, BTreeSet<u32>)| {
                    on.into_iter().filter(|element| home(seed, *element) == node).collect()
                };
                on_nodes(&deal, ranks).into_iter().enumerate().map(at_home).collect()
            };
            for (a, b) in kept(&a).iter().zip(&kept(&b)) {
                prop_assert!(a.is_subset(b) || b.is_subset(a), "{:?} and {:?}", a, b);
            }
        }
    }

    #[test]
    fn jobs_with_equally_many_ranks_on_each_of_their_nodes_agree_nearly_as_in_the_double_hash() {
        let elements = ElementSet::from_ranges(std::iter::once(0..20_000)).unwrap();
        let (a, b) = ([0, 0, 1, 1, 2, 2, 3, 3], [1, 2, 3, 4]);
        let on = |ranks: &[u32]| on_nodes(&Deal::new(1, NODES, ranks, &elements).unwrap(), ranks);
        let agreed: usize = on(&a).iter().zip(&on(&b)).map(|(a, b)| a.intersection(b).count()).sum();
        // three of five nodes are common
        assert!(agreed >= 12_000 - 600, "{agreed}");
    }

    /// A change would part ranks that run different versions: their servers compare versions before.
    #[test]
    fn a_deal_stays_what_it_was() {
        let deal = Deal::new(7, 3, &[0, 0, 2], &ElementSet::from_ranges(std::iter::once(0..12)).unwrap()).unwrap();
        let shares: Vec<Vec<u32>> = deal.shares.iter().map(|share| share.iter().collect()).collect();
        assert_eq!(shares, [[4, 6, 7, 8], [0, 1, 10, 11], [2, 3, 5, 9]]);
    }
}
