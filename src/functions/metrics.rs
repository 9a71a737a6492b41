//! What corgipile_evaluate() says of a model: its metrics by name.

use loss::ModelKind;
use model::Model;
use sgd::{Areas, Evaluation, Retrieval};
use std::borrow::Cow;
use train::model_evaluation::ModelEvaluation;

/// A name and a value, which is None if it is not defined.
pub type Metric = (String, Option<f64>);

/// The score by which models of the kind are compared.
pub fn score(evaluation: &Evaluation) -> (&'static str, Option<f64>) {
    match evaluation.r2() {
        Some(r2) => ("r2", Some(r2)),
        None => ("accuracy", evaluation.accuracy()),
    }
}

/// The metrics, those of every kind of model first. `areas` are those under the curves if they are known, and
/// `positive` is the class that is positive if that was said.
pub fn metrics(
    model: &Model,
    areas: Option<Vec<Areas>>,
    evaluated: &mut ModelEvaluation,
    positive: Option<usize>,
    skipped: u64,
) -> Vec<Metric> {
    let areas = areas.unwrap_or_else(|| evaluated.areas());
    let (evaluation, loss) = (evaluated.evaluation(), evaluated.evaluation().loss());
    let mut all: Vec<Metric> = Vec::new();
    let mut say = |metric: &str, value: Option<f64>| all.push((metric.to_owned(), value));
    let (name, value) = score(evaluation);
    say(name, value);
    say("loss", Some(loss));
    say("tuples", Some(evaluation.tuples() as f64));
    say("skipped", Some(skipped as f64));
    if !model.kind.is_classifier() {
        say("rmse", evaluation.rmse());
        say("mae", evaluation.mae());
        if model.kind == ModelKind::Quantile {
            say("mean_pinball_loss", Some(loss));
            say("fraction_below", evaluation.fraction_below());
        }
        if let Some((deviance, explained)) = evaluation.poisson_deviance() {
            say("mean_poisson_deviance", Some(deviance));
            say("d2", Some(explained));
        }
        return all;
    }
    let (confusion, classes) = (evaluation.confusion(), &model.classes);
    let most = confusion.of_classes().into_iter().max();
    say("baseline_accuracy", most.map(|most| most as f64 / evaluation.tuples() as f64));
    if model.has_probabilities() {
        say("log_loss", Some(evaluated.log_loss()));
    }
    // two classes share a curve
    let of_class = |class: usize| match areas.as_slice() {
        [both] => (both.roc, both.precision_recall[class.min(1)]),
        many => many.get(class).map_or((None, None), |areas| (areas.roc, areas.precision_recall[1])),
    };
    // which of two numbers is positive goes without saying; which of two texts does not
    let is_plain = classes.len() == 2 && model.values.is_some();
    let positive = positive.map_or_else(|| is_plain.then_some((1, false)), |class| Some((class, true)));
    let mean = |values: Vec<Option<f64>>| {
        let count = values.len().max(1) as f64;
        values.into_iter().sum::<Option<f64>>().map(|sum| sum / count)
    };
    let (roc, pr, Retrieval { precision, recall, f1 }) = match positive {
        Some((class, _)) => (of_class(class).0, of_class(class).1, confusion.retrieval(class)),
        None => {
            let of_classes: Vec<_> = (0..classes.len()).map(of_class).collect();
            let (roc, pr) = of_classes.into_iter().unzip();
            (mean(roc), mean(pr), confusion.macro_average())
        }
    };
    say("roc_auc", roc);
    say("pr_auc", pr);
    say("precision", Some(precision));
    say("recall", Some(recall));
    say("f1", Some(f1));
    let names_classes = !is_plain || positive.is_some_and(|(_, is_said)| is_said);
    for (i, class) in classes.iter().enumerate().filter(|_| names_classes) {
        let Retrieval { precision, recall, f1 } = confusion.retrieval(i);
        let (class, (roc, pr)) = (in_brackets(class), of_class(i));
        say(&format!("roc_auc[{class}]"), roc);
        say(&format!("pr_auc[{class}]"), pr);
        say(&format!("precision[{class}]"), Some(precision));
        say(&format!("recall[{class}]"), Some(recall));
        say(&format!("f1[{class}]"), Some(f1));
    }
    for (i, actual) in classes.iter().enumerate() {
        for (j, predicted) in classes.iter().enumerate() {
            if let Some(tuples) = confusion.cell(i, j) {
                let (actual, predicted) = (in_brackets(actual), in_brackets(predicted));
                say(&format!("confusion[{actual},{predicted}]"), Some(tuples as f64));
            }
        }
    }
    all
}

/// A class as it stands in the name of a metric: in double quotes, doubled inside, where a comma, a bracket, a quote or
/// a space at an end could be taken for something else, so that two pairs of classes never have one name.
pub fn in_brackets(class: &str) -> Cow<'_, str> {
    let plain = !class.is_empty() && class.trim() == class && !class.contains(['"', ',', '[', ']']);
    if plain { Cow::Borrowed(class) } else { Cow::Owned(format!("\"{}\"", class.replace('"', "\"\""))) }
}
