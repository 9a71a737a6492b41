//! One process's part of a training that several processes do in step.
//!
//! All processes fill their buffers at the same time and gather how many tuples each of them has. Their tuples take
//! turns ([`shuffle::RoundRobin`]), so that each process knows at which of its own tuples a mini-batch ends. A process
//! may have more tuples in a buffer than the others, or none.

use super::learn::learn;
use crate::errors::{Error, Result};
use crate::operators::buffers::Buffers;
use crate::pg::check_for_interrupts;
use crate::pg::process::all_gather::AllGather;
use crate::pg::process::progress;
use sgd::{Combine, Exchange, Trainer};
use shuffle::{MAX_PROCESSES, RoundRobin};
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// The replica of the model that one of the processes trains.
pub struct Replica {
    collective: Collective,
    rank: usize,
    batch_size: usize,
    turns: RoundRobin,
    /// time spent learning, which includes waiting for the others
    pub compute: Duration,
}

/// The number of a buffer behind all buffers of an epoch.
const END: u64 = u64::MAX;

impl Replica {
    /// The replica of process number `rank`.
    pub fn new(all_gather: AllGather, rank: usize, batch_size: u32) -> Replica {
        Replica {
            collective: Collective(all_gather),
            rank,
            batch_size: batch_size as usize,
            turns: RoundRobin::default(),
            compute: Duration::ZERO,
        }
    }

    /// Goes through an epoch, which the caller ends. `check` is called after each buffer.
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
                    (buffers.report().buffer, batch.order().len())
                }
                None => (END, 0),
            };
            let all = self.collective.gather_pair(held)?;
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
                let own = 0..tuples[self.rank];
                trainer.begin_buffer(tuples.iter().copied().max().unwrap_or(0), batch, own.clone())?;
                learn(trainer, batch, outputs, own)?;
                trainer.average_synchronized(&tuples, &mut self.collective)?;
            } else {
                let own = 0..tuples[self.rank];
                trainer.begin_buffer_synchronized(tuples.iter().sum(), batch, own, &mut self.collective)?;
                self.mini_batches(trainer, batch, outputs, &tuples, &mut pending)?;
            }
            self.compute += start.elapsed();
            check(trainer)?;
        }
        if pending > 0 {
            trainer.step_synchronized(pending as u32, &mut self.collective)?;
        }
        trainer.count_synchronized(&mut self.collective)?;
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
            let own = self.turns.take(self.batch_size - *pending, self.rank);
            let before = std::mem::replace(&mut left, self.turns.left());
            learn(trainer, batch, outputs, place..place + own)?;
            place += own;
            *pending += before - left;
            if *pending == self.batch_size {
                trainer.step_synchronized(*pending as u32, &mut self.collective)?;
                *pending = 0;
                check_for_interrupts();
            }
        }
        Ok(())
    }

    /// Adds what the decoders of the other processes have counted in this epoch.
    fn count(&mut self, buffers: &mut Buffers) -> Result<()> {
        let decoder = &mut buffers.decoder;
        let mine = (decoder.skipped(), decoder.max_weight().to_bits() as usize);
        for (process, (skipped, max_weight)) in self.collective.gather_pair(mine)?.into_iter().enumerate() {
            if process != self.rank {
                decoder.count_others(skipped, f32::from_bits(max_weight as u32));
            }
        }
        Ok(())
    }
}

/// The other processes, as trainers talk to them.
struct Collective(AllGather);

impl Collective {
    /// Gathers two numbers of each process.
    fn gather_pair(&mut self, (number, size): (u64, usize)) -> Result<Vec<(u64, usize)>> {
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
        let Collective(all_gather) = self;
        let processes = all_gather.processes();
        all_gather.combine(bytemuck::cast_slice_mut(numbers), |place, pieces| {
            let mut floats: [&[f32]; MAX_PROCESSES as usize] = [&[]; _];
            for (floats, words) in floats.iter_mut().zip(pieces) {
                *floats = bytemuck::cast_slice(words);
            }
            combine(bytemuck::cast_slice_mut(place), &floats[..processes]);
        });
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<()> {
        self.0.gather(words, |pieces| {
            for (process, words) in pieces.iter().enumerate() {
                take(process, words);
            }
        });
        Ok(())
    }
}
