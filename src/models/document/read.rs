//! Reads a model's JSON document, docs/reference/model-format.md, from whoever gives it, who is trusted with nothing.

use super::keys::{MAX_TEXTS, Members, TextsOrBuckets, invalid, missing};
use crate::errors::{Result, excerpt, one_of};
use crate::models::class_values::as_numbers;
use crate::models::features::FeatureKind;
use crate::models::profiles::{feature_shapes, read_profile};
use crate::options::choices::Choice;
use crate::options::entry::{Models, without_classes};
use crate::options::loss::number_of_record;
use crate::options::rows::{Clip, Nulls, Transform, Unseen};
use pg::catalog::types::existing_base_type;
use pg::values::jsonb;
use pg::values::number::NumberType;
use pgrx::pg_sys;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sgd::conformal::{Calibration, Uncalibrated};
use sgd::platt::Sigmoids;
use sgd::profile::Profile;
use sgd::{Hidden, LogTransform, ModelKind, ModelParameters, Network, Output, Standardizer};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Bytes that `hyperparameters`, `history` and `profile` may have: they become trees in memory,
/// where JSON takes several times its size.
const MAX_RECORD_BYTES: usize = 1 << 20;
const MAX_HISTORY_BYTES: usize = 64 << 20;
const MAX_PROFILE_BYTES: usize = 64 << 20;

/// A model as its JSON document says it, all of it checked.
pub struct ModelDocument {
    pub name: Option<String>,
    pub kind: ModelKind,
    pub source: String,
    pub label: String,
    pub label_type: pg_sys::Oid,
    pub label_type_name: String,
    pub classes: Option<Vec<String>>,
    pub features: Vec<String>,
    pub feature_kind: FeatureKind,
    pub hyperparameters: Map<String, Value>,
    pub linear: ModelParameters,
    pub standardizer: Option<Standardizer>,
    pub skipped: u64,
    pub preparation: Duration,
    pub shuffle_bytes: Option<u64>,
    pub history: Vec<EpochRecord>,
    pub fill: Option<Vec<f32>>,
    pub imputed: Option<u64>,
    pub nulls: Nulls,
    pub unseen: Unseen,
    pub transform: Transform,
    pub logs: Option<LogTransform>,
    pub clip: Option<f32>,
    pub calibration: Option<Calibration>,
    pub sigmoids: Option<Sigmoids>,
    pub profile: Option<Profile>,
    /// the number of the loss, in units of the label
    pub loss_number: f64,
}

/// An epoch of corgipile.training_history. Other keys are refused,
/// because they would break that view for all who see the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    epoch: i32,
    loss: Option<f64>,
    accuracy: Option<f64>,
    learning_rate: Option<f64>,
    tuples: Option<i64>,
    seconds: Option<f64>,
    r2: Option<f64>,
    shuffle_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_score: Option<f64>,
}

impl ModelDocument {
    /// Reads a JSON text.
    ///
    /// # Errors
    /// [`ModelError::InvalidModel`], [`ArgumentError::InvalidArgument`] if it is no object.
    pub fn read(text: &str) -> Result<ModelDocument> {
        let keys = Members::read(text)?;
        let kind: String = keys.required("model", "a text")?;
        let kind: ModelKind = kind.parse().map_err(|_| {
            let hint = format!("Known models are: {}.", ModelKind::known());
            invalid("model", format!("is \"{}\", which is unknown", excerpt(&kind)), Some(hint))
        })?;
        let (label_type_name, label_type) = keys.label_type()?;
        let classes = keys.classes(kind, label_type)?;
        let linear = keys.linear(kind, classes.as_deref())?;
        let (features, feature_kind) = keys.features(linear.dim)?;
        // buckets are neither scaled nor filled
        let dim = linear.dim.saturating_sub(feature_kind.buckets());
        let standardizer = keys.standardizer(dim)?;
        let profile = keys.profile(&feature_kind, dim)?;
        let hyperparameters: Map<String, Value> =
            keys.short("hyperparameters", MAX_RECORD_BYTES, "an object")?.unwrap_or_default();
        let (nulls, unseen) = (policy(&hyperparameters, "nulls")?, policy(&hyperparameters, "unseen")?);
        let (transform, logs) = transform(&hyperparameters, &features, &feature_kind)?;
        let clip = Clip::of_record(hyperparameters.get("clip"));
        let clip =
            clip.ok_or_else(|| invalid("hyperparameters", format!("says clip, but not {}", Clip::WHAT), None))?;
        let loss_number = number_of_record(kind, Some(&hyperparameters)).ok_or_else(|| {
            let name = kind.loss_number().map_or("", |number| number.name);
            invalid("hyperparameters", format!("says what {name} of loss {} cannot be", kind.name()), None)
        })?;
        Ok(ModelDocument {
            name: keys.read_as("name", "a text")?,
            source: keys.read_as("source", "a text")?.unwrap_or_default(),
            label: keys.required("label", "a text")?,
            skipped: keys.count("skipped")?.unwrap_or(0),
            preparation: keys.seconds("preparation_seconds")?,
            shuffle_bytes: keys.count("shuffle_bytes")?,
            history: keys
                .short("history", MAX_HISTORY_BYTES, "an array of epochs with numbers of corgipile.training_history")?
                .unwrap_or_default(),
            imputed: keys.count("imputed")?,
            fill: keys.fill(dim)?,
            calibration: keys.calibration()?,
            sigmoids: keys.sigmoids(kind, linear.outputs)?,
            // a model that says nothing was written when both were errors
            nulls: nulls.unwrap_or(Nulls::Error),
            unseen: unseen.unwrap_or(Unseen::Error),
            transform,
            logs,
            clip,
            profile,
            loss_number,
            kind,
            label_type,
            label_type_name,
            classes,
            features,
            feature_kind,
            hyperparameters,
            linear,
            standardizer,
        })
    }
}

/// Which numbers are taken by their logarithms, as the record of a training says it, and which features these are.
fn transform(
    record: &Map<String, Value>,
    features: &[String],
    kind: &FeatureKind,
) -> Result<(Transform, Option<LogTransform>)> {
    let refuse = |reason: String| invalid("hyperparameters", reason, None);
    let transform = record.get("transform").map_or(Some(Transform::None), Transform::read);
    let transform = transform.ok_or_else(|| refuse(format!("says transform, but not {}", Transform::WHAT)))?;
    let logs = kind.logs(features, &transform);
    let logs = logs.map_err(|()| refuse("says transform of what is no feature of numbers".to_owned()))?;
    Ok((transform, logs))
}

/// What the record of a training says of one of the options that a model obeys.
fn policy<T: Choice>(record: &Map<String, Value>, key: &str) -> Result<Option<T>> {
    let Some(value) = record.get(key) else { return Ok(None) };
    let choice = value.as_str().and_then(T::named);
    let reason = || format!("says {key}, but not {}", one_of(&T::names()));
    choice.map(Some).ok_or_else(|| invalid("hyperparameters", reason(), None))
}

impl Members<'_> {
    fn label_type(&self) -> Result<(String, pg_sys::Oid)> {
        const KEY: &str = "label_type";
        let name: String = self.required(KEY, "a text")?;
        match jsonb::type_named(&name) {
            Some(oid) => Ok((name, oid)),
            None => {
                let hint = "Create the type, or say \"text\": labels are texts then.".to_owned();
                Err(invalid(KEY, format!("is \"{}\", and there is no such type", excerpt(&name)), Some(hint)))
            }
        }
    }

    fn classes(&self, kind: ModelKind, label_type: pg_sys::Oid) -> Result<Option<Vec<String>>> {
        const KEY: &str = "classes";
        let refuse = |reason: String| Err(invalid(KEY, reason, None));
        let classes = match (self.texts(KEY)?, kind) {
            (None, kind) if !kind.is_classifier() => return Ok(None),
            (Some(_), kind) if !kind.is_classifier() => {
                return refuse(format!("must not be there: models {} have none", without_classes()));
            }
            (None, _) => return Err(missing(KEY)),
            (Some(classes), _) => classes,
        };
        match (kind, classes.len()) {
            (_, 2) => {}
            (kind, 2..) if kind.has_class_numbers() => {}
            (kind, n) if kind.has_class_numbers() => {
                return refuse(format!("has {n} elements, and must have 2 or more"));
            }
            (_, n) => return refuse(format!("has {n} elements, and must have 2 for model {}", kind.name())),
        }
        if classes.iter().collect::<HashSet<_>>().len() < classes.len() {
            return refuse("has an element twice".to_owned());
        }
        let numbers = as_numbers(label_type, &classes);
        let is_number = existing_base_type(label_type).and_then(NumberType::from_oid).is_some();
        if is_number && !numbers.is_some_and(|numbers| numbers.iter().all(|number| number.is_finite())) {
            return refuse("are not the numbers that label_type says".to_owned());
        }
        Ok(Some(classes))
    }

    fn linear(&self, kind: ModelKind, classes: Option<&[String]>) -> Result<ModelParameters> {
        let outputs = if kind.has_class_numbers() { classes.map_or(0, <[String]>::len) } else { 1 };
        let network = self.network(kind)?;
        let intercepts: Vec<f32> = self.floats("intercepts")?.ok_or_else(|| missing("intercepts"))?;
        let weights: Vec<f32> = self.floats("weights")?.ok_or_else(|| missing("weights"))?;
        if let Some(network) = network {
            return of_network(network, outputs, weights, intercepts);
        }
        if intercepts.len() != outputs {
            let reason = format!("has {} numbers, and must have {outputs}", intercepts.len());
            let hint = "A softmax model has an intercept per class, any other model one.".to_owned();
            return Err(invalid("intercepts", reason, Some(hint)));
        }
        if weights.is_empty() || !weights.len().is_multiple_of(outputs) {
            let reason = format!("has {} numbers, and must have {outputs} for each feature", weights.len());
            let hint =
                "A softmax model has a weight per feature and class, any other model one per feature.".to_owned();
            return Err(invalid("weights", reason, Some(hint)));
        }
        Ok(ModelParameters { dim: weights.len() / outputs, outputs, weights, intercepts, network: None })
    }

    /// The layers of a network; None for other models.
    fn network(&self, kind: ModelKind) -> Result<Option<Network>> {
        const KEYS: [&str; 3] = ["hidden_layers", "activation", "output"];
        if kind.is_linear() {
            return match KEYS.into_iter().find(|key| self.has(key)) {
                Some(key) => {
                    Err(invalid(key, "must not be there: it belongs to models mlp and mlp_regression".to_owned(), None))
                }
                None => Ok(None),
            };
        }
        let sizes = format!("an array of one to {} whole numbers from 1", Hidden::MAX_LAYERS);
        let hidden: Hidden = self.required("hidden_layers", &sizes)?;
        if hidden.sizes().iter().any(|size| i32::try_from(*size).is_err()) {
            return Err(invalid("hidden_layers", "has a size that is too large".to_owned(), None));
        }
        let activation = self.required("activation", "\"sigmoid\", \"relu\" or \"tanh\"")?;
        let known = if kind.is_classifier() { "\"sigmoid\" or \"softmax\"" } else { "\"identity\"" };
        let output: Output = self.required("output", known)?;
        if output.has_classes() != kind.is_classifier() {
            return Err(invalid("output", format!("must be {known} for model {}", kind.name()), None));
        }
        Ok(Some(Network { hidden, activation, output }))
    }

    fn standardizer(&self, dim: usize) -> Result<Option<Standardizer>> {
        let (mean, scale) = match (self.floats("feature_mean")?, self.floats("feature_scale")?) {
            (None, None) => return Ok(None),
            (Some(mean), Some(scale)) => (mean, scale),
            (None, _) => return Err(missing("feature_mean")),
            (_, None) => return Err(missing("feature_scale")),
        };
        for (key, numbers) in [("feature_mean", &mean), ("feature_scale", &scale)] {
            if numbers.len() != dim {
                let reason = format!("has {} numbers, and the model {dim} features", numbers.len());
                return Err(invalid(key, reason, None));
            }
        }
        match scale.iter().find(|scale: &&f64| **scale <= 0.0) {
            Some(scale) => {
                Err(invalid("feature_scale", format!("has the number {scale}, and all must be above 0"), None))
            }
            None => Ok(Some(Standardizer { mean, scale })),
        }
    }

    fn fill(&self, dim: usize) -> Result<Option<Vec<f32>>> {
        const KEY: &str = "feature_fill";
        match self.floats::<f32>(KEY)? {
            Some(fill) if fill.len() != dim => {
                let reason = format!("has {} numbers, and the model {dim} features", fill.len());
                Err(invalid(KEY, reason, None))
            }
            fill => Ok(fill),
        }
    }

    fn profile(&self, kind: &FeatureKind, dim: usize) -> Result<Option<Profile>> {
        const KEY: &str = "profile";
        let Some(value) = self.short(KEY, MAX_PROFILE_BYTES, "an object")? else { return Ok(None) };
        let shapes = feature_shapes(kind, dim);
        read_profile(value, shapes.as_deref()).map(Some).map_err(|reason| invalid(KEY, reason, None))
    }

    fn calibration(&self) -> Result<Option<Calibration>> {
        const SCORES: &str = "calibration_scores";
        let (rows, scores) = match (self.count("calibration_rows")?, self.floats(SCORES)?) {
            (None, None) => return Ok(None),
            (Some(rows), Some(scores)) => (rows, scores),
            (None, _) => return Err(missing("calibration_rows")),
            (_, None) => return Err(missing(SCORES)),
        };
        let given = scores.len();
        let calibration = Calibration::new(rows, scores).map_err(|fault| match fault {
            Uncalibrated::Count { expected } => format!("has {given} numbers, and of {rows} rows {expected} are kept"),
            Uncalibrated::Score(place) => format!("does not ascend at place {}", place + 1),
        });
        calibration.map(Some).map_err(|reason| invalid(SCORES, reason, None))
    }

    fn sigmoids(&self, kind: ModelKind, outputs: usize) -> Result<Option<Sigmoids>> {
        const KEYS: [&str; 2] = ["sigmoid_slopes", "sigmoid_offsets"];
        let [slopes, offsets] = [self.floats(KEYS[0])?, self.floats(KEYS[1])?];
        let (slopes, offsets): (Vec<f64>, Vec<f64>) = match (slopes, offsets) {
            (None, None) => return Ok(None),
            (Some(slopes), Some(offsets)) => (slopes, offsets),
            (None, _) => return Err(missing(KEYS[0])),
            (_, None) => return Err(missing(KEYS[1])),
        };
        if !Models::WithoutProbabilities.include(kind) {
            return Err(invalid(KEYS[0], "must not be there: it belongs to SVMs".to_owned(), None));
        }
        for (key, numbers) in KEYS.into_iter().zip([&slopes, &offsets]) {
            if numbers.len() != outputs {
                let reason = format!("has {} numbers, and must have {outputs}", numbers.len());
                return Err(invalid(key, reason, None));
            }
        }
        Ok(Sigmoids::new(&slopes, &offsets))
    }

    fn features(&self, dim: usize) -> Result<(Vec<String>, FeatureKind)> {
        let kind: String = self.required("feature_kind", "a text")?;
        let features = self.texts("features")?.ok_or_else(|| missing("features"))?;
        let what = format!(
            "an object of arrays of at most {MAX_TEXTS} texts, behind which there may be a null, or of {{\"buckets\": number}}"
        );
        let categories: Option<BTreeMap<String, TextsOrBuckets>> = self.read_as("categories", &what)?;
        let categories = categories.map(|columns| {
            let json = |coding| match coding {
                TextsOrBuckets::Texts(values) => Value::from(values),
                TextsOrBuckets::Buckets(buckets) => json!(buckets),
            };
            Value::Object(columns.into_iter().map(|(column, coding)| (column, json(coding))).collect())
        });
        let index_base: Option<i32> = self.read_as("index_base", "0 or 1")?;
        let feature_kind = FeatureKind::read(&kind, &features, categories.as_ref(), index_base).ok_or_else(|| {
            let hint = "\"array\" goes with one column, \"sparse\" with two and with index_base 0 or 1, or with one and 1, \
                        \"columns\" with one or more, and with categories of these columns, each of them once, or the same number of \
                        buckets.";
            let reason = format!("is \"{}\", which does not fit features, categories and index_base", excerpt(&kind));
            invalid("feature_kind", reason, Some(hint.to_owned()))
        })?;
        match feature_kind.dim() {
            Some(known) if known != dim => {
                let reason = format!("has numbers for {dim} features, but features and categories are {known}");
                Err(invalid("weights", reason, None))
            }
            _ => Ok((features, feature_kind)),
        }
    }
}

/// A network of these numbers.
fn of_network(network: Network, classes: usize, weights: Vec<f32>, intercepts: Vec<f32>) -> Result<ModelParameters> {
    let outputs = network.outputs(classes);
    let expected = network.intercepts(outputs);
    if intercepts.len() != expected {
        let reason = format!("has {} numbers, and must have {expected}", intercepts.len());
        let hint = "A network has an intercept for each unit of its hidden layers, and for each output.".to_owned();
        return Err(invalid("intercepts", reason, Some(hint)));
    }
    let Some((dim, outputs)) = network.sizes(weights.len(), intercepts.len()) else {
        let rest = network.weights(0, outputs);
        let reason = format!(
            "has {} numbers, and must have {} for each feature and {rest} for the layers behind the first",
            weights.len(),
            network.hidden.sizes()[0]
        );
        return Err(invalid("weights", reason, None));
    };
    Ok(ModelParameters { dim, outputs, weights, intercepts, network: Some(network) })
}
