//! Training where the rows are: on other servers, in step; and evaluating models and measuring features there.
//!
//! The backend that trains, the *coordinator*, has a session on each server, a *node*, and in it a cursor whose scan is
//! a [`NodeScan`]. Node and coordinator each have a replica of the model. A node cannot wait in the middle of a call
//! for what the others have: the coordinator asks ([`messages`]), and the node does a part of its work and answers. So
//! the coordinator is the one that knows whose tuples a mini-batch has.
//!
//! It guarantees that what the node holds, between two statements of its session, is the cursor's: it ends with the
//! transaction there, and with the session, whatever ends that.

mod choice;
mod cluster;
mod clusters;
mod evaluated_model;
mod evaluation;
mod features;
mod messages;
mod models;
mod node;
mod replicas;
mod sequence;
mod training;
mod way;
mod whole_groups;

pub use choice::{Place, Rows};
pub use cluster::Traffic;
pub use clusters::{clusters_at_there, clusters_there};
pub use evaluation::evaluate_there;
pub use features::features_there;
pub use node::{NodeScan, step};
pub(crate) use training::Remote;
