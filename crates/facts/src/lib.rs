//! What a sample of a column's values says about the column: how many values are distinct and how many are single,
//! whether numbers are whole, unique or have codes at an edge, and whether texts are numbers, dates or yes and no.
//!
//! Nothing here reads a table, and nothing depends on the order of the values: the same sample gives the same answer.

#![deny(unsafe_code)]

mod codes;
mod date_texts;
mod distinct;
mod labels;
mod number_texts;
mod numbers;
mod sql;
mod texts;
mod written;

pub use codes::Code;
pub use date_texts::{DateOrder, DateTexts};
pub use distinct::Distinct;
pub use labels::LabelMeaning;
pub use number_texts::NumberTexts;
pub use numbers::Numbers;
pub use sql::quote_text;
pub use texts::{Meaning, Texts, Variants};
pub use written::{DayOrder, NumberStyle, WrittenDate};
