//! One process's part of a training that several processes do together.
//!
//! All of them fill their buffers at the same time, tell each other how many tuples these have, and go through them in
//! turns ([`shuffle::RoundRobin`]): so everybody knows at which of its own tuples a mini-batch ends. Who has more in a buffer than
//! the others, or has nothing of it, does not matter to the order.

use crate::errors::{Error, Result};
use crate::operators::Buffers;
use crate::pg::check_for_interrupts;
use crate::pg::process::all_gather::AllGather;
use crate::pg::process::progress;
use sgd::{Combine, Exchange, Trainer};
use shuffle::{MAX_PROCESSES, RoundRobin};
use std::ops::Range;
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// Floats that SGD may go through between two looks at pending interrupts: a fraction of a millisecond's work.
const FLOATS_PER_CHUNK: usize = 1 << 18;

/// How many floats' work a stored value of a sparse tuple is: its weight lies anywhere.
const FLOATS_PER_ENTRY: usize = 8;

/// Learns from these places of a batch's order, for a model with so many outputs.
pub fn learn(trainer: &mut Trainer, batch: &Batch, outputs: usize, places: Range<usize>) -> Result<()> {
    let floats = match () {
        _ if batch.is_sparse() => FLOATS_PER_ENTRY * (batch.nnz() / batch.len().max(1) + 1),
        _ if batch.has_mini_batches() => batch.nnz() / batch.len().max(1) + 1,
        _ => batch.stride(),
    };
    let chunk = match trainer.piece() {
        Some(_) if batch.has_mini_batches() => 1,
        Some(piece) => piece,
        None => (FLOATS_PER_CHUNK / (floats * outputs)).max(1),
    };
    for from in places.clone().step_by(chunk) {
        trainer.learn(batch, from..(from + chunk).min(places.end))?;
        check_for_interrupts();
    }
    Ok(())
}

/// A process among those that learn together.
pub struct Replica {
    ways: Collective,
    index: usize,
    batch_size: usize,
    turns: RoundRobin,
    /// spent learning, and waiting for others meanwhile
    pub compute: Duration,
}

/// Behind all buffers of an epoch.
const END: u64 = u64::MAX;

impl Replica {
    /// Process number `index` of those that meet.
    pub fn new(meeting: AllGather, index: usize, batch_size: u32) -> Replica {
        Replica {
            ways: Collective(meeting),
            index,
            batch_size: batch_size as usize,
            turns: RoundRobin::default(),
            compute: Duration::ZERO,
        }
    }

    /// Goes through an epoch, up to where the trainer is to end it. `check` is called after each buffer.
    ///
    /// # Errors
    /// What is wrong with the rows of this process, or with the model.
    pub fn epoch(
        &mut self,
        buffers: &mut Buffers,
        trainer: &mut Trainer,
        batch: &mut Batch,
        check: impl Fn(&Trainer) -> Result<()>,
    ) -> Result<()> {
        let outputs = buffers.decoder.labels().outputs();
        let mut pending = 0;
        let mut mine = None;
        loop {
            let held = match mine.take() {
                Some(held) => held, // the others are not done with the buffer before
                None if buffers.next_batch(batch)? => {
                    progress::tuples(batch.order().len());
                    (buffers.buffer(), batch.order().len())
                }
                None => (END, 0),
            };
            let all = self.ways.tell(held)?;
            let buffer = all.iter().map(|(buffer, _)| *buffer).min().unwrap_or(END);
            if buffer == END {
                break;
            }
            let tuples: Vec<usize> = all.iter().map(|(of, tuples)| if *of == buffer { *tuples } else { 0 }).collect();
            if held.0 != buffer {
                mine = Some(held);
            }
            let start = Instant::now();
            if self.batch_size == 1 {
                let own = 0..tuples[self.index];
                trainer.begin_buffer(tuples.iter().copied().max().unwrap_or(0), batch, own.clone())?;
                learn(trainer, batch, outputs, own)?;
                trainer.average_together(&tuples, &mut self.ways)?;
            } else {
                let own = 0..tuples[self.index];
                trainer.begin_buffer_together(tuples.iter().sum(), batch, own, &mut self.ways)?;
                self.mini_batches(trainer, batch, outputs, &tuples, &mut pending)?;
            }
            self.compute += start.elapsed();
            check(trainer)?;
        }
        if pending > 0 {
            trainer.step_together(pending as u32, &mut self.ways)?;
        }
        trainer.count_together(&mut self.ways)?;
        self.count(buffers)
    }

    /// Learns from a buffer. `pending` tuples of all processes are in the mini-batch that has begun.
    fn mini_batches(
        &mut self,
        trainer: &mut Trainer,
        batch: &Batch,
        outputs: usize,
        tuples: &[usize],
        pending: &mut usize,
    ) -> Result<()> {
        self.turns.begin(tuples.iter().copied());
        let (mut place, mut left) = (0, self.turns.left());
        while left > 0 {
            let own = self.turns.take(self.batch_size - *pending, self.index);
            let before = std::mem::replace(&mut left, self.turns.left());
            learn(trainer, batch, outputs, place..place + own)?;
            place += own;
            *pending += before - left;
            if *pending == self.batch_size {
                trainer.step_together(*pending as u32, &mut self.ways)?;
                *pending = 0;
                check_for_interrupts();
            }
        }
        Ok(())
    }

    /// Makes what the decoder has counted in this epoch that of all processes.
    fn count(&mut self, buffers: &mut Buffers) -> Result<()> {
        let decoder = &mut buffers.decoder;
        let mine = (decoder.skipped(), decoder.max_weight().to_bits() as usize);
        for (process, (skipped, max_weight)) in self.ways.tell(mine)?.into_iter().enumerate() {
            if process != self.index {
                decoder.count_others(skipped, f32::from_bits(max_weight as u32));
            }
        }
        Ok(())
    }
}

/// The way to the other processes, as trainers want it.
struct Collective(AllGather);

impl Collective {
    /// Tells all processes two numbers, and hears theirs.
    fn tell(&mut self, (number, size): (u64, usize)) -> Result<Vec<(u64, usize)>> {
        let all = self.gather_all(bytemuck::cast_slice(&[number, size as u64]))?;
        let read = |words: Vec<u32>| {
            let [number, size]: [u64; 2] = bytemuck::pod_read_unaligned(bytemuck::cast_slice(&words));
            (number, size as usize)
        };
        Ok(all.into_iter().map(read).collect())
    }
}

impl Exchange for Collective {
    type Error = Error;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<()> {
        let Collective(meeting) = self;
        let processes = meeting.processes();
        meeting.combine(bytemuck::cast_slice_mut(numbers), |place, pieces| {
            let mut floats: [&[f32]; MAX_PROCESSES as usize] = [&[]; _];
            for (floats, words) in floats.iter_mut().zip(pieces) {
                *floats = bytemuck::cast_slice(words);
            }
            combine(bytemuck::cast_slice_mut(place), &floats[..processes]);
        });
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<()> {
        self.0.show(words, |pieces| {
            for (process, words) in pieces.iter().enumerate() {
                take(process, words);
            }
        });
        Ok(())
    }
}
