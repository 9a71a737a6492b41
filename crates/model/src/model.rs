//! A model as it is used, made of what a row of the table or a document says, all of which is checked: an administrator
//! may have written the one, anybody the other.

use super::check::sizes;
use super::class_values::as_numbers;
use super::features::{ColumnKind, FeatureKind};
use super::groups::Grouping;
use super::keyed_values::Fault;
use super::parts::{Fitted, Numbers};
use crate::shared::{Arrays, Shared};
use crate::table::ModelRow;
use errors::{Result, TheModel};
use loss::{LogTransform, ModelKind, Network, ParametersView, RowDecision, Standardizer, probability};
use options::loss::number_of_record;
use options::rows::{Clip, Nulls, Transform, Unseen};
use pg::values::part::Part;
use sgd::conformal::Calibration;
use sgd::platt::Sigmoids;
use std::cell::Cell;
use std::ops::Range;

/// A trained model, ready to predict.
pub struct Model {
    pub id: i64,
    pub name: Option<String>,
    /// differs whenever a model is read, so that versions of a model in this backend can be distinguished
    pub serial: u64,
    pub kind: ModelKind,
    dim: usize,
    outputs: usize,
    held: Held,
    /// the hidden layers, if there are any
    network: Option<Network>,
    /// what decides about a row in one go, unless it is long: weights of many features are in the memory of all
    /// processes, and there for once
    row: Option<RowDecision>,
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
    /// of the model of a group, or of all rows next to such models
    pub grouping: Option<Grouping>,
    /// the class that is positive, if its training said so
    pub positive: Option<usize>,
}

/// The numbers of a model, in memory of this process or of all.
pub(super) enum Held {
    Own(Numbers),
    /// in memory of all processes, pinned by the transaction that looked the model up
    Shared(Shared),
}

impl Held {
    #[inline]
    fn arrays(&self) -> Arrays<'_> {
        match self {
            Held::Own(numbers) => numbers.arrays(),
            Held::Shared(shared) => shared.arrays(),
        }
    }
}

impl Model {
    /// Reads a row of the table; without its numbers if they are in shared memory.
    pub fn read(id: i64, row: &ModelRow, shared: Option<Shared>) -> Result<Model> {
        let numbers = || shared.map_or_else(|| Numbers::read(row).map(Held::Own), |shared| Ok(Held::Shared(shared)));
        let model = Fitted::read(row).and_then(|fitted| Model::new(id, &fitted, numbers()?));
        model.map_err(|fault| fault.of_row(id))
    }

    /// The model of these parts, or what is wrong with them.
    pub(super) fn new(id: i64, fitted: &Fitted, held: Held) -> std::result::Result<Model, Fault> {
        let kind = fitted.kind()?;
        let classes = fitted.classes(kind)?;
        let network = fitted.network(kind)?;
        let Arrays { weights, intercepts, .. } = held.arrays();
        let (dim, outputs) = sizes(kind, network.as_ref(), classes.len(), (weights.len(), intercepts.len()))?;
        let feature_kind = fitted.features(dim)?;
        if let Held::Own(numbers) = &held {
            numbers.check(dim.saturating_sub(feature_kind.buckets()))?;
        }
        let record = &fitted.hyperparameters;
        let refuse = |reason: String| Fault::new("hyperparameters", reason);
        let transform = record.get("transform").map_or(Some(Transform::None), Transform::read);
        let transform = transform.ok_or_else(|| refuse(format!("has transform, but not {}", Transform::WHAT)))?;
        let logs = feature_kind.logs(&fitted.features, &transform);
        let clip = Clip::of_record(record.get("winsorize"))
            .ok_or_else(|| refuse(format!("has winsorize, but not {}", Clip::WHAT)))?;
        let Arrays { weights, intercepts, mean, scale, .. } = held.arrays();
        let is_short = network.is_none() && outputs == 1 && dim <= MAX_ROW && clip.is_none();
        let scaling = (!mean.is_empty()).then_some((mean, scale));
        let row = is_short.then(|| RowDecision::new(weights, intercepts[0], scaling));
        Ok(Model {
            id,
            name: fitted.name.clone(),
            serial: next_serial(),
            kind,
            dim,
            outputs,
            held,
            network,
            row,
            values: as_numbers(fitted.label_type, classes),
            classes: classes.to_vec(),
            label: fitted.label.clone(),
            features: fitted.features.clone(),
            feature_kind,
            // a model that says nothing was stored when both were errors
            nulls: fitted.policy("nulls")?.unwrap_or(Nulls::Error),
            unseen: fitted.policy("handle_unknown")?.unwrap_or(Unseen::Error),
            transform,
            logs: logs.map_err(|()| refuse("has transform for a column that is not a numeric feature".to_owned()))?,
            clip,
            calibration: fitted.calibration()?,
            sigmoids: fitted.sigmoids(kind, outputs)?,
            loss_number: number_of_record(kind, Some(record)).ok_or_else(|| {
                let name = kind.loss_number().map_or("", |number| number.name);
                refuse(format!("has an invalid {name} for loss {}", kind.name()))
            })?,
            grouping: fitted.grouping()?,
            positive: record
                .get("positive")
                .and_then(|positive| classes.iter().position(|class| Some(class.as_str()) == positive.as_str())),
        })
    }

    /// Its numbers, to be stored.
    pub(super) fn into_numbers(self) -> Numbers {
        match self.held {
            Held::Own(numbers) => numbers,
            Held::Shared(_) => unreachable!("a model that was just read"),
        }
    }

    /// The same model with its numbers in shared memory.
    pub fn moved_to(self, shared: Shared) -> Model {
        Model { held: Held::Shared(shared), ..self }
    }

    /// Has it probabilities, by itself or fitted to its decisions?
    pub fn has_probabilities(&self) -> bool {
        self.kind.has_probabilities() || self.sigmoids.is_some()
    }

    /// The probability of each class, by its decisions.
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
        match &self.held {
            Held::Shared(shared) => Some(shared),
            Held::Own(_) => None,
        }
    }

    /// Number of features.
    #[inline]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The weights.
    #[inline]
    pub fn linear(&self) -> ParametersView<'_> {
        let Arrays { weights, intercepts, .. } = self.arrays();
        ParametersView { dim: self.dim, outputs: self.outputs, weights, intercepts, network: self.network.as_ref() }
    }

    /// Mean and deviation of each feature, if the model is for standardized ones.
    #[inline]
    pub fn scaling(&self) -> Option<(&[f64], &[f64])> {
        let Arrays { mean, scale, .. } = self.arrays();
        (!mean.is_empty()).then_some((mean, scale))
    }

    /// What decides about a row in one go, of a linear model with one output and few features.
    #[inline]
    pub fn row_decision(&self) -> Option<&RowDecision> {
        self.row.as_ref()
    }

    /// By feature, what stands for NULLs, if the model imputes.
    #[inline]
    pub fn fill(&self) -> Option<&[f32]> {
        Some(self.arrays().fill).filter(|fill| !fill.is_empty())
    }

    /// A copy of [`Model::scaling`].
    pub fn to_standardizer(&self) -> Option<Standardizer> {
        self.scaling()
            .map(|(mean, scale)| Standardizer { mean: allocation::copy(mean), scale: allocation::copy(scale) })
    }

    /// All numbers as they are in memory.
    #[inline]
    pub fn arrays(&self) -> Arrays<'_> {
        self.held.arrays()
    }

    /// What feature number `i` is called, from 0: a column, or an element of a column of arrays or vectors. A column of
    /// categories counts as one.
    pub fn feature_name(&self, i: usize) -> String {
        match &self.feature_kind {
            FeatureKind::Columns(kinds) => name_of_number(&self.features, kinds, i),
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
                ColumnKind::Vector(len) => names.extend((1..=*len).map(|i| format!("{column}[{i}]"))),
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

    /// The columns that the features are taken from, with a date or JSON once in place of its parts;
    /// None if there are no parts.
    pub fn given_columns(&self) -> Option<Vec<&str>> {
        let is_part = |feature: &String| Part::split(feature).is_some();
        if !matches!(self.feature_kind, FeatureKind::Columns(_)) || !self.features.iter().any(is_part) {
            return None;
        }
        let mut columns: Vec<&str> = Vec::new();
        for feature in &self.features {
            let column = Part::split(feature).map_or(feature.as_str(), |(column, _)| column);
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
        if let Held::Shared(shared) = &self.held {
            shared.count();
        }
    }

    /// Bytes of this process' memory, roughly.
    pub fn bytes(&self) -> usize {
        let numbers = match &self.held {
            Held::Shared(_) => 0,
            Held::Own(numbers) => {
                let Arrays { weights, intercepts, mean, scale, fill } = numbers.arrays();
                size_of_val(weights)
                    + size_of_val(intercepts)
                    + size_of_val(fill)
                    + size_of_val(mean)
                    + size_of_val(scale)
            }
        };
        let strings = self.classes.iter().chain(&self.features).map(|s| size_of::<String>() + s.len() + 16);
        let values = self.values.as_ref().map_or(0, Vec::len);
        let scores = self.calibration.as_ref().map_or(0, |calibration| calibration.scores().len());
        let sigmoids = self.sigmoids.as_ref().map_or(0, |sigmoids| size_of_val(sigmoids.all()));
        numbers
            + self.row.as_ref().map_or(0, RowDecision::bytes)
            + 8 * (values + scores)
            + sigmoids
            + strings.sum::<usize>()
            + self.feature_kind.bytes()
            + size_of::<Model>()
    }
}

/// Rows of this many features are short.
const MAX_ROW: usize = 4096;

/// The column, or the element of a vector, that is number `i`.
fn name_of_number(features: &[String], kinds: &[ColumnKind], mut i: usize) -> String {
    for (name, kind) in features.iter().zip(kinds) {
        match kind {
            ColumnKind::Vector(len) if i < *len => return format!("{name}[{}]", i + 1),
            ColumnKind::Vector(len) => i -= len,
            _ if i == 0 => return name.clone(),
            _ => i -= 1,
        }
    }
    String::new()
}

/// Another number each time.
fn next_serial() -> u64 {
    thread_local! {
        static LAST: Cell<u64> = const { Cell::new(0) };
    }
    LAST.set(LAST.get() + 1);
    LAST.get()
}
