//! JOADER as a service: many jobs, on one machine or several, share what is read and prepared.
//!
//! Jobs register with a server and get elements (rows, or blocks of rows) of a data set in random order, each at its
//! own speed, and each element once in each epoch. What several jobs draw is read and prepared once, and given to them
//! in memory that they map. If the server goes, they read on by themselves.
//!
//! | | |
//! |---|---|
//! | [`serve`] | the server: `server::hub` is what its threads share, `server::connections` who comes |
//! | [`Job`] | a job: `client::stream` hears from the server, `client::mixing` makes batches of elements |
//! | [`admin`] | data sets are created, altered and dropped, and a server tells what it does |
//! | [`Cluster`] | several servers, of which one draws for all: `cluster` is how they talk, `dealing` which rank gets
//! what |
//! | `drawing` | who draws for the jobs of a data set: this server or the leader |
//! | `sampling` | who draws what next: the samplers of the crate `joader`, and how far jobs are ahead |
//! | `serving`, `room` | what is read for whom, what is kept and where, and who gets what |
//! | `memory` | the memory that a server and its jobs share |
//! | [`DataSet`] | rows cut into elements, and which of them a condition chooses |
//! | `strangers`, `peer` | who may connect, and to whom |
//! | `damaged` | rows that cannot be prepared, and whom that concerns |
//!
//! Xie et al., "A Deep Learning Dataloader with Shared Data Preparation", NeurIPS 2022, appendix E.

mod client;
mod cluster;
mod damaged;
mod dataset;
mod dealing;
mod drawing;
mod error;
mod memory;
mod peer;
pub mod proto;
mod room;
mod sampling;
mod server;
mod serving;
mod strangers;

pub use client::{BufferSize, Counts, Job, JobOptions, Mode, NextOfJob, Opening, Position, admin};
pub use cluster::{Cluster, FollowerOptions, LeaderOptions, Token};
pub use dataset::{DataSet, Held, Opened, Opener};
pub use error::{JobError, ServiceError};
pub use sampling::SamplerKind;
pub use server::{ServerOptions, serve};
