//! Training tuples as the SGD kernels want them, and the port through which they arrive.
//!
//! A [`Batch`] guarantees that every row starts on a 64-byte boundary and is a whole number of SIMD chunks long, that the
//! constant input of the intercept and the zero padding are in place before anyone reads a row, and that memory which
//! cannot be had is an error and never an abort. It prevents the kernels from needing a scalar tail per row, a special
//! case for the intercept, or a second copy of the tuples to shuffle them: the order is an index beside the rows.

#![forbid(unsafe_code)]

mod batch;
mod source;

pub use batch::{Batch, LANES, OutOfMemory, RowsMut};
pub use source::TupleSource;
