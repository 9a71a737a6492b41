//! The choice between filling the buffers of a training in this process and in a worker beside it.
//!
//! A worker costs some milliseconds to start, and a second processor as long as it runs. With a worker, an epoch takes
//! the longer of the times for loading and learning instead of their sum. A worker pays if both are long. So the first
//! epoch is run in process and measured, unless the user has decided.

use super::load_request::{LoadRequest, LoadStart};
use crate::errors::Notice;
use crate::operators::buffers::Buffers;
use crate::operators::progress;
use crate::operators::scan_control::{CacheControl, LoaderShown, PreparationRead, ScanControl};
use crate::operators::wanted::Wanted;
use crate::options::loader::Loader;
use pg::process::parallel::{Unavailable, unavailable};
use std::time::Duration;

/// Times of an epoch that was run in process.
pub struct EpochTiming {
    pub tuples: u64,
    pub load: Duration,
    pub learn: Duration,
}

/// What EXPLAIN says without a worker.
const IN_PROCESS: &str = "in process";

/// The time that loading a tuple and learning from it must each take to make a worker worth its processor.
const WORTH_PER_TUPLE: Duration = Duration::from_nanos(100);

/// The time that a worker has to save in all.
const WORTH_IN_ALL: Duration = Duration::from_millis(50);

impl EpochTiming {
    /// Would a worker save much in so many more epochs like this?
    fn is_worth_a_worker(&self, epochs: u32) -> bool {
        let saved = self.load.min(self.learn);
        saved.as_nanos() >= WORTH_PER_TUPLE.as_nanos() * u128::from(self.tuples.max(1))
            && saved.saturating_mul(epochs) >= WORTH_IN_ALL
    }
}

/// The choice, and its result.
pub struct LoaderChoice {
    loader: Loader,
    request: LoadRequest,
    /// why there is no worker
    refused: Option<Unavailable>,
}

impl LoaderChoice {
    /// The choice before anything is read. `unfit` says why the training cannot have a worker, if it cannot.
    pub fn new(
        loader: Loader,
        unfit: Option<&'static str>,
        buffers: &mut Buffers,
        request: LoadRequest,
    ) -> LoaderChoice {
        let unfit = unfit.map(Unavailable::Borrowed);
        let refused = match loader {
            Loader::InProcess => None,
            _ => unavailable().or(unfit).or(buffers.query().hazard()),
        };
        let choice = LoaderChoice { loader, request, refused };
        let planned = match loader {
            Loader::Worker => "worker",
            Loader::Auto => "auto",
            Loader::InProcess => IN_PROCESS,
        };
        choice.show(buffers, planned);
        choice
    }

    /// Says for EXPLAIN where buffers are filled.
    fn show(&self, buffers: &mut Buffers, place: &'static str) {
        let place = if self.refused.is_some() { IN_PROCESS } else { place };
        let loader = Some(LoaderShown { place, why: self.refused.clone() });
        buffers.control(&ScanControl { loader, ..ScanControl::default() });
    }

    /// The pass before the first epoch reads these pages, here or in a worker.
    pub fn prepare_from(&mut self, pages: PreparationRead, buffers: &mut Buffers) {
        self.request.control.preparation = Some(pages);
        buffers.control(&ScanControl { preparation: Some(pages), ..ScanControl::default() });
    }

    /// Before anything is read, or after what there was to find out: starts a worker if the user wants one. `prepares`
    /// says what a pass before the first epoch is to find out; or such a pass is over, and `found` has the first epoch
    /// and the last.
    pub fn begin(&mut self, buffers: &mut Buffers, prepares: Option<Wanted>, found: Option<(u32, u32)>) {
        if self.loader != Loader::Worker {
            return;
        }
        if self.refused.is_none() {
            let start = match (found, prepares) {
                (Some((first, last)), _) => {
                    self.request.last_epoch = last.into();
                    self.request.control.epoch = Some(first.into());
                    self.request.control.pages_of_tables = buffers.report().pages_of_tables;
                    LoadStart::Resume { epoch: first.into(), decoder_state: Box::new(buffers.decoder.state()) }
                }
                (None, Some(wanted)) => LoadStart::Prepare { wanted },
                (None, None) => LoadStart::First,
            };
            self.start(buffers, start);
        }
        self.notice_refusal();
        self.show(buffers, "worker");
    }

    fn notice_refusal(&self) {
        if let Some(why) = &self.refused {
            pg::report_notice(Notice::NoLoader(why.to_string()));
        }
    }

    /// After the first epoch of this training, epoch number `epoch`, when `epochs` are left:
    /// starts a worker if that pays.
    pub fn after_first_epoch(&mut self, buffers: &mut Buffers, timing: &EpochTiming, epoch: u32, epochs: u32) {
        if let (Some(why), None) = (buffers.no_worker(), &self.refused) {
            self.refused = Some(why.clone());
            self.notice_refusal();
            self.show(buffers, IN_PROCESS);
        }
        if self.loader != Loader::Auto || self.refused.is_some() {
            return;
        }
        let report = buffers.report();
        let keeps_all = report.keeps_all();
        self.refused = match report.pages_of_tables {
            None => Some(Unavailable::Borrowed("the rows are in a spool already")),
            Some(_) if keeps_all => Some(Unavailable::Borrowed("all tuples are cached")),
            Some(_) if !timing.is_worth_a_worker(epochs) => Some(Unavailable::Borrowed("a worker would not pay")),
            Some(pages) => {
                (self.request.last_epoch, self.request.has_open_epochs) = (u64::from(epoch) + u64::from(epochs), false);
                let epoch = u64::from(epoch) + 1;
                self.request.control.epoch = Some(epoch);
                self.request.control.pages_of_tables = Some(pages);
                self.request.control.pages_per_block = report.shares.then_some(report.planned_geometry.pages_per_block);
                self.start(buffers, LoadStart::Resume { epoch, decoder_state: Box::new(buffers.decoder.state()) });
                if self.refused.is_none() {
                    buffers.control(&ScanControl { cache: Some(CacheControl::Free), ..ScanControl::default() });
                }
                self.refused.take()
            }
        };
        self.show(buffers, "worker from epoch 2");
    }

    fn start(&mut self, buffers: &mut Buffers, start: LoadStart) {
        self.request.start = start;
        self.request.progress = progress::number();
        self.request.instrument = buffers.query().instrument();
        self.refused = buffers.load_elsewhere(&self.request).err();
    }
}
