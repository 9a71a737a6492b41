//! What the tests of corgipile through a real server share.
//!
//! Every test has a database of its own ([`Database::new`]), made from a template in which the extension is
//! installed, and dropped afterwards: tests run in parallel, in one process or (`cargo nextest`) in one each, and no
//! test sees what another has done. The server is one
//! that `scripts/with-postgres` has started; the tests themselves are in `tests/server/`, a folder per
//! domain.

mod cluster;
mod data;
mod database;
mod documents;
mod extension;
mod failing_memory;
mod failure;
mod fastpath;
mod figures;
mod fixtures;
mod lanes;
mod library;
mod network;
mod nodes;
pub mod plan;
mod reference;
mod server;
mod session;
pub mod stored;
mod textbook;
mod training;
mod vectors;
mod waiting;
mod writers;

pub use cluster::Cluster;
pub use data::{DataSet, data_directory, flights_directory, generated_directory, skip};
pub use database::Database;
pub use documents::Document;
pub use extension::{hooked, parts};
pub use failing_memory::{FailingMemory, Fails, Whose};
pub use failure::{Failure, is_like};
pub use fixtures::{clustered, shuffled_copy, small};
pub use lanes::sample;
pub use library::{backend_tests, has_backend_tests, library};
pub use network::Network;
pub use nodes::Nodes;
pub use reference::Reference;
pub use server::{log, program};
pub use session::Session;
pub use stored::Stored;
pub use textbook::{Objective, Rule, Textbook, Tuple, assert_close};
pub use training::{Epoch, Evaluation, Model, epochs_of, in_several_buffers};
pub use vectors::made_here;
pub use waiting::Background;
pub use writers::Writers;
