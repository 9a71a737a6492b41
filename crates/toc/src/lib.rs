//! Tuple-oriented compression of mini-batches (Li et al., "Tuple-oriented Compression for Large-scale Mini-batch
//! Stochastic Gradient Descent", SIGMOD 2019), and the encodings that it is compared with.
//!
//! Guarantees: every bit of every value comes back, whatever the encoding; products are computed on the compressed
//! form, and depend neither on the instructions that the processor has nor on what was computed before. Bytes may come
//! from anywhere: those that were not written here are an [`Error`], never a panic, and ask for no more memory than a
//! small multiple of their length, of the rows and, where all entries are held ([`limits`]),
//! of the entries that they state.
//!
//! It prevents a training run from reading, in every epoch, what the rows of a table repeat again and again.
//!
//! - [`Rows`] collects a mini-batch; [`encode`] and [`encode_smallest`] make bytes of it, [`decode`] makes it of them.
//! - [`open`] makes of the bytes what is computed with: [`Operations`], or by [`matrix`] a [`tuples::Matrix`].
//! - [`map`] applies a function to each entry: by [`map_values`] to the stored values only if it leaves 0 as it is,
//!   else by [`map_entries`] to all. [`Function`] has some by name.
//! - [`zip`] combines two compressed matrices entry by entry, and [`zip_dense`] one with a plain matrix.
//! - [`info`] reads the header; [`paper_bytes`] and [`paper_bytes_by_step`] say what the layout of the paper would
//!   take.
//!
//! FORMAT.md describes the bytes.

#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod bytes;
mod change;
mod choice;
mod csr;
mod cvi;
mod dense;
mod dvi;
mod encoding;
mod error;
mod function;
mod general;
mod index;
mod kernels;
pub mod limits;
mod number;
mod opened;
mod operations;
mod order;
mod rows;
mod stored;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod tree;
mod values;

pub use bytes::Layout;
pub use change::{map, map_entries, map_values, zip, zip_dense};
pub use choice::{encode, encode_in, encode_smallest, paper_bytes, paper_bytes_by_step};
pub use encoding::{Encoding, UnknownEncoding};
pub use error::Error;
pub use function::{Function, UnknownFunction};
pub use number::Number;
pub use opened::{Packed, decode, decode_dense, matrix, open};
pub use operations::Operations;
pub use rows::Rows;
pub use stored::{Info, info};
