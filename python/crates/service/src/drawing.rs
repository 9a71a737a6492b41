//! Where the draws of a data set come from: a sampler of this server, or the leader of the cluster.
//!
//! It guarantees the same of both: each job draws each of its elements once in each of its epochs. What a leader says
//! is checked against that.

use crate::sampling::{Drawn, JobId, SamplerKind, Sampling, Wanted, bits};
use fixedbitset::FixedBitSet;
use joader::SamplerError;
use std::collections::BTreeMap;
use tokio::sync::mpsc::UnboundedSender;

/// See the module's documentation.
pub enum Drawing {
    /// This server samples.
    Own(Box<Sampling>),
    /// The leader does.
    Led(Led),
}

/// What is known of draws that the leader makes.
pub struct Led {
    jobs: BTreeMap<JobId, LedJob>,
    arrived: Vec<Drawn>,
    elements: u32,
    has_more_to_come: bool,
}

struct LedJob {
    wanted: Wanted,
    epoch: u64,
    /// not drawn yet in this epoch
    need: FixedBitSet,
    /// tells the leader of elements that were taken
    taken: UnboundedSender<u32>,
}

impl Drawing {
    /// No one draws yet from this many elements.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(is_led: bool, kind: SamplerKind, seed: i64, elements: u32) -> Result<Drawing, SamplerError> {
        Ok(match is_led {
            false => Drawing::Own(Box::new(Sampling::new(kind, seed, elements)?)),
            true => Drawing::Led(Led { jobs: BTreeMap::new(), arrived: Vec::new(), elements, has_more_to_come: false }),
        })
    }

    /// A job comes. A leader that draws for it learns what it takes by `taken`.
    ///
    /// # Errors
    /// [`Sampling::join`]
    pub fn join(&mut self, id: JobId, wanted: Wanted, taken: Option<UnboundedSender<u32>>) -> Result<(), SamplerError> {
        match (self, taken) {
            (Drawing::Own(sampling), _) => sampling.join(id, wanted),
            (Drawing::Led(led), Some(taken)) => {
                let need = bits(wanted.left.as_ref().unwrap_or(&wanted.elements), led.elements);
                led.has_more_to_come = true;
                led.jobs.insert(id, LedJob { epoch: wanted.epoch, wanted, need, taken });
                Ok(())
            }
            (Drawing::Led(_), None) => Ok(()),
        }
    }

    /// A job goes. Nothing happens if it has gone.
    pub fn leave(&mut self, id: JobId) {
        match self {
            Drawing::Own(sampling) => sampling.leave(id),
            Drawing::Led(led) => {
                led.jobs.remove(&id);
                led.arrived.retain(|drawn| drawn.job != id);
            }
        }
    }

    /// Whether no one draws.
    pub fn is_empty(&self) -> bool {
        match self {
            Drawing::Own(sampling) => sampling.is_empty(),
            Drawing::Led(led) => led.jobs.is_empty(),
        }
    }

    /// A job has taken one of the elements that it had drawn.
    pub fn taken(&mut self, id: JobId) {
        match self {
            Drawing::Own(sampling) => sampling.taken(id),
            Drawing::Led(led) => {
                if let Some(job) = led.jobs.get(&id) {
                    // if no one listens the leader has gone, and the job will be told
                    let _ = job.taken.send(1);
                }
            }
        }
    }

    /// The epoch of a job, and how many elements it has still to draw in it.
    pub fn position(&self, id: JobId) -> Option<(u64, usize)> {
        match self {
            Drawing::Own(sampling) => sampling.position(id),
            Drawing::Led(led) => led.jobs.get(&id).map(|job| (job.epoch, job.need.count_ones(..))),
        }
    }

    /// How many of these jobs have still to draw an element in their epochs.
    pub fn to_come(&self, element: u32, of: impl Fn(JobId) -> bool) -> usize {
        match self {
            Drawing::Own(sampling) => sampling.to_come(element, of),
            Drawing::Led(led) => {
                led.jobs.iter().filter(|(id, job)| of(**id) && job.need.contains(element as usize)).count()
            }
        }
    }

    /// Whether more jobs have still to draw some elements than before this was last asked.
    pub fn take_more_to_come(&mut self) -> bool {
        match self {
            Drawing::Own(sampling) => sampling.take_more_to_come(),
            Drawing::Led(led) => std::mem::take(&mut led.has_more_to_come),
        }
    }

    /// Draws until no one needs a draw, or takes what has arrived. `drawn` has what was drawn, in its order.
    ///
    /// # Errors
    /// [`Sampling::decide`]
    pub fn decide(&mut self, drawn: &mut Vec<Drawn>) -> Result<(), (JobId, SamplerError)> {
        match self {
            Drawing::Own(sampling) => sampling.decide(drawn),
            Drawing::Led(led) => {
                drawn.append(&mut led.arrived);
                Ok(())
            }
        }
    }

    /// The leader has drawn these for a job: whether the job needs them. Nothing happens if it has gone.
    #[must_use]
    pub fn arrive(&mut self, id: JobId, epoch: u64, elements: &[u32]) -> bool {
        let Drawing::Led(led) = self else { return false };
        let Some(job) = led.jobs.get_mut(&id) else { return true };
        if epoch != job.epoch {
            let is_next = job.need.is_clear() && epoch == job.epoch + 1 && epoch < job.wanted.end;
            if !is_next {
                return false;
            }
            job.epoch = epoch;
            led.has_more_to_come = true;
            job.need = bits(&job.wanted.elements, led.elements);
        }
        for element in elements {
            if !job.need.contains(*element as usize) {
                return false;
            }
            job.need.remove(*element as usize);
            led.arrived.push(Drawn { job: id, epoch, element: *element });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use joader::ElementSet;

    fn led(epoch: u64, end: u64) -> (Drawing, tokio::sync::mpsc::UnboundedReceiver<u32>) {
        let mut drawing = Drawing::new(true, SamplerKind::Follow, 1, 10).unwrap();
        let (taken, heard) = tokio::sync::mpsc::unbounded_channel();
        let elements = ElementSet::from_ranges(std::iter::once(2..5)).unwrap();
        drawing.join(1, Wanted { elements, left: None, epoch, end, ahead: 4 }, Some(taken)).unwrap();
        (drawing, heard)
    }

    #[test]
    fn what_the_leader_draws_comes_once_in_its_order_and_what_is_taken_is_told() {
        let (mut drawing, mut heard) = led(3, 5);
        assert!(drawing.arrive(1, 3, &[4, 2]));
        assert_eq!((drawing.position(1), drawing.to_come(3, |_| true)), (Some((3, 1)), 1));
        assert!(drawing.arrive(1, 3, &[3]) && drawing.arrive(1, 4, &[2]));
        let mut drawn = Vec::new();
        drawing.decide(&mut drawn).unwrap();
        drawing.decide(&mut drawn).unwrap();
        let drawn: Vec<(u64, u32)> = drawn.iter().map(|drawn| (drawn.epoch, drawn.element)).collect();
        assert_eq!(drawn, [(3, 4), (3, 2), (3, 3), (4, 2)]);
        drawing.taken(1);
        assert_eq!(heard.try_recv(), Ok(1));
        drawing.leave(1);
        assert!(drawing.is_empty() && heard.try_recv() == Err(tokio::sync::mpsc::error::TryRecvError::Disconnected));
        assert!(drawing.arrive(1, 4, &[3]), "no one is there any more");
    }

    #[test]
    fn draws_that_the_job_does_not_need_are_noticed() {
        for (epoch, elements) in [(3, [5].as_slice()), (3, &[2, 2]), (4, &[2]), (2, &[2]), (3, &[10])] {
            let (mut drawing, _heard) = led(3, 9);
            assert!(!drawing.arrive(1, epoch, elements), "{elements:?} in epoch {epoch}");
        }
        let (mut drawing, _heard) = led(3, 4);
        assert!(drawing.arrive(1, 3, &[2, 3, 4]) && !drawing.arrive(1, 4, &[2]), "there is no such epoch");
    }
}
