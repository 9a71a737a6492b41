//! The arguments of corgipile_train() and the keys of its argument `options`: one table, and what is read and shown by it.
//!
//! It guarantees that ranges, defaults and what a warm start takes over are written once. To add an option is to add an entry to
//! [`table`], and to use it.

mod call;
mod choices;
mod chosen;
mod defaults;
pub mod entry;
pub mod grid;
mod keys;
mod parse;
mod resolved;
pub mod table;
pub mod warm_start;

pub use call::{TrainArguments, integer, invalid, label, model_kind, number, strategy};
pub use choices::{By, CacheMode, Choice, ClassWeight, Keep, Loader, Nulls, Unseen, Validation};
pub use chosen::{Options, Point};
pub use parse::argument_choice;
pub use resolved::Resolved;
