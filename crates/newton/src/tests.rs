//! What is added up, to the bit, and the equations.

use proptest::prelude::*;
use sgd_tests::{Noise, SMOOTH, smooth_batch};
use simd::Level;

use crate::cholesky::Cholesky;
use crate::sums::Sums;

#[test]
fn the_sums_have_the_same_bits_in_all_instruction_sets_and_however_they_are_cut() {
    for kind in SMOOTH {
        for dim in [1, 7, 8, 28, 100, 230] {
            let batch = smooth_batch(kind, dim, 150, 3);
            let point: Vec<f64> = (0..=dim).map(|i| (i as f64 * 0.7).sin() / 3.0).collect();
            let bits_of = |level, cuts: &[usize]| {
                let mut sums = Sums::new(kind, dim, false, level).unwrap();
                cuts.windows(2).for_each(|cut| sums.add(&batch, &batch.order()[cut[0]..cut[1]], &point));
                let pairs = (0..=dim).flat_map(|i| (0..=dim).map(move |j| (i, j)));
                let hessian: Vec<u64> = pairs.map(|(i, j)| sums.hessian(i, j).to_bits()).collect();
                let gradient: Vec<u64> = (0..=dim).map(|i| sums.gradient(i).to_bits()).collect();
                (hessian, gradient, sums.totals().loss.to_bits(), sums.totals().correct)
            };
            let expected = bits_of(Level::PORTABLE, &[0, 150]);
            for level in Level::available() {
                assert!(bits_of(level, &[0, 150]) == expected, "{kind} {dim} {level:?}");
                assert!(bits_of(level, &[0, 1, 64, 65, 150]) == expected, "{kind} {dim} {level:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn equations_are_solved(size in 1usize..40, seed: u64) {
        let mut noise = Noise::new(seed);
        let rows: Vec<Vec<f64>> = (0..size + 5).map(|_| (0..size).map(|_| noise.next().into()).collect()).collect();
        let element = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
        let expected: Vec<f64> = (0..size).map(|_| noise.next().into()).collect();
        let mut b: Vec<f64> = (0..size).map(|i| (0..size).map(|j| element(i, j) * expected[j]).sum()).collect();
        let mut equations = Cholesky::new(size).unwrap();
        equations.factor(element);
        prop_assume!((0..size).all(|i| equations.keeps(i)));
        equations.solve(&mut b);
        for (i, (found, expected)) in b.iter().zip(&expected).enumerate() {
            prop_assert!((found - expected).abs() < 1e-4, "{} {} {}", i, found, expected);
        }
    }
}
