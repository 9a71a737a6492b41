//! Features as a row, whose columns are found by the names of those that the model was trained on.

use super::arrays::{
    Names, array_fault, null, number_fault, read_dense, read_sparse, read_sparse_vector, read_vector, sparse_reader,
};
use super::input::{InputTuple, fill, no_answer};
use super::parts::{AddedParts, GivenValues};
use decode::Bag;
use errors::{Error, PredictError, Result, SourceError, excerpt};
use model::{Buckets, Categories, ColumnKind, FeatureKind, Model, Policies};
use options::rows::{Nulls, Unseen};
use pg::catalog::types::{base_type, type_name};
use pg::values::array::ArrayReader;
use pg::values::bag::BagKind;
use pg::values::number::{NumberType, narrow};
use pg::values::part::Part;
use pg::values::record::{CategoryType, NumberColumns, Record, RecordColumn, RecordRoom};
use pg::values::sparse::{SparseReader, is_index_array};
use pg::values::sparse_vector::SparseVectorReader;
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use std::cell::RefCell;
use std::rc::Rc;
use tuples::HashedColumn;

/// Reads a row with all feature columns, among others. False if there is no answer to it.
pub fn read_row(model: &Model, policies: Policies, record: &Record<'_>, into: &mut InputTuple) -> Result<bool> {
    thread_local! {
        static ROOM: RefCell<RecordRoom> = RefCell::default();
    }
    let known = plan(model, policies, record)?;
    let (parts, plan) = &*known;
    ROOM.with_borrow_mut(|room| {
        let given = GivenValues { values: record.read(room), parts, texts: &[] };
        plan.read(model, policies, &given, into)
    })
}

/// How to read the features of a model from rows of one type: which attributes of the row, and what they hold.
pub enum Plan {
    Vector(usize, VectorReader),
    Sparse([usize; 2], SparseReader),
    SparseVector(usize, SparseVectorReader),
    Numbers(NumberColumns),
    /// numbers and vectors
    Dense(Vec<(usize, MixedType)>),
    Mixed(Vec<(usize, MixedType)>),
}

const NUMBERS: &str = "The model was trained on an array of numbers in this column.";

pub enum MixedType {
    Number(NumberType),
    Vector(VectorReader),
    Category(CategoryType),
    Hashed(CategoryType, HashedColumn),
    Words(Bag),
}

/// A plan, and the parts of dates that it reads.
pub type KnownPlan = Rc<(AddedParts, Plan)>;

/// The plan for the model and the row's type, with the parts of dates that it reads. Those used last are remembered.
pub fn plan(model: &Model, policies: Policies, record: &Record<'_>) -> Result<KnownPlan> {
    const REMEMBERED: usize = 8;
    type PlanKey = (u64, u64, Unseen);
    thread_local! {
        static PLANS: RefCell<Vec<(PlanKey, KnownPlan)>> = const { RefCell::new(Vec::new()) };
    }
    let key = (model.serial, record.type_identifier(), policies.unseen);
    let known = PLANS.with_borrow(|plans| plans.iter().find(|(k, _)| *k == key).map(|(_, plan)| plan.clone()));
    if let Some(plan) = known {
        return Ok(plan);
    }
    let mut columns = record.columns();
    let parts = AddedParts::new(model, &mut columns);
    let plan = Rc::new((parts, Plan::new(model, policies, &columns)?));
    PLANS.with_borrow_mut(|plans| {
        plans.truncate(REMEMBERED - 1);
        plans.insert(0, (key, plan.clone()));
    });
    Ok(plan)
}

impl Plan {
    fn new(model: &Model, policies: Policies, columns: &[RecordColumn]) -> Result<Plan> {
        let found = model.features.iter().map(|name| column(model, name, columns)).collect::<Result<Vec<_>>>()?;
        match (&model.feature_kind, found.as_slice()) {
            (FeatureKind::Columns(kinds), found) if !kinds.iter().all(|kind| matches!(kind, ColumnKind::Number)) => {
                let column = |(kind, column): (_, &&RecordColumn)| Ok((column.attribute, mixed_type(kind, column)?));
                let columns = kinds.iter().zip(found).map(column).collect::<Result<_>>()?;
                Ok(if model.feature_kind.has_categories() { Plan::Mixed(columns) } else { Plan::Dense(columns) })
            }
            (FeatureKind::Columns(_), found) => {
                let column = |column: &&RecordColumn| Ok((column.attribute, number_type(column)?));
                let columns = found.iter().map(column).collect::<Result<_>>()?;
                Ok(Plan::Numbers(NumberColumns::new(columns)))
            }
            (FeatureKind::Sparse { .. }, [indices, values]) => {
                if !is_index_array(indices.type_oid) {
                    return Err(wrong_type(indices, "The model was trained on an array of integers in this column."));
                }
                ArrayReader::new(values.type_oid).ok_or_else(|| wrong_type(values, NUMBERS))?;
                let reader = sparse_reader(model, policies, indices.type_oid, values.type_oid)?;
                Ok(Plan::Sparse([indices.attribute, values.attribute], reader))
            }
            (FeatureKind::Sparse { .. }, found) => {
                let reader = SparseVectorReader::new(found[0].type_oid);
                let wrong = || wrong_type(found[0], "The model was trained on sparse vectors in this column.");
                Ok(Plan::SparseVector(found[0].attribute, reader.ok_or_else(wrong)?))
            }
            (FeatureKind::Array, found) => {
                let reader = VectorReader::new(found[0].type_oid).ok_or_else(|| wrong_type(found[0], NUMBERS))?;
                Ok(Plan::Vector(found[0].attribute, reader))
            }
        }
    }

    /// For values that are given one by one, each of them a column.
    pub fn of_values(model: &Model, policies: Policies, columns: &[RecordColumn]) -> Result<Plan> {
        match model.feature_kind {
            FeatureKind::Array => {
                let column = |column: &RecordColumn| Ok((column.attribute, number_type(column)?));
                let columns = columns.iter().map(column).collect::<Result<_>>()?;
                Ok(Plan::Numbers(NumberColumns::new(columns)))
            }
            _ => Plan::new(model, policies, columns),
        }
    }

    /// Reads the features of what is given. False if there is no answer to it.
    pub fn read(
        &self,
        model: &Model,
        policies: Policies,
        given: &GivenValues<'_>,
        into: &mut InputTuple,
    ) -> Result<bool> {
        let value = |attribute: usize| given.get(attribute);
        let null = |i: usize| no_answer(policies, || null(model, model.features[i].clone()));
        match self {
            Plan::Vector(attribute, reader) => match value(*attribute) {
                Some(array) => read_dense(model, policies, *reader, array, into, &Names::Column(&model.features[0])),
                None => null(0),
            },
            Plan::SparseVector(attribute, reader) => match value(*attribute) {
                Some(vector) => {
                    read_sparse_vector(model, *reader, vector, into, &Names::Column(&model.features[0])).map(|()| true)
                }
                None => null(0),
            },
            Plan::Sparse([indices, places], reader) => match (value(*indices), value(*places)) {
                (Some(indices), Some(values)) => {
                    let pair = (indices, values);
                    read_sparse(model, policies, *reader, pair, into, &Names::Column(&model.features[1]))
                }
                (None, _) => null(0),
                (_, None) => null(1),
            },
            Plan::Numbers(columns) => {
                let features = into.make_dense(model.dim())?;
                if given.copy_numbers(columns, features) {
                    return Ok(true);
                }
                for (i, ((attribute, number_type), feature)) in columns.iter().zip(features).enumerate() {
                    *feature = match value(attribute) {
                        Some(value) => number(model, i, number_type, value)?,
                        None => match fill(model, policies, i, || model.feature_name(i))? {
                            Some(value) => value,
                            None => return Ok(false),
                        },
                    };
                }
                Ok(true)
            }
            Plan::Dense(columns) => read_numbers(model, policies, columns, value, into),
            Plan::Mixed(columns) => read_mixed(model, policies, columns, value, into),
        }
    }
}

/// Reads numbers and vectors as a dense tuple, as in training.
fn read_numbers<'a>(
    model: &Model,
    policies: Policies,
    columns: &[(usize, MixedType)],
    value: impl Fn(usize) -> Option<TypedDatum<'a>>,
    into: &mut InputTuple,
) -> Result<bool> {
    let FeatureKind::Columns(kinds) = &model.feature_kind else { return Ok(true) };
    let mut rest = into.make_dense(model.dim())?;
    let mut first = 0;
    for (i, ((attribute, mixed), kind)) in columns.iter().zip(kinds).enumerate() {
        let (features, others) = rest.split_at_mut(kind.width());
        rest = others;
        match (mixed, value(*attribute)) {
            (MixedType::Vector(reader), vector) => {
                let column = (model.features[i].as_str(), first);
                if !read_vector(model, policies, (*reader, vector), column, features)? {
                    return Ok(false);
                }
            }
            (MixedType::Number(number_type), Some(value)) => features[0] = number(model, first, *number_type, value)?,
            _ => match fill(model, policies, first, || model.features[i].clone())? {
                Some(value) => features[0] = value,
                None => return Ok(false),
            },
        }
        first += kind.width();
    }
    Ok(true)
}

/// Reads numbers and categories: an entry for each number, 0 or not, for the category that the row has, and for the
/// buckets of hashed columns, as in training.
fn read_mixed<'a>(
    model: &Model,
    policies: Policies,
    columns: &[(usize, MixedType)],
    value: impl Fn(usize) -> Option<TypedDatum<'a>>,
    into: &mut InputTuple,
) -> Result<bool> {
    let FeatureKind::Columns(kinds) = &model.feature_kind else { return Ok(true) };
    into.make_sparse(0)?;
    into.buckets.clear();
    let buckets = model.feature_kind.buckets() as u32;
    let mut first = 0;
    for (i, ((attribute, mixed), kind)) in columns.iter().zip(kinds).enumerate() {
        let name = || model.features[i].clone();
        match (mixed, kind, value(*attribute)) {
            (MixedType::Number(number_type), _, Some(value)) => {
                let read = narrow(number_type.read(value));
                into.push(first, read.map_err(|fault| number_fault(model, fault, name()))?);
            }
            (MixedType::Vector(reader), kind, vector) => {
                let mut numbers = std::mem::take(&mut into.vector);
                allocation::resize(&mut numbers, kind.width(), 0.0);
                let column = (model.features[i].as_str(), first as usize);
                let has_answer = read_vector(model, policies, (*reader, vector), column, &mut numbers)?;
                (first..).zip(&numbers).for_each(|(index, value)| into.push(index, *value));
                into.vector = numbers;
                if !has_answer {
                    return Ok(false);
                }
            }
            (MixedType::Number(_), _, None) => match fill(model, policies, first as usize, name)? {
                Some(value) => into.push(first, value),
                None => return Ok(false),
            },
            (MixedType::Category(category), ColumnKind::Categories(known), Some(value)) => {
                if let Some(place) = place(model, policies, i, *category, value, known)? {
                    into.push(first + place as u32, 1.0);
                }
            }
            (MixedType::Category(_), ColumnKind::Categories(known), None) => match (policies.nulls, known.null()) {
                (Nulls::Skip, _) => return Ok(false),
                (Nulls::Impute, Some(place)) => into.push(first + place as u32, 1.0),
                // training has met none: it is not one of those that are known
                (Nulls::Impute, None) if policies.unseen == Unseen::Zero => {}
                _ => return Err(null(model, name())),
            },
            (MixedType::Hashed(category, hashed), _, Some(value)) => {
                into.buckets.push((category.with_text(value, |text| hashed.bucket(Some(text), buckets)), 1.0));
            }
            (MixedType::Words(bag), _, Some(value)) => {
                let InputTuple { hashes, buckets: entries, .. } = into;
                let name = Names::Column(&model.features[i]);
                bag.push(value, buckets, hashes, entries).map_err(|fault| array_fault(model, fault, &name))?;
            }
            (MixedType::Words(bag), _, None) => match policies.nulls {
                Nulls::Skip => return Ok(false),
                Nulls::Impute => into.buckets.push((bag.null(buckets), 1.0)),
                Nulls::Error => return Err(null(model, name())),
            },
            (MixedType::Hashed(_, hashed), _, None) => match policies.nulls {
                Nulls::Skip => return Ok(false),
                Nulls::Impute => into.buckets.push((hashed.bucket(None, buckets), 1.0)),
                Nulls::Error => return Err(null(model, name())),
            },
            (MixedType::Category(_), ColumnKind::Number | ColumnKind::Vector(_) | ColumnKind::Hashed(_), _) => {}
        }
        first += kind.width() as u32;
    }
    into.push_buckets(first);
    Ok(true)
}

#[inline]
fn number(model: &Model, i: usize, number: NumberType, value: TypedDatum<'_>) -> Result<f32> {
    narrow(number.read(value)).map_err(|fault| number_fault(model, fault, model.feature_name(i)))
}

fn number_type(column: &RecordColumn) -> Result<NumberType> {
    NumberType::from_oid(base_type(column.type_oid))
        .ok_or_else(|| wrong_type(column, "The model was trained on numbers or booleans in this column."))
}

fn mixed_type(kind: &ColumnKind, column: &RecordColumn) -> Result<MixedType> {
    let category = || {
        CategoryType::new(column.type_oid, column.collation)
            .ok_or_else(|| wrong_type(column, "The model was trained on text or an enum in this column."))
    };
    let bag = || Bag::new(&column.name, column.type_oid, column.collation);
    match kind {
        ColumnKind::Number => number_type(column).map(MixedType::Number),
        ColumnKind::Vector(_) => {
            let reader = VectorReader::new(column.type_oid);
            reader.map(MixedType::Vector).ok_or_else(|| wrong_type(column, NUMBERS))
        }
        ColumnKind::Categories(_) => category().map(MixedType::Category),
        ColumnKind::Hashed(Buckets { of: Some(kind), .. }) => {
            let hint = match kind {
                BagKind::Lexemes => "The model was trained on a tsvector in this column.",
                BagKind::Elements => "The model was trained on arrays of text in this column.",
            };
            let bag = bag().filter(|bag| bag.kind() == *kind);
            bag.map(MixedType::Words).ok_or_else(|| wrong_type(column, hint))
        }
        ColumnKind::Hashed(_) => {
            category().map(|category| MixedType::Hashed(category, HashedColumn::new(&column.name)))
        }
    }
}

/// Which of the categories the value is; None if none of them, and that is taken for zero.
fn place(
    model: &Model,
    policies: Policies,
    i: usize,
    category: CategoryType,
    value: TypedDatum<'_>,
    known: &Categories,
) -> Result<Option<usize>> {
    category.with_text(value, |text| {
        let place = known.find(text).or_else(|| category.find_equal(text, known.values()));
        match (place, policies.unseen) {
            (None, Unseen::Error) => Err(PredictError::Category {
                model: model.in_error(),
                column: model.features[i].clone(),
                value: excerpt(&String::from_utf8_lossy(text)),
            }
            .into()),
            (place, _) => Ok(place),
        }
    })
}

fn column<'a>(model: &Model, name: &str, columns: &'a [RecordColumn]) -> Result<&'a RecordColumn> {
    let mut found = columns.iter().filter(|column| column.name == name);
    match (found.next(), found.next()) {
        (Some(column), None) => Ok(column),
        (Some(_), Some(_)) => Err(PredictError::ColumnTwice(name.to_owned()).into()),
        (None, _) => Err(match whole_of(name, columns) {
            Some((column, Part::Date(_))) => {
                wrong_type(column, "The model was trained on a date or timestamp in this column.")
            }
            Some((column, Part::Key(_))) => wrong_type(column, "The model was trained on keys of JSON in this column."),
            Some((column, Part::Number(_))) => {
                wrong_type(column, "The model was trained on numbers as text in this column.")
            }
            Some((column, Part::TextDate(..))) => {
                wrong_type(column, "The model was trained on dates as text in this column.")
            }
            Some((_, Part::IsNull)) | None => no_column(model, name, columns),
        }),
    }
}

fn no_column(model: &Model, name: &str, columns: &[RecordColumn]) -> Error {
    PredictError::NoColumn {
        model: model.in_error(),
        column: Part::split(name).map_or(name, |(column, _)| column).to_owned(),
        columns: columns.iter().map(|column| column.name.clone()).collect(),
    }
    .into()
}

/// The column whose part a feature is by its name, and the part.
fn whole_of<'a>(name: &str, columns: &'a [RecordColumn]) -> Option<(&'a RecordColumn, Part)> {
    let (name, part) = Part::split(name)?;
    columns.iter().find(|column| column.name == name).map(|column| (column, part))
}
fn wrong_type(column: &RecordColumn, hint: &'static str) -> Error {
    SourceError::ColumnType {
        role: "feature",
        column: column.name.clone(),
        type_name: type_name(column.type_oid),
        hint: hint.into(),
    }
    .into()
}
