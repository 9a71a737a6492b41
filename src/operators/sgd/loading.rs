//! Where the buffers of a training are filled: in this process, or in a worker beside it.
//!
//! A worker costs some milliseconds to start, and a second processor as long as it runs. It pays if loading and learning
//! both take long, of which they take the longer time instead of the sum. So the first epoch is run in process and
//! measured, unless the user has decided.

use super::request::Request;
use crate::errors::Notice;
use crate::operators::Buffers;
use crate::operators::loader::{LoadRequest, Task};
use crate::operators::tuple_shuffle::TupleShuffle;
use crate::options::Loader;
use crate::pg;
use crate::pg::process::parallel::{Unavailable, unavailable};
use crate::pg::process::progress;
use shuffle::Strategy;
use std::time::Duration;

/// What an epoch took in process.
pub struct EpochTiming {
    pub tuples: u64,
    pub load: Duration,
    pub learn: Duration,
}

/// What EXPLAIN says without a worker.
const IN_PROCESS: &str = "in process";

/// What one tuple has to take to be loaded, and what to be learned from, to make a worker worth its processor.
const WORTH_PER_TUPLE: Duration = Duration::from_nanos(100);

/// What a worker has to save in all.
const WORTH_IN_ALL: Duration = Duration::from_millis(50);

impl EpochTiming {
    /// Would a worker save much in so many more epochs like this?
    fn is_worth_a_worker(&self, epochs: u32) -> bool {
        let saved = self.load.min(self.learn);
        saved.as_nanos() >= WORTH_PER_TUPLE.as_nanos() * u128::from(self.tuples.max(1))
            && saved.saturating_mul(epochs) >= WORTH_IN_ALL
    }
}

/// The choice, and what has become of it.
pub struct Loading {
    loader: Loader,
    job: LoadRequest,
    /// why there is no worker
    refused: Option<Unavailable>,
}

impl Loading {
    /// What is known before anything is read.
    pub fn new(request: &Request, buffers: &Buffers, job: LoadRequest) -> Loading {
        let loader = request.loader;
        let unfit = match request.shuffling.strategy {
            _ if request.workers > 1 => Some("each of several processes loads its own"),
            _ if !request.parts.is_empty() => Some("the rows fall into groups or a validation part"),
            _ if buffers.decoder.has_mini_batches() => Some("the rows are compressed"),
            Strategy::SlidingWindow | Strategy::Mrs => Some("the strategy keeps tuples in the buffer"),
            _ => None,
        };
        let unfit = unfit.map(Unavailable::Borrowed);
        let refused = match loader {
            Loader::InProcess => None,
            _ => unavailable().or(unfit).or(buffers.query().hazard()),
        };
        let loading = Loading { loader, job, refused };
        let planned = match loader {
            Loader::Worker => "worker",
            Loader::Auto => "auto",
            Loader::InProcess => IN_PROCESS,
        };
        loading.show(buffers, planned);
        loading
    }

    /// Says for EXPLAIN where buffers are filled.
    fn show(&self, buffers: &Buffers, place: &'static str) {
        let place = if self.refused.is_some() { IN_PROCESS } else { place };
        buffers.query().top::<TupleShuffle>().with(|scan, _| scan.set_loader(place, self.refused.clone()));
    }

    /// Before anything is read: starts a worker if the user wants one. `resume`: so many epochs were trained before.
    pub fn begin(&mut self, buffers: &mut Buffers, prepares: bool, resume: Option<u32>, standardize: bool) {
        if self.loader != Loader::Worker {
            return;
        }
        if self.refused.is_none() {
            let task = match resume {
                Some(epochs) => {
                    Task::FromStart { epoch: u64::from(epochs) + 1, found: Some(Box::new(buffers.decoder.found())) }
                }
                None if prepares => Task::Prepare { standardize },
                None => Task::FromStart { epoch: 1, found: None },
            };
            self.start(buffers, task);
        }
        if let Some(why) = &self.refused {
            pg::tell(Notice::NoLoader(why.to_string()));
        }
        self.show(buffers, "worker");
    }

    /// After the first epoch of this training, epoch number `epoch`, when `epochs` are left: starts a worker if that pays.
    pub fn after_first_epoch(&mut self, buffers: &mut Buffers, took: &EpochTiming, epoch: u32, epochs: u32) {
        if let (Some(why), None) = (buffers.unable(), &self.refused) {
            pg::tell(Notice::NoLoader(why.to_string()));
            self.refused = Some(why.clone());
            self.show(buffers, IN_PROCESS);
        }
        if self.loader != Loader::Auto || self.refused.is_some() {
            return;
        }
        let top = buffers.query().top::<TupleShuffle>();
        let pages = top.with(|scan, node| scan.pages_of_tables(node));
        self.refused = match pages {
            None => Some(Unavailable::Borrowed("the rows are in a spool already")),
            Some(_) if top.with(|scan, node| scan.keeps_all(node)) => {
                Some(Unavailable::Borrowed("all tuples are cached"))
            }
            Some(_) if !took.is_worth_a_worker(epochs) => Some(Unavailable::Borrowed("a worker would not pay")),
            Some(pages) => {
                let found = Some(Box::new(buffers.decoder.found()));
                self.start(buffers, Task::Resume { epoch: u64::from(epoch) + 1, pages, found });
                if self.refused.is_none() {
                    top.with(|scan, node| scan.forget(node));
                }
                self.refused.take()
            }
        };
        self.show(buffers, "worker from epoch 2");
    }

    fn start(&mut self, buffers: &mut Buffers, task: Task) {
        self.job.task = task;
        self.job.progress = progress::number();
        self.job.instrument = buffers.query().instrument();
        self.refused = buffers.load_elsewhere(&self.job).err();
    }
}
