//! Predictions of every kind of model from arrays, against what the stored weights say.

use corgipile_tests::stored::{DENSE, MIXED, SOFTMAX, SPARSE};
use corgipile_tests::{Database, Stored};

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

pub fn assert_near(given: &[f64], expected: &[f64]) {
    assert_eq!(given.len(), expected.len(), "{given:?} {expected:?}");
    for (g, e) in given.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-6 * e.abs().max(1.0), "{given:?} should be {expected:?}");
    }
}

/// Some inputs with different signs and sizes.
const INPUTS: [[f64; 3]; 5] =
    [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [-4.0, 0.5, 0.25], [100.0, -30.0, 0.0], [0.0, 0.0, -0.75]];

#[test]
fn logistic_and_svm_decide_by_the_sign_of_the_stored_weights() {
    let mut db = Database::new();
    let logistic = DENSE.store(&mut db, "logistic");
    let svm = Stored { model: "svm", ..DENSE }.store(&mut db, "svm");
    for [a, b, c] in INPUTS {
        let z = 0.5 * a - 1.25 * b + 2.0 * c + 0.125;
        let expected = if z > 0.0 { 1.0 } else { -1.0 };
        for id in [logistic, svm] {
            let x = format!("{id}, ARRAY[{a},{b},{c}]::float8[]");
            assert_eq!(db.value::<f64>(&format!("SELECT corgipile_predict({x})")), expected);
            assert_eq!(db.line(&format!("SELECT corgipile_predict_label({x})")), expected.to_string());
        }
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({logistic}, ARRAY[{a},{b},{c}]::real[])"));
        assert_near(&p, &[sigmoid(-z), sigmoid(z)]);
    }
    db.fails_with(&format!("SELECT corgipile_predict_proba({svm}, ARRAY[1,2,3])"), "0A000").hints(&["logistic"]);
}

#[test]
fn linear_predicts_the_value_and_has_neither_labels_nor_probabilities() {
    let mut db = Database::new();
    let linear = Stored { model: "linear", classes: "NULL", label_type: "numeric", ..DENSE };
    let id = linear.store(&mut db, "m");
    for [a, b, c] in INPUTS {
        let z: f64 = db.value(&format!("SELECT corgipile_predict('m', ARRAY[{a},{b},{c}]::float8[])"));
        assert_near(&[z], &[0.5 * a - 1.25 * b + 2.0 * c + 0.125]);
    }
    db.fails_with(&format!("SELECT corgipile_predict_label({id}, ARRAY[1,2,3])"), "0A000")
        .hints(&["corgipile_predict()"]);
    db.fails_with(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1,2,3])"), "0A000")
        .says(&["linear"])
        .hints(&["corgipile_predict()"]);
}

#[test]
fn softmax_gives_every_class_its_probability_and_predicts_the_likeliest() {
    let mut db = Database::new();
    let id = SOFTMAX.store(&mut db, "m");
    for [a, b, c] in INPUTS {
        let x = format!("{id}, ARRAY[{a},{b},{c}]::float8[]");
        let z = [a + 2.0 * b + 3.0 * c + 0.1, -a + 0.5 * b + 2.0 * c + 0.2, -2.0 * b + 1.5 * c - 0.3];
        let largest = z.iter().fold(f64::MIN, |m, z| m.max(*z));
        let sum: f64 = z.iter().map(|z| (z - largest).exp()).sum();
        let expected: Vec<f64> = z.iter().map(|z| (z - largest).exp() / sum).collect();
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({x})"));
        assert_near(&p, &expected);
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{p:?}");
        let best = z.iter().position(|z| *z == largest).expect("one is the largest");
        assert_eq!(db.line(&format!("SELECT corgipile_predict_label({x})")), ["ant", "bee", "cat"][best]);
        db.fails_with(&format!("SELECT corgipile_predict({x})"), "0A000").hints(&["corgipile_predict_label"]);
    }
}

#[test]
fn of_classes_that_are_as_likely_softmax_predicts_the_first() {
    let mut db = Database::new();
    let model = Stored { weights: "'{1,0,0,2,0,0,2,0,0}'", intercepts: "'{0,0,0}'", ..SOFTMAX };
    let id = Stored { classes: "'{10,20,30}'", label_type: "smallint", ..model }.store(&mut db, "m");
    for (x, class) in [("1", 20.0), ("0", 10.0), ("-1", 10.0)] {
        assert_eq!(db.value::<f64>(&format!("SELECT corgipile_predict({id}, ARRAY[{x},0,0])")), class, "{x}");
    }
}

#[test]
fn softmax_probabilities_do_not_overflow() {
    let mut db = Database::new();
    let id = SOFTMAX.store(&mut db, "m");
    let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({id}, ARRAY[1e6,1e6,1e6])"));
    assert_near(&p, &[1.0, 0.0, 0.0]);
}

#[test]
fn a_standardized_model_standardizes_what_it_is_asked() {
    let mut db = Database::new();
    let linear = Stored { model: "linear", classes: "NULL", ..DENSE };
    Stored { mean: "'{1,-2,0}'", scale: "'{2,0.5,1}'", ..linear }.store(&mut db, "dense");
    // Sparse features are not centred, so that what is not there stays 0.
    Stored { features: "'{k,v}'", kind: "sparse", index_base: "1", mean: "'{0,0,0}'", scale: "'{2,0.5,1}'", ..linear }
        .store(&mut db, "sparse");
    let mixed = Stored { mean: "'{1,0,0,0,-2}'", scale: "'{2,1,1,1,0.5}'", ..MIXED };
    mixed.store(&mut db, "mixed");
    for [a, b, c] in INPUTS {
        let z: f64 = db.value(&format!("SELECT corgipile_predict('dense', ARRAY[{a},{b},{c}]::float8[])"));
        assert_near(&[z], &[0.5 * (a - 1.0) / 2.0 - 1.25 * (b + 2.0) / 0.5 + 2.0 * c + 0.125]);
        let z: f64 = db.value(&format!("SELECT corgipile_predict('sparse', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}])"));
        assert_near(&[z], &[0.5 * a / 2.0 - 1.25 * b / 0.5 + 2.0 * c + 0.125]);
        let row = format!("SELECT {a}::float8 AS a, 'high' AS level, {b}::float8 AS b");
        let z: f64 = db.value(&format!("SELECT corgipile_predict('mixed', t) FROM ({row}) t"));
        assert_near(&[z], &[0.5 * (a - 1.0) / 2.0 + 20.0 - 3.0 * (b + 2.0) / 0.5 + 0.25]);
    }
    let absent: f64 = db.value("SELECT corgipile_predict('dense', '{3}'::int[], '{4}'::int[])");
    assert_near(&[absent], &[-0.5 / 2.0 - 1.25 * 2.0 / 0.5 + 8.0 + 0.125]);
}

#[test]
fn sparse_features_predict_what_the_dense_ones_do() {
    let mut db = Database::new();
    DENSE.store(&mut db, "dense");
    SPARSE.store(&mut db, "one");
    Stored { index_base: "0", ..SPARSE }.store(&mut db, "zero");
    for [a, b, c] in INPUTS {
        let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('dense', ARRAY[{a},{b},{c}]::real[])"));
        for call in [
            format!("'one', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            format!("'one', '{{3,1,2}}'::bigint[], ARRAY[{c},{a},{b}]::float8[]"),
            format!("'one', '{{2,1,3}}'::smallint[], ARRAY[{b},{a},{c}]::numeric[]"),
            format!("'zero', '{{0,1,2}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            // A model takes what it was not trained on, too, if nothing is unclear about it.
            format!("'dense', '{{1,2,3}}'::int[], ARRAY[{a},{b},{c}]::real[]"),
            format!("'one', ARRAY[{a},{b},{c}]::float8[]"),
            format!("'zero', ARRAY[{a},{b},{c}]::float8[]"),
        ] {
            let given: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba({call})"));
            assert_near(&given, &p);
        }
    }
}

#[test]
fn what_a_sparse_tuple_does_not_name_is_0() {
    let mut db = Database::new();
    SPARSE.store(&mut db, "m");
    DENSE.store(&mut db, "dense");
    for model in ["m", "dense"] {
        for (arrays, z) in [
            ("'{}'::int[], '{}'::real[]", 0.125),
            ("'{2}'::int[], '{4}'::real[]", -5.0 + 0.125),
            ("'{3,1}'::int[], '{t,t}'::boolean[]", 2.5 + 0.125),
        ] {
            let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('{model}', {arrays})"));
            assert_near(&p, &[sigmoid(-z), sigmoid(z)]);
        }
    }
}

#[test]
fn sparse_arrays_that_make_no_sense_are_errors_that_say_why() {
    let mut db = Database::new();
    let id = SPARSE.store(&mut db, "m");
    let last = i64::MAX;
    for (arrays, code, says) in [
        ("'{1,NULL}'::int[], '{1,2}'::real[]", "22004", "index number 2"),
        ("'{1,2}'::int[], '{1,NULL}'::real[]", "22004", "feature 2"),
        ("'{1,2}'::int[], '{1}'::real[]", "2202E", "2 indices"),
        ("'{1,2}'::int[], '{}'::real[]", "2202E", "2 indices"),
        ("'{1,2,1}'::int[], '{1,2,3}'::real[]", "2202E", "index 1"),
        ("'{0}'::int[], '{1}'::real[]", "2202E", "index 0"),
        ("'{-5}'::smallint[], '{1}'::real[]", "2202E", "index -5"),
        ("'{1,4}'::int[], '{1,2}'::real[]", "2202E", "index 4"),
        (&format!("'{{{last}}}'::bigint[], '{{1}}'::real[]"), "2202E", "9223372036854775807"),
        (&format!("'{{-{last}}}'::bigint[], '{{1}}'::real[]"), "2202E", "-9223372036854775807"),
        ("'{2}'::int[], '{NaN}'::real[]", "22003", "feature 2"),
        ("'{2}'::int[], '{1e300}'::float8[]", "22003", "feature 2"),
        ("'{{1,2}}'::int[], '{1,2}'::real[]", "2202E", "dimensions"),
        ("'{1,2}'::int[], '{{1,2}}'::real[]", "2202E", "dimensions"),
        ("'{1,2}'::real[], '{1,2}'::real[]", "42804", "real[]"),
        ("'{1,2}'::numeric[], '{1,2}'::real[]", "42804", "numeric[]"),
        ("'{1,2}'::int[], '{1,2}'::text[]", "42804", "text[]"),
        ("'{1,2}'::text[], '{1,2}'::int[]", "42804", "text[]"),
    ] {
        for function in ["corgipile_predict", "corgipile_predict_label", "corgipile_predict_proba"] {
            db.fails_with(&format!("SELECT {function}({id}, {arrays})"), code).says(&[says]);
        }
    }
    db.fails_with(&format!("SELECT corgipile_predict({id}, ARRAY[1,2])"), "2202E").says(&["3 features", "2 given"]);
    assert_eq!(db.line(&format!("SELECT corgipile_predict({id}, '{{3}}'::int[], '{{1}}'::int[])")), "1");
}

#[test]
fn indices_beyond_the_model_count_as_zero_if_it_was_trained_so() {
    let mut db = Database::new();
    Stored { options: "{\"handle_unknown\": \"ignore\"}", ..SPARSE }.store(&mut db, "zero");
    SPARSE.store(&mut db, "error");
    let arrays = "'{2,7,4}'::int[], '{1,5,3}'::real[]";
    let p: Vec<f64> = db.value(&format!("SELECT corgipile_predict_proba('zero', {arrays})"));
    assert_near(&p, &[sigmoid(1.125), sigmoid(-1.125)]);
    db.fails_with(&format!("SELECT corgipile_predict_proba('error', {arrays})"), "2202E")
        .says(&["index 7", "3"])
        .hints(&["handle_unknown"]);
    // Below the base nothing can be meant.
    db.fails_with("SELECT corgipile_predict('zero', '{0}'::int[], '{1}'::int[])", "2202E").hints(&["index_base"]);
}
