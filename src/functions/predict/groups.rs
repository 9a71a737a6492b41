//! Predictions of the models of groups under one name: the row says which of them answers.
//!
//! Guarantees: what is known of groups holds for one statement of one user, as a lookup of a single model does. A row
//! costs one lookup of its group's value by the value's bytes, and nothing of the catalog once its group was met.

use super::given::{CallSite, GivenFeatures};
use super::input::InputTuple;
use super::parts::GivenValues;
use super::row::{KnownPlan, plan};
use errors::{PredictError, Result};
use model::table::LookupScope;
use model::{GroupModels, Model, Policies};
use options::rows::{Unseen, UnseenGroup};
use pg::call::function::Call;
use pg::values::distinct::Distinct;
use pg::values::record::{Record, RecordColumn, RecordRoom, RecordValues};
use pg::values::typed::TypedDatum;
use std::cell::RefCell;
use std::rc::Rc;

/// The number of names, and of row types, that are remembered: as many as one statement is likely to use.
const REMEMBERED: usize = 4;

/// Bytes of models of groups that a statement keeps. Beyond that it begins again to remember them.
const MAX_BYTES: usize = 256 << 20;

thread_local! {
    /// the last ones first
    static USED: RefCell<Vec<Used>> = const { RefCell::new(Vec::new()) };
}

/// Models of groups that a statement uses.
struct Used {
    scope: LookupScope,
    models: Rc<GroupModels>,
    rows: Vec<RowsOfType>,
}

/// Rows of one type that were met, and the groups in them.
struct RowsOfType {
    /// of the type
    identifier: u64,
    /// where the rows have their group
    attribute: usize,
    values: Distinct,
    /// of each of the values
    answering: Vec<Answering>,
    /// all groups that have models, if values may be written in several ways, as 1.0 and 1.00 of type numeric, once
    /// one was met whose own name no model has
    all: Option<(Distinct, Vec<String>)>,
    bytes: usize,
}

/// What answers for a group.
#[derive(Clone)]
struct Answering {
    /// None if there is no model of the group
    model: Option<Rc<Model>>,
    plan: Option<(Unseen, KnownPlan)>,
}

/// A row, taken apart, of a group.
#[derive(Clone, Copy)]
pub struct RowOfGroup<'a> {
    values: RecordValues<'a>,
    plan: &'a KnownPlan,
}

impl RowOfGroup<'_> {
    /// Reads the features of the row. False if there is no answer to it.
    pub fn read(self, model: &Model, policies: Policies, into: &mut InputTuple) -> Result<bool> {
        let (parts, plan) = &**self.plan;
        plan.read(model, policies, &GivenValues { values: self.values, parts, texts: &[] }, into)
    }
}

/// Forgets what is remembered: the transaction has ended.
pub fn forget() {
    let _ = USED.try_with(|used| used.try_borrow_mut().map(|mut used| used.clear()));
}

/// The models of groups that this text was found to mean in the running statement.
#[inline]
pub fn known(text: &str) -> Option<Rc<GroupModels>> {
    USED.with_borrow(|used| {
        let known = used.iter().find(|used| used.models.text == text)?;
        (known.scope == LookupScope::now()).then(|| known.models.clone())
    })
}

/// The answer for the row that a call gives.
pub fn answer<R>(
    models: &Rc<GroupModels>,
    site: &mut CallSite,
    call: Call<'_>,
    answer: impl FnOnce(&Model, Policies, GivenFeatures<'_>) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let record = if site.is_given_row() { Record::of_call(call) } else { None };
    let Some(record) = record else { return Err(no_column(models, &[])) };
    with_room(|room| {
        let values = record.read(room);
        let Some((model, known)) = choose(models, &record, values)? else { return Ok(None) };
        let policies = site.policies(&model, call)?;
        let plan = match known {
            Some((unseen, plan)) if unseen == policies.unseen => plan,
            _ => {
                let plan = plan(&model, policies, &record)?;
                remember_plan(models, &record, values, (policies.unseen, plan.clone()));
                plan
            }
        };
        answer(&model, policies, site.given_of_group(call, RowOfGroup { values, plan: &plan }))
    })
}

/// The model that answers for the row that is argument 1 of a call; None if the answer is NULL.
pub fn model_of_row(models: &Rc<GroupModels>, call: Call<'_>) -> Result<Option<Rc<Model>>> {
    let Some(record) = Record::of_call(call) else { return Err(no_column(models, &[])) };
    with_room(|room| Ok(choose(models, &record, record.read(room))?.map(|(model, _)| model)))
}

fn with_room<R>(f: impl FnOnce(&mut RecordRoom) -> R) -> R {
    thread_local! {
        static ROOM: RefCell<RecordRoom> = RefCell::default();
    }
    ROOM.with_borrow_mut(f)
}

type Chosen = (Rc<Model>, Option<(Unseen, KnownPlan)>);

/// The model for a row, and the plan by which the last row of its group was read; None if the answer is NULL.
fn choose(models: &Rc<GroupModels>, record: &Record<'_>, values: RecordValues<'_>) -> Result<Option<Chosen>> {
    USED.with_borrow_mut(|used| {
        let rows = rows_of_type(used, models, record)?;
        let Some(value) = values.get(rows.attribute) else { return of_unseen(models, None) };
        let place = match rows.values.find(value) {
            Some(place) => place,
            None => {
                let place = rows.values.add(value);
                let group = rows.values.text(place);
                rows.answering.resize(place + 1, Answering { model: None, plan: None });
                rows.answering[place] = rows.look_for(models, &group, value)?;
                place
            }
        };
        match &rows.answering[place] {
            Answering { model: Some(model), plan } => Ok(Some((model.clone(), plan.clone()))),
            Answering { model: None, .. } => of_unseen(models, Some(&rows.values.text(place))),
        }
    })
}

/// The answer for a group that training has not seen; NULL is one.
#[cold]
fn of_unseen(models: &GroupModels, group: Option<&str>) -> Result<Option<Chosen>> {
    match (models.unseen, &models.of_all) {
        (UnseenGroup::All, Some(model)) => Ok(Some((model.clone(), None))),
        (UnseenGroup::Null, _) => Ok(None),
        _ => Err(PredictError::UnseenGroup {
            name: models.text.clone(),
            column: models.column.clone(),
            group: group.map(str::to_owned),
        }
        .into()),
    }
}

/// What is known of rows of this type.
fn rows_of_type<'a>(
    used: &'a mut Vec<Used>,
    models: &Rc<GroupModels>,
    record: &Record<'_>,
) -> Result<&'a mut RowsOfType> {
    let scope = LookupScope::now();
    let place = match used.iter().position(|used| Rc::ptr_eq(&used.models, models) && used.scope == scope) {
        Some(place) => place,
        None => {
            used.retain(|used| used.models.text != models.text);
            used.truncate(REMEMBERED - 1);
            used.insert(0, Used { scope, models: models.clone(), rows: Vec::new() });
            0
        }
    };
    let (rows, identifier) = (&mut used[place].rows, record.type_identifier());
    let place = match rows.iter().position(|rows| rows.identifier == identifier) {
        Some(place) if rows[place].bytes <= MAX_BYTES => place,
        known => {
            known.into_iter().for_each(|place| drop(rows.remove(place)));
            rows.truncate(REMEMBERED - 1);
            rows.insert(0, RowsOfType::new(models, record)?);
            0
        }
    };
    Ok(&mut rows[place])
}

#[cold]
fn remember_plan(models: &Rc<GroupModels>, record: &Record<'_>, values: RecordValues<'_>, plan: (Unseen, KnownPlan)) {
    USED.with_borrow_mut(|used| {
        let Ok(rows) = rows_of_type(used, models, record) else { return };
        let place = values.get(rows.attribute).and_then(|value| rows.values.find(value));
        if let Some(answering) = place.and_then(|place| rows.answering.get_mut(place)) {
            answering.plan = Some(plan);
        }
    });
}

impl RowsOfType {
    #[cold]
    fn new(models: &GroupModels, record: &Record<'_>) -> Result<RowsOfType> {
        let columns = record.columns();
        let mut found = columns.iter().filter(|column| column.name == models.column);
        let column = match (found.next(), found.next()) {
            (Some(column), None) => column,
            (Some(_), Some(_)) => return Err(PredictError::ColumnTwice(models.column.clone()).into()),
            (None, _) => return Err(no_column(models, &columns)),
        };
        Ok(RowsOfType {
            identifier: record.type_identifier(),
            attribute: column.attribute,
            values: Distinct::new(column.type_oid, column.collation),
            answering: Vec::new(),
            all: None,
            bytes: 0,
        })
    }

    /// What answers for a group that was not met before.
    #[cold]
    fn look_for(&mut self, models: &GroupModels, group: &str, value: TypedDatum<'_>) -> Result<Answering> {
        let mut model = models.of_group(group)?;
        if model.is_none() && self.values.has_spellings() {
            let (all, names) = self.all.get_or_insert_with(|| {
                let (mut all, mut names) = (self.values.like(), Vec::new());
                for (name, _) in models.groups() {
                    if let Some((_, false)) = all.add_text(&name) {
                        names.push(name);
                    }
                }
                (all, names)
            });
            if let Some(place) = all.find(value) {
                model = models.of_group(&names[place])?;
            }
        }
        // a value, its entries in tables, and a plan
        self.bytes += model.as_ref().map_or(0, |model| model.bytes()) + group.len() + 256;
        Ok(Answering { model, plan: None })
    }
}

fn no_column(models: &GroupModels, columns: &[RecordColumn]) -> errors::Error {
    PredictError::NoGroupColumn {
        name: models.text.clone(),
        column: models.column.clone(),
        example: models.example.clone(),
        columns: columns.iter().map(|column| column.name.clone()).collect(),
    }
    .into()
}
