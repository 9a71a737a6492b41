//! From rows to training tuples: (label, features, weight) as SGD wants them.
//!
//! Nothing that cannot be learned from gets through: NULLs, NaN, infinities, other lengths, a third class are errors
//! that name the row, or, for NULLs and if asked, are left out and counted. Tuples are standardized and weighted when
//! they are decoded, so that one that stays in its batch is never touched again.

mod categories;
mod category_column;
mod class_weights;
mod columns;
mod compressed;
mod counts;
mod features;
mod folds;
mod hashed;
mod imputation;
mod labels;
mod mini_batches;
mod row_groups;
mod rows;
mod shared;
mod sparse;
mod spec;
mod state;
mod transformed;
mod tuple_decoder;
mod united;
mod weight;

pub use columns::{FEATURE_TYPES, column, is_category};
pub use counts::{EpochCounts, RowCounts};
pub use features::FeatureColumns;
pub use hashed::one_hot_categories;
pub use labels::Labels;
pub use row_groups::{HELD_OUT, RowGroups};
pub use rows::PageRows;
pub use spec::{DecoderSpec, ModelSchema, OwnedSpec, is_vector};
pub use state::DecoderState;
pub use tuple_decoder::{Decoder, Statistics};
pub use united::Met;
