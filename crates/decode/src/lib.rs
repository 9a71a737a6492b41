//! From rows to training tuples: (label, features, weight) as SGD wants them.
//!
//! Nothing that cannot be learned from gets through: NULLs, NaN, infinities, other lengths, a third class are errors
//! that name the row, or, for NULLs and if asked, are left out and counted. Tuples are standardized and weighted when
//! they are decoded, so that one that stays in its batch is never touched again.
// Used by the extension alone: a field or a variant needs no text beyond its name, and no caller asks whether a length
// is 0.
#![allow(missing_docs, clippy::len_without_is_empty, clippy::new_without_default, clippy::result_unit_err)]

mod bag;
mod categories;
mod category_column;
mod class_weights;
mod column_facts;
pub mod column_uses;
mod columns;
mod compressed;
pub mod compressed_type;
mod counts;
pub mod default_features;
mod features;
mod folds;
mod hashed;
mod imputation;
mod json_keys;
mod labels;
mod learned;
mod mini_batches;
mod mixed_column;
mod mixed_numbers;
pub mod notices;
mod row_groups;
mod rows;
pub mod sample;
mod sparse;
mod spec;
mod state;
mod transformed;
mod tuple_decoder;
mod united;
pub mod wanted;
mod weighing;
mod weight;

pub use bag::Bag;
pub use columns::{FEATURE_TYPES, column, is_category};
pub use compressed_type::compressed_type;
pub use counts::EpochCounts;
pub use features::FeatureColumns;
pub use hashed::{HashRule, one_hot_categories};
pub use imputation::NullCounts;
pub use labels::Labels;
pub use learned::RowCounts;
pub use row_groups::{HELD_OUT, RowGroups};
pub use rows::PageRows;
pub use spec::{DecoderSpec, ModelSchema, OwnedSpec, is_vector};
pub use state::DecoderState;
pub use tuple_decoder::{Decoder, Statistics};
pub use united::Met;
pub use weight::RowSums;
