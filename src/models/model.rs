//! A model as it is used. It is read from a row of the table, all of which is checked,
//! because an administrator may have written it.

use super::class_values::as_numbers;
use super::document::ModelDocument;
use super::features::{ColumnKind, FeatureKind};
use super::fitted::{calibration, sigmoids};
use crate::errors::{INLINE_MODEL_ID, ModelError, Result, TheModel};
use crate::models::shared::{Arrays, Shared};
use crate::models::table::ModelRow;
use crate::options::choices::Choice;
use crate::options::loss::number_of_record;
use crate::options::rows::{Clip, Nulls, Transform, Unseen};
use pg::values::date_part::DatePart;
use pgrx::{FromDatum, IntoDatum, pg_sys};
use serde_json::Value;
use sgd::conformal::Calibration;
use sgd::platt::Sigmoids;
use sgd::{
    Activation, Hidden, LogTransform, ModelKind, ModelParameters, Network, Output, ParametersView, Standardizer, Task,
    probability,
};
use std::cell::Cell;
use std::ffi::CStr;
use std::ops::Range;

/// A trained model, ready to predict.
pub struct Model {
    pub id: i64,
    pub name: Option<String>,
    /// differs whenever a model is read, so that versions of a model in this backend can be told apart
    pub serial: u64,
    pub kind: ModelKind,
    numbers: Numbers,
    /// the hidden layers, if there are any
    network: Option<Network>,
    /// ascending; of two, the first is the negative class; none for `linear`
    pub classes: Vec<String>,
    /// the classes as numbers, unless they are text
    pub values: Option<Vec<f64>>,
    pub label: String,
    /// names of the feature columns
    pub features: Vec<String>,
    pub feature_kind: FeatureKind,
    pub nulls: Nulls,
    pub unseen: Unseen,
    /// which numbers are taken by their logarithms, and which features these are
    pub transform: Transform,
    pub logs: Option<LogTransform>,
    /// at how many deviations standardized features are cut off, if they are
    pub clip: Option<f32>,
    /// scores of rows that were held out of training, if it was calibrated
    pub calibration: Option<Calibration>,
    /// probabilities by its decisions, if it was trained with some that it does not have by itself
    pub sigmoids: Option<Sigmoids>,
    /// the number of the loss, in units of the label; 0 of a loss that has none
    pub loss_number: f64,
}

/// The numbers of a model, in memory of this process or of all.
enum Numbers {
    Own {
        linear: ModelParameters,
        standardizer: Option<Standardizer>,
        fill: Option<Vec<f32>>,
    },
    /// in memory of all processes, pinned by the transaction that looked the model up
    Shared(Shared),
}

impl Model {
    /// Reads a row of the table.
    ///
    /// # Errors
    /// [`ModelError::CorruptModel`]
    pub fn read(id: i64, row: &ModelRow) -> Result<Model> {
        read(id, row).map_err(|what| ModelError::CorruptModel(id, what).into())
    }

    /// Reads a row of the table whose numbers are in shared memory.
    ///
    /// # Errors
    /// [`ModelError::CorruptModel`]
    pub fn read_around(id: i64, row: &ModelRow, shared: Shared) -> Result<Model> {
        features(row)
            .and_then(|features| describe(id, row, Numbers::Shared(shared), features))
            .map_err(|what| ModelError::CorruptModel(id, what).into())
    }

    /// A model that is given as a value, and is in no table.
    pub fn of_document(document: ModelDocument) -> Model {
        let classes = document.classes.unwrap_or_default();
        Model {
            id: INLINE_MODEL_ID,
            name: None,
            serial: next_serial(),
            kind: document.kind,
            network: document.linear.network,
            numbers: Numbers::Own { linear: document.linear, standardizer: document.standardizer, fill: document.fill },
            values: as_numbers(document.label_type, &classes),
            classes,
            label: document.label,
            features: document.features,
            feature_kind: document.feature_kind,
            nulls: document.nulls,
            unseen: document.unseen,
            transform: document.transform,
            logs: document.logs,
            clip: document.clip,
            calibration: document.calibration,
            sigmoids: document.sigmoids,
            loss_number: document.loss_number,
        }
    }

    /// The same model with its numbers in shared memory.
    pub fn moved_to(self, shared: Shared) -> Model {
        Model { numbers: Numbers::Shared(shared), ..self }
    }

    /// Has it probabilities, by itself or fitted to its decisions?
    pub fn has_probabilities(&self) -> bool {
        self.kind.has_probabilities() || self.sigmoids.is_some()
    }

    /// The probability of each class, by its decisions.
    ///
    /// # Panics
    /// If it has no [probabilities](Model::has_probabilities), or `out` has not a place for every class.
    pub fn probabilities(&self, decisions: &[f32], out: &mut [f64]) {
        match &self.sigmoids {
            Some(sigmoids) => sigmoids.probabilities(decisions, out),
            None if self.kind.is_binary() => {
                // as exact near 0 as near 1
                (out[0], out[1]) = (probability(-decisions[0]), probability(decisions[0]));
            }
            None => self.linear().probabilities(decisions, out),
        }
    }

    /// Where the numbers are in shared memory, if they are.
    pub fn shared(&self) -> Option<&Shared> {
        match &self.numbers {
            Numbers::Shared(shared) => Some(shared),
            Numbers::Own { .. } => None,
        }
    }

    /// Number of features.
    #[inline]
    pub fn dim(&self) -> usize {
        self.linear().dim
    }

    /// The weights.
    #[inline]
    pub fn linear(&self) -> ParametersView<'_> {
        match &self.numbers {
            Numbers::Own { linear, .. } => linear.view(),
            Numbers::Shared(shared) => view(shared.arrays(), self.network.as_ref()),
        }
    }

    /// Mean and deviation of each feature, if the model is for standardized ones.
    #[inline]
    pub fn scaling(&self) -> Option<(&[f64], &[f64])> {
        match &self.numbers {
            Numbers::Own { standardizer, .. } => standardizer.as_ref().map(|s| (&s.mean[..], &s.scale[..])),
            Numbers::Shared(shared) => {
                let Arrays { mean, scale, .. } = shared.arrays();
                (!mean.is_empty()).then_some((mean, scale))
            }
        }
    }

    /// By feature, what stands for NULLs, if the model imputes.
    #[inline]
    pub fn fill(&self) -> Option<&[f32]> {
        match &self.numbers {
            Numbers::Own { fill, .. } => fill.as_deref(),
            Numbers::Shared(shared) => Some(shared.arrays().fill).filter(|fill| !fill.is_empty()),
        }
    }

    /// A copy of [`Model::scaling`].
    pub fn to_standardizer(&self) -> Option<Standardizer> {
        self.scaling()
            .map(|(mean, scale)| Standardizer { mean: allocation::copy(mean), scale: allocation::copy(scale) })
    }

    /// All numbers as they lie.
    pub fn arrays(&self) -> Arrays<'_> {
        let ParametersView { weights, intercepts, .. } = self.linear();
        let (mean, scale) = self.scaling().unwrap_or_default();
        Arrays { weights, intercepts, mean, scale, fill: self.fill().unwrap_or_default() }
    }

    /// What feature number `i` is called, from 0: a column, or an element of the column of arrays.
    pub fn feature_name(&self, i: usize) -> String {
        match &self.feature_kind {
            FeatureKind::Columns(_) => self.features[i].clone(),
            FeatureKind::Array => format!("{}[{}]", self.features[0], i + 1),
            FeatureKind::Sparse { index_base } => {
                let values = self.features.last().map_or("", String::as_str);
                format!("{values}[{}]", i + *index_base as usize)
            }
        }
    }

    /// What the weights are called in corgipile.coefficients, in their sequence.
    pub fn weight_names(&self) -> Vec<String> {
        let FeatureKind::Columns(kinds) = &self.feature_kind else {
            return (0..self.dim()).map(|i| self.feature_name(i)).collect();
        };
        let mut names = Vec::with_capacity(self.dim());
        for (column, kind) in self.features.iter().zip(kinds) {
            match kind {
                ColumnKind::Number => names.push(column.clone()),
                ColumnKind::Categories(categories) => {
                    names.extend(categories.values().iter().map(|value| format!("{column}={value}")));
                    names.extend(categories.null().map(|_| format!("{column} IS NULL")));
                }
                ColumnKind::Hashed(_) => {}
            }
        }
        names.extend((0..self.feature_kind.buckets()).map(|i| format!("hash[{i}]")));
        names
    }

    /// What belongs together: the name of each column, or of each element of an array, and its weights. Columns that
    /// are hashed share theirs, and have one name.
    pub fn weights_by_column(&self) -> Vec<(String, Range<usize>)> {
        let FeatureKind::Columns(kinds) = &self.feature_kind else {
            return (0..self.dim()).map(|i| (self.feature_name(i), i..i + 1)).collect();
        };
        let (mut columns, mut hashed, mut first) = (Vec::new(), Vec::new(), 0);
        for (column, kind) in self.features.iter().zip(kinds) {
            match kind {
                ColumnKind::Hashed(_) => hashed.push(column.as_str()),
                kind => columns.push((column.clone(), first..first + kind.width())),
            }
            first += kind.width();
        }
        if !hashed.is_empty() {
            columns.push((hashed.join(", "), first..first + self.feature_kind.buckets()));
        }
        columns
    }

    /// The columns that the features are taken from, with a date once in place of its parts;
    /// None if there are no parts.
    pub fn given_columns(&self) -> Option<Vec<&str>> {
        let is_part = |feature: &String| DatePart::split(feature).is_some();
        if !matches!(self.feature_kind, FeatureKind::Columns(_)) || !self.features.iter().any(is_part) {
            return None;
        }
        let mut columns: Vec<&str> = Vec::new();
        for feature in &self.features {
            let column = DatePart::split(feature).map_or(feature.as_str(), |(column, _)| column);
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        Some(columns)
    }

    /// The model as an error speaks of it.
    #[cold]
    pub fn in_error(&self) -> TheModel {
        let (listed, count) = match &self.feature_kind {
            FeatureKind::Columns(_) | FeatureKind::Sparse { .. } => {
                let columns = self.given_columns().map(|columns| columns.into_iter().map(str::to_owned).collect());
                let columns: Vec<String> = columns.unwrap_or_else(|| self.features.clone());
                let count = columns.len();
                (columns, count)
            }
            FeatureKind::Array => {
                ((0..self.dim().min(TheModel::LISTED)).map(|i| self.feature_name(i)).collect(), self.dim())
            }
        };
        let listed = listed.into_iter().take(TheModel::LISTED).collect();
        TheModel::new(self.id, self.name.as_deref(), listed, count)
    }

    /// Counts a prediction, if the model is in shared memory.
    #[inline]
    pub fn count(&self) {
        if let Numbers::Shared(shared) = &self.numbers {
            shared.count();
        }
    }

    /// Bytes of this process' memory, roughly.
    pub fn bytes(&self) -> usize {
        let (floats, doubles) = match &self.numbers {
            Numbers::Shared(_) => (0, 0),
            Numbers::Own { linear, standardizer, fill } => (
                linear.weights.len() + linear.intercepts.len() + fill.as_ref().map_or(0, Vec::len),
                standardizer.as_ref().map_or(0, |s| s.mean.len() + s.scale.len()),
            ),
        };
        let strings = self.classes.iter().chain(&self.features).map(|s| size_of::<String>() + s.len() + 16);
        let values = self.values.as_ref().map_or(0, Vec::len);
        let scores = self.calibration.as_ref().map_or(0, |calibration| calibration.scores().len());
        let sigmoids = self.sigmoids.as_ref().map_or(0, |sigmoids| size_of_val(sigmoids.all()));
        4 * floats
            + 8 * (doubles + values + scores)
            + sigmoids
            + strings.sum::<usize>()
            + self.feature_kind.bytes()
            + size_of::<Model>()
    }
}

fn view<'a>(arrays: Arrays<'a>, network: Option<&'a Network>) -> ParametersView<'a> {
    let Arrays { weights, intercepts, .. } = arrays;
    let linear = || (weights.len() / intercepts.len().max(1), intercepts.len());
    let (dim, outputs) = network.map_or_else(linear, |network| {
        network.sizes(weights.len(), intercepts.len()).unwrap_or_default() // arrays of a model that was read as one
    });
    ParametersView { dim, outputs, weights, intercepts, network }
}

/// The model in a row, or what is wrong with the row.
fn read(id: i64, row: &ModelRow) -> std::result::Result<Model, String> {
    let linear = weights(kind(row)?, row)?;
    let features = features(row)?;
    // buckets are neither scaled nor filled
    let dim = linear.dim.saturating_sub(features.1.buckets());
    let (standardizer, fill) = (standardizer(dim, row)?, fill(dim, row)?);
    describe(id, row, Numbers::Own { linear, standardizer, fill }, features)
}

/// The names of the feature columns, and what they are.
fn features(row: &ModelRow) -> std::result::Result<(Vec<String>, FeatureKind), String> {
    let features: Vec<String> = list(row, c"features")?;
    let feature_kind: String = row.get(c"feature_kind").ok_or("feature_kind is NULL")?;
    let categories = json(row, c"categories")?;
    let feature_kind = FeatureKind::read(&feature_kind, &features, categories.as_ref(), row.get(c"index_base"))
        .ok_or("features, feature_kind, categories and index_base do not fit each other")?;
    Ok((features, feature_kind))
}

fn kind(row: &ModelRow) -> std::result::Result<ModelKind, &'static str> {
    let kind: String = row.get(c"model").ok_or("model is NULL")?;
    kind.parse().map_err(|_| "unknown kind of model")
}

/// The model in a row, with these numbers and features.
fn describe(
    id: i64,
    row: &ModelRow,
    numbers: Numbers,
    (features, feature_kind): (Vec<String>, FeatureKind),
) -> std::result::Result<Model, String> {
    let kind = kind(row)?;
    let network = network(kind, row)?;
    let (dim, outputs) = match &numbers {
        Numbers::Own { linear, .. } => (linear.dim, linear.outputs),
        Numbers::Shared(shared) => {
            let ParametersView { dim, outputs, .. } = view(shared.arrays(), network.as_ref());
            (dim, outputs)
        }
    };
    if feature_kind.dim().is_some_and(|known| known != dim) {
        return Err("features do not fit the weights".into());
    }
    let classes = classes(kind, network.map_or(outputs, |network| network.classes(outputs).unwrap_or(0)), row)?;
    let label_type = row.get(c"label_type").unwrap_or(pg_sys::Oid::INVALID);
    let options = json(row, c"hyperparameters")?;
    let option = |key: &str| options.as_ref().and_then(|options| options[key].as_str());
    let transform = options.as_ref().and_then(|options| options.get("transform"));
    let transform = transform.map_or(Some(Transform::None), Transform::read).ok_or(TRANSFORM)?;
    let logs = feature_kind.logs(&features, &transform).map_err(|()| TRANSFORM)?;
    let clip = Clip::of_record(options.as_ref().and_then(|options| options.get("clip")));
    let clip = clip.ok_or("clip in hyperparameters is no number above 0")?;
    let loss_number = number_of_record(kind, options.as_ref().and_then(Value::as_object));
    let loss_number = loss_number.ok_or("the number of the loss in hyperparameters is out of range")?;
    Ok(Model {
        id,
        name: row.get(c"name"),
        serial: next_serial(),
        kind,
        numbers,
        network,
        values: as_numbers(label_type, &classes),
        classes,
        label: row.get(c"label").ok_or("label is NULL")?,
        features,
        feature_kind,
        // a model that says nothing was stored when both were errors
        nulls: option("nulls").and_then(Nulls::named).unwrap_or(Nulls::Error),
        unseen: option("unseen").and_then(Unseen::named).unwrap_or(Unseen::Error),
        transform,
        logs,
        clip,
        calibration: calibration(row)?,
        sigmoids: sigmoids(row, kind, outputs)?,
        loss_number,
    })
}

const TRANSFORM: &str = "transform in hyperparameters does not fit the features";

fn next_serial() -> u64 {
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    LAST.set(LAST.get() + 1);
    LAST.get()
}

fn weights(kind: ModelKind, row: &ModelRow) -> std::result::Result<ModelParameters, String> {
    const ARRAY: &str = "weights and intercepts are not arrays of one dimension without NULLs";
    let weights = row.floats::<f32>(c"weights").flatten().ok_or(ARRAY)?;
    let intercepts = row.floats::<f32>(c"intercepts").flatten().ok_or(ARRAY)?;
    if let Some(network) = network(kind, row)? {
        let sizes = network.sizes(weights.len(), intercepts.len());
        let (dim, outputs) = sizes.ok_or("weights, intercepts, hidden_layers and output do not fit each other")?;
        let linear = ModelParameters { dim, outputs, weights, intercepts, network: Some(network) };
        return if linear.is_finite() { Ok(linear) } else { Err("weights are not finite".into()) };
    }
    let outputs = intercepts.len();
    let fits = if kind.has_class_numbers() { outputs > 1 } else { outputs == 1 };
    if !fits || weights.is_empty() || !weights.len().is_multiple_of(outputs) {
        return Err("weights and intercepts do not fit each other".into());
    }
    let linear = ModelParameters { dim: weights.len() / outputs, outputs, weights, intercepts, network: None };
    if linear.is_finite() { Ok(linear) } else { Err("weights are not finite".into()) }
}

/// The hidden layers of a network.
fn network(kind: ModelKind, row: &ModelRow) -> std::result::Result<Option<Network>, String> {
    if kind.is_linear() {
        return Ok(None);
    }
    let sizes: Vec<i32> = list(row, c"hidden_layers")?;
    let sizes: Option<Vec<u32>> = sizes.into_iter().map(|size| u32::try_from(size).ok()).collect();
    let hidden = sizes.and_then(|sizes| Hidden::new(&sizes)).ok_or("hidden_layers cannot be")?;
    let word = |column: &CStr| row.get::<String>(column);
    let activation = word(c"activation").and_then(|name| Activation::named(&name)).ok_or("unknown activation")?;
    let output = word(c"output").and_then(|name| Output::named(&name)).ok_or("unknown output")?;
    if output.has_classes() != kind.is_classifier() {
        return Err("the output is not one of such a model".into());
    }
    Ok(Some(Network { hidden, activation, output }))
}

fn standardizer(dim: usize, row: &ModelRow) -> std::result::Result<Option<Standardizer>, &'static str> {
    const ARRAY: &str = "feature_mean and feature_scale are not arrays of one dimension without NULLs";
    let (mean, scale) = match (row.floats::<f64>(c"feature_mean"), row.floats::<f64>(c"feature_scale")) {
        (None, None) => return Ok(None),
        (Some(mean), Some(scale)) => (mean.ok_or(ARRAY)?, scale.ok_or(ARRAY)?),
        _ => return Err("there is one of feature_mean and feature_scale"),
    };
    let fits = mean.len() == dim && scale.len() == dim;
    if fits && mean.iter().all(|m| m.is_finite()) && scale.iter().all(|s| s.is_finite() && *s > 0.0) {
        Ok(Some(Standardizer { mean, scale }))
    } else {
        Err("feature_mean and feature_scale do not fit the weights")
    }
}

fn fill(dim: usize, row: &ModelRow) -> std::result::Result<Option<Vec<f32>>, &'static str> {
    let Some(fill) = row.floats::<f32>(c"feature_fill") else { return Ok(None) };
    let fill = fill.ok_or("feature_fill is not an array of one dimension without NULLs")?;
    let fits = fill.len() == dim && fill.iter().all(|value| value.is_finite());
    if fits { Ok(Some(fill)) } else { Err("feature_fill does not fit the weights") }
}

fn classes(kind: ModelKind, outputs: usize, row: &ModelRow) -> std::result::Result<Vec<String>, String> {
    let expected = match kind.task() {
        Task::Regression if row.list::<String>(c"classes").is_none() => return Ok(Vec::new()),
        Task::Regression => return Err("it has classes".into()),
        Task::Binary => 2,
        Task::Classes => outputs,
    };
    let classes = list(row, c"classes")?;
    if classes.len() == expected { Ok(classes) } else { Err("classes do not fit the model".into()) }
}

/// A column's array, which has to be there.
fn list<T>(row: &ModelRow, column: &CStr) -> std::result::Result<Vec<T>, String>
where
    Vec<Option<T>>: FromDatum + IntoDatum,
{
    let name = column.to_string_lossy();
    match row.list(column) {
        Some(Some(elements)) => Ok(elements),
        Some(None) => Err(format!("{name} are not an array of one dimension without NULLs")),
        None => Err(format!("{name} are NULL")),
    }
}

/// A column's value of type jsonb.
fn json(row: &ModelRow, column: &CStr) -> std::result::Result<Option<Value>, String> {
    row.json(column).map_err(|fault| format!("{} {}", column.to_string_lossy(), fault.reason_of_several()))
}
