//! Real data sets, at the accuracies that the project promises; small generated sets walk the same paths everywhere.

use corgipile_tests::{DataSet, Database, data_directory, generated_directory, shuffled_copy, skip};
use std::path::Path;

/// What a set has to show: the test accuracies that are promised, on average over the seeds,
/// and the learning rate for them.
struct Promise {
    learning_rate: f64,
    logistic: f64,
    svm: f64,
}

/// The papers' buffer: by default sets as small as these are held in it as a whole, and shuffled fully.
const TENTH: &str = "buffer_size => '10%'";

/// By how much a seed may be below the promise. What the last buffer of the last epoch happens to hold moves the model:
/// neighbouring rows of skin are pixels of one picture.
const OF_ONE_SEED: f64 = 0.005;

/// Trains on skin in its natural order, which is sorted by label, and checks the test accuracy of five seeds.
fn skin(directory: &Path, promise: &Promise) {
    let mut db = Database::new();
    DataSet::csv(directory, "skin_train").load(&mut db, "train");
    DataSet::csv(directory, "skin_test").load(&mut db, "test");
    for (model, promised) in [("logistic", promise.logistic), ("svm", promise.svm)] {
        let mut accuracy = |shuffle: &str, seed: u32| {
            let id = db.train(&format!(
                "'train', '{model}', shuffle => '{shuffle}', {TENTH}, seed => {seed}, learning_rate => {},
                 options => '{{\"standardize\": true}}'",
                promise.learning_rate
            ))[0]
                .model_id;
            db.evaluate(id, "test").accuracy
        };
        let corgipile: Vec<f64> = (1..=5).map(|seed| accuracy("corgipile", seed)).collect();
        let none = accuracy("no_shuffle", 1);
        let mean = corgipile.iter().sum::<f64>() / corgipile.len() as f64;
        let least = corgipile.iter().copied().fold(1.0, f64::min);
        let holds = mean >= promised && least >= promised - OF_ONE_SEED;
        assert!(holds, "{model}: corgipile reaches {corgipile:?}, promised {promised}");
        assert!(none < promised - 0.03, "{model}: no_shuffle reaches {none}, which is not worse than {promised}");
    }
}

/// Trains on a9a sorted by label and compares with a full shuffle.
fn a9a(directory: &Path, tolerance: f64) {
    let mut db = Database::new();
    let train = DataSet::libsvm(directory, "a9a_train", 123).sorted_by_label();
    train.load(&mut db, "train");
    shuffled_copy(&mut db, "train", "shuffled");
    for model in ["logistic", "svm"] {
        let mut accuracy = |table: &str, shuffle: &str| {
            let epochs = db.train(&format!(
                "'{table}', '{model}', shuffle => '{shuffle}', {TENTH}, seed => 1, features => '{{features_v}}',
                 learning_rate => 0.01"
            ));
            assert_eq!(epochs[19].tuples, train.len() as i64);
            db.evaluate(epochs[0].model_id, "train").accuracy
        };
        let full = accuracy("shuffled", "no_shuffle");
        let corgipile = accuracy("train", "corgipile");
        let none = accuracy("train", "no_shuffle");
        assert!((full - corgipile).abs() <= tolerance, "{model}: corgipile {corgipile}, full shuffle {full}");
        assert!(none < full - 2.0 * tolerance, "{model}: no_shuffle {none}, full shuffle {full}");
    }
}

#[test]
fn skin_in_natural_order_reaches_its_test_accuracy() {
    match data_directory() {
        Some(directory) => skin(&directory, &Promise { learning_rate: 0.001, logistic: 0.915, svm: 0.924 }),
        None => skip(skin_in_natural_order_reaches_its_test_accuracy, "CORGIPILE_DATA names no directory"),
    }
}

#[test]
fn a9a_sorted_by_label_is_as_good_as_fully_shuffled() {
    match data_directory() {
        Some(directory) => a9a(&directory, 0.005),
        None => skip(a9a_sorted_by_label_is_as_good_as_fully_shuffled, "CORGIPILE_DATA names no directory"),
    }
}

#[test]
fn a_generated_set_like_skin_reaches_its_test_accuracy() {
    let directory = generated_directory("skin");
    skin(&directory, &Promise { learning_rate: 0.01, logistic: 0.88, svm: 0.88 });
    std::fs::remove_dir_all(directory).expect("the generated sets can be removed");
}

#[test]
fn a_generated_set_like_a9a_is_as_good_as_fully_shuffled() {
    let directory = generated_directory("a9a");
    a9a(&directory, 0.015);
    std::fs::remove_dir_all(directory).expect("the generated sets can be removed");
}
