//! How processes that learn one model together give each other numbers.

use tuples::OutOfMemory;

/// Makes, of what each process has in one part of its numbers, what is to be in its place.
pub type Combine<'a> = dyn FnMut(&mut [f32], &[&[f32]]) + 'a;

/// A way to all processes that learn together, this one among them. Each of them makes the same calls in the same sequence; a
/// call returns when all have made it.
pub trait Exchange {
    /// Why there is no way any more.
    type Error: From<OutOfMemory>;

    /// Replaces `numbers`, as many in every process, by what `combine` makes of those of all processes. `combine` gets, part
    /// by part, the place for the result and what each process has there, in the sequence of the processes.
    ///
    /// # Errors
    /// If a process has gone.
    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), Self::Error>;

    /// Shows `words`, any number of them, to all processes, and gives `take` the number of each process and a part of its
    /// words: those of one process come in their sequence.
    ///
    /// # Errors
    /// If a process has gone.
    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), Self::Error>;

    /// The words of all processes.
    ///
    /// # Errors
    /// As [`gather`](Exchange::gather).
    fn gather_all(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, Self::Error> {
        let mut all: Vec<Vec<u32>> = Vec::new();
        self.gather(words, &mut |process, words| {
            all.resize_with(all.len().max(process + 1), Vec::new);
            all[process].extend_from_slice(words);
        })?;
        Ok(all)
    }
}

/// The sum over all processes.
pub(crate) fn sum(into: &mut [f32], of: &[&[f32]]) {
    let Some((first, others)) = of.split_first() else { return };
    into.copy_from_slice(first);
    for other in others {
        into.iter_mut().zip(*other).for_each(|(sum, x)| *sum += x);
    }
}

/// The mean over all processes, each with its share.
pub(crate) fn mean(shares: &[f64]) -> impl FnMut(&mut [f32], &[&[f32]]) {
    move |into, of| {
        for (i, mean) in into.iter_mut().enumerate() {
            let sum: f64 = shares.iter().zip(of).map(|(share, numbers)| share * f64::from(numbers[i])).sum();
            *mean = sum as f32;
        }
    }
}
