//! Features one by one, as the arguments of the call behind the model, in the order in which the model has them.

use super::arrays::read_text;
use super::input::InputTuple;
use super::parts::{AddedParts, GivenValues};
use super::row::Plan;
use errors::{PredictError, Result, excerpt};
use model::{ColumnKind, FeatureKind, Model, Policies};
use pg::call::function::Call;
use pg::catalog::types::base_type;
use pg::values::number::{is_text, number_of_text};
use pg::values::part::Part;
use pg::values::record::{RecordColumn, RecordValues};
use pgrx::pg_sys;

/// How to read the features of a call for the model that was asked last, by the model's serial number.
pub struct PlanOfCall {
    serial: u64,
    parts: AddedParts,
    plan: Plan,
    /// which arguments are texts where the model has numbers
    texts: Vec<usize>,
}

/// Reads this many arguments behind the first of the call, by the plan or by one that it becomes.
pub fn read_values(
    model: &Model,
    policies: Policies,
    (call, given): (Call<'_>, usize),
    plan: &mut Option<PlanOfCall>,
    into: &mut InputTuple,
) -> Result<bool> {
    if given == 1
        && let Some(is_read) = read_text(model, policies, call, into)?
    {
        return Ok(is_read);
    }
    if plan.as_ref().is_none_or(|plan| plan.serial != model.serial) {
        *plan = Some(PlanOfCall::new(model, policies, call, given)?);
    }
    let Some(PlanOfCall { parts, plan, texts, .. }) = plan else { return Ok(false) };
    texts.iter().try_for_each(|i| check_number(model, call, *i))?;
    let given = GivenValues { values: RecordValues::Arguments(call, 0), parts, texts };
    plan.read(model, policies, &given, into)
}

impl PlanOfCall {
    #[cold]
    fn new(model: &Model, policies: Policies, call: Call<'_>, given: usize) -> Result<PlanOfCall> {
        let expected = match &model.feature_kind {
            FeatureKind::Columns(columns) => columns.len(),
            FeatureKind::Array => model.dim(),
            FeatureKind::Sparse { .. } => {
                return Err(PredictError::NeedsIndices { model: model.in_error(), given }.into());
            }
        };
        if given == 1 && expected > 1 && is_text(call.type_of(1)) {
            return Err(PredictError::Text(model.in_error()).into());
        }
        let names = names_of_values(model, call, given, expected)?;
        let column = |(i, name): (usize, String)| RecordColumn {
            name,
            attribute: i + 1,
            type_oid: call.type_of(i + 1),
            collation: call.collation_of(i + 1),
        };
        let mut columns: Vec<RecordColumn> = names.into_iter().enumerate().map(column).collect();
        let texts = take_texts_as_numbers(model, &mut columns);
        let parts = AddedParts::new(model, &mut columns);
        let plan = Plan::of_values(model, policies, &columns)?;
        Ok(PlanOfCall { serial: model.serial, parts, plan, texts })
    }
}

/// Checks that argument `i`, which is a text, is a number.
fn check_number(model: &Model, call: Call<'_>, i: usize) -> Result<()> {
    let Some(Err(text)) = call.argument(i).map(number_of_text) else { return Ok(()) };
    let feature = match model.feature_kind {
        FeatureKind::Columns(_) => model.features[i - 1].clone(),
        _ => model.feature_name(i - 1),
    };
    Err(PredictError::NotANumber { model: model.in_error(), feature, value: excerpt(&text) }.into())
}

/// Takes NULL and texts as numbers where the model has a number: PostgreSQL takes a literal without a type for one, and
/// drivers send a parameter whose type they leave open as a text. Says which arguments these are.
fn take_texts_as_numbers(model: &Model, columns: &mut [RecordColumn]) -> Vec<usize> {
    let is_number = |name: &String| match &model.feature_kind {
        FeatureKind::Array => true,
        FeatureKind::Columns(kinds) => model
            .features
            .iter()
            .zip(kinds)
            .any(|(feature, kind)| feature == name && matches!(kind, ColumnKind::Number)),
        FeatureKind::Sparse { .. } => false,
    };
    let mut texts = Vec::new();
    for column in columns.iter_mut().filter(|column| is_text(column.type_oid) && is_number(&column.name)) {
        column.type_oid = pg_sys::FLOAT8OID;
        texts.push(column.attribute);
    }
    texts
}

/// What the values of the call are called: the model's features, or, of dates with parts among these, the dates.
fn names_of_values(model: &Model, call: Call<'_>, given: usize, expected: usize) -> Result<Vec<String>> {
    let wrong_length = |expected| match given {
        1 => PredictError::OneValue { model: model.in_error(), expected },
        _ => PredictError::Length { model: model.in_error(), expected, given },
    };
    match model.given_columns() {
        Some(columns) if given == columns.len() && given != expected => {
            Ok(columns.into_iter().map(str::to_owned).collect())
        }
        // with as many columns as parts of them, the types tell them apart
        Some(_) if given == expected => {
            let name = |(i, feature): (usize, &String)| {
                let base = base_type(call.type_of(i + 1));
                let whole = Part::split(feature).filter(|(_, part)| part.clone().of_type(base).is_some());
                whole.map_or(feature.as_str(), |(column, _)| column).to_owned()
            };
            Ok(model.features.iter().enumerate().map(name).collect())
        }
        Some(columns) if given != expected => Err(wrong_length(columns.len()).into()),
        None if given != expected => Err(wrong_length(expected).into()),
        _ if matches!(model.feature_kind, FeatureKind::Columns(_)) => Ok(model.features.clone()),
        _ => Ok((0..given).map(|i| model.feature_name(i)).collect()),
    }
}
