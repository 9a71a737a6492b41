//! corgipile_profile() and corgipile_drift(): what the features of a model were like, and how far those of other rows
//! are from that. Labels are not read: new rows often have none yet.

use crate::errors::{ArgumentError, OrRaise, PredictError, Result, TrainingError};
use crate::models::{self, ColumnKind, FeatureKind, Model};
use crate::operators::model_rows::check_types;
use crate::operators::{Buffers, DecoderSpec, FeatureColumns, ModelSchema, Source};
use crate::options::rows::{Nulls, Unseen};
use crate::options::shuffling::Shuffling;
use crate::pg::call::function::Call;
use crate::pg::catalog::relation::Relation;
use crate::pg::catalog::types::{base_type, is_compressed};
use crate::pg::check_for_interrupts;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::Running;
use crate::pg::snapshot::Snapshot;
use crate::pg::values::varlena::Value;
use pgrx::prelude::*;
use sgd::ModelKind;
use sgd::profile::{self, FeatureProfile, FeatureShape, Profile, RowSample, Tallies};
use std::rc::Rc;
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_profile(call: Call<'_>) -> Value {
    profile(call, of_id(call), text(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_by_name(call: Call<'_>) -> Value {
    profile(call, of_name(call), text(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_relation(call: Call<'_>) -> Value {
    profile(call, of_id(call), relation(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_profile_relation_by_name(call: Call<'_>) -> Value {
    profile(call, of_name(call), relation(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_drift(call: Call<'_>) {
    drift(call, of_id(call), text(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_by_name(call: Call<'_>) {
    drift(call, of_name(call), text(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_relation(call: Call<'_>) {
    drift(call, of_id(call), relation(call)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drift_relation_by_name(call: Call<'_>) {
    drift(call, of_name(call), relation(call)).or_raise();
}

fn of_id(call: Call<'_>) -> Result<Rc<Model>> {
    models::by_id(call.get(0).ok_or(ArgumentError::NullArgument("model_id"))?)
}

fn of_name(call: Call<'_>) -> Result<Rc<Model>> {
    let name: String = call.get(0).ok_or(ArgumentError::NullArgument("name"))?;
    models::by_name(&name)
}

fn text(call: Call<'_>) -> Result<String> {
    call.get(1).ok_or_else(|| ArgumentError::NullArgument("source").into())
}

fn relation(call: Call<'_>) -> Result<String> {
    Relation::name_of_oid(call.get(1).ok_or(ArgumentError::NullArgument("source"))?)
}

/// Keeps with the model what the features of these rows are like.
fn profile(call: Call<'_>, model: Result<Rc<Model>>, source: Result<String>) -> Result<Value> {
    let (model, source) = (model?, source?);
    models::check_may_change(model.id)?;
    let shapes = shapes_of(&model)?;
    let profile = Pass::new(&model, &shapes, None).run(&source)?;
    models::keep_profile(model.id, &profile)?;
    Ok(call.row(&[(profile.rows as i64).into(), (profile.features.len() as i32).into()]))
}

/// Columns of corgipile_drift().
const COLUMNS: usize = 11;

/// Gives a row for each feature.
fn drift(call: Call<'_>, model: Result<Rc<Model>>, source: Result<String>) -> Result<()> {
    let (model, source) = (model?, source?);
    let shapes = shapes_of(&model)?;
    let kept = models::profile(model.id, &model.feature_kind, model.dim())?;
    let kept = kept.ok_or_else(|| PredictError::NoProfile(model.in_error()))?;
    let new = Pass::new(&model, &shapes, Some(&kept)).run(&source)?;
    // a training that has left out rows with NULLs has met none
    let knows_no_nulls =
        models::rows_left_out(model.id) > 0 && kept.features.iter().all(|feature| feature.missing == 0.0);
    let mut features = shapes.iter().zip(kept.features.iter().zip(&new.features)).enumerate();
    call.return_rows(COLUMNS, |row| {
        let Some((i, (shape, (before, now)))) = features.next() else { return false };
        let drift = before.drift(now, kept.rows, new.rows);
        let reasons =
            [(drift.shifted, "shifted"), (drift.missing && !knows_no_nulls, "missing"), (drift.unseen, "unseen")];
        let reasons: Vec<&str> = reasons.iter().filter(|(applies, _)| *applies).map(|(_, reason)| *reason).collect();
        let unseen = matches!(shape, FeatureShape::Categories(_)).then_some(now.unseen as i64);
        row.clone_from_slice(&[
            model.feature_name(i).into(),
            (!reasons.is_empty()).then(|| reasons.join(", ")).into(),
            drift.psi.into(),
            drift.ks.into(),
            number_of(before, before.mean).into(),
            number_of(now, now.mean).into(),
            number_of(before, before.deviation).into(),
            number_of(now, now.deviation).into(),
            (!knows_no_nulls).then_some(before.missing).into(),
            now.missing.into(),
            unseen.into(),
        ]);
        true
    })
}

/// A mean or deviation, if there are values.
fn number_of(feature: &FeatureProfile, number: Option<f64>) -> Option<f64> {
    number.filter(|_| feature.missing < 1.0)
}

/// What the model's features are.
///
/// # Errors
/// [`PredictError::NotProfiled`]
fn shapes_of(model: &Model) -> Result<Vec<FeatureShape>> {
    models::feature_shapes(&model.feature_kind, model.dim()).ok_or_else(|| {
        let is_sparse = matches!(model.feature_kind, FeatureKind::Sparse { .. });
        let what = if is_sparse { "sparse features" } else { "more than 1024 features" };
        PredictError::NotProfiled { model: model.in_error(), what }.into()
    })
}

/// What an entry of a row of columns is, some of which have categories.
#[derive(Clone, Copy)]
enum Entry {
    /// this of the numbers
    Number(usize),
    /// of this column of categories, this one
    Category(usize, usize),
}

/// A pass over rows that measures features.
struct Pass<'a> {
    model: &'a Model,
    shapes: &'a [FeatureShape],
    tallies: Tallies,
    /// unless they are compared with others, whose bins they get
    sample: Option<RowSample>,
    /// by place in a sparse row
    entries: Vec<Entry>,
    numbers: usize,
}

impl<'a> Pass<'a> {
    fn new(model: &'a Model, shapes: &'a [FeatureShape], like: Option<&Profile>) -> Pass<'a> {
        let numbers = shapes.iter().filter(|shape| **shape == FeatureShape::Number).count();
        let mut entries = Vec::new();
        if let FeatureKind::Columns(columns) = &model.feature_kind {
            let (mut number, mut column_of_categories) = (0, 0);
            for column in columns {
                match column {
                    ColumnKind::Number => {
                        entries.push(Entry::Number(number));
                        number += 1;
                    }
                    ColumnKind::Categories(_) => {
                        entries.extend((0..column.width()).map(|place| Entry::Category(column_of_categories, place)));
                        column_of_categories += 1;
                    }
                    ColumnKind::Hashed(_) => {}
                }
            }
        }
        let sample = like.is_none().then(|| RowSample::new(numbers));
        Pass { model, shapes, tallies: Tallies::new(shapes, like), sample, entries, numbers }
    }

    /// Goes through the rows of `source`.
    ///
    /// # Errors
    /// Whatever can be wrong with source and rows.
    fn run(mut self, source: &str) -> Result<Profile> {
        let mut buffers = open(self.model, source)?;
        let mut batch = Batch::new(self.model.dim());
        let mut numbers = vec![f32::NAN; self.numbers];
        while buffers.next_batch(&mut batch)? {
            check_for_interrupts();
            for i in 0..batch.len() {
                if batch.is_sparse() {
                    self.read_entries(batch.sparse_row(i), &mut numbers);
                    self.add(&numbers);
                } else {
                    self.add(batch.features(i));
                }
            }
        }
        let decoder = buffers.into_decoder();
        if self.tallies.rows() == 0 {
            return Err(TrainingError::no_rows("compare", decoder.skipped()).into());
        }
        let counts = decoder.imputation().map(|imputation| imputation.counts().features.clone()).unwrap_or_default();
        let ignored = |i: usize| match decoder.features() {
            FeatureColumns::Mixed(columns) => columns.ignored_nulls(i),
            _ => None,
        };
        let nulls = |i: usize| match ignored(i) {
            Some(rows) => profile::Nulls { rows, is_category: false },
            None => profile::Nulls { rows: counts.get(i).copied().unwrap_or_default(), is_category: true },
        };
        Ok(self.tallies.finish(self.shapes, self.sample.as_ref(), nulls))
    }

    fn add(&mut self, numbers: &[f32]) {
        self.tallies.add(numbers);
        if let Some(sample) = &mut self.sample {
            sample.add_row(numbers);
        }
    }

    /// Takes the numbers of a row of columns, and counts its categories. Buckets lie behind both.
    fn read_entries(&mut self, (indices, values): (&[u32], &[f32]), numbers: &mut [f32]) {
        numbers.fill(f32::NAN);
        for (index, value) in indices.iter().zip(values) {
            match self.entries.get(*index as usize) {
                Some(Entry::Number(number)) => numbers[*number] = *value,
                Some(Entry::Category(column, place)) => self.tallies.add_category(*column, *place),
                None => {}
            }
        }
    }
}

/// Opens the features of `source`, by the names of the columns that the model was trained on, as they are: neither
/// scaled nor taken by logarithms, with NaN for NULLs among numbers.
///
/// # Errors
/// Whatever can be wrong with the source.
fn open(model: &Model, source: &str) -> Result<Buffers> {
    let mut label = "label".to_owned();
    while model.features.contains(&label) {
        label.push('_');
    }
    let source = Source::resolve(source)?;
    let columns = model.given_columns().unwrap_or_else(|| model.features.iter().map(String::as_str).collect());
    if let [only] = columns[..]
        && is_compressed(base_type(source.type_of(only)?))
    {
        return Err(TrainingError::NotOnCompressed("the comparison of features").into());
    }
    let mut source = source.with_label(&label, &columns)?;
    source.add_parts(&model.features);
    let categories = model.feature_kind.columns_of_categories(&model.features);
    let missing = vec![f32::NAN; model.dim().saturating_sub(model.feature_kind.buckets())];
    let known = ModelSchema {
        classes: &[],
        dim: model.dim(),
        categories: &categories,
        unseen: Unseen::Zero,
        standardizer: None,
        fill: Some(&missing),
    };
    let spec = DecoderSpec {
        nulls: Nulls::Impute,
        known: Some(known),
        ..DecoderSpec::new(ModelKind::Linear, &label, &model.features)
    };
    let decoder = source.decoder(&spec)?;
    check_types(model, decoder.features(), &categories)?;
    let planned = source.plan(&spec, &Shuffling::none())?;
    let query = Snapshot::with_active(|snapshot| Running::start(planned, snapshot, 0, Flags::NONE));
    Ok(Buffers::new(query, decoder))
}
