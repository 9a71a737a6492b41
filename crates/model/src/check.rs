//! What parts of a model have to be like, to fit each other: those of a row, which an administrator may have written,
//! and those of a document, which anybody may have.

use super::class_values::as_numbers;
use super::features::FeatureKind;
use super::groups::{ALL_GROUPS_OF, Grouping};
use super::keyed_values::{Fault, required};
use super::parts::{Fitted, Kept, Numbers};
use super::table::FloatArray;
use choices::Choice;
use errors::{excerpt, one_of};
use loss::{Activation, Hidden, ModelKind, Network, Output};
use options::entry::{Models, without_classes};
use pg::catalog::types::existing_base_type;
use pg::values::number::NumberType;
use serde::Deserialize;
use serde_json::{Map, Value};
use sgd::conformal::{Calibration, Uncalibrated};
use sgd::platt::Sigmoids;
use std::collections::HashSet;
use std::time::Duration;

type Checked<T> = Result<T, Fault>;

impl Fitted {
    pub(super) fn kind(&self) -> Checked<ModelKind> {
        self.model.parse().map_err(|_| {
            let hint = format!("Known models are: {}.", ModelKind::known());
            Fault::new("model", format!("is \"{}\", which is unknown", excerpt(&self.model))).with_hint(hint)
        })
    }

    pub(super) fn classes(&self, kind: ModelKind) -> Checked<&[String]> {
        let refuse = |reason: String| Err(Fault::new("classes", reason));
        let classes = match &self.classes {
            None if !kind.is_classifier() => return Ok(&[]),
            None => return Err(Fault::missing("classes")),
            Some(_) if !kind.is_classifier() => {
                return refuse(format!("must not be given: models {} have none", without_classes()));
            }
            Some(classes) => classes,
        };
        match classes.len() {
            2 => {}
            2.. if kind.has_class_numbers() => {}
            n if kind.has_class_numbers() => return refuse(format!("has {n} elements, but must have at least 2")),
            n => return refuse(format!("has {n} elements, but must have 2 for model {}", kind.name())),
        }
        if classes.iter().collect::<HashSet<_>>().len() < classes.len() {
            return refuse("contains an element twice".to_owned());
        }
        let numbers = as_numbers(self.label_type, classes);
        let is_number = existing_base_type(self.label_type).and_then(NumberType::from_oid).is_some();
        if is_number && !numbers.is_some_and(|numbers| numbers.iter().all(|number| number.is_finite())) {
            return refuse("are not numbers of the type label_type".to_owned());
        }
        Ok(classes)
    }

    /// The layers of a network; None for other models.
    pub(super) fn network(&self, kind: ModelKind) -> Checked<Option<Network>> {
        let [activation, output] = [&self.activation, &self.output].map(Option::as_deref);
        if kind.is_linear() {
            let given = [
                ("hidden_layer_sizes", self.hidden_layer_sizes.is_some()),
                ("activation", activation.is_some()),
                ("output", output.is_some()),
            ];
            let belongs = "must not be given: it belongs to models mlp and mlp_regression";
            return given
                .iter()
                .find(|(_, is_given)| *is_given)
                .map_or(Ok(None), |(key, _)| Err(Fault::new(key, belongs)));
        }
        let must = |key: &str, what: String| Fault::new(key, format!("must be {what} for model {}", kind.name()));
        let sizes: Option<Vec<u32>> = required("hidden_layer_sizes", self.hidden_layer_sizes.as_ref())?
            .iter()
            .map(|size| u32::try_from(*size).ok())
            .collect();
        let hidden = sizes.and_then(|sizes| Hidden::new(&sizes));
        let hidden = hidden.ok_or_else(|| {
            must("hidden_layer_sizes", format!("an array of 1 to {} positive integers", Hidden::MAX_LAYERS))
        })?;
        let activation = Activation::named(required("activation", activation)?)
            .ok_or_else(|| must("activation", "\"sigmoid\", \"relu\" or \"tanh\"".to_owned()))?;
        let known = if kind.is_classifier() { "\"sigmoid\" or \"softmax\"" } else { "\"identity\"" };
        let output =
            Output::named(required("output", output)?).filter(|output| output.has_classes() == kind.is_classifier());
        let output = output.ok_or_else(|| must("output", known.to_owned()))?;
        Ok(Some(Network { hidden, activation, output }))
    }

    pub(super) fn features(&self, dim: usize) -> Checked<FeatureKind> {
        let Fitted { feature_kind: kind, features, categories, index_base, .. } = self;
        let read = FeatureKind::read(kind, features, categories.as_ref(), *index_base).ok_or_else(|| {
            let hint = "\"array\" needs one column; \"sparse\" two and index_base 0 or 1, or one \
                        and index_base 1; \"columns\" one or more, with the categories of these columns, each once, or the same number of buckets.";
            let reason = format!("is \"{}\", which does not fit features, categories and index_base", excerpt(kind));
            Fault::new("feature_kind", reason).with_hint(hint)
        })?;
        match read.dim() {
            Some(known) if known != dim => {
                let reason = format!("has numbers for {dim} features, but there are {known} features and categories");
                Err(Fault::new("weights", reason))
            }
            _ => Ok(read),
        }
    }

    /// What the record of the training says of one of the options that a model obeys.
    pub(super) fn policy<T: Choice>(&self, key: &str) -> Checked<Option<T>> {
        let Some(value) = self.hyperparameters.get(key) else { return Ok(None) };
        let choice = value.as_str().and_then(T::named);
        let reason = || format!("has {key}, but not {}", one_of(&T::names()));
        choice.map(Some).ok_or_else(|| Fault::new("hyperparameters", reason()))
    }

    /// What the record of the training says of groups.
    pub(super) fn grouping(&self) -> Checked<Option<Grouping>> {
        let keys = ["group_by", "group", ALL_GROUPS_OF, "unseen_group"];
        let said = keys.iter().filter_map(|key| Some(((*key).to_owned(), self.hyperparameters.get(*key)?.clone())));
        let said: Map<String, Value> = said.collect();
        let grouping = Grouping::deserialize(Value::Object(said));
        grouping.map(Grouping::of).map_err(|error| Fault::new("hyperparameters", format!("has groups, but {error}")))
    }

    pub(super) fn calibration(&self) -> Checked<Option<Calibration>> {
        let (rows, scores) = match (self.calibration_rows, &self.calibration_scores) {
            (None, None) => return Ok(None),
            (Some(rows), Some(FloatArray(scores))) => (count("calibration_rows", rows)?, scores),
            (None, _) => return Err(Fault::missing("calibration_rows")),
            (_, None) => return Err(Fault::missing("calibration_scores")),
        };
        let given = scores.len();
        let calibration = Calibration::new(rows, scores.clone()).map_err(|fault| match fault {
            Uncalibrated::Count { expected } => {
                format!("has {given} numbers, but must have {expected} for the {rows} rows of calibration_rows")
            }
            Uncalibrated::Score(place) => format!("is not ascending at position {}", place + 1),
        });
        calibration.map(Some).map_err(|reason| Fault::new("calibration_scores", reason))
    }

    pub(super) fn sigmoids(&self, kind: ModelKind, outputs: usize) -> Checked<Option<Sigmoids>> {
        const KEYS: [&str; 2] = ["sigmoid_slopes", "sigmoid_offsets"];
        let (slopes, offsets) = match (&self.sigmoid_slopes, &self.sigmoid_offsets) {
            (None, None) => return Ok(None),
            (Some(FloatArray(slopes)), Some(FloatArray(offsets))) => (slopes, offsets),
            (None, _) => return Err(Fault::missing(KEYS[0])),
            (_, None) => return Err(Fault::missing(KEYS[1])),
        };
        if !Models::WithoutProbabilities.include(kind) {
            return Err(Fault::new(KEYS[0], "must not be given: it belongs to SVMs"));
        }
        for (key, numbers) in KEYS.into_iter().zip([slopes, offsets]) {
            if numbers.len() != outputs {
                return Err(Fault::new(key, format!("has {} numbers, but must have {outputs}", numbers.len())));
            }
        }
        Ok(Sigmoids::new(slopes, offsets))
    }
}

/// Features and outputs of a model of this many classes, weights and intercepts.
pub(super) fn sizes(
    kind: ModelKind,
    network: Option<&Network>,
    classes: usize,
    (weights, intercepts): (usize, usize),
) -> Checked<(usize, usize)> {
    let outputs = if kind.has_class_numbers() { classes } else { 1 };
    let (outputs, expected, hint) = match network {
        Some(network) => {
            let outputs = network.outputs(outputs);
            let hint = "A network has an intercept for each unit of its hidden layers, and for each output.";
            (outputs, network.intercepts(outputs), hint)
        }
        None => (outputs, outputs, "A softmax model has an intercept per class, other models have one."),
    };
    if intercepts != expected {
        let reason = format!("has {intercepts} numbers, but must have {expected}");
        return Err(Fault::new("intercepts", reason).with_hint(hint));
    }
    match network {
        Some(network) => network.sizes(weights, intercepts).ok_or_else(|| {
            let (first, rest) = (network.hidden.sizes()[0], network.weights(0, outputs));
            let must = format!("must have {first} for each feature and {rest} for the layers after the first");
            Fault::new("weights", format!("has {weights} numbers, but {must}"))
        }),
        None if weights == 0 || !weights.is_multiple_of(outputs) => {
            let hint = "A softmax model has a weight per feature and class, other models have one per feature.";
            let reason = format!("has {weights} numbers, but must have {outputs} for each feature");
            Err(Fault::new("weights", reason).with_hint(hint))
        }
        None => Ok((weights / outputs, outputs)),
    }
}

impl Numbers {
    /// Checks what belongs to features, this many without buckets, which are neither scaled nor filled.
    pub(super) fn check(&self, dim: usize) -> Checked<()> {
        let Numbers { feature_mean: mean, feature_scale: scale, feature_fill: fill, .. } = self;
        let lens = [
            ("feature_mean", mean.as_ref().map(|FloatArray(mean)| mean.len())),
            ("feature_scale", scale.as_ref().map(|FloatArray(scale)| scale.len())),
            ("feature_fill", fill.as_ref().map(|FloatArray(fill)| fill.len())),
        ];
        if let Some((key, _)) = lens[..2].iter().find(|(_, len)| len.is_none() && mean.is_some() != scale.is_some()) {
            return Err(Fault::missing(key));
        }
        if let Some((key, Some(len))) = lens.iter().find(|(_, len)| len.is_some_and(|len| len != dim)) {
            return Err(Fault::new(key, format!("has {len} numbers, but the model has {dim} features")));
        }
        match scale.iter().flat_map(|FloatArray(scale)| scale).find(|scale| **scale <= 0.0) {
            Some(scale) => Err(Fault::new("feature_scale", format!("has the number {scale}, but all must be above 0"))),
            None => Ok(()),
        }
    }
}

impl Kept {
    /// Checks what is said of the training of a model of these features, of which there are this many.
    pub(super) fn check(&self, features: &FeatureKind, dim: usize) -> Checked<()> {
        count("skipped", self.skipped)?;
        self.imputed.map_or(Ok(0), |rows| count("imputed", rows))?;
        self.shuffle_bytes.map_or(Ok(0), |bytes| count("shuffle_bytes", bytes))?;
        Duration::try_from_secs_f64(self.preparation_seconds)
            .map_err(|_| Fault::new("preparation_seconds", "is not a valid time"))?;
        let Some(profile) = &self.profile else { return Ok(()) };
        let reason = match features.shapes(dim).map(|shapes| profile.check(&shapes)) {
            None => "is given, but such features have no profile".to_owned(),
            Some(Ok(())) if i64::try_from(profile.rows).is_ok() => return Ok(()),
            Some(Ok(())) => "has too many rows".to_owned(),
            Some(Err((Some(feature), what))) => format!("has an entry of feature {} that {what}", feature + 1),
            Some(Err((None, what))) => what.to_owned(),
        };
        Err(Fault::new("profile", reason))
    }
}

/// A number of rows or bytes.
fn count(key: &str, number: i64) -> Checked<u64> {
    u64::try_from(number).map_err(|_| Fault::new(key, format!("is {number}, but must not be negative")))
}
