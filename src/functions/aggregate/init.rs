//! corgipile_sgd_init(): the state before the first epoch.

use super::state::NewState;
use errors::limits::MAX_CLASSES;
use errors::{AggregateError, ArgumentError, Result};
use loss::{ModelKind, Solver};
use options::call::{TrainArguments, invalid};
use options::entry::invalid as refuse;
use options::request::Request;
use options::rows::{Nulls, Standardize};
use pg::call::function::Call;
use pg::values::varlena::Bytes;

/// The state that the arguments describe: model, dimensions, learning_rate, options, classes, sparse.
pub fn of_call(call: Call<'_>) -> Result<Bytes<'_>> {
    let arguments = call.arguments();
    let options = arguments.json(3).map_err(|e| ArgumentError::unread("options", e))?;
    let model: String = arguments.get(0).ok_or(ArgumentError::NullArgument("model"))?;
    // a training reads a source, a state does not; without a seed one would be drawn
    let of_training = TrainArguments::of(Some(String::new()))
        .with("model", Some(model))
        .with("learning_rate", arguments.get::<f64>(2))
        .with("seed", Some(0));
    let request = Request::without_choices(of_training.with_options(options, &["learning_rate"])?)?;
    check(&request)?;
    let dimensions: i32 = arguments.get(1).ok_or(ArgumentError::NullArgument("dimensions"))?;
    if dimensions < 1 {
        return Err(invalid("dimensions", format!("{dimensions} is not above 0")));
    }
    let sparse: bool = arguments.get(5).unwrap_or_default();
    let options = &request.options;
    if options.index_base.is_some() && !sparse {
        return Err(refuse("index_base", "applies only to sparse features: use sparse => true"));
    }
    let state = NewState {
        hyperparameters: request.first_point().hyperparameters,
        dim: dimensions as usize,
        outputs: outputs(request.kind, arguments.get(4))?,
        sparse,
        index_base: options.index_base.unwrap_or(1),
        skip_nulls: options.nulls == Some(Nulls::Skip),
        standardizer: None,
    };
    state.bytes(call.context())
}

/// Refuses what only a training that reads the table can do.
fn check(request: &Request) -> Result<()> {
    let options = &request.options;
    let refused = [
        ("solver", request.first_point().hyperparameters.solver != Solver::Sgd),
        ("standardize", options.standardize != Standardize::None),
        ("weight", options.weight.is_some()),
        ("class_weight", options.class_weight.is_some()),
        ("handle_unknown", options.handle_unknown.is_some()),
        ("hash", options.hash.is_some()),
        ("transform", options.transform.is_some()),
        ("probability", options.probability),
    ];
    if options.nulls == Some(Nulls::Impute) {
        return Err(refuse("nulls", "must be \"error\" or \"skip\": a state has no means to impute"));
    }
    if options.dimensions.is_some() {
        return Err(refuse("dimensions", "is an argument of corgipile_sgd_init(), not an option"));
    }
    match refused.iter().find(|(_, given)| *given) {
        Some((key, _)) => Err(refuse(key, "does not apply to a state")),
        None => Ok(()),
    }
}

fn outputs(kind: ModelKind, classes: Option<i32>) -> Result<usize> {
    match (kind, classes) {
        (kind, _) if !kind.is_linear() || kind.follows_residuals() => {
            Err(AggregateError::NotByAggregate(format!("model {kind}").into()).into())
        }
        (kind, None) if kind.has_class_numbers() => Err(ArgumentError::NullArgument("classes").into()),
        (kind, Some(classes)) if kind.has_class_numbers() && (2..=MAX_CLASSES as i32).contains(&classes) => {
            Ok(classes as usize)
        }
        (kind, Some(classes)) if kind.has_class_numbers() => {
            Err(invalid("classes", format!("{classes} is not between 2 and {MAX_CLASSES}")))
        }
        (_, None) => Ok(1),
        (_, Some(_)) => Err(invalid("classes", "it applies only to models softmax and svm_one_vs_rest")),
    }
}
