//! Two classes from any column of two values.
//!
//! Which value comes first in the type's order is known only when both have been seen, but learning cannot wait: the
//! value that is met first gets the label -1, the other +1. If that turns out to be the wrong way round, the model is
//! negated in the end: learning is symmetric in the labels, bit for bit, so nobody can tell the difference.

use crate::error::{Error, Result, RowFault, excerpt};
use crate::pg::distinct::Distinct;
use pgrx::pg_sys::{Datum, Oid};

/// The classes of a label column.
pub struct Labels {
    column: String,
    values: Distinct,
    /// the classes are those of a model: others are not learned but wrong
    fixed: bool,
}

/// Two classes, ascending, as text.
pub type Classes = [String; 2];

/// A label longer than this is no class name.
const MAX_BYTES: usize = 8191;

impl Labels {
    /// Classes to be found in a column of this type.
    pub fn discover(column: &str, type_oid: Oid, collation: Oid) -> Labels {
        Labels { column: column.to_owned(), values: Distinct::new(type_oid, collation), fixed: false }
    }

    /// The classes of a model, to be recognised in a column of this type: the first is -1.
    pub fn known(column: &str, type_oid: Oid, collation: Oid, classes: &Classes) -> Labels {
        let mut labels = Labels::discover(column, type_oid, collation);
        for class in classes {
            labels.values.add_text(class);
        }
        labels.fixed = true;
        labels
    }

    /// -1 or +1 for a row's label.
    #[inline(always)]
    pub fn sign(&mut self, label: Datum) -> std::result::Result<f32, Box<RowFault>> {
        match self.values.find(label) {
            Some(0) => Ok(-1.0),
            Some(_) => Ok(1.0),
            None => self.unseen(label).map_err(Box::new),
        }
    }

    #[cold]
    fn unseen(&mut self, label: Datum) -> std::result::Result<f32, RowFault> {
        if let Some(number) = self.values.number(label)
            && !number.is_finite()
        {
            return Err(RowFault::LabelNotFinite(number));
        }
        let class = self.values.add(label);
        if self.values.size(class) > MAX_BYTES {
            return Err(RowFault::LabelTooLong(self.values.size(class)));
        }
        let text = |i| excerpt(&self.values.text(i));
        if self.fixed {
            let value = text(class);
            let known = format!("{} and {}", text(0), text(1));
            return Err(RowFault::UnseenClass { value, known });
        }
        if class == 2 {
            let values: Vec<String> = (0..3).map(text).collect();
            let (column, values) = (self.column.clone(), values.join(", "));
            return Err(RowFault::ThirdClass { column, values });
        }
        Ok(if class == 0 { -1.0 } else { 1.0 })
    }

    /// The classes in ascending order, and whether the model has to be negated to fit that order.
    ///
    /// # Errors
    /// [`Error::OneClass`]
    pub fn classes(&self) -> Result<(Classes, bool)> {
        if self.values.len() < 2 {
            return Err(Error::OneClass { column: self.column.clone(), value: excerpt(&self.values.text(0)) });
        }
        let (first, second) = (self.values.text(0), self.values.text(1));
        let swapped = self.values.is_less(1, 0);
        Ok((if swapped { [second, first] } else { [first, second] }, swapped))
    }
}
