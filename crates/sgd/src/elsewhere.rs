//! Trainers that learn by themselves in one process, of which another process has one, too: tuples that only one
//! process has need no one else.
//!
//! Guarantees: the steps are those of trainers that learn [together](loss::Steps), where all others have nothing to
//! say, to the bit, but for the sign of zeros in a mean.

use loss::exchange::{Combine, Exchange};
use loss::{Diverged, EpochReport};
use tuples::OutOfMemory;

use crate::Unfit;
use crate::trainer::{EndedElsewhere, Trainer};

/// An exchange with no one.
#[derive(Debug, Default)]
pub struct Alone {
    own: Vec<f32>,
}

impl Exchange for Alone {
    type Error = OutOfMemory;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<(), OutOfMemory> {
        self.own.clear();
        allocation::try_reserve(&mut self.own, numbers.len())?;
        // what others would add is 0, which is another number than -0
        self.own.extend(numbers.iter().map(|number| number + 0.0));
        combine(numbers, &[&self.own]);
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<(), OutOfMemory> {
        take(0, words);
        Ok(())
    }
}

impl Trainer {
    /// Becomes the trainer that has gone through this epoch elsewhere, and was saved when it had ended it with this
    /// report. Anyone who ends the epoch here gets the report.
    ///
    /// # Errors
    /// [`Unfit`] if it is not a trainer of this one's kind that has ended this epoch.
    pub fn end_elsewhere(
        &mut self,
        report: EpochReport,
        (outputs, sparse): (usize, bool),
        saved: &[u8],
    ) -> Result<(), Unfit> {
        let trainer = Trainer::resume_replica(self.hyper, outputs, sparse, saved)?;
        let fits = trainer.epoch == self.epoch && report.epoch == self.epoch && trainer.dim() >= self.dim();
        if !fits || (!sparse && trainer.dim() > self.dim()) {
            return Err(Unfit::Malformed);
        }
        let exempt = std::mem::take(&mut self.exempt);
        *self = trainer.exempt(&exempt).map_err(|_| Unfit::Malformed)?;
        self.ended = Some(EndedElsewhere { report: Ok(report), tuples: report.tuples });
        Ok(())
    }

    /// The trainer that goes through this epoch elsewhere has diverged.
    pub fn diverge_elsewhere(&mut self) {
        let report = Err(Diverged { epoch: self.epoch });
        // of some tuples: what has learned from none has nothing to diverge from
        self.ended = Some(EndedElsewhere { report, tuples: 1 });
    }
}
