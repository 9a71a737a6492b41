//! Many jobs, one read: which element each of several trainings draws next, so that they draw the same one as often as
//! can be, each in uniformly random order and at its own speed.
//!
//! It guarantees that each job draws every one of its elements once per epoch, and, with [`Dependent`], that its order
//! is exactly uniform whatever the other jobs do; and that the same seed and the same calls give the same draws. It
//! prevents that a table larger than memory is read from disk once per job and epoch. Nothing in it knows of time,
//! threads or PostgreSQL.
//!
//! | | |
//! |---|---|
//! | [`Sampler`] | jobs join, leave and begin epochs at any time; those named draw in a round |
//! | [`Dependent`], [`Independent`], [`Walk`] | the samplers: JOADER's, each job by itself, one permutation for all |
//! | [`Follow`], [`Follower`], [`Board`] | and one for processes that share some atomics: what others have just drawn |
//! | [`Cache`], [`Policy`] | what is kept of the elements that were read, by different rules |
//! | [`Placement`] | which node of a cluster reads an element, for jobs that have some of the nodes |
//!
//! The paper is Xie et al., "A Deep Learning Dataloader with Shared Data Preparation", NeurIPS 2022, with its appendix.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod cache;
mod dependent;
mod elements;
mod error;
mod follow;
mod independent;
mod members;
mod need;
mod needers;
mod placement;
mod sampler;
mod walk;

pub use cache::{Cache, Fifo, Lru, MinIo, Optimum, Policy, RefCnt, Replacement, Taken, Use, Victim};
pub use dependent::{Dependent, Meeting};
pub use elements::ElementSet;
pub use error::SamplerError;
pub use follow::Follow;
pub use independent::Independent;
pub use placement::Placement;
pub use sampler::{Draw, Sampler};
pub use shuffle::{Board, Followed, Follower, Job, JobSet, MAX_JOBS};
pub use walk::Walk;
