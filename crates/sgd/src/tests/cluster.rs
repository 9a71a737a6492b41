//! The cluster factor against its definition, by hand and by brute force, and at both ends.

use loss::{ModelKind, ModelParameters};
use sgd_tests::Noise;
use tuples::Batch;

use crate::ClusterFactor;

/// A label (a class for softmax) and features.
type Tuple = (f32, Vec<f32>);

fn dense(tuples: &[Tuple]) -> Batch {
    let mut batch = Batch::dense(tuples[0].1.len());
    for (label, features) in tuples {
        batch.push(*label).unwrap().copy_from_slice(features);
    }
    batch
}

fn sparse(tuples: &[Tuple]) -> Batch {
    let mut batch = Batch::sparse();
    for (label, features) in tuples {
        let stored: Vec<(usize, f32)> = features.iter().copied().enumerate().filter(|(_, x)| *x != 0.0).collect();
        let (indices, values) = batch.push_sparse(*label, stored.len()).unwrap();
        for (place, (j, x)) in stored.into_iter().enumerate() {
            indices[place] = j as u32;
            values[place] = x;
        }
    }
    batch
}

fn factor(kind: ModelKind, blocks: &[Vec<Tuple>], batch_of: fn(&[Tuple]) -> Batch) -> Option<f64> {
    gathered(kind, blocks, batch_of).factor()
}

fn gathered(kind: ModelKind, blocks: &[Vec<Tuple>], batch_of: fn(&[Tuple]) -> Batch) -> ClusterFactor {
    gathered_at(ClusterFactor::new(kind), blocks, batch_of)
}

fn gathered_at(mut factor: ClusterFactor, blocks: &[Vec<Tuple>], batch_of: fn(&[Tuple]) -> Batch) -> ClusterFactor {
    for block in blocks {
        for part in block.chunks(7) {
            factor.add(&batch_of(part)).unwrap();
        }
        factor.end_block().unwrap();
    }
    assert_eq!(factor.tuples(), blocks.iter().map(|block| block.len() as u64).sum::<u64>());
    factor
}

/// The gradient of the loss at zero by weights and intercepts, class by class: the textbook's.
fn gradient(kind: ModelKind, classes: usize, (label, features): &Tuple) -> Vec<f64> {
    let y = f64::from(*label);
    let derivatives: Vec<f64> = match kind {
        ModelKind::Logistic => vec![-y / (1.0 + 0_f64.exp())],
        ModelKind::Svm => vec![-y],
        ModelKind::SquaredHinge => vec![-2.0 * y],
        ModelKind::Linear => vec![0.0 - y],
        ModelKind::SvmOneVsRest => (0..classes).map(|k| if k as f64 == y { -1.0 } else { 1.0 }).collect(),
        ModelKind::SquaredHingeOneVsRest => (0..classes).map(|k| if k as f64 == y { -2.0 } else { 2.0 }).collect(),
        ModelKind::Poisson => vec![1.0 - y],
        // a quantile of 1/2
        ModelKind::Quantile => vec![-y.signum() / 2.0],
        ModelKind::EpsilonInsensitive => vec![-y.signum()],
        ModelKind::Huber => vec![-y.clamp(-1.35, 1.35)],
        ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
        ModelKind::Softmax => (0..classes).map(|k| 1.0 / classes as f64 - f64::from(u8::from(k as f64 == y))).collect(),
    };
    let inputs = || features.iter().map(|x| f64::from(*x)).chain([1.0]);
    derivatives.iter().flat_map(|derivative| inputs().map(move |x| derivative * x)).collect()
}

fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    (0..vectors[0].len()).map(|j| vectors.iter().map(|v| v[j]).sum::<f64>() / vectors.len() as f64).collect()
}

fn distance2(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

/// h_D as the paper defines it.
fn by_definition(kind: ModelKind, blocks: &[Vec<Tuple>]) -> f64 {
    let classes = 1 + blocks.iter().flatten().map(|(label, _)| *label as usize).max().unwrap();
    let gradients: Vec<Vec<Vec<f64>>> =
        blocks.iter().map(|block| block.iter().map(|tuple| gradient(kind, classes, tuple)).collect()).collect();
    let all: Vec<Vec<f64>> = gradients.iter().flatten().cloned().collect();
    let (m, center) = (all.len() as f64, mean(&all));
    let of_blocks: f64 = gradients.iter().map(|b| b.len() as f64 / m * distance2(&mean(b), &center)).sum();
    let of_tuples = all.iter().map(|g| distance2(g, &center)).sum::<f64>() / m;
    m / blocks.len() as f64 * of_blocks / of_tuples
}

/// Tuples in blocks of 50: label and features of tuple i are functions of i and noise.
fn blocks(n: usize, tuple: impl Fn(usize, &mut Noise) -> Tuple) -> Vec<Vec<Tuple>> {
    let mut noise = Noise::new(1);
    let tuples: Vec<Tuple> = (0..n).map(|i| tuple(i, &mut noise)).collect();
    tuples.chunks(50).map(<[Tuple]>::to_vec).collect()
}

#[test]
fn three_tuples_in_two_blocks_are_as_computed_by_hand() {
    // Gradients, up to a factor: (0, -1) and (-2, -1) in one block, (2, 1) in the other. Their mean is (0, -1/3), those
    // of the blocks (-1, -1) and (2, 1): 2/3 * 13/9 + 1/3 * 52/9 = 26/9 between blocks, (4 + 40 + 52) / 27 = 32/9
    // between tuples, 3/2 tuples per block.
    let blocks = [vec![(1.0, vec![0.0]), (1.0, vec![2.0])], vec![(-1.0, vec![2.0])]];
    for kind in [ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear] {
        for batch_of in [dense, sparse] {
            let found = factor(kind, &blocks, batch_of).unwrap();
            assert!((found - 1.5 * 26.0 / 32.0).abs() < 1e-12, "{kind}: {found}");
        }
    }
}

#[test]
fn a_table_sorted_by_class_of_tuples_that_are_alike_has_the_factor_of_a_block() {
    let sorted = blocks(1000, |i, _| (if i < 500 { 1.0 } else { -1.0 }, vec![3.0, 0.5]));
    let found = factor(ModelKind::Logistic, &sorted, dense).unwrap();
    assert!((found - 50.0).abs() < 1e-9, "{found}");
    let classes = blocks(1000, |i, _| ((i / 250) as f32, vec![3.0, 0.5]));
    let found = factor(ModelKind::Softmax, &classes, dense).unwrap();
    assert!((found - 50.0).abs() < 1e-9, "{found}");
}

#[test]
fn a_shuffled_table_has_a_factor_of_about_1() {
    let sign = |x: f32| if x > 0.0 { 1.0 } else { -1.0 };
    let shuffled =
        blocks(50_000, |_, noise| (sign(noise.next()), vec![noise.next(), 1.0 + noise.next(), noise.next()]));
    for kind in [ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear] {
        let found = factor(kind, &shuffled, dense).unwrap();
        assert!((0.9..1.1).contains(&found), "{kind}: {found}");
    }
    let classes = blocks(50_000, |_, noise| ((2.0 + 2.0 * noise.next()).floor(), vec![noise.next(), 1.0]));
    let found = factor(ModelKind::Softmax, &classes, dense).unwrap();
    assert!((0.9..1.1).contains(&found), "{found}");
}

#[test]
fn every_kind_is_as_defined_on_blocks_of_different_sizes_dense_and_sparse() {
    let zeros = |x: f32| if x < 0.2 { 0.0 } else { x };
    let features = |noise: &mut Noise| (0..9).map(|_| 100.0 * zeros(noise.next())).collect::<Vec<f32>>();
    let mut signs = blocks(777, |i, noise| (if i % 90 < 50 { 1.0 } else { -1.0 }, features(noise)));
    let mut targets = blocks(777, |i, noise| (1000.0 + i as f32 / 100.0 * noise.next(), features(noise)));
    let mut classes = blocks(777, |i, noise| ((i / 60 % 5) as f32, features(noise)));
    for blocks in [&mut signs, &mut targets, &mut classes] {
        blocks[3].truncate(1);
        blocks[5].truncate(20);
    }
    for (kind, blocks) in [
        (ModelKind::Logistic, &signs),
        (ModelKind::Svm, &signs),
        (ModelKind::Linear, &targets),
        (ModelKind::Softmax, &classes),
    ] {
        let expected = by_definition(kind, blocks);
        for batch_of in [dense, sparse] {
            let found = factor(kind, blocks, batch_of).unwrap();
            assert!((found - expected).abs() < 1e-9 * expected, "{kind}: {found}, by definition {expected}");
            // blocks of other processes, of which one has none, count like own ones
            let mut all = gathered(kind, &blocks[..4], batch_of);
            for others in [&blocks[4..4], &blocks[4..5], &blocks[5..]] {
                let sums = serde_json::to_string(&gathered(kind, others, batch_of).sums()).unwrap();
                all.add_sums(&serde_json::from_str(&sums).unwrap()).unwrap();
            }
            assert_eq!(all.tuples(), blocks.iter().map(|block| block.len() as u64).sum::<u64>());
            let united = all.factor().unwrap();
            assert!((united - expected).abs() < 1e-9 * expected, "{kind}: {united}, by definition {expected}");
        }
    }
}

#[test]
fn gradients_that_are_all_the_same_have_no_factor() {
    let same = blocks(200, |_, _| (1.0, vec![0.1, 7.3]));
    assert_eq!(factor(ModelKind::Svm, &same, dense), None);
    assert_eq!(factor(ModelKind::Linear, &same, sparse), None);
    assert_eq!(ClusterFactor::new(ModelKind::Softmax).factor(), None);
}

#[test]
fn one_block_does_not_differ_from_itself() {
    let one = vec![blocks(50, |i, _| (i as f32, vec![1.0])).concat()];
    assert!(factor(ModelKind::Linear, &one, dense).unwrap() < 1e-9);
}

#[test]
fn at_a_model_of_zeros_it_is_that_without_a_model() {
    let features = |noise: &mut Noise| (0..4).map(|_| noise.next()).collect::<Vec<f32>>();
    let signs = blocks(600, |i, noise| (if i % 90 < 50 { 1.0 } else { -1.0 }, features(noise)));
    let classes = blocks(600, |i, noise| ((i / 60 % 3) as f32, features(noise)));
    let counts = blocks(600, |i, noise| ((i / 90 % 4) as f32, features(noise)));
    for (kind, blocks, outputs) in [
        (ModelKind::Logistic, &signs, 1),
        (ModelKind::Svm, &signs, 1),
        (ModelKind::Linear, &counts, 1),
        (ModelKind::Poisson, &counts, 1),
        (ModelKind::Huber, &counts, 1),
        (ModelKind::Softmax, &classes, 3),
        (ModelKind::SvmOneVsRest, &classes, 3),
    ] {
        let expected = by_definition(kind, blocks);
        for batch_of in [dense, sparse] {
            let zero = ClusterFactor::at(kind, ModelParameters::new(4, outputs), 1.35);
            let found = gathered_at(zero, blocks, batch_of).factor().unwrap();
            assert!((found - expected).abs() < 1e-5 * expected, "{kind}: {found}, by definition {expected}");
        }
    }
}

#[test]
fn at_a_model_gradients_are_those_of_its_decisions() {
    // of a line that all targets are on but for those of one block, which pull the same way
    let line = ModelParameters { weights: vec![2.0], intercepts: vec![1.0], ..ModelParameters::new(1, 1) };
    let tuples = blocks(500, |i, noise| {
        let x = noise.next();
        (2.0 * x + 1.0 + if i < 50 { 0.5 } else { 0.0 }, vec![x])
    });
    let at = |model| gathered_at(ClusterFactor::at(ModelKind::Linear, model, 0.0), &tuples, dense).factor().unwrap();
    let (line, zero) = (at(line), at(ModelParameters::new(1, 1)));
    assert!(line > 30.0 && line < 50.0, "{line}");
    assert!(zero < 5.0, "{zero}");
}
