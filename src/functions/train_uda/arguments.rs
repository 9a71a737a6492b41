//! The arguments of corgipile_train_uda().

use errors::{AggregateError, ArgumentError, Result};
use loss::Solver;
use options::call::TrainArguments;
use options::request::Request;
use options::rows::Nulls;
use pg::call::arguments::Arguments;
use serde_json::{Map, Value, json};

/// An aggregate has no buffer in which rows could be mixed.
const DEFAULT_SHUFFLE: &str = "no_shuffle";

/// What is to be trained, and how the aggregate is run.
pub struct UdaRequest {
    pub training: Request,
    /// may several processes learn at once?
    pub parallel: bool,
}

impl UdaRequest {
    pub fn of_call(arguments: &Arguments) -> Result<UdaRequest> {
        let mut arguments = TrainArguments::named(arguments, &ARGUMENTS)?;
        let mut options = arguments.take("options");
        let parallel = take_parallel(&mut options)?;
        let mut arguments = arguments.with_options(options, &ARGUMENTS)?;
        arguments.set_open("shuffle", DEFAULT_SHUFFLE.into());
        let mut training = Request::without_choices(arguments)?;
        check(&training)?;
        // an aggregate puts nothing in the place of NULLs
        training.options.nulls.get_or_insert(Nulls::Error);
        Ok(UdaRequest { training, parallel })
    }

    /// Is there to be a shuffled copy?
    pub fn shuffles(&self) -> bool {
        self.training.shuffling.strategy.sorts()
    }

    /// What it takes to train the same model again.
    pub fn record(&self) -> Map<String, Value> {
        let mut record = self.training.record(self.training.first_point());
        record.insert("path".into(), json!("uda"));
        record.insert("parallel".into(), json!(self.parallel));
        record
    }
}

/// Its arguments, in its order.
const ARGUMENTS: [&str; 10] =
    ["source", "model", "label", "features", "learning_rate", "max_epochs", "shuffle", "seed", "name", "options"];

/// Takes the one option that is not also corgipile_train()'s.
fn take_parallel(options: &mut Option<Value>) -> Result<bool> {
    let Some(Value::Object(keys)) = options else { return Ok(false) };
    let Some(parallel) = keys.remove("parallel") else { return Ok(false) };
    let reason =
        || ArgumentError::InvalidOption { key: "parallel".into(), reason: "must be true or false".into() }.into();
    parallel.as_bool().ok_or_else(reason)
}

/// Refuses what an aggregate cannot do.
fn check(request: &Request) -> Result<()> {
    let strategy = request.shuffling.strategy;
    if !strategy.supports_aggregate() {
        return Err(ArgumentError::InvalidArgument {
            argument: "shuffle",
            reason: format!("an aggregate cannot train with {strategy}"),
            hint: Some("Use no_shuffle or shuffle_once here, or corgipile_train().".into()),
        }
        .into());
    }
    let options = &request.options;
    if !request.kind.is_linear() {
        return Err(AggregateError::NotByAggregate(format!("model {}", request.kind).into()).into());
    }
    let given = [
        ("solver newton", request.first_point().hyperparameters.solver == Solver::Newton),
        ("loss huber", request.kind.follows_residuals()),
        ("option weight", options.weight.is_some()),
        ("option class_weight", options.class_weight.is_some()),
        ("option date_parts", options.date_parts != Default::default()),
        ("option transform", options.transform.is_some()),
        ("option cache", options.cache.is_some()),
        ("option probability", options.probability),
        ("a validation part", options.validation().is_some()),
        ("early stopping", request.first_point().stopping.is_some()),
        ("\"nulls\": \"impute\"", options.nulls == Some(Nulls::Impute)),
        ("option keep", options.keep != Default::default()),
        ("option verbose", options.verbose),
        ("option servers", options.servers != Default::default()),
    ];
    match given.into_iter().find(|(_, given)| *given) {
        Some((what, _)) => Err(AggregateError::NotByAggregate(what.into()).into()),
        None => Ok(()),
    }
}
