//! A training that begins with a sample of the rows, and begins again with all of them where the sample says too little.

use super::constant::ClassShares;
use super::group_order::{GroupOrder, OnlyGroup};
use super::resume::Resume;
use super::training::Training;
use super::validation::HeldOut;
use crate::errors::{Error, Notice, Result, TrainingError};
use crate::operators::decoder::{Decoder, FeatureColumns};
use crate::operators::preparation::missing_in_sample;
use crate::operators::scan_control::{CacheControl, ScanControl};
use crate::operators::wanted::Wanted;
use crate::options::request::Request;
use crate::options::rows::Prepare;
use tuples::Batch;

/// What a training starts again with, as it was before anything was read.
pub struct Fallback {
    request: Request,
    decoder: Decoder,
    /// a value that the sample did not contain, and that may take a step of any length
    pub missing: Option<String>,
    /// what is reported of the choices if the sample turns out to say enough
    pub notices: Vec<Notice>,
}

/// May a sample of the rows stand for all of them before the first epoch? Not where something is counted in that pass
/// that has to be exact, nor where others go through the rows, too.
pub fn may_sample(request: &Request, resume: Option<&Resume>, decoder: &Decoder, wanted: Wanted) -> bool {
    let is_sparse = matches!(decoder.features(), FeatureColumns::Sparse(_));
    // the first weights of a network depend on the number of features, and what is scaled has to be met
    let needs_dim = is_sparse && (wanted.scales || !request.kind.is_linear());
    request.options.prepare == Prepare::Sample
        && request.workers == 1
        && request.search.is_none()
        && !request.shares()
        && request.shuffling.sample.is_none()
        && !request.shuffling.strategy.keeps_tuples()
        && !decoder.has_weights()
        && !decoder.has_mini_batches()
        && !needs_dim
        && resume.is_none_or(|resume| resume.decoder_state.is_of_sample())
}

impl Fallback {
    /// With the request before anything was chosen, and a decoder that knows nothing of the rows.
    pub fn new(request: Request, decoder: Decoder) -> Fallback {
        Fallback { request, decoder, missing: None, notices: Vec::new() }
    }
}

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
    ///
    /// # Errors
    /// What ends a worker
    pub(super) fn start_again(&mut self, fallback: Fallback, what: String, batch: &mut Batch) -> Result<()> {
        self.buffers.stop_worker(batch)?;
        pg::report_notice(Notice::MissingInSample { what });
        *batch = Batch::dense(0);
        (self.request, self.buffers.decoder) = (fallback.request, fallback.decoder);
        self.loader.prepare_from(Prepare::Exact, &mut self.buffers);
        let (epoch, cache) = (Some(0), Some(CacheControl::Restart));
        self.buffers.control(&ScanControl { epoch, cache, ..ScanControl::default() });
        self.group_order = self.group_order.take().map(|_| GroupOrder::new(&self.request.shuffling));
        self.held_out = self.held_out.take().map(|_| HeldOut::new());
        (self.only_group, self.class_shares) = (OnlyGroup::default(), ClassShares::default());
        (self.imputed, self.skipped_of) = (None, None);
        Ok(())
    }

    /// Reports a choice, at once or when the first epoch has shown that a sample says enough.
    pub(super) fn report_choice(&mut self, notice: Notice) {
        match &mut self.fallback {
            Some(fallback) => fallback.notices.push(notice),
            None => pg::report_notice(notice),
        }
    }
}
