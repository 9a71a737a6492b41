//! PostgreSQL, wrapped, and the home of nearly all `unsafe` code of the extension.
//!
//! Nothing in here knows about training. A safe function of this module is safe to call with whatever arguments:
//!
//! - A value is never a bare `Datum` outside of here, but a [`values::typed::TypedDatum`], which has its type with it
//!   and borrows from what it lies in. Anyone who reads one compares the type before following a pointer.
//! - What the executor gives ([`executor::node::Node`], [`tuples::slot::Slot`], [`snapshot::Snapshot`]) has the
//!   lifetime of the callback or the query, and looks for itself whether what it needs is there.
//! - What is allocated in a memory context has its lifetime, or a context of its own ([`context`]).
//! - What rests on a promise of its caller is an `unsafe fn` that says which.
#![allow(unsafe_code)]
// The extension alone uses what is here: no one asks for what it does not need.
#![allow(clippy::len_without_is_empty, clippy::new_without_default)]

pub mod call;
pub mod catalog;
pub mod compat;
pub mod context;
mod declared;
pub mod detoasted;
pub mod encoding;
pub mod errors;
pub mod executor;
pub mod interrupts;
pub mod memory;
mod notices;
pub mod process;
mod server;
pub mod settings;
pub mod snapshot;
#[cfg(feature = "pg_test")]
pub mod testing;
pub mod tuples;
pub mod values;

pub use encoding::require_utf8;
pub use errors::Error;
pub use interrupts::check_for_interrupts;
pub use notices::{notice, quietly, warning};
pub use server::{is_background_worker, preloading, random_seed, serves_another};
pub use settings::with_scans_from_the_start;

/// Bytes of a heap page.
pub const PAGE_BYTES: u32 = pgrx::pg_sys::BLCKSZ;
