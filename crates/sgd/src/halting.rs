//! An exchange for a process that cannot wait in the middle of a call for what the others have.
//!
//! It stops the call where it would wait, and keeps what the process has to say. Once all others have said theirs, the
//! call is made again, and goes on from where it was stopped: what it gets in each round is what it would have got.
//! Guarantees: what is made again has changed nothing that the second call depends on, or the second call gets from the
//! others what the first has taken away. This is a promise of the engines, whose tests compare it with processes that
//! wait.

use loss::{Combine, Exchange};
use tuples::OutOfMemory;

/// What came of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Round {
    /// the bits of the numbers that were made of those of all processes
    Reduced(Vec<u32>),
    /// the words of each process
    Gathered(Vec<Vec<u32>>),
}

/// Why a call was stopped.
#[derive(Debug)]
pub enum Halt {
    /// This is what the process has to say in a round that has not come yet.
    Says(Vec<u32>),
    /// What came of a round is not what can have come of it.
    Nonsense,
    /// There is no room for what the others have met.
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for Halt {
    fn from(error: OutOfMemory) -> Halt {
        Halt::OutOfMemory(error)
    }
}

/// The rounds that have come, of which the call has gone through some.
#[derive(Debug)]
pub struct Halting<'a> {
    rounds: std::slice::Iter<'a, Round>,
}

impl<'a> Halting<'a> {
    /// An exchange in which these rounds have come.
    pub fn new(rounds: &'a [Round]) -> Halting<'a> {
        Halting { rounds: rounds.iter() }
    }
}

impl Exchange for Halting<'_> {
    type Error = Halt;

    fn all_reduce(&mut self, numbers: &mut [f32], _: &mut Combine<'_>) -> Result<(), Halt> {
        match self.rounds.next() {
            None => Err(Halt::Says(allocation::copy(bytemuck::cast_slice(numbers)))),
            Some(Round::Reduced(words)) if words.len() == numbers.len() => {
                numbers.iter_mut().zip(words).for_each(|(number, bits)| *number = f32::from_bits(*bits));
                Ok(())
            }
            Some(_) => Err(Halt::Nonsense),
        }
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), Halt> {
        match self.rounds.next() {
            None => Err(Halt::Says(allocation::copy(words))),
            Some(Round::Gathered(all)) => {
                all.iter().enumerate().for_each(|(process, words)| take(process, words));
                Ok(())
            }
            Some(_) => Err(Halt::Nonsense),
        }
    }
}

/// An exchange for the one that asks the processes that cannot wait: it has heard what they say in the round that is
/// under way, and makes of that what is to come of it.
///
/// It is halting itself, so that several calls can be in the same round: each is made once to learn what the process
/// says itself, and again when all others have said theirs.
#[derive(Debug)]
pub struct Uniting<'a> {
    known: Halting<'a>,
    /// of this process first
    says: Option<Vec<Vec<u32>>>,
    came: Option<Round>,
}

impl<'a> Uniting<'a> {
    /// An exchange in which these rounds have come, and in the next one of which each process says this, this one
    /// first; None if the others have not been heard yet.
    pub fn new(rounds: &'a [Round], says: Option<Vec<Vec<u32>>>) -> Uniting<'a> {
        Uniting { known: Halting::new(rounds), says, came: None }
    }

    /// What has come of the round that the processes were heard in.
    pub fn into_round(self) -> Option<Round> {
        self.came
    }
}

impl Exchange for Uniting<'_> {
    type Error = Halt;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), Halt> {
        if !self.known.rounds.as_slice().is_empty() {
            return self.known.all_reduce(numbers, combine);
        }
        let Some(says) = self.says.take() else {
            return Err(Halt::Says(allocation::copy(bytemuck::cast_slice(numbers))));
        };
        if says.iter().any(|words| words.len() != numbers.len()) {
            return Err(Halt::Nonsense);
        }
        let all: Vec<&[f32]> = says.iter().map(|words| bytemuck::cast_slice(words)).collect();
        combine(numbers, &all);
        self.came = Some(Round::Reduced(allocation::copy(bytemuck::cast_slice(numbers))));
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), Halt> {
        if !self.known.rounds.as_slice().is_empty() {
            return self.known.gather(words, take);
        }
        let Some(says) = self.says.take() else { return Err(Halt::Says(allocation::copy(words))) };
        says.iter().enumerate().for_each(|(process, words)| take(process, words));
        self.came = Some(Round::Gathered(says));
        Ok(())
    }
}
