//! Numbers of models in the server's shared memory, where all processes read them without a copy: a bounded cache of
//! what the table has, there if the library is in shared_preload_libraries.
//!
//! An entry belongs to one version of one row. Who looks for it has found the row in the table before, so that
//! snapshots and privileges hold; an entry of a version that no one sees is not found, and goes when its place is
//! needed. A process that reads an entry has pinned it; pins go with the transaction, also after an ERROR. A process
//! that dies without ending its transaction takes the server's shared memory with it: PostgreSQL makes it again, and
//! this cache is empty then.
//!
//! One lock guards the directory. Pinning takes it shared; what is pinned is neither moved nor freed. Numbers are
//! written before anybody else can find them, and never change.
#![allow(unsafe_code)]

mod directory;
mod entries;
mod memory;
mod pins;
mod transactions;

pub use directory::Key;
pub use entries::Stat;
pub use entries::{Claim, announce, claim, forget, pinned, stats};
pub use memory::enabled;
pub use pins::{Arrays, Shared};

/// Asks for the shared memory, if the library is being preloaded. Called once, by _PG_init.
pub fn install() {
    transactions::install();
    memory::install();
}
