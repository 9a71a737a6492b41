//! Descriptions of defaults that depend on the model: for `corgipile_options()` and the page of reference.

use crate::defaults::{self, learning_rate};
use choices::Choice;
use loss::{Activation, Hyperparameters, Link, ModelKind, Optimizer, Solver};

pub(super) fn default_rate(model: Option<ModelKind>) -> String {
    let rate = |kind, activation| learning_rate(kind, Optimizer::Sgd, activation);
    let own =
        |optimizer: Optimizer| optimizer.learning_rate().map(|rate| format!("; {rate} with {}", optimizer.name()));
    let own: String = Optimizer::ALL.into_iter().filter_map(own).collect();
    let linear = rate(ModelKind::Logistic, None);
    let network = Hyperparameters::new(ModelKind::Mlp).learning_rate;
    let [sigmoid, others] = [Activation::Sigmoid, Activation::Relu].map(|units| rate(ModelKind::Mlp, Some(units)));
    match model {
        Some(kind) if !kind.is_linear() => {
            format!("{network}; with other optimizers {sigmoid} of sigmoid units, {others} of others")
        }
        Some(_) => format!("auto; {linear} on compressed mini-batches{own}"),
        None => {
            format!("auto{own}; of mlp {network}, with other optimizers {sigmoid} of sigmoid units, {others} of others")
        }
    }
}

pub(super) fn default_epochs(model: Option<ModelKind>) -> String {
    of_linear("auto", &Hyperparameters::EPOCHS.to_string(), model)
}

pub(super) fn default_decay(model: Option<ModelKind>) -> String {
    let of = |kind| defaults::decay(kind).to_string();
    match model {
        Some(kind) => of_linear("auto", &of(kind), model),
        None => {
            let numbers = ModelKind::MlpRegression;
            of_linear("auto", &format!("{}, of {numbers} {}", of(ModelKind::Mlp), of(numbers)), None)
        }
    }
}

/// A default of linear models that the tuples decide, and that of networks.
fn of_linear(linear: &str, networks: &str, model: Option<ModelKind>) -> String {
    match model {
        Some(kind) if kind.is_linear() => format!("{linear}; {networks} on compressed mini-batches"),
        Some(_) => networks.to_owned(),
        None => format!("{linear}; of mlp {networks}"),
    }
}

pub(super) fn default_solver(model: Option<ModelKind>) -> String {
    let [sgd, newton] = [Solver::Sgd, Solver::Newton].map(Solver::name);
    match model {
        Some(kind) if kind.link() == Link::Logarithm => {
            format!("{newton}, or {sgd} if an option of its steps is given")
        }
        Some(_) => sgd.to_owned(),
        None => format!("{sgd}; of poisson {newton}, or {sgd} if an option of its steps is given"),
    }
}

/// A training without a model follows its label; functions that do not look at it train this one.
pub(super) fn default_model(_: Option<ModelKind>) -> String {
    "auto".to_owned()
}

pub(super) fn default_l2(model: Option<ModelKind>) -> String {
    match model {
        Some(kind) if !kind.has_automatic_penalty() => "0".to_owned(),
        _ => "auto: 0, or 1 / rows or 10 / rows on the weights of categories".to_owned(),
    }
}

pub(super) fn default_optimizer(model: Option<ModelKind>) -> String {
    let of = |kind| Hyperparameters::new(kind).optimizer.name();
    match model {
        Some(kind) => of(kind).to_owned(),
        None => format!("{}; of mlp {}", of(ModelKind::Logistic), of(ModelKind::Mlp)),
    }
}

pub(super) fn default_batch_size(model: Option<ModelKind>) -> String {
    let of = |kind| Hyperparameters::new(kind).batch_size;
    let of_networks = format!("max_epochs * rows / 2000, from 1 to {}", of(ModelKind::Mlp));
    match model {
        Some(kind) if !kind.is_linear() => of_networks,
        Some(kind) => of(kind).to_string(),
        None => format!("{}; of mlp {of_networks}", of(ModelKind::Logistic)),
    }
}

pub(super) fn default_loss_epsilon(model: Option<ModelKind>) -> String {
    let of = |kind: ModelKind| kind.loss_number().map_or_else(String::new, |number| number.default.to_string());
    match model {
        Some(model) => of(model),
        None => {
            format!("{} of huber, {} of epsilon_insensitive", of(ModelKind::Huber), of(ModelKind::EpsilonInsensitive))
        }
    }
}
