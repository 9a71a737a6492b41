//! Table corgipile.stored_models, read and written without the current user needing any privilege on it.
//!
//! The caller checks whether the user may use what was found: this module knows rows, not policies. Rows are seen as
//! by a volatile function: those that the running statement sees, and what this transaction has stored and deleted
//! since, so that a statement may use a model that it trains. What others commit meanwhile is not seen.
#![allow(unsafe_code)]

mod field;
mod floats;
mod lookup;
mod roles;
mod row;
mod scope;
mod write;

pub use field::{Field, Float, FloatArray};
pub use floats::read_floats;
pub use lookup::check_exists;
pub use roles::{
    StoredRole, check_is_own, check_may_write, current_user, existing_role, is_superuser, role, role_as_shown,
    role_name, role_named,
};
pub use row::{Key, KeyRef, ModelRow, ModelTable, Version, find};
pub use scope::LookupScope;
pub use write::{Taken, ask, change, end_inserts, insert, lock_groups, lock_name, rows};
