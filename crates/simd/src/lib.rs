//! Sixteen lanes of f32, or eight of f64, in the registers of this processor, and the choice of the instruction set at
//! run time.
//!
//! Guarantees: instructions run only where the processor has them, because a value of an instruction set cannot be made
//! before they were detected; the same operations in the same order give the same bits in all sets.
//!
//! Entries of sparse rows are multiplied and added here, too, because their indices are checked once for a row.
//!
//! It prevents loops that the compiler, left alone with arrays, takes apart into scalars. It is also the only place of
//! the pure crates with vector instructions: `sgd` writes its kernels with [`Simd`],
//! and `toc` has its loops compiled by [`Level::run`].

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod entries;
mod halves;
mod instructions;
mod level;
mod portable;
mod prefetch;

pub use entries::{Entries, square};
pub use halves::{widen_half, widen_halves};
pub use instructions::{Chunk, DOUBLES, Doubles, Kernel, LANES, Simd};
pub use level::Level;
pub use portable::Portable;
pub use prefetch::{prefetch, prefetch_far};
