//! Training tuples as the SGD kernels want them, and the port through which they arrive.
//!
//! A [`Batch`] guarantees that every dense row starts on a 64-byte boundary and is a whole number of SIMD chunks long,
//! that the constant input of the intercept and the zero padding are in place before anyone reads a row, and that
//! memory that cannot be allocated is an error and never an abort. It prevents the kernels from needing a scalar tail
//! per row, a special case for the intercept, or a second copy of the tuples to shuffle them: the order is an index
//! next to the rows. Sparse rows take memory for their non-zeros only.

#![deny(unsafe_code)]

mod batch;
mod buffer_pool;
mod dense;
mod hashing;
mod huge_pages;
mod matrix;
mod mini_batches;
pub mod pause;
mod recent;
mod record;
mod source;
mod sparse;

pub use allocation::OutOfMemory;
pub use batch::{Batch, RowsMut, TupleColumns};
pub use dense::{Allocator, LANES, Memory};
pub use hashing::{HashedColumn, add_up_buckets, bucket_of};
pub use huge_pages::advise as advise_huge_pages;
pub use matrix::{Matrix, Opened, PackedMatrix};
pub use mini_batches::MiniBatch;
pub use recent::{Recent, ShortBytes};
pub use record::RecordHeader;
pub use source::TupleSource;
pub use sparse::SparseParts;
