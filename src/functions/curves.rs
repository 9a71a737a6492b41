//! corgipile_confusion() and corgipile_curves(): how labels are confused, and curves to plot, on the rows of a source.

use super::evaluate::{Read, positive_of};
use super::model_functions::found_and_source;
use errors::{ArgumentError, OrRaise, Result};
use model::{Found, Model};
use options::nodes::Nodes;
use pg::call::function::Call;
use pg::values::output::OutputValue;
use pgrx::prelude::*;
use sgd::{CalibrationBin, ClassCurves, Confusion, CurvePoint, CurvesOfClass, score_of_key, score_of_key_of_f32};
use std::rc::Rc;
use train::by_group::ModelsByGroup;
use train::model_evaluation::ModelEvaluation;

#[pg_extern(sql = false)]
fn corgipile_confusion(call: Call<'_>) {
    call.return_rows(confusion(call).or_raise());
}

#[pg_extern(sql = false)]
fn corgipile_curves(call: Call<'_>) {
    call.return_rows(curves(call).or_raise());
}

/// Evaluates what the call names on the rows of its source; gives one of the models, too. `given` are the arguments
/// nulls and handle_unknown.
fn read(call: Call<'_>, given: [Option<&str>; 2]) -> Result<(Rc<Model>, ModelEvaluation)> {
    let check = |model: &Model| {
        let classes = model.classes.len();
        let reason = match (model.kind.is_classifier(), classes <= Confusion::CELLS) {
            (true, true) => return Ok(()),
            (false, _) => format!("{} predicts numbers, which have no labels", model.in_error()),
            (true, false) => format!("{} has {classes} labels, more than {}", model.in_error(), Confusion::CELLS),
        };
        Err(ArgumentError::InvalidArgument { argument: "model_id", reason, hint: None })
    };
    match found_and_source(call)? {
        (Found::Model(model), source) => {
            check(&model)?;
            let read = Read::of_model(&model, &source, given, &Nodes::Off)?;
            Ok((model, read.all))
        }
        (Found::Groups(models), source) => {
            let by_group = ModelsByGroup::new(models)?;
            let model = by_group.first().clone();
            check(&model)?;
            Ok((model, Read::of_groups(&by_group, &source, given)?.0.all))
        }
    }
}

/// A row for each pair of labels.
fn confusion(call: Call<'_>) -> Result<Vec<[OutputValue; 3]>> {
    let (model, evaluated) = read(call, [call.get(2), call.get(3)])?;
    let (confusion, classes) = (evaluated.evaluation().confusion(), &model.classes);
    let pairs = (0..classes.len()).flat_map(|actual| (0..classes.len()).map(move |predicted| (actual, predicted)));
    let row = |(actual, predicted): (usize, usize)| {
        let tuples = confusion.cell(actual, predicted).unwrap_or_default();
        [classes[actual].clone().into(), classes[predicted].clone().into(), (tuples as i64).into()]
    };
    Ok(pairs.map(row).collect())
}

/// Points of each curve, unless the call says how many.
const POINTS: i32 = 200;

/// Curve, label, x, y, threshold, tuples.
type Row = [OutputValue; 6];

fn curves(call: Call<'_>) -> Result<Vec<Row>> {
    let points = call.get(3).unwrap_or(POINTS);
    if !(2..=1_000_000).contains(&points) {
        let reason = format!("{points} is not between 2 and 1000000");
        return Err(ArgumentError::InvalidArgument { argument: "points", reason, hint: None }.into());
    }
    let given: Option<String> = call.get(2);
    let (model, mut evaluated) = read(call, [call.get(4), call.get(5)])?;
    let said = positive_of(&model, given.as_deref())?;
    let is_plain = model.classes.len() == 2 && model.values.is_some();
    let only = said.or(is_plain.then_some(1));
    let is_one = evaluated.curves() == 1;
    let totals: Vec<[u64; 2]> = (0..evaluated.curves()).map(|curve| evaluated.totals(curve)).collect();
    let mut rows = Vec::new();
    for (curve, (scores, totals)) in evaluated.scores().zip(totals).enumerate() {
        let points = points as usize;
        if is_one {
            // both labels by one list of scores
            let shared: &Model = &model;
            let is_shown = |class: &usize| only.is_none_or(|only| only == *class);
            let new = |class: usize| {
                let score = move |key| score_of_two(shared, score_of_key_of_f32(key), class);
                (class, CurvesOfClass::new(totals, (score, class == 0, model.has_probabilities()), points))
            };
            let mut shown: Vec<_> = [0, 1].into_iter().filter(is_shown).map(new).collect();
            for tied in scores {
                shown.iter_mut().for_each(|(_, curves)| curves.add(tied));
            }
            shown.into_iter().for_each(|(class, curves)| push(&mut rows, &model.classes[class], &curves.finish()));
        } else if only.is_none_or(|only| only == curve) {
            let kind = (score_of_key, false, model.kind.has_probabilities());
            let mut curves = CurvesOfClass::new(totals, kind, points);
            scores.for_each(|tied| curves.add(tied));
            push(&mut rows, &model.classes[curve], &curves.finish());
        }
    }
    Ok(rows)
}

/// The probability of one of two classes by a decision, or the decision for it.
fn score_of_two(model: &Model, decision: f32, class: usize) -> f64 {
    if !model.has_probabilities() {
        return f64::from(if class == 0 { -decision } else { decision });
    }
    let mut probabilities = [0.0; 2];
    model.probabilities(&[decision], &mut probabilities);
    probabilities[class]
}

fn push(rows: &mut Vec<Row>, class: &str, curves: &ClassCurves) {
    let [of_class, others] = curves.totals.map(|count| count as f64);
    let share = |part: f64, of: f64| (of > 0.0).then_some(part / of);
    let mut say = |curve: &'static str, x: Option<f64>, y: Option<f64>, threshold: Option<f64>, tuples: u64| {
        let row = [
            curve.to_owned().into(),
            class.to_owned().into(),
            x.into(),
            y.into(),
            threshold.into(),
            (tuples as i64).into(),
        ];
        rows.push(row);
    };
    let counts = |point: &CurvePoint| (point.of_class as f64, point.others as f64, point.of_class + point.others);
    say("roc", share(0.0, others), share(0.0, of_class), None, 0);
    for point in &curves.points {
        let (hits, misses, tuples) = counts(point);
        say("roc", share(misses, others), share(hits, of_class), Some(point.threshold), tuples);
    }
    for point in &curves.points {
        let (hits, misses, tuples) = counts(point);
        say("precision_recall", share(hits, of_class), share(hits, hits + misses), Some(point.threshold), tuples);
    }
    for point in &curves.points {
        let (hits, misses, tuples) = counts(point);
        let (all, found) = (of_class + others, hits + misses);
        let lift =
            share(hits, found).zip(share(of_class, all)).and_then(|(precision, of_all)| share(precision, of_all));
        say("lift", share(found, all), lift, Some(point.threshold), tuples);
    }
    for (i, bin) in curves.bins.iter().enumerate().filter(|(_, bin)| bin.tuples > 0) {
        let CalibrationBin { tuples, of_class, probabilities } = *bin;
        let (x, y) = (share(probabilities, tuples as f64), share(of_class as f64, tuples as f64));
        say("calibration", x, y, Some(i as f64 / curves.bins.len() as f64), tuples);
    }
}
