//! How a training begins again with all rows, after a sample of them has said too little.

use super::fallback::Fallback;
use super::training::{SeenRows, Training};
use super::validation::OwnParts;
use errors::{Error, Result, TrainingError};
use options::rows::Prepare;
use scan::preparation::missing_in_sample;
use scan::scan_control::{CacheControl, ScanControl};
use tuples::Batch;

impl Training {
    /// What the sample did not contain, if the training has failed for that.
    pub(super) fn missing_for(&mut self, fallback: &mut Fallback, error: &Error) -> Option<String> {
        let diverged = matches!(error, Error::Training(TrainingError::Diverged { .. }));
        let of_rate = || {
            (diverged && self.request.has_chosen_rate())
                .then(|| "rows by which the learning rate would not let it diverge".to_owned())
        };
        let missing = fallback.missing.take().or_else(|| self.buffers.take_missing());
        missing.or_else(of_rate).or_else(|| missing_in_sample(error))
    }

    /// Begins again with a pass over all rows, because a sample of them did not contain `what`.
    pub(super) fn start_again(&mut self, fallback: Fallback, what: String, batch: &mut Batch) -> Result<()> {
        self.buffers.stop_worker(batch)?;
        pg::notice(
            format!(
                "the sample of the rows before the first epoch did not contain {what}: the training begins again with all rows"
            ),
            "Use statistics => 'exact' to read all rows before the first epoch.",
        );
        *batch = Batch::dense(0);
        (self.request, self.buffers.decoder) = (fallback.request, fallback.decoder);
        self.loader.prepare_from(Prepare::Exact, &mut self.buffers);
        let (epoch, cache) = (Some(0), Some(CacheControl::Restart));
        self.buffers.control(&ScanControl { epoch, cache, ..ScanControl::default() });
        self.parts = self.parts.take().map(|_| OwnParts::of_one(&self.request.shuffling));
        self.seen = SeenRows::default();
        Ok(())
    }

    /// Reports a choice, at once or when the first epoch has shown that a sample says enough.
    pub(super) fn report_choice(&mut self, message: String, hint: Option<&'static str>) {
        match &mut self.others.fallback {
            Some(fallback) => fallback.notices.push((message, hint)),
            None => pg::notice(message, hint),
        }
    }
}
