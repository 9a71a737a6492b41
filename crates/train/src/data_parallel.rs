//! One process's part of a training that several processes do in step.
//!
//! All processes fill their buffers at the same time and gather how many tuples each of them has. Their tuples, or
//! whole mini-batches, take turns ([`Turns`]), so that each process knows at which of its own a step is made. A process
//! may have more of them in a buffer than the others, or none.

use super::constant::ClassShares;
use super::learners::GroupModel;
use super::team::{Cohort, Here, OwnBuffer, Team, Turns, step};
use super::validation::{OwnEvaluation, OwnParts, United};
use decode::EpochCounts;
use errors::{Error, Result};
use loss::{Combine, Exchange, ModelKind};
use pg::process::all_gather::AllGather;
use scan::Buffers;
use scan::progress;
use scan::worker_rows::json;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sgd::Trainer;
use shuffle::MAX_PROCESSES;
use std::ops::Range;
use std::time::{Duration, Instant};
use tuples::{Batch, TupleSource};

/// The replicas of the models that one of the processes trains: usually one, or one for each point of a grid.
pub struct Replica {
    collective: Collective,
    rank: usize,
    /// how this process's rows are distributed, if they fall into groups or some are held out
    parts: Option<OwnParts>,
    has_begun: bool,
    /// what all processes learn from, once the first epoch has ended
    pub class_shares: ClassShares,
    /// time spent learning, which includes waiting for the others
    pub compute: Duration,
}

/// The number of a buffer behind all buffers of an epoch.
const END: u64 = u64::MAX;

/// A buffer of this process.
struct Held {
    buffer: u64,
    /// where in its order each group has its tuples; none at the end
    parts: Vec<Range<usize>>,
    own: OwnBuffer,
}

impl Replica {
    /// The replicas of process number `rank`.
    pub fn new(all_gather: AllGather, rank: usize, parts: Option<OwnParts>) -> Replica {
        let class_shares = ClassShares::default();
        Replica {
            collective: Collective(all_gather),
            rank,
            parts,
            has_begun: false,
            class_shares,
            compute: Duration::ZERO,
        }
    }

    fn fill(&mut self, buffers: &mut Buffers, batch: &mut Batch) -> Result<Held> {
        if !buffers.next_batch(batch)? {
            return Ok(Held { buffer: END, parts: Vec::new(), own: OwnBuffer::default() });
        }
        progress::tuples(batch.tuples_in_order());
        let parts = match &mut self.parts {
            Some(parts) => parts.take_each(batch)?,
            None => std::iter::once(0..batch.order().len()).collect(),
        };
        Ok(Held { buffer: buffers.report().buffer, own: OwnBuffer::new(batch, &parts), parts })
    }

    /// Adds what the decoders of the other processes have counted in this epoch.
    fn count(&mut self, buffers: &mut Buffers) -> Result<()> {
        let decoder = &mut buffers.decoder;
        let all: Vec<EpochCounts> = self.collective.gather_values(&decoder.epoch_counts())?;
        let others = all.iter().enumerate().filter(|(process, _)| *process != self.rank);
        others.for_each(|(_, counts)| decoder.count_rows_of_others(counts));
        Ok(())
    }

    /// Hears what the first process says.
    pub fn hear_first<T: Serialize + DeserializeOwned>(&mut self, own: &T) -> Result<T> {
        Ok(self.collective.gather_values(own)?.swap_remove(0))
    }
}

impl Team for Replica {
    fn epoch(
        &mut self,
        (trainers, groups): (&mut [&mut Trainer], &[usize]),
        Here { buffers, batch }: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if !is_first {
            buffers.next_epoch()?;
        }
        if let (Some(parts), Some(first)) = (&mut self.parts, trainers.first()) {
            parts.begin_epoch(first.epoch().into());
        }
        let outputs = buffers.decoder.labels().outputs();
        let mut cohorts = Cohort::all(trainers, groups);
        let mut mine = None;
        loop {
            let held = match mine.take() {
                Some(held) => held, // the others are not done with the buffer before
                None => {
                    let held = self.fill(buffers, batch)?;
                    let of_classes = is_first && !buffers.decoder.labels().are_targets();
                    for (group, places) in held.parts.iter().cloned().enumerate().filter(|_| of_classes) {
                        self.class_shares.add(&buffers.decoder, batch, group, places);
                    }
                    held
                }
            };
            let all: Vec<(u64, OwnBuffer)> = self.collective.gather_values(&(held.buffer, &held.own))?;
            let buffer = all.iter().map(|(buffer, _)| *buffer).min().unwrap_or(END);
            if buffer == END {
                break;
            }
            let is_own = held.buffer == buffer;
            let start = Instant::now();
            for cohort in &mut cohorts {
                let present = all.iter().map(|(of, own)| (*of == buffer).then_some(own));
                let turns = Turns::new(present, cohort.group);
                let own = if is_own { held.parts[cohort.group].clone() } else { 0..0 };
                if turns.left() > 0 {
                    let mut members = cohort.members(trainers);
                    cohort.learn(&mut members, (batch, outputs), (turns, self.rank, own), &mut self.collective)?;
                }
            }
            self.compute += start.elapsed();
            check(trainers)?;
            if !is_own {
                mine = Some(held);
            }
        }
        for cohort in &mut cohorts {
            if let Some(tuples) = cohort.end_step() {
                step(&mut cohort.members(trainers), tuples, &mut self.collective)?;
            }
        }
        for trainer in trainers.iter_mut() {
            trainer.count_synchronized(&mut self.collective)?;
        }
        if is_first {
            let all: Vec<ClassShares> = self.collective.gather_values(&self.class_shares)?;
            self.class_shares = ClassShares::default();
            all.iter().for_each(|shares| self.class_shares.unite(shares));
        }
        self.count(buffers)
    }

    fn evaluate(
        &mut self,
        kind: ModelKind,
        models: Vec<GroupModel>,
        epoch: u32,
        Here { buffers, batch }: Here<'_>,
    ) -> Result<United> {
        let parts = self.parts.as_mut().unwrap_or_else(|| pgrx::error!("nothing is held out"));
        let count = models.len();
        let own = OwnEvaluation::new(parts.evaluate(kind, models, (epoch, buffers, batch))?);
        let all: Vec<OwnEvaluation> = self.collective.gather_values(&own)?;
        let united = United::new(kind, count, &all);
        Ok(united.unwrap_or_else(|| pgrx::error!("processes have evaluated different models")))
    }

    fn go_on(&mut self, learning: Vec<(usize, usize)>) -> Result<()> {
        self.hear_first(&learning).map(drop)
    }
}

/// The other processes, as trainers talk to them.
struct Collective(AllGather);

impl Collective {
    fn gather_values<T: DeserializeOwned>(&mut self, own: &impl Serialize) -> Result<Vec<T>> {
        let json = json(own);
        // words, of which the last one is filled up with what JSON may have between values
        let words = json.chunks(4).map(|bytes| {
            let mut word = [b' '; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_ne_bytes(word)
        });
        let all = self.gather_all(&allocation::collect::<u32>(words))?;
        let read = |words: Vec<u32>| serde_json::from_slice(bytemuck::cast_slice(&words));
        let all = all.into_iter().map(read).collect::<std::result::Result<Vec<T>, _>>();
        Ok(all.unwrap_or_else(|e| pgrx::error!("unexpected reply from a training process: {e}")))
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
