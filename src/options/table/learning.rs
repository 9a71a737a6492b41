//! How a model learns, for how long, and what is kept.

use super::default_texts::{
    default_batch_size, default_decay, default_epochs, default_optimizer, default_rate, default_solver,
};
use crate::options::choices::Choice;
use crate::options::chosen::{Keep, Point, Rate};
use crate::options::defaults;
use crate::options::entry::{Default, Entry, Group, Inherited, Models, Needs, Place, Values};
use crate::options::resolved::Resolved;
use serde_json::{Value, json};
use sgd::{Hyperparameters, Optimizer, Schedule, Solver, Stopping};

/// Epochs that a training may take. Each leaves a row to be kept, whatever it cost.
const MAX_EPOCHS: u64 = 1_000_000;

/// An entry that may differ from point to point of a grid.
const fn in_grid(entry: Entry) -> Entry {
    Entry { in_grid: true, ..entry }
}

/// One that belongs to an optimizer.
const fn of_optimizer(word: &'static str, entry: Entry) -> Entry {
    Entry { in_grid: true, group: Some(Group::Optimizer), needs: Some(Needs::Word("optimizer", word)), ..entry }
}

/// A number of the optimizer, for the record.
fn number_of_optimizer(call: &Resolved, name: &str) -> Option<Value> {
    let number = call.optimizer()?.parameters().find(|(parameter, _)| parameter.name == name);
    number.map(|(_, value)| json!(value))
}

/// One that belongs to a schedule.
const fn of_schedule(word: &'static str, entry: Entry) -> Entry {
    Entry { in_grid: true, group: Some(Group::Schedule), needs: Some(Needs::Word("schedule", word)), ..entry }
}

pub const ENTRIES: &[Entry] = &[
    Entry {
        place: Place::NamedOption("text"),
        models: Models::Smooth,
        record: Some(|call| call.hyper().filter(|hyper| hyper.solver != Solver::Sgd).map(|hyper| json!(hyper.solver))),
        explain: Some(|call, explain| match call.point {
            Some(Point { has_open_solver: true, .. }) => explain.text(c"Solver", "auto"),
            _ if call.is_newton() => explain.text(c"Solver", Solver::Newton.name()),
            _ => {}
        }),
        ..Entry::option(
            "solver",
            Values::Words(|| Solver::NAMES.to_vec()),
            Default::Depends(default_solver),
            "sgd, or newton for the exact optimum in a few epochs, of which each is one step of Newton's method; of up \
             to 2000 features, without l1. It is the default of poisson for up to 256 features (32 with group_by)",
        )
    },
    Entry {
        in_grid: true,
        record: Some(|call| {
            let before = call.continues.map_or(0, |(_, epochs)| epochs);
            call.point.map(|point| json!(before.saturating_add(point.max_epochs)))
        }),
        explain: Some(|call, explain| match call.has_open_epochs {
            true => explain.text(c"Epochs", "auto"),
            false => explain.integer(c"Epochs", call.max_epochs.into()),
        }),
        ..Entry::argument(
            "max_epochs",
            "int",
            Values::Integer(1, MAX_EPOCHS),
            Default::Depends(default_epochs),
            "how often each tuple is learned from. auto, with a learning_rate that is auto: 1,000,000 / rows, at most 100, up to 50,000 \
             rows; 20 up to 250,000; then 5,000,000 / rows, at least 3; but 20 with as many features as rows",
        )
    },
    Entry {
        record: Some(|call| call.point?.stopping.map(|rule| json!(rule.tolerance))),
        explain: Some(|call, explain| {
            if let Some(Stopping { tolerance, patience }) = call.point.and_then(|point| point.stopping) {
                explain.text(c"Early Stopping", &format!("tolerance {tolerance}, patience {patience}"));
            }
        }),
        ..in_grid(Entry::option(
            "tolerance",
            Values::Number(sgd::Range::from(0.0)),
            Default::Depends(|_| format!("{}, with patience", Stopping::TOLERANCE)),
            "stop early: by how much the loss must be below the lowest so far for an epoch to be better. The loss is that of the \
             rows held out, if there are some",
        ))
    },
    Entry {
        place: Place::NamedOption("int"),
        record: Some(|call| call.point?.stopping.map(|rule| json!(rule.patience))),
        ..in_grid(Entry::option(
            "patience",
            Values::Integer(1, MAX_EPOCHS),
            Default::Depends(|_| format!("{}, with tolerance", Stopping::PATIENCE)),
            "stop after so many epochs in a row that are not better",
        ))
    },
    Entry {
        record: Some(|call| (call.options.keep != Keep::Last).then(|| json!(call.options.keep))),
        ..Entry::option(
            "keep",
            Values::Words(Keep::names),
            Default::Word("last"),
            "store the model of the last epoch, or that of the lowest loss",
        )
    },
    Entry {
        in_grid: true,
        inherited: Inherited::Record,
        record: Some(|call| {
            // the rates of theorem1 follow from a, if that is given
            let from_a = matches!(call.schedule()?, Schedule::Theorem1 { a: Some(_), .. });
            call.hyper().filter(|_| !from_a && !call.is_newton()).map(|hyper| json!(hyper.learning_rate))
        }),
        explain: Some(|call, explain| match call.point {
            _ if call.is_newton() => {}
            Some(Point { rate: Rate::Open, .. }) => explain.text(c"Learning Rate", "auto"),
            Some(point) => explain.real(c"Learning Rate", point.hyperparameters.learning_rate),
            None => {}
        }),
        ..Entry::argument(
            "learning_rate",
            "float8",
            Values::Number(Hyperparameters::LEARNING_RATES),
            Default::Depends(default_rate),
            "step size in the first epoch. auto: (1 - momentum) * batch_size / (mean |x|² + 1), of models svm and \
             epsilon_insensitive a tenth of that, of quantile two fifths, of squared_hinge a half, of poisson divided by the mean of the \
             labels, the features being standardized",
        )
    },
    Entry {
        models: Models::Linear,
        group: Some(Group::Optimizer),
        record: Some(|call| call.hyper_of_linear_sgd().map(|hyper| json!(hyper.bounded))),
        explain: Some(|call, explain| {
            if call.hyper().is_some_and(|hyper| hyper.bounded) {
                explain.text(c"Bounded Steps", "true");
            }
        }),
        ..in_grid(Entry::option(
            "bounded_steps",
            Values::Boolean,
            Default::Depends(|_| "if learning_rate is auto".into()),
            "divide a step by 1 + learning_rate * curvature * (|x|² + 1), so that it cannot diverge, whatever the tuple; not with \
             optimizer adam",
        ))
    },
    Entry {
        models: Models::Linear,
        record: Some(|call| call.hyper_of_linear_sgd().map(|hyper| json!(hyper.averaging))),
        explain: Some(|call, explain| {
            if call.hyper().is_some_and(|hyper| hyper.averaging) {
                explain.text(c"Averaging", "true");
            }
        }),
        ..in_grid(Entry::option(
            "averaging",
            Values::Boolean,
            Default::Depends(|_| "if learning_rate is auto".into()),
            "take for the model the mean of all iterates, weighted by the cube of the number of tuples before them; not with \
             schedule theorem1",
        ))
    },
    Entry {
        place: Place::NamedOption("text"),
        group: Some(Group::Schedule),
        record: Some(|call| call.schedule().map(|schedule| json!(schedule.name()))),
        explain: Some(|call, explain| {
            let shown = match call.schedule() {
                None => return,
                Some(Schedule::Exponential { decay }) if decay == defaults::decay(call.kind) => return,
                Some(Schedule::Exponential { decay }) => format!("exponential, decay {decay}"),
                Some(Schedule::Constant) => "constant".to_owned(),
                Some(Schedule::InverseScaling { power }) => format!("inverse_scaling, power {power}"),
                Some(Schedule::Theorem1 { mu, a: None }) => format!("theorem1, mu {mu}"),
                Some(Schedule::Theorem1 { mu, a: Some(a) }) => format!("theorem1, mu {mu}, a {a}"),
            };
            explain.text(c"Schedule", &shown);
        }),
        ..in_grid(Entry::option(
            "schedule",
            Values::Words(|| Schedule::NAMES.to_vec()),
            Default::Word(Schedule::NAMES[0]),
            "learning rate from epoch to epoch; theorem1 is for models without hidden layers",
        ))
    },
    Entry {
        record: Some(|call| match call.schedule()? {
            Schedule::Exponential { decay } => Some(json!(decay)),
            _ => None,
        }),
        ..of_schedule(
            "exponential",
            Entry::option(
                "decay",
                Values::Number(Schedule::DECAYS),
                Default::Depends(default_decay),
                "factor of the learning rate from epoch to epoch. auto, with a learning_rate that is auto: what makes it a hundredth, \
                 of quantile a thousandth, over the epochs that are auto",
            ),
        )
    },
    Entry {
        record: Some(|call| match call.schedule()? {
            Schedule::InverseScaling { power } => Some(json!(power)),
            _ => None,
        }),
        ..of_schedule(
            "inverse_scaling",
            Entry::option(
                "power",
                Values::Number(Schedule::POSITIVE),
                Default::Number(Schedule::POWER),
                "power of the epoch that divides the learning rate",
            ),
        )
    },
    Entry {
        models: Models::Linear,
        record: Some(|call| match call.schedule()? {
            Schedule::Theorem1 { mu, .. } => Some(json!(mu)),
            _ => None,
        }),
        ..of_schedule(
            "theorem1",
            Entry::option(
                "mu",
                Values::Number(Schedule::POSITIVE),
                Default::Depends(|_| "l2".into()),
                "how convex the objective is",
            ),
        )
    },
    Entry {
        models: Models::Linear,
        record: Some(|call| match call.schedule()? {
            Schedule::Theorem1 { a, .. } => Some(json!(a)),
            _ => None,
        }),
        ..of_schedule(
            "theorem1",
            Entry::option(
                "a",
                Values::Number(Schedule::SHIFTS),
                Default::Depends(|_| "by learning_rate".into()),
                "how many buffers later the rates begin; the same for all sizes of mini-batches",
            ),
        )
    },
    Entry {
        place: Place::NamedOption("text"),
        group: Some(Group::Optimizer),
        record: Some(|call| call.optimizer().map(|optimizer| json!(optimizer.name()))),
        explain: Some(|call, explain| {
            if let Some(optimizer) = call.optimizer().filter(|optimizer| *optimizer != Optimizer::Sgd) {
                explain.text(c"Optimizer", &optimizer.to_string());
            }
        }),
        ..in_grid(Entry::option(
            "optimizer",
            Values::Words(|| Optimizer::NAMES.to_vec()),
            Default::Depends(default_optimizer),
            "what is done with a gradient",
        ))
    },
    Entry {
        record: Some(|call| number_of_optimizer(call, "momentum")),
        ..of_optimizer(
            "momentum",
            Entry::option(
                "momentum",
                Values::Number(Optimizer::BETAS),
                Default::Number(Optimizer::BETA),
                "which part of a step goes into the next one",
            ),
        )
    },
    Entry {
        record: Some(|call| number_of_optimizer(call, "beta1")),
        ..of_optimizer(
            "adam",
            Entry::option(
                "beta1",
                Values::Number(Optimizer::BETAS),
                Default::Number(Optimizer::BETA),
                "how slowly the mean of the gradients changes",
            ),
        )
    },
    Entry {
        record: Some(|call| number_of_optimizer(call, "beta2")),
        ..of_optimizer(
            "adam",
            Entry::option(
                "beta2",
                Values::Number(Optimizer::BETAS),
                Default::Number(Optimizer::BETA2),
                "how slowly the mean of the gradients' squares changes",
            ),
        )
    },
    Entry {
        record: Some(|call| number_of_optimizer(call, "epsilon")),
        ..of_optimizer(
            "adam",
            Entry::option(
                "epsilon",
                Values::Number(Optimizer::EPSILONS),
                Default::Number(Optimizer::EPSILON),
                "added to the root of the mean of the squares",
            ),
        )
    },
    Entry {
        place: Place::NamedOption("int"),
        record: Some(|call| call.batch_size().map(|size| json!(size))),
        explain: Some(|call, explain| match call.point {
            Some(Point { has_open_batch_size: true, .. }) => explain.text(c"Batch Size", "auto"),
            _ => call
                .batch_size()
                .filter(|size| *size > 1)
                .iter()
                .for_each(|size| explain.integer(c"Batch Size", (*size).into())),
        }),
        ..in_grid(Entry::option(
            "batch_size",
            Values::Integer(1, Hyperparameters::MAX_BATCH_SIZE as u64),
            Default::Depends(default_batch_size),
            "tuples over which a gradient is averaged",
        ))
    },
    Entry {
        place: Place::NamedOption("float8"),
        record: Some(|call| call.hyper().map(|hyper| json!(hyper.l1))),
        explain: Some(|call, explain| {
            call.hyper().filter(|hyper| hyper.l1 > 0.0).iter().for_each(|hyper| explain.real(c"L1", hyper.l1));
        }),
        ..in_grid(Entry::option(
            "l1",
            Values::Number(Hyperparameters::PENALTIES),
            Default::Number(0.0),
            "strength of the penalty l1 * |w|, which makes weights 0",
        ))
    },
    Entry {
        place: Place::NamedOption("float8"),
        record: Some(|call| call.hyper().map(|hyper| json!(hyper.l2))),
        explain: Some(|call, explain| {
            call.hyper().filter(|hyper| hyper.l2 > 0.0).iter().for_each(|hyper| explain.real(c"L2", hyper.l2));
        }),
        ..in_grid(Entry::option(
            "l2",
            Values::Number(Hyperparameters::PENALTIES),
            Default::Number(0.0),
            "strength of the penalty l2 / 2 * w^2; times learning_rate it is below 1",
        ))
    },
];
