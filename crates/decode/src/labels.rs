//! The label column: a target, or a class of any type whose values can be distinguished.
//!
//! Of two classes, it is known which comes first in the type's order when both have been seen, but learning cannot
//! wait. So the value that is seen first gets the label -1, the other +1. If that is the wrong way round, the model is
//! negated in the end: learning is symmetric in the labels, bit for bit, so that the result is the same. More than two
//! classes are found in a pass of their own (see [`preparation`](scan::preparation)), after which their
//! numbers follow the type's order.

use super::class_weights::ClassWeights;
use super::weight::{Factors, RowSums};
use errors::limits::{FEW_CLASSES, MAX_CLASSES, MAX_TEXT_BYTES};
use errors::{NodeError, Result, RowFault, TrainingError, excerpt};
use loss::ModelKind;
use options::rows::ClassWeight;
use pg::catalog::types::type_name;
use pg::executor::query::Column;
use pg::values::distinct::Distinct;
use pg::values::number::{NumberFault, NumberType, narrow};
use pg::values::typed::TypedDatum;
use serde::{Deserialize, Serialize};

pub struct Labels {
    column: String,
    meaning: Meaning,
}

enum Meaning {
    /// a number to be predicted, and by what kind of model
    Target(NumberType, ModelKind),
    Class(Box<ClassLabels>),
}

struct ClassLabels {
    values: Distinct,
    /// of the column
    type_name: String,
    /// the label for the learner, by value
    codes: Vec<f32>,
    /// the largest number of classes
    limit: usize,
    /// is the limit 2 if no more than two are met?
    may_be_two: bool,
    /// a value that is not an integer, if one was met
    fraction: Option<f64>,
    /// why no more classes may come along
    closed: Option<Closed>,
    weights: Option<ClassWeights>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closed {
    /// the classes are those of a model
    Model,
    /// a pass over the same rows has found them all
    Prepared,
}

pub struct Classes {
    /// ascending, as text
    pub names: Vec<String>,
    /// did the model learn the two of them the wrong way round?
    pub swapped: bool,
}

/// The classes that were met, for another process.
#[derive(Serialize, Deserialize)]
pub struct MetClasses {
    /// as text, in the sequence in which they were met, and their labels for the learner
    values: Vec<String>,
    codes: Vec<f32>,
    /// has a pass over the rows found them all?
    prepared: bool,
}

impl MetClasses {
    /// Has each class a label that it can have?
    pub fn are_sound(&self) -> bool {
        let classes = self.values.len();
        let is_number = |label: f32| label.fract() == 0.0 && (0.0..classes.max(2) as f32).contains(&label);
        let is_label = |label: &f32| *label == -1.0 || is_number(*label);
        classes <= MAX_CLASSES && self.codes.len() == classes && self.codes.iter().all(is_label)
    }
}

impl Labels {
    /// Numbers in this column, to be predicted by a model of this kind.
    pub fn targets(column: &str, number: NumberType, kind: ModelKind) -> Labels {
        Labels { column: column.to_owned(), meaning: Meaning::Target(number, kind) }
    }

    /// Classes to be found in this column.
    pub fn discover(column: &Column, kind: ModelKind, weights: Option<&ClassWeight>) -> Result<Labels> {
        let values = Distinct::new(column.type_oid, column.collation);
        let weights = weights.map(|weights| ClassWeights::new(weights, column)).transpose()?;
        let limit = if kind.has_class_numbers() { MAX_CLASSES } else { 2 };
        let type_name = type_name(column.type_oid);
        let (codes, fraction, closed, may_be_two) = (Vec::new(), None, None, false);
        let classes = ClassLabels { values, type_name, codes, limit, may_be_two, fraction, closed, weights };
        Ok(Labels { column: column.name.clone(), meaning: Meaning::Class(Box::new(classes)) })
    }

    /// The classes of a model, ascending, to be recognised in this column.
    pub fn known(column: &Column, kind: ModelKind, names: &[String]) -> Result<Labels> {
        let mut labels = Labels::discover(column, kind, None)?;
        if let Meaning::Class(classes) = &mut labels.meaning {
            for (i, name) in names.iter().enumerate() {
                let Some((_, met)) = classes.values.add_text(name) else {
                    let (column, type_name) = (column.name.clone(), type_name(column.type_oid));
                    return Err(TrainingError::LabelValue { column, type_name, value: excerpt(name) }.into());
                };
                if !met {
                    classes.codes.push(code(classes.limit, i));
                }
            }
            classes.closed = Some(Closed::Model);
        }
        Ok(labels)
    }

    /// All rows are about to be read before anything is learned: there may be more than two classes after all.
    pub fn take_more_classes(&mut self) {
        if let Meaning::Class(classes) = &mut self.meaning {
            classes.limit = MAX_CLASSES;
            classes.may_be_two = true;
        }
    }

    /// The classes that were met; None if there are no classes.
    pub fn met_classes(&self) -> Option<MetClasses> {
        let Meaning::Class(classes) = &self.meaning else { return None };
        Some(MetClasses {
            values: (0..classes.values.len()).map(|i| classes.values.text(i)).collect(),
            codes: classes.codes.clone(),
            prepared: classes.closed.is_some(),
        })
    }

    /// Takes over the classes that were met in another process.
    pub fn adopt(&mut self, met: &MetClasses) {
        let Meaning::Class(classes) = &mut self.meaning else { return };
        for value in &met.values {
            classes.values.add_text(value);
        }
        classes.codes = met.codes.clone();
        if met.prepared && classes.limit == 2 && met.values.len() > 2 {
            classes.limit = MAX_CLASSES;
        }
        classes.closed = met.prepared.then_some(Closed::Prepared);
    }

    /// Meets the classes that another process has met. Gives the numbers that they have here, by their numbers there.
    /// The other has the same column, and has not [closed](Labels::close) its classes.
    pub fn unite(&mut self, met: Option<&MetClasses>) -> Result<Vec<usize>> {
        let (Meaning::Class(classes), Some(met)) = (&mut self.meaning, met) else { return Ok(vec![0]) };
        let mut numbers = Vec::new();
        for value in &met.values {
            let Some((class, is_known)) = classes.values.add_text(value) else {
                let (column, type_name) = (self.column.clone(), classes.type_name.clone());
                return Err(TrainingError::LabelValue { column, type_name, value: excerpt(value) }.into());
            };
            if class >= classes.limit {
                let why = format!("label column \"{}\" has more than {} different values", self.column, classes.limit);
                return Err(NodeError::Differ(why).into());
            }
            if !is_known && classes.closed == Some(Closed::Model) {
                let why = format!("the model was not trained on label {}", excerpt(value));
                return Err(NodeError::Differ(why).into());
            }
            if !is_known {
                classes.codes.push(code(classes.limit, class));
            }
            numbers.push(class);
        }
        Ok(numbers)
    }

    /// The classes that were adopted are those of a model. False if some of them are no values of the column.
    pub fn close_by_model(&mut self) -> bool {
        let Meaning::Class(classes) = &mut self.meaning else { return true };
        classes.closed = Some(Closed::Model);
        classes.values.len() == classes.codes.len()
    }

    pub fn column(&self) -> &str {
        &self.column
    }

    /// Is a class still to be met, of two?
    pub fn lack_class(&self) -> bool {
        matches!(&self.meaning, Meaning::Class(classes) if classes.limit == 2 && classes.values.len() < 2)
    }

    /// A row's label for the learner: -1 or +1, the number of a class, or the target.
    /// After an error no other label may be read.
    #[inline(always)]
    pub fn read(&mut self, label: TypedDatum<'_>) -> std::result::Result<f32, Box<RowFault>> {
        match &mut self.meaning {
            Meaning::Class(classes) => match classes.values.find(label) {
                Some(i) => Ok(classes.codes[i]),
                None => classes.unseen(&self.column, label).map_err(Box::new),
            },
            Meaning::Target(number, kind) => target(number.read(label), *kind),
        }
    }

    /// The number that a row's target is, in double precision; 0 of a class.
    #[inline(always)]
    pub fn exact(&self, label: TypedDatum<'_>) -> f64 {
        match self.meaning {
            Meaning::Target(number, _) => number.read(label),
            Meaning::Class(_) => 0.0,
        }
    }

    /// Are they numbers to be predicted?
    pub fn are_targets(&self) -> bool {
        matches!(self.meaning, Meaning::Target(..))
    }

    /// Must the classes be known before anything can be learned?
    pub fn need_preparation(&self) -> bool {
        let Meaning::Class(classes) = &self.meaning else { return false };
        classes.closed.is_none() && classes.limit > 2
    }

    /// All rows have been read: the classes are those that were met. `counts` has the rows of each. Gives the order
    /// that classes have from now on, by their numbers so far.
    pub fn close(&mut self, counts: &[u64]) -> Result<Vec<u32>> {
        self.check()?;
        let Meaning::Class(classes) = &mut self.meaning else { return Ok(vec![0]) };
        if classes.closed == Some(Closed::Model) {
            return Ok((0..classes.values.len() as u32).collect());
        }
        if classes.may_be_two && classes.values.len() == 2 {
            classes.limit = 2;
            classes.codes = (0..2).map(|i| code(2, i)).collect();
        }
        classes.check_repeated(&self.column, counts.iter().sum())?;
        let mut order: Vec<u32> = (0..classes.values.len() as u32).collect();
        if classes.limit > 2 {
            order = classes.values.sorted();
            for (rank, i) in order.iter().enumerate() {
                classes.codes[*i as usize] = rank as f32;
            }
        }
        classes.closed = Some(Closed::Prepared);
        Ok(order)
    }

    /// What the weights of rows that add up to this are to be multiplied by, once the classes are
    /// [closed](Labels::close), in this order.
    pub fn factors(&mut self, sums: &RowSums, order: &[u32]) -> Result<Factors> {
        let Meaning::Class(classes) = &mut self.meaning else { return sums.factors(Some(&[]), order) };
        let ClassLabels { values, codes, weights: Some(weights), .. } = &mut **classes else {
            return sums.factors(Some(&[]), order);
        };
        let mut by_label: Vec<usize> = (0..values.len()).collect();
        by_label.sort_by(|a, b| codes[*a].total_cmp(&codes[*b]));
        let names: Vec<String> = by_label.into_iter().map(|i| values.text(i)).collect();
        match weights.of_classes(&names) {
            Ok(of_classes) => sums.factors(of_classes.as_deref(), order),
            Err(label) => Err(TrainingError::NoSuchClass { label: excerpt(label), known: listed(values) }.into()),
        }
    }

    /// Which class a label that [`read`](Labels::read) gave stands for, counted from 0.
    pub fn class(&self, label: f32) -> usize {
        match &self.meaning {
            Meaning::Class(classes) => classes.class(label),
            _ => 0,
        }
    }

    /// Are there weights that depend on the class?
    pub fn have_weights(&self) -> bool {
        matches!(&self.meaning, Meaning::Class(classes) if classes.weights.is_some())
    }

    /// The number of a model's outputs: one per class if there may be more than two.
    pub fn outputs(&self) -> usize {
        match &self.meaning {
            Meaning::Class(classes) if classes.limit > 2 => classes.values.len(),
            _ => 1,
        }
    }

    /// Checks whether there are two classes or more.
    pub fn check(&self) -> Result<()> {
        let Meaning::Class(classes) = &self.meaning else { return Ok(()) };
        if classes.values.len() == 1 {
            return Err(TrainingError::OneClass {
                column: self.column.clone(),
                value: excerpt(&classes.values.text(0)),
            }
            .into());
        }
        Ok(())
    }

    /// The classes in ascending order; None if there are no classes.
    pub fn classes(&self) -> Option<Classes> {
        let Meaning::Class(classes) = &self.meaning else { return None };
        let order = classes.values.sorted();
        let names = order.iter().map(|i| classes.values.text(*i as usize)).collect();
        Some(Classes { names, swapped: classes.limit == 2 && order.first() == Some(&1) })
    }
}

impl ClassLabels {
    fn class(&self, label: f32) -> usize {
        if self.limit > 2 { label as usize } else { usize::from(label > 0.0) }
    }

    #[cold]
    fn unseen(&mut self, column: &str, label: TypedDatum<'_>) -> std::result::Result<f32, RowFault> {
        if let Some(number) = self.values.number(label)
            && !number.is_finite()
        {
            return Err(RowFault::LabelNotFinite(number));
        }
        let known = if self.closed.is_some() { listed(&self.values) } else { String::new() };
        let class = self.values.add(label);
        if self.values.size(class) > MAX_TEXT_BYTES {
            return Err(RowFault::LabelTooLong(self.values.size(class)));
        }
        let text = |i| excerpt(&self.values.text(i));
        match self.closed {
            Some(Closed::Model) => return Err(RowFault::UnseenClass { value: text(class), known }),
            Some(Closed::Prepared) => return Err(RowFault::Appeared { what: "label", value: text(class) }),
            None => {}
        }
        if class == self.limit {
            let column = column.to_owned();
            if self.limit > 2 {
                return Err(RowFault::TooManyClasses { column, limit: self.limit });
            }
            let values: Vec<String> = (0..=class).map(text).collect();
            return Err(RowFault::ThirdClass { column, values: values.join(", ") });
        }
        self.check_whole(column, label)?;
        self.codes.push(code(self.limit, class));
        Ok(self.codes[class])
    }

    /// Refuses a label whose values are measured: many of them, and not all whole. Ratings such as 1.0, 1.5, ...
    /// are few.
    fn check_whole(&mut self, column: &str, label: TypedDatum<'_>) -> std::result::Result<(), RowFault> {
        self.fraction = self.fraction.or(self.values.number(label).filter(|number| number.fract() != 0.0));
        match self.fraction {
            Some(value) if self.values.len() > FEW_CLASSES => {
                Err(RowFault::ContinuousLabel { column: column.to_owned(), few: FEW_CLASSES, value })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a label that is another one in nearly each row: no class could be learned.
    fn check_repeated(&self, column: &str, rows: u64) -> Result<()> {
        let classes = self.values.len();
        if classes <= FEW_CLASSES || 2 * classes as u64 <= rows {
            return Ok(());
        }
        let are_numbers = self.values.are_numbers();
        Err(TrainingError::NearlyUniqueLabel { column: column.to_owned(), classes, rows, are_numbers }.into())
    }
}

/// Some classes, for a message: the first few.
fn listed(classes: &Distinct) -> String {
    const FEW: usize = 10;
    let order = classes.sorted();
    let mut names: Vec<String> = order.iter().take(FEW).map(|i| excerpt(&classes.text(*i as usize))).collect();
    if order.len() > FEW {
        names.push(format!("and {} more", order.len() - FEW));
    }
    names.join(", ")
}

/// The label for the learner of class `i` of up to `limit`.
fn code(limit: usize, i: usize) -> f32 {
    match (limit, i) {
        (2, 0) => -1.0,
        (2, _) => 1.0,
        (_, i) => i as f32,
    }
}

#[inline]
fn target(value: f64, kind: ModelKind) -> std::result::Result<f32, Box<RowFault>> {
    let target = narrow(value).map_err(|fault| {
        Box::new(match fault {
            NumberFault::NotFinite(value) => RowFault::LabelNotFinite(value),
            NumberFault::OutOfRange(value) => RowFault::LabelOutOfRange(value),
        })
    })?;
    if kind.accepts_target(target) { Ok(target) } else { Err(Box::new(RowFault::NegativeLabel(value))) }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pg::testing::{in_subtransaction, value};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_values_are_told_apart_as_their_type_does_and_come_in_its_order() {
        let mut numbers = Distinct::new(pg_sys::NUMERICOID, pg_sys::Oid::INVALID);
        // more than are searched one by one
        let all: Vec<_> = (0..100).map(|i| value(&format!("{}.0", 99 - i), "numeric")).collect();
        for (i, number) in all.iter().enumerate() {
            assert_eq!(numbers.find(*number), None);
            assert_eq!(numbers.add(*number), i);
        }
        assert_eq!(numbers.find(value("90.000", "numeric")), Some(9), "the same number in other bytes");
        assert_eq!(numbers.find(value("0.5", "numeric")), None);
        assert_eq!(numbers.sorted(), (0..100).rev().collect::<Vec<_>>());
        assert_eq!(numbers.text(9), "90.0");
        let mut texts = Distinct::new(pg_sys::TEXTOID, pg_sys::C_COLLATION_OID);
        for text in ["b", "B", "a"] {
            texts.add(value(text, "text"));
        }
        assert_eq!(texts.sorted(), [1, 2, 0]);
        let mut booleans = Distinct::new(pg_sys::BOOLOID, pg_sys::Oid::INVALID);
        assert_eq!(booleans.add_text("yes"), Some((0, false)));
        assert_eq!(booleans.add_text("true"), Some((0, true)));
        let message = in_subtransaction(|| Distinct::new(pg_sys::JSONOID, pg_sys::Oid::INVALID).len().to_string());
        assert_eq!(message, "values of type json cannot be compared");
    }
}
