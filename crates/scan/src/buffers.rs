//! The tuples of a running query, buffer by buffer, filled here or by a worker.

use super::loader::{Leader, LoadRequest, Received};
use super::scan_control::{BlockCounters, ScanControl, ScanReport};
use super::tuple_shuffle::TupleShuffle;
use decode::Decoder;
use errors::{Error, Result, TrainingError};
use pg::check_for_interrupts;
use pg::executor::custom_scan::Scan;
use pg::executor::query::Running;
use pg::process::parallel::{NO_SHARED_MEMORY, Unavailable};
use tuples::{Batch, TupleSource};

/// The tuples of a source, buffer by buffer, epoch by epoch.
pub struct Buffers {
    query: Running,
    pub decoder: Decoder,
    /// of a worker that fills the buffers, if there is one
    leader: Option<Leader>,
    /// why there is no worker although one was started
    no_worker: Option<Unavailable>,
    /// what a sample of the rows did not contain, if that has ended the worker
    missing: Option<String>,
}

impl Buffers {
    pub fn new(query: Running, decoder: Decoder) -> Buffers {
        Buffers { query, decoder, leader: None, no_worker: None, missing: None }
    }

    pub fn query(&self) -> &Running {
        &self.query
    }

    /// Starts the query to be run, if it was started only to be shown.
    pub fn start_to_run(&mut self) {
        self.query.start_to_run();
    }

    /// Controls how the nodes read on.
    pub fn control(&mut self, control: &ScanControl) {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.control(node, control));
    }

    /// Findings and measurements of the nodes, here or of the worker.
    pub fn report(&self) -> ScanReport {
        let report = self.leader.as_ref().and_then(Leader::report);
        report.cloned().unwrap_or_else(|| self.query.top::<TupleShuffle>().with(|scan, node| scan.report(node)))
    }

    /// Adds what a process has measured that has read a part of the blocks.
    pub fn count(&mut self, counters: &BlockCounters) {
        self.query.top::<TupleShuffle>().with(|scan, node| scan.count(node, counters));
    }

    /// Looks at the first tuples of the epoch that is about to begin, until it is known how long they are and, of two
    /// classes, what both are. The epoch then begins again. `batch` has the last of these tuples.
    pub fn peek(&mut self, batch: &mut Batch) -> Result<()> {
        let Buffers { query, decoder, .. } = self;
        let top: Scan<TupleShuffle> = query.top();
        query.run(|| {
            let epoch = top.with(|scan, node| scan.report(node).epoch);
            let (mut any, mut more) = (false, true);
            while more && (!any || decoder.labels().lack_class()) {
                check_for_interrupts();
                batch.clear();
                more = match top.with(|scan, node| scan.peek(node, decoder, batch)) {
                    Ok(more) => more,
                    Err(error) => return (Err(error), 0),
                };
                any |= !batch.is_empty();
            }
            top.with(|scan, node| scan.control(node, &ScanControl::epoch(epoch)));
            // these rows come once more, and are counted then
            decoder.begin_epoch();
            (if any { Ok(()) } else { Err(TrainingError::NoRows("train on").into()) }, 0)
        })
    }

    /// Has a worker fill the buffers from now on.
    pub fn load_elsewhere(&mut self, request: &LoadRequest) -> std::result::Result<(), Unavailable> {
        self.leader = Some(Leader::launch(request, &self.query)?);
        Ok(())
    }

    /// Ends the worker, if there is one, after all epochs. `batch` has no buffer any more. The worker's measurements
    /// are added to those of the nodes here.
    pub fn end_worker(&mut self, batch: &mut Batch) -> Result<()> {
        match self.leader.take() {
            Some(leader) => leader.finish(&self.query, batch, true),
            None => Ok(()),
        }
    }

    /// As [`end_worker`](Buffers::end_worker), before all epochs are over.
    pub fn stop_worker(&mut self, batch: &mut Batch) -> Result<()> {
        match self.leader.take() {
            Some(leader) => {
                let order = leader.report().map(|report| report.blocks.order);
                leader.finish(&self.query, batch, false)?;
                // in which order the rows came that were learned from
                order.into_iter().for_each(|order| self.count(&BlockCounters { order, ..BlockCounters::default() }));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Why the worker has not filled a single buffer, if so.
    pub fn no_worker(&self) -> Option<&Unavailable> {
        self.no_worker.as_ref()
    }

    /// Waits until the worker has gone through all rows before the first epoch. False if there is no worker to do it.
    pub fn prepare_elsewhere(&mut self) -> Result<bool> {
        match &mut self.leader {
            Some(leader) => match leader.prepare(&mut self.decoder)? {
                Some(what) => self.end_for_missing(what),
                None => Ok(true),
            },
            None => Ok(false),
        }
    }

    /// What a sample of the rows did not contain, if that has ended the worker.
    pub fn take_missing(&mut self) -> Option<String> {
        self.missing.take()
    }

    /// The worker has ended because of something that a sample of the rows did not contain.
    fn end_for_missing(&mut self, what: String) -> Result<bool> {
        self.missing = Some(what);
        Err(TrainingError::WorkerLost.into())
    }

    /// Begins an epoch here that the worker could not begin.
    fn load_here(&mut self, batch: &mut Batch, why: &str) -> Result<()> {
        let Some(leader) = self.leader.take() else { return Ok(()) };
        let epoch = leader.epoch();
        leader.finish(&self.query, batch, false)?;
        self.no_worker = Some(format!("{NO_SHARED_MEMORY}: {why}").into());
        self.decoder.begin_epoch();
        self.control(&ScanControl::epoch(epoch));
        *batch = Batch::dense(0);
        Ok(())
    }

    /// Ends the query.
    pub fn finish(self) {
        self.into_decoder();
    }

    /// Ends the query, and keeps the decoder with what it knows of the rows.
    pub fn into_decoder(self) -> Decoder {
        self.query.finish();
        self.decoder
    }
}

impl TupleSource for Buffers {
    type Error = Error;

    fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        if let Some(leader) = &mut self.leader {
            match leader.next(&mut self.decoder, batch)? {
                Received::Filled => return Ok(true),
                Received::EndOfEpoch => return Ok(false),
                Received::MissingInSample(what) => return self.end_for_missing(what),
                Received::NoSharedMemory(why) => self.load_here(batch, &why)?,
            }
        }
        let Buffers { query, decoder, .. } = self;
        let top: Scan<TupleShuffle> = query.top();
        query.run(|| {
            let result = top.run(|scan, node| {
                let result = scan.next_batch(node, decoder, batch);
                (result, batch.order().len())
            });
            (result, batch.order().len())
        })
    }

    fn next_epoch(&mut self) -> Result<()> {
        self.decoder.begin_epoch();
        match &mut self.leader {
            Some(leader) => leader.next_epoch(),
            None => self.query.rescan(),
        }
        Ok(())
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use crate::testing::{epoch, open};
    use pg::testing::{allocated, run, with_snapshot};
    use pgrx::prelude::*;
    use shuffle::Strategy;
    use tuples::TupleSource;

    #[pg_test]
    fn test_every_epoch_sees_the_rows_of_its_snapshot() {
        run("CREATE TABLE seen AS SELECT i % 2 AS label, ARRAY[i] AS x FROM generate_series(1, 3000) i");
        for (source, strategy) in [
            ("seen", Strategy::CorgiPile),
            ("seen", Strategy::NoShuffle),
            ("SELECT * FROM seen ORDER BY x", Strategy::CorgiPile),
        ] {
            with_snapshot(|snapshot| {
                let mut buffers = open(source, &["x"], strategy, snapshot);
                let first = epoch(&mut buffers);
                assert_eq!(first.len(), 3000, "{source}");
                run("INSERT INTO seen SELECT i % 2, ARRAY[i] FROM generate_series(3001, 4000) i");
                run("UPDATE seen SET label = 1 - label WHERE x[1] <= 500");
                run("DELETE FROM seen WHERE x[1] BETWEEN 501 AND 1000");
                for _ in 0..2 {
                    buffers.next_epoch().unwrap();
                    assert!(epoch(&mut buffers) == first, "{source}: an epoch saw other rows");
                }
                buffers.finish();
            });
            run("TRUNCATE seen");
            run("INSERT INTO seen SELECT i % 2, ARRAY[i] FROM generate_series(1, 3000) i");
        }
    }

    #[pg_test]
    fn test_rows_leave_no_memory_behind_while_the_query_runs() {
        // Each row that is left out for a NULL in its array is looked at in a detoasted copy.
        run("CREATE TABLE left_out AS SELECT i % 2 AS label, CASE WHEN i % 3 > 0 THEN ARRAY[i, NULL] ELSE ARRAY[i, 1] END AS x
               FROM generate_series(1, 30000) i");
        with_snapshot(|snapshot| {
            for source in
                ["left_out", "SELECT * FROM left_out WHERE length(x::text) >= 0", "SELECT * FROM left_out ORDER BY x"]
            {
                let mut buffers = open(source, &["x"], Strategy::CorgiPile, snapshot);
                assert_eq!(epoch(&mut buffers).len(), 10_000, "{source}");
                let before = allocated();
                for _ in 0..3 {
                    buffers.next_epoch().unwrap();
                    epoch(&mut buffers);
                }
                let kept = allocated().saturating_sub(before);
                assert!(kept < 1 << 20, "{source}: {kept} bytes kept");
                buffers.finish();
            }
        });
    }
}
