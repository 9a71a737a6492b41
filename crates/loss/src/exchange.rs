//! How processes that learn one model together give each other numbers.

use tuples::OutOfMemory;

/// Makes, of what each process has in one part of its numbers, what is to be in its place.
pub type Combine<'a> = dyn FnMut(&mut [f32], &[&[f32]]) + 'a;

/// A way to all processes that learn together, this one among them. Each of them makes the same calls in the same
/// sequence; a call returns when all have made it.
pub trait Exchange {
    /// Why there is no way any more.
    type Error: From<OutOfMemory>;

    /// Replaces `numbers`, as many in every process, by what `combine` makes of those of all processes. `combine` gets,
    /// part by part, each of an even number unless it is the last one, the place for the result and what each process
    /// has there, in the sequence of the processes.
    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), Self::Error>;

    /// Shows `words`, any number of them, to all processes, and gives `take` the number of each process and a part of
    /// its words: those of one process come in their sequence.
    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), Self::Error>;

    /// The words of all processes.
    fn gather_all(&mut self, words: &[u32]) -> Result<Vec<Vec<u32>>, Self::Error> {
        let mut all: Vec<Vec<u32>> = Vec::new();
        self.gather(words, &mut |process, words| {
            all.resize_with(all.len().max(process + 1), Vec::new);
            allocation::append(&mut all[process], words);
        })?;
        Ok(all)
    }
}

/// An exchange whose errors wait elsewhere.
pub type OpenExchange<'a> = dyn Exchange<Error = Interrupted> + 'a;

/// Why a computation of several processes has ended.
#[derive(Debug, Clone, Copy)]
pub enum Interrupted {
    /// The exchange has an error.
    Exchange,
    /// There is no memory for what is exchanged.
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for Interrupted {
    fn from(error: OutOfMemory) -> Interrupted {
        Interrupted::OutOfMemory(error)
    }
}

/// An exchange that keeps its error for the one that knows the type.
struct Keeping<'a, E: Exchange> {
    exchange: &'a mut E,
    error: Option<E::Error>,
}

impl<E: Exchange> Keeping<'_, E> {
    fn keep(&mut self, error: E::Error) -> Interrupted {
        self.error = Some(error);
        Interrupted::Exchange
    }
}

impl<E: Exchange> Exchange for Keeping<'_, E> {
    type Error = Interrupted;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), Interrupted> {
        self.exchange.all_reduce(numbers, combine).map_err(|error| self.keep(error))
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), Interrupted> {
        self.exchange.gather(words, take).map_err(|error| self.keep(error))
    }
}

/// Runs what knows nothing of the exchange's errors.
pub fn with_open<E: Exchange>(
    exchange: &mut E,
    run: impl FnOnce(&mut OpenExchange<'_>) -> Result<(), Interrupted>,
) -> Result<(), E::Error> {
    let mut keeping = Keeping { exchange, error: None };
    run(&mut keeping).map_err(|interrupted| match interrupted {
        Interrupted::OutOfMemory(error) => error.into(),
        Interrupted::Exchange => keeping.error.take().expect("an exchange that fails says why"),
    })
}

/// The sum over all processes.
pub fn sum(into: &mut [f32], of: &[&[f32]]) {
    let Some((first, others)) = of.split_first() else { return };
    into.copy_from_slice(first);
    for other in others {
        into.iter_mut().zip(*other).for_each(|(sum, x)| *sum += x);
    }
}

/// The sum over all processes of numbers of twice the width, each in two places.
pub fn sum_of_doubles(into: &mut [f32], of: &[&[f32]]) {
    for (i, pair) in into.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let double = |numbers: &&[f32]| bytemuck::cast::<[f32; 2], f64>([numbers[2 * i], numbers[2 * i + 1]]);
        *pair = bytemuck::cast(of.iter().map(double).sum::<f64>());
    }
}

/// The mean over all processes, each with its share.
pub fn mean(shares: &[f64]) -> impl FnMut(&mut [f32], &[&[f32]]) {
    move |into, of| {
        for (i, mean) in into.iter_mut().enumerate() {
            let sum: f64 = shares.iter().zip(of).map(|(share, numbers)| share * f64::from(numbers[i])).sum();
            *mean = sum as f32;
        }
    }
}
