//! What is learned, and what becomes of it: losses, probabilities, networks, and the models that are stored.

use super::default_texts::default_loss_epsilon;
use crate::options::choices::Choice;
use crate::options::entry::{Default, Entry, Inherited, Models, Place, Values};
use crate::options::loss::Loss;
use crate::options::objective::Objective;
use crate::options::resolved::Resolved;
use serde_json::{Value, json};
use sgd::{Activation, Hidden, Output, Range};

/// One that is the number of a loss.
const fn of_loss(name: &'static str, entry: Entry) -> Entry {
    Entry { in_grid: true, models: Models::LossNumber(name), ..entry }
}

/// The number of the loss, if it has one of this name.
fn number_of_loss(call: &Resolved, name: &str) -> Option<f64> {
    let number = call.kind.loss_number().filter(|number| number.name == name);
    number.and(call.hyper()).map(|hyper| hyper.loss_number)
}

/// One of networks.
const fn of_networks(entry: Entry) -> Entry {
    Entry { in_grid: true, models: Models::Networks, ..entry }
}

pub const ENTRIES: &[Entry] = &[
    Entry {
        record: Some(|call| Some(json!(Loss::of(call.kind)?.name()))),
        models: Models::WithLosses,
        ..Entry::option(
            "loss",
            Values::Words(Loss::names),
            Default::Depends(|model| match model.map(Loss::of) {
                None => "squared, of svm hinge".into(),
                Some(loss) => loss.map_or("", Loss::name).into(),
            }),
            "what a linear regression minimises, or an SVM: hinge or squared_hinge; each but squared and hinge is a model of this \
             name, too. With poisson the prediction is e^z of the decision z, and labels are at least 0",
        )
    },
    of_loss(
        "quantile",
        Entry {
            record: Some(|call| number_of_loss(call, "quantile").map(|number| json!(number))),
            explain: Some(|call, explain| {
                number_of_loss(call, "quantile").iter().for_each(|number| explain.real(c"Quantile", *number));
            }),
            ..Entry::option(
                "quantile",
                Values::Number(Range::above(0.0).below(1.0)),
                Default::Number(0.5),
                "the fraction of the labels that are to be below the prediction",
            )
        },
    ),
    of_loss(
        "loss_epsilon",
        Entry {
            record: Some(|call| number_of_loss(call, "loss_epsilon").map(|number| json!(number))),
            explain: Some(|call, explain| {
                number_of_loss(call, "loss_epsilon").iter().for_each(|number| explain.real(c"Loss Epsilon", *number));
            }),
            ..Entry::option(
                "loss_epsilon",
                Values::Number(Range::from(0.0)),
                Default::Depends(default_loss_epsilon),
                "of huber, above 0: beyond so many times the scale of the residuals the loss is a line, as in scikit-learn's \
                 HuberRegressor; the scale is found along with the model. Of epsilon_insensitive: errors up to this, in units of \
                 the label, cost nothing",
            )
        },
    ),
    Entry {
        models: Models::WithoutProbabilities,
        record: Some(|call| call.options.probability.then_some(Value::Bool(true))),
        explain: Some(|call, explain| {
            if call.options.probability {
                explain.text(c"Probabilities", "true");
            }
        }),
        ..Entry::option(
            "probability",
            Values::Boolean,
            Default::Boolean(false),
            "fit probabilities to the decisions, by Platt scaling on the rows that are held out for validation; without such an \
             option, these are a tenth of all rows; where a fraction of the rows are fewer than 500, on all rows, each fifth decided by \
             a model of the others",
        )
    },
    Entry {
        record: Some(|call| call.design().map(|_| json!(Objective::of(call.kind).name()))),
        explain: Some(|call, explain| {
            if call.has_open_objective {
                explain.text(c"Objective", "auto");
            }
        }),
        models: Models::Networks,
        ..Entry::option(
            "objective",
            Values::Words(Objective::names),
            Default::Depends(|_| "by the label".into()),
            "predict a class or a number; by default a number if the label is of type real, float8 or numeric and its first \
             values are neither whole nor few",
        )
    },
    Entry {
        place: Place::NamedOption("int[]"),
        record: Some(|call| call.design().map(|design| json!(design.hidden))),
        ..of_networks(Entry::option(
            "hidden_layers",
            Values::Other("array", Some("1 to 16 whole numbers from 1")),
            Default::Depends(|_| format!("{:?}", Hidden::default().sizes())),
            "units of the hidden layers, from the features on",
        ))
    },
    Entry {
        record: Some(|call| call.design().map(|design| json!(design.activation))),
        ..of_networks(Entry::option(
            "activation",
            Values::Words(|| Activation::ALL.map(Activation::name).to_vec()),
            Default::Word("relu"),
            "what hidden units compute",
        ))
    },
    Entry {
        record: Some(|call| call.design()?.output.map(|output| json!(output))),
        ..of_networks(Entry::option(
            "output",
            Values::Words(|| Output::ALL.map(Output::name).to_vec()),
            Default::Depends(|_| "by objective and classes".into()),
            "what the last layer means; by default sigmoid for two classes, softmax for more, identity for numbers",
        ))
    },
    Entry {
        explain: Some(|call, explain| {
            if call.points > 1 {
                explain.integer(c"Grid Points", call.points as i64);
            }
        }),
        ..Entry::argument(
            "grid",
            "jsonb",
            Values::Other("", Some("at most 1000 points")),
            Default::None,
            "an object of arrays or an array of objects: a model for each point, side by side, from the same tuples",
        )
    },
    Entry::argument(
        "name",
        "text",
        Values::Other("", Some("1 to 1024 bytes")),
        Default::None,
        "a name for the model: another version of it, if you have models of that name",
    ),
    Entry {
        inherited: Inherited::Never,
        ..Entry::option(
            "keep_versions",
            Values::Integer(0, 1_000_000),
            Default::Depends(|_| "setting corgipile.keep_versions".into()),
            "how many versions of the model are kept; 0: all. Older ones are deleted, and a notice names them. Never the \
             deployed one, one with a comment, and one that is being used or continued. Of models without a name, those of \
             older trainings of the same source, label and kind are deleted",
        )
    },
    Entry {
        place: Place::Only("jsonb"),
        ..Entry::argument(
            "options",
            "jsonb",
            Values::Other("", Some("a JSON object")),
            Default::None,
            "an object with options: what few need, and any other argument but source, by its name. What is given twice has to be \
             the same",
        )
    },
    Entry {
        place: Place::NamedOption("boolean"),
        inherited: Inherited::Never,
        ..Entry::option(
            "notice",
            Values::Boolean,
            Default::Boolean(false),
            "a NOTICE after each epoch, with loss, score, tuples per second and the time that is left",
        )
    },
];
