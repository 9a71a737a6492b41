//! What a call leaves: its models' history, weights and predictions, and how two of them are compared.

use corgipile_tests::{Failure, Session};

/// How alike two outcomes must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Same {
    /// Weights and predictions bit for bit; what was measured, but for the rounding of sums in double precision.
    Bits,
    /// So far apart at most, relative to the largest number of its kind, or to 1.
    Within(f64),
    /// As [`Same::Within`], but for accuracy and R².
    ButScores(f64),
}

/// A model of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    id: i64,
    pub group: Option<String>,
    /// Of each epoch: number, rate, rows, loss, accuracy, R², loss and score of the rows held out.
    history: Vec<f64>,
    /// As it is stored: weights, intercepts, means, scales, what stands for NULLs, Platt's scaling.
    stored: Vec<f64>,
    /// Weights in the units of the data, of each output, with their features' names; of networks there are no such
    /// ones.
    coefficients: Vec<(i64, String, f64)>,
    /// Of all rows of `t`: probabilities, or numbers, or else the places of the classes.
    predictions: Vec<f64>,
    are_classes: bool,
    /// The values that `corgipile_evaluate` gives.
    metrics: Vec<f64>,
}

/// The models of a call, or why it has none.
pub type Outcome = Result<Vec<Trained>, Failure>;

/// Trains, and looks at the models. `before`: a call whose model this one goes on with.
pub fn outcome(db: &mut Session, before: Option<&str>, call: &str) -> Outcome {
    let ids = |db: &mut Session, arguments: &str| {
        db.attempt(&format!("SELECT DISTINCT model_id FROM corgipile_train({arguments}) ORDER BY 1"))
    };
    let call = match before {
        None => call.to_owned(),
        Some(before) => call.replace("$BEFORE$", &ids(db, before)?[0]),
    };
    ids(db, &call)?.iter().map(|id| look_at(db, id)).collect()
}

fn numbers(line: &str) -> Vec<f64> {
    let number = |field: &str| if field == "NULL" { f64::NAN } else { field.parse().expect("a number") };
    line.split('|')
        .flat_map(|field| field.trim_matches(['{', '}']).split(','))
        .filter(|f| !f.is_empty())
        .map(number)
        .collect()
}

fn look_at(db: &mut Session, id: &str) -> Result<Trained, Failure> {
    let about = db.attempt(&format!(
        "SELECT model, cardinality(classes), hyperparameters->>'group',
                weights, intercepts, feature_mean, feature_scale, feature_fill, sigmoid_slopes, sigmoid_offsets
           FROM corgipile.models WHERE model_id = {id}"
    ))?;
    let fields: Vec<&str> = about[0].split('|').collect();
    let (model, classes, group) = (fields[0], fields[1], fields[2]);
    let has_probabilities = ["logistic", "softmax", "mlp"].contains(&model) || fields[8] != "NULL";
    let (prediction, are_classes) = match classes {
        "NULL" => (format!("ARRAY[corgipile_predict({id}, t)]"), false),
        _ if has_probabilities => (format!("corgipile_predict_proba({id}, t)"), false),
        _ => (
            format!(
                "ARRAY[array_position((SELECT classes FROM corgipile.models WHERE model_id = {id}),
                                      corgipile_predict_label({id}, t))]"
            ),
            true,
        ),
    };
    let predictions = db.attempt(&format!("SELECT {prediction} FROM t ORDER BY id"))?;
    let history = db.attempt(&format!(
        "SELECT epoch, learning_rate, tuples, loss, accuracy, r2, validation_loss, validation_score
           FROM corgipile.all_training_history WHERE model_id = {id} ORDER BY epoch"
    ))?;
    let coefficients = db.attempt(&format!(
        "SELECT class_number, feature, coefficient FROM corgipile.all_coefficients WHERE model_id = {id} ORDER BY class_number, feature_number"
    ))?;
    // of two labels, the second is positive, whether they are texts or numbers
    let positive =
        format!("(SELECT classes[2] FROM corgipile.models WHERE model_id = {id} AND cardinality(classes) = 2)");
    let metrics =
        db.attempt(&format!("SELECT value FROM corgipile_evaluate({id}::bigint, 't', positive => {positive})"))?;
    let all = |lines: &[String]| lines.iter().flat_map(|line| numbers(line)).collect::<Vec<f64>>();
    Ok(Trained {
        id: id.parse().expect("a number"),
        group: (group != "NULL").then(|| group.to_owned()),
        history: all(&history),
        stored: fields[3..].iter().flat_map(|field| numbers(field)).collect(),
        coefficients: coefficients
            .iter()
            .map(|line| {
                let fields: Vec<&str> = line.split('|').collect();
                (fields[0].parse().expect("a number"), fields[1].to_owned(), numbers(fields[2])[0])
            })
            .collect(),
        predictions: all(&predictions),
        are_classes,
        metrics: all(&metrics),
    })
}

/// What a history has of each epoch.
const OF_AN_EPOCH: usize = 8;

/// Is there a difference, and which? `by_name`: the features are in another order, and have the same names.
pub fn difference(left: &Trained, right: &Trained, same: Same, by_name: bool) -> Option<String> {
    match same {
        Same::Bits => {
            [("weights", &left.stored, &right.stored), ("predictions", &left.predictions, &right.predictions)]
                .into_iter()
                .find_map(|(what, left, right)| bits(what, left, right))
                .or_else(|| apart("history", &left.history, &right.history, 1e-12))
                .or_else(|| apart("metrics", &left.metrics, &right.metrics, 1e-12))
        }
        Same::Within(tolerance) => near(left, right, (tolerance, tolerance.max(0.015)), by_name),
        Same::ButScores(tolerance) => near(left, right, (tolerance, f64::INFINITY), by_name),
    }
}

fn bits(what: &str, left: &[f64], right: &[f64]) -> Option<String> {
    if left.len() != right.len() {
        return Some(format!("{what}: {} numbers, not {}", right.len(), left.len()));
    }
    let differ = |&i: &usize| left[i].to_bits() != right[i].to_bits();
    let first = (0..left.len()).find(differ)?;
    let n = (0..left.len()).filter(differ).count();
    Some(format!("{what}: number {first} is {:e}, not {:e}; {n} of {} differ", right[first], left[first], left.len()))
}

fn near(left: &Trained, right: &Trained, (tolerance, of_scores): (f64, f64), by_name: bool) -> Option<String> {
    let coefficients = |model: &Trained| {
        let mut coefficients = model.coefficients.clone();
        if by_name {
            coefficients.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        }
        coefficients.into_iter().map(|(_, _, value)| value).collect::<Vec<f64>>()
    };
    // a decision that is next to the border may be on its other side: a few rows of 300
    let losses = |model: &Trained, of: &[usize]| {
        model.history.chunks(OF_AN_EPOCH).flat_map(|epoch| of.iter().map(|i| epoch[*i])).collect::<Vec<f64>>()
    };
    let probabilities = |model: &Trained| if model.are_classes { Vec::new() } else { model.predictions.clone() };
    [
        ("losses", losses(left, &[3, 6]), losses(right, &[3, 6]), tolerance),
        ("scores", losses(left, &[4, 5, 7]), losses(right, &[4, 5, 7]), of_scores),
        ("coefficients", coefficients(left), coefficients(right), tolerance),
        ("predictions", probabilities(left), probabilities(right), tolerance),
    ]
    .into_iter()
    .find_map(|(what, left, right, tolerance)| apart(what, &left, &right, tolerance))
}

fn apart(what: &str, left: &[f64], right: &[f64], tolerance: f64) -> Option<String> {
    if left.len() != right.len() {
        return Some(format!("{what}: {} numbers, not {}", right.len(), left.len()));
    }
    let size = left.iter().filter(|x| !x.is_nan()).fold(1.0_f64, |size, x| size.max(x.abs()));
    let far = |i: &usize| {
        let (a, b) = (left[*i], right[*i]);
        // NULL or not, they are so together
        a.is_nan() != b.is_nan() || (a - b).abs() > tolerance * size
    };
    let worst = (0..left.len()).filter(far).max_by(|i, j| {
        let by = |i: usize| (left[i] - right[i]).abs();
        by(*i).total_cmp(&by(*j))
    })?;
    let by = (left[worst] - right[worst]).abs() / size;
    Some(format!("{what}: number {worst} of {}: {}, not {}, by {by:.1e}", left.len(), right[worst], left[worst]))
}
