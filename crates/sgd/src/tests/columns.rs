//! Moments and standardization.

use loss::{Scaler, Standardizer};
use proptest::prelude::*;
use sgd_tests::{Noise, noisy_batch};
use simd::Level;
use tuples::Batch;

use crate::Moments;

/// Mean and population standard deviation of a column, in two passes.
fn two_pass(batch: &Batch, column: usize) -> (f64, f64) {
    let values = || (0..batch.len()).map(|i| f64::from(batch.features(i)[column]));
    let n = batch.len() as f64;
    let mean = values().sum::<f64>() / n;
    (mean, (values().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt())
}

fn moments(batch: &Batch) -> Standardizer {
    let mut moments = Moments::new(batch.dim());
    moments.add(batch).unwrap();
    assert_eq!(moments.count(), batch.len() as u64);
    moments.finish()
}

#[test]
fn moments_agree_with_two_passes_for_every_width() {
    for dim in [1, 2, 15, 16, 17, 31, 32, 100, 2000] {
        let batch = noisy_batch(dim, 1000, 4);
        let standardizer = moments(&batch);
        for column in 0..dim {
            let (mean, deviation) = two_pass(&batch, column);
            assert!((standardizer.mean[column] - mean).abs() < 1e-14);
            assert!((standardizer.scale[column] - deviation).abs() < 1e-14);
        }
    }
}

#[test]
fn columns_are_coarse_where_single_precision_has_few_steps() {
    // steps at 1.7e9 are of 128, at 1e7 of 1, at 1.5 of 2⁻²³
    let offsets = [1.7e9, 1.7e9, 1e7, 1e7, 1.5, 1e9, 5.0];
    let spreads = [1000.0, 1e5, 100.0, 500.0, 1e-4, 0.0, 0.0];
    let rows: Vec<Vec<f32>> = (0..1000)
        .map(|i| {
            let position = f64::from(i) / 999.0 * 2.0 - 1.0;
            offsets.iter().zip(spreads).map(|(offset, spread)| (offset + spread * position) as f32).collect()
        })
        .collect();
    let mut moments = Moments::new(offsets.len());
    let mut batch = Batch::new(offsets.len());
    rows.iter().for_each(|row| batch.push(1.0).unwrap().copy_from_slice(row));
    moments.add(&batch).unwrap();
    // deviations are spreads / 3 ^ ½: 577 of 8192, 57 of 64, and a constant whose steps are of 64
    assert_eq!(moments.coarse(), [0, 2, 5]);
}

#[test]
fn a_mean_far_from_0_and_an_outlier_cost_no_precision() {
    let mut noise = Noise::new(1);
    let mut batch = Batch::new(3);
    for i in 0..100_000 {
        let outlier = if i == 0 { -1e9 } else { 0.01 * noise.next() };
        // f32 has steps of 1/16 around a million
        let far = 1e6 + (noise.next() * 4.0).round() / 16.0;
        batch.push(1.0).unwrap().copy_from_slice(&[far, outlier, 1e6 + 1e-3 * noise.next()]);
    }
    let standardizer = moments(&batch);
    for column in 0..3 {
        let (mean, deviation) = two_pass(&batch, column);
        assert!((standardizer.mean[column] / mean - 1.0).abs() < 1e-12);
        assert!(column == 2 || (standardizer.scale[column] / deviation - 1.0).abs() < 1e-9, "{column}");
    }
    // in f32 the third column has lost its noise
    assert_eq!((standardizer.mean[2], standardizer.scale[2]), (1e6, 1.0));
}

#[test]
fn a_constant_column_has_scale_1_and_becomes_0() {
    let mut batch = noisy_batch(3, 5000, 5);
    (0..5000).for_each(|i| batch.features_mut(i)[1] = 0.1);
    let standardizer = moments(&batch);
    assert_eq!((standardizer.mean[1], standardizer.scale[1]), (f64::from(0.1f32), 1.0));
    Scaler::new(standardizer, None).apply(&mut batch, 0..5000);
    assert!((0..5000).all(|i| batch.features(i)[1] == 0.0));
}

#[test]
fn no_rows_leave_features_as_they_are() {
    let moments = Moments::new(2);
    assert_eq!((moments.count(), moments.finish()), (0, Standardizer { mean: vec![0.0; 2], scale: vec![1.0; 2] }));
}

#[test]
fn moments_are_the_same_bits_on_every_instruction_set() {
    let batch = noisy_batch(40, 3000, 6);
    let mut results = Level::available().into_iter().map(|level| {
        let mut moments = Moments::with_level(40, level);
        moments.add(&batch).unwrap();
        moments.finish()
    });
    let portable = results.next().unwrap();
    assert!(results.all(|standardizer| standardizer == portable));
}

#[test]
fn standardized_columns_have_mean_0_and_deviation_1_and_rows_keep_their_padding() {
    let mut batch = noisy_batch(20, 3000, 7);
    let standardizer = moments(&batch);
    let mut row = batch.features(17).to_vec();
    loss::standardize_row((&standardizer.mean, &standardizer.scale), None, &mut row);
    Scaler::new(standardizer, None).apply(&mut batch, 0..3000);
    assert_eq!(batch.features(17), row);
    assert_eq!(batch.row(17)[20..], [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    let after = moments(&batch);
    assert!(after.mean.iter().all(|mean| mean.abs() < 1e-6));
    assert!(after.scale.iter().all(|scale| (scale - 1.0).abs() < 1e-6));
}

#[test]
fn a_standardizer_survives_json() {
    let standardizer = moments(&noisy_batch(5, 100, 8));
    let json = serde_json::to_string(&standardizer).unwrap();
    assert_eq!(serde_json::from_str::<Standardizer>(&json).unwrap(), standardizer);
}

proptest! {
    #[test]
    fn batches_of_any_size_give_the_same_moments(dim in 1usize..40, n in 1usize..300, split in 0usize..300) {
        let batch = noisy_batch(dim, n, 9);
        let expected = moments(&batch);
        let mut piecewise = Moments::new(dim);
        let split = split % n;
        let mut add = |rows: std::ops::Range<usize>| {
            let mut part = Batch::new(dim);
            rows.for_each(|i| part.push(1.0).unwrap().copy_from_slice(batch.features(i)));
            piecewise.add(&part).unwrap();
        };
        (0..split).for_each(|i| add(i..i + 1));
        add(split..n);
        prop_assert_eq!(piecewise.count(), n as u64);
        let got = piecewise.finish();
        for column in 0..dim {
            prop_assert!((got.mean[column] - expected.mean[column]).abs() < 1e-14);
            prop_assert!((got.scale[column] - expected.scale[column]).abs() < 1e-12);
        }
    }
}
