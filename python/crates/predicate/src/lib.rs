//! Which rows a job wants: a condition as after SQL's WHERE.
//!
//! A [`Predicate`] is parsed once, with the columns of the rows at hand, and then evaluated for batch after batch. It
//! guarantees that whatever does not fit the columns is reported when it is parsed, by place and with the columns that
//! there are; that no text makes it use more than a little stack; and that a condition means what it means in
//! PostgreSQL, where NULL is unknown and an unknown row is not chosen. What differs:
//!
//! - Whole numbers are computed with in 64 bits. Decimals and numbers with a point are floating point numbers.
//! - Text is compared by its bytes, as in the collation "C".
//! - Moments without a time zone are taken for UTC.
//! - A name without quotes is that of the column that is spelt so, or else of the only one that is but for case.

#![forbid(unsafe_code)]

mod calculate;
mod evaluate;
mod parse;
#[cfg(test)]
mod tests;
mod tree;
mod types;

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema};

use evaluate::Rows;
use tree::Truth;

/// Why there is no predicate, or no answer of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PredicateError {
    /// The text is not an expression of SQL, or too long a one.
    #[error("the condition cannot be parsed: {0}")]
    Syntax(String),
    /// Something in the text does not fit: an unknown column, a comparison of text with a number.
    #[error("the condition does not fit the data{}: {what}", place(*.line, *.character))]
    Invalid {
        /// The line, from 1; 0 if it is not known.
        line: u64,
        /// The character in the line, from 1.
        character: u64,
        /// What is wrong there.
        what: String,
    },
    /// The rows are not those that the predicate was made for.
    #[error("the condition is for other rows: {0}")]
    OtherRows(String),
    /// A row makes it fail, as a zero that is divided by does.
    #[error("the condition cannot be evaluated: {0}")]
    Evaluation(String),
}

fn place(line: u64, character: u64) -> String {
    match line {
        0 => String::new(),
        1 => format!(", at character {character}"),
        _ => format!(", at character {character} of line {line}"),
    }
}

/// A condition on the columns of rows.
#[derive(Debug, Clone)]
pub struct Predicate {
    columns: Vec<String>,
    types: Vec<DataType>,
    condition: Truth,
}

impl Predicate {
    /// The condition that a text says, on rows with these columns.
    ///
    /// # Errors
    /// [`PredicateError::Syntax`] and [`PredicateError::Invalid`].
    pub fn parse(text: &str, schema: &Schema) -> Result<Self, PredicateError> {
        let (condition, columns) = parse::condition(text, schema)?;
        let (columns, types) = columns.into_iter().unzip();
        Ok(Self { columns, types, condition })
    }

    /// The columns that it is about, each once. There may be none.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// What is true, false or unknown of each row.
    ///
    /// # Errors
    /// [`PredicateError::OtherRows`] if a column is missing or has another type; [`PredicateError::Evaluation`].
    pub fn evaluate(&self, batch: &RecordBatch) -> Result<BooleanArray, PredicateError> {
        let column = |(name, of): (&String, &DataType)| match batch.column_by_name(name) {
            Some(array) if array.data_type() == of => Ok(array.clone()),
            Some(array) => {
                let now = array.data_type();
                Err(PredicateError::OtherRows(format!("column {name:?} is of type {now} and was of type {of}")))
            }
            None => Err(PredicateError::OtherRows(format!("they have no column {name:?}"))),
        };
        let columns = self.columns.iter().zip(&self.types).map(column).collect::<Result<_, _>>()?;
        self.condition.of(&Rows { columns, count: batch.num_rows() })
    }

    /// Which rows are chosen: those of which it is true.
    ///
    /// # Errors
    /// As [`Predicate::evaluate`].
    pub fn chosen(&self, batch: &RecordBatch) -> Result<BooleanBuffer, PredicateError> {
        let truth = self.evaluate(batch)?;
        Ok(match truth.nulls() {
            Some(known) => truth.values() & known.inner(),
            None => truth.values().clone(),
        })
    }
}
