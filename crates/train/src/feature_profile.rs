//! The features of rows as a model has them, measured: for the profile that is kept with it, and to compare others with
//! that. Labels are not read: new rows often have none yet.
//!
//! Guarantees: what is measured of parts of the rows and united is what is measured of all of them, sums but for
//! rounding. It is as large as the features make it, however many rows there are.

use super::model_rows::{PlannedRows, check_types, missing_label, without_label};
use decode::{Decoder, DecoderSpec, FeatureColumns, ModelSchema};
use errors::{PredictError, Result};
use loss::ModelKind;
use model::{ColumnKind, FeatureKind, Model};
use options::rows::{Nulls, Unseen};
use options::shuffling::Shuffling;
use pg::check_for_interrupts;
use pg::executor::query::Column;
use scan::Buffers;
use serde::{Deserialize, Serialize};
use sgd::profile::{self, Ends, FeatureShape, Profile, RowSample, Tallies};
use std::rc::Rc;
use tuples::{Batch, TupleSource};

/// What was measured of the features of rows.
#[derive(Serialize, Deserialize)]
pub struct MeasuredFeatures {
    tallies: Tallies,
    /// unless they are compared with others, whose bins they get
    sample: Option<RowSample>,
    /// of each feature, the rows in which it is NULL, unless it has numbers
    nulls: Vec<profile::Nulls>,
}

impl MeasuredFeatures {
    /// Of no rows; numbers are put into the bins of `like`, if it is there.
    pub fn new(shapes: &[FeatureShape], like: Option<&Profile>) -> MeasuredFeatures {
        MeasuredFeatures {
            tallies: Tallies::new(shapes, like),
            sample: like.is_none().then(|| RowSample::new(numbers_of(shapes))),
            nulls: vec![profile::Nulls::default(); shapes.len()],
        }
    }

    /// Adds what was measured of other rows. False if that has other features, after which nothing is to be read.
    pub fn unite(&mut self, other: &MeasuredFeatures) -> bool {
        if other.nulls.iter().any(|nulls| nulls.rows > other.rows()) {
            return false;
        }
        for (nulls, others) in self.nulls.iter_mut().zip(&other.nulls) {
            *nulls = profile::Nulls { rows: nulls.rows + others.rows, ..*others };
        }
        let has_sample = match (&mut self.sample, &other.sample) {
            (Some(sample), Some(other)) => sample.unite(other),
            (None, None) => true,
            _ => false,
        };
        has_sample && self.nulls.len() == other.nulls.len() && self.tallies.unite(&other.tallies)
    }

    pub fn rows(&self) -> u64 {
        self.tallies.rows()
    }

    pub fn finish(self, shapes: &[FeatureShape], ends: Ends) -> Profile {
        let MeasuredFeatures { tallies, sample, nulls } = self;
        tallies
            .finish(shapes, sample.as_ref().map(|sample| (sample, ends)), |i| nulls.get(i).copied().unwrap_or_default())
    }
}

fn numbers_of(shapes: &[FeatureShape]) -> usize {
    shapes.iter().filter(|shape| **shape == FeatureShape::Number).count()
}

pub fn shapes_of(model: &Model) -> Result<Vec<FeatureShape>> {
    model.feature_kind.shapes(model.dim()).ok_or_else(|| {
        let is_sparse = matches!(model.feature_kind, FeatureKind::Sparse { .. });
        let what = if is_sparse { "sparse features" } else { "more than 1024 features" };
        PredictError::NotProfiled { model: model.in_error(), what }.into()
    })
}

/// Plans to read the features of `source`, by the names of the columns that the model was trained on, as they are:
/// neither scaled nor taken by logarithms, with NaN for NULLs among numbers.
pub fn plan(model: &Model, source: &str) -> Result<PlannedRows> {
    let mut source = without_label(model, source, "the comparison of features")?;
    source.add_parts(&model.features);
    let decoder = decoder(model, source.columns())?;
    let planned = source.plan(&decoder_spec(model), &Shuffling::none())?;
    Ok(PlannedRows { source, decoder, planned })
}

/// A decoder of such rows, which have these columns.
pub fn decoder(model: &Model, columns: &[Column]) -> Result<Decoder> {
    let decoder = decoder_spec(model).decoder(columns)?;
    check_types(model, decoder.features(), &model.feature_kind.columns_of_categories(&model.features))?;
    Ok(decoder)
}

/// What a decoder of such rows has to know.
pub fn decoder_spec(model: &Model) -> DecoderSpec {
    let known = ModelSchema {
        classes: Vec::new(),
        dim: model.dim(),
        categories: model.feature_kind.columns_of_categories(&model.features),
        unseen: Unseen::Zero,
        standardizer: None,
        fill: Some(vec![f32::NAN; model.dim().saturating_sub(model.feature_kind.buckets())]),
    };
    DecoderSpec {
        nulls: Nulls::Impute,
        known: Some(Rc::new(known)),
        ..DecoderSpec::new(ModelKind::Linear, &missing_label(model), &model.features)
    }
}

/// Goes through the rows, as [`decoder`] reads them, and measures their features.
pub fn measure_features(model: &Model, like: Option<&Profile>, buffers: &mut Buffers) -> Result<MeasuredFeatures> {
    let shapes = shapes_of(model)?;
    let mut pass = Pass { measured: MeasuredFeatures::new(&shapes, like), entries: entries_of(model) };
    let mut batch = Batch::new(model.dim());
    let mut numbers = vec![f32::NAN; numbers_of(&shapes)];
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        for i in 0..batch.len() {
            if batch.is_sparse() {
                pass.read_entries(batch.sparse_row(i), &mut numbers);
                pass.add(&numbers);
            } else {
                pass.add(batch.features(i));
            }
        }
    }
    let decoder = &buffers.decoder;
    let counts = decoder.imputation().map(|imputation| imputation.counts().features.clone()).unwrap_or_default();
    let ignored = |i: usize| match decoder.features() {
        FeatureColumns::Mixed(columns) => columns.ignored_nulls(i),
        _ => None,
    };
    let mut measured = pass.measured;
    for (i, nulls) in measured.nulls.iter_mut().enumerate() {
        *nulls = match ignored(i) {
            Some(rows) => profile::Nulls { rows, is_category: false },
            None => profile::Nulls { rows: counts.get(i).copied().unwrap_or_default(), is_category: true },
        };
    }
    Ok(measured)
}

/// What an entry of a row of columns is, some of which have categories.
#[derive(Clone, Copy)]
enum Entry {
    Number(usize),
    /// of this column of categories, this one
    Category(usize, usize),
}

/// What each entry of a sparse row is, by its place. Buckets lie behind all others.
fn entries_of(model: &Model) -> Vec<Entry> {
    let mut entries = Vec::new();
    let FeatureKind::Columns(columns) = &model.feature_kind else { return entries };
    let (mut number, mut column_of_categories) = (0, 0);
    for column in columns {
        match column {
            ColumnKind::Number | ColumnKind::Vector(_) => {
                let numbers = number..number + column.width();
                number = numbers.end;
                entries.extend(numbers.map(Entry::Number));
            }
            ColumnKind::Categories(_) => {
                entries.extend((0..column.width()).map(|place| Entry::Category(column_of_categories, place)));
                column_of_categories += 1;
            }
            ColumnKind::Hashed(_) => {}
        }
    }
    entries
}

/// A pass over rows.
struct Pass {
    measured: MeasuredFeatures,
    entries: Vec<Entry>,
}

impl Pass {
    fn add(&mut self, numbers: &[f32]) {
        self.measured.tallies.add(numbers);
        if let Some(sample) = &mut self.measured.sample {
            sample.add_row(numbers);
        }
    }

    /// Takes the numbers of a row of columns, and counts its categories.
    fn read_entries(&mut self, (indices, values): (&[u32], &[f32]), numbers: &mut [f32]) {
        numbers.fill(f32::NAN);
        for (index, value) in indices.iter().zip(values) {
            match self.entries.get(*index as usize) {
                Some(Entry::Number(number)) => numbers[*number] = *value,
                Some(Entry::Category(column, place)) => self.measured.tallies.add_category(*column, *place),
                None => {}
            }
        }
    }
}
