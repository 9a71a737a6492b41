//! The choice between filling the buffers of a training in this process and in a worker next to it.
//!
//! A worker costs some milliseconds to start, and a second processor as long as it runs. With a worker, an epoch takes
//! the longer of the times for loading and learning instead of their sum. A worker pays if neither is much shorter than
//! the other. So the first epoch is run in process and measured, unless the user has decided.

use super::load_request::{LoadRequest, LoadStart};
use crate::buffers::Buffers;
use crate::progress;
use crate::scan_control::{CacheControl, LoaderShown, ScanControl};
use decode::wanted::Wanted;
use options::loader::Loader;
use options::rows::Prepare;
use pg::process::parallel::{Unavailable, unavailable};
use std::time::Duration;

/// Times of an epoch that was run in process.
pub struct EpochTiming {
    pub tuples: u64,
    pub load: Duration,
    pub learn: Duration,
}

/// What EXPLAIN says without a worker.
const IN_PROCESS: &str = "off";

/// The part of the time left that a worker has to save to be worth its processor.
const WORTH: f64 = 0.1;

/// Seconds until a worker begins to load.
const START: f64 = 0.01;

/// Seconds that a byte of a tuple costs on either side: it goes from the cache of one processor to that of another,
/// where a buffer of one process stays in its own. Rows of 8 kB, for instance, took 0.7 us to learn from, and 2.2 where
/// another process had just written them.
const HANDOVER_PER_BYTE: f64 = 0.15e-9;

impl EpochTiming {
    /// Would a worker save enough in `epochs` more epochs like this, each of `buffers` buffers with `bytes` bytes of
    /// tuples in all?
    fn is_worth_a_worker(&self, epochs: u32, buffers: u32, bytes: f64) -> bool {
        let (load, learn, epochs) = (self.load.as_secs_f64(), self.learn.as_secs_f64(), f64::from(epochs));
        let alone = (load + learn) * epochs;
        // the first buffer is waited for
        let start = START + load / f64::from(buffers.max(1));
        let with_worker = start + (load.max(learn) + HANDOVER_PER_BYTE * bytes) * epochs;
        alone - with_worker >= WORTH * alone
    }
}

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
            Loader::Worker => "on",
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
    pub fn prepare_from(&mut self, pages: Prepare, buffers: &mut Buffers) {
        self.request.rows.control.preparation = Some(pages);
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
                    self.request.rows.control.epoch = Some(first.into());
                    self.request.rows.control.pages_of_tables = buffers.report().pages_of_tables;
                    LoadStart::Resume { epoch: first.into() }
                }
                (None, Some(wanted)) => LoadStart::Prepare { wanted },
                (None, None) => LoadStart::First,
            };
            self.start(buffers, start);
        }
        self.notice_refusal();
        self.show(buffers, "on");
    }

    fn notice_refusal(&self) {
        if let Some(why) = &self.refused {
            pg::notice(format!("buffers are not prefetched: {why}"), None);
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
        let (keeps_all, buffers_per_epoch) = (report.keeps_all(), report.planned_geometry.buffers());
        let bytes = report.buffers.bytes as f64 / report.buffers.tuples.max(1) as f64 * timing.tuples as f64;
        self.refused = match report.pages_of_tables {
            None => Some(Unavailable::Borrowed("the rows are in a spool already")),
            Some(_) if keeps_all => Some(Unavailable::Borrowed("all tuples are cached")),
            Some(_) if !timing.is_worth_a_worker(epochs, buffers_per_epoch, bytes) => {
                Some(Unavailable::Borrowed("a worker would not be faster"))
            }
            Some(pages) => {
                (self.request.last_epoch, self.request.has_open_epochs) = (u64::from(epoch) + u64::from(epochs), false);
                let epoch = u64::from(epoch) + 1;
                self.request.rows.control.epoch = Some(epoch);
                self.request.rows.control.pages_of_tables = Some(pages);
                self.request.rows.control.pages_per_block =
                    report.shares.then_some(report.planned_geometry.pages_per_block);
                self.start(buffers, LoadStart::Resume { epoch });
                if self.refused.is_none() {
                    buffers.control(&ScanControl { cache: Some(CacheControl::Free), ..ScanControl::default() });
                }
                self.refused.take()
            }
        };
        self.show(buffers, "from epoch 2");
    }

    fn start(&mut self, buffers: &mut Buffers, start: LoadStart) {
        let rows = &mut self.request.rows;
        let knows_rows = matches!(start, LoadStart::Resume { .. });
        rows.decoder_state = knows_rows.then(|| Box::new(buffers.decoder.state()));
        (rows.progress, rows.instrument) = (progress::number(), buffers.query().instrument());
        self.request.start = start;
        self.refused = buffers.load_elsewhere(&self.request).err();
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pgrx::prelude::*;

    /// Seconds of loading and learning of ten million tuples.
    fn timing(load: f64, learn: f64) -> EpochTiming {
        let (load, learn) = (Duration::from_secs_f64(load), Duration::from_secs_f64(learn));
        EpochTiming { tuples: 10_000_000, load, learn }
    }

    #[pg_test]
    fn test_a_worker_has_to_save_a_tenth_of_the_epochs_left() {
        for (load, learn, epochs, buffers, is_worth) in [
            (0.5, 0.5, 9, 100, true),
            (0.5, 0.5, 1, 100, true),
            (0.5, 0.5, 0, 100, false),
            // handing over costs 0.15 s
            (0.5, 0.22, 9, 100, false),
            (0.5, 0.24, 9, 100, true),
            (0.22, 0.5, 9, 100, false),
            (0.24, 0.5, 9, 100, true),
            // a single epoch of a single buffer has nothing to load meanwhile
            (0.5, 0.5, 1, 1, false),
            (0.5, 0.5, 9, 1, true),
        ] {
            let found = timing(load, learn).is_worth_a_worker(epochs, buffers, 1e9);
            assert_eq!(found, is_worth, "{load} + {learn}, {epochs} epochs of {buffers} buffers");
        }
    }

    #[pg_test]
    fn test_a_worker_is_not_started_for_what_is_over_before_it_runs() {
        let timing = EpochTiming { tuples: 10_000, load: Duration::from_millis(1), learn: Duration::from_millis(1) };
        assert!(!timing.is_worth_a_worker(10, 10, 1e6));
        assert!(timing.is_worth_a_worker(100, 10, 1e6));
    }
}
