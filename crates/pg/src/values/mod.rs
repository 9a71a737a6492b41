//! Values of PostgreSQL's types, read without copies where that can be.

pub mod array;
pub mod bag;
pub mod date_part;
pub mod distinct;
pub mod json_key;
pub mod jsonb;
pub mod new_array;
pub mod number;
pub mod number_copy;
pub mod output;
pub mod part;
pub mod record;
pub mod sparse;
pub mod sparse_vector;
pub mod text_part;
pub mod tid;
pub mod typed;
pub mod value_hash;
pub mod varlena;
pub mod vector;
