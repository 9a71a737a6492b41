//! CorgiPileShuffle: gives the rows of a table in shuffled order, where corgipile_shuffle() stood in FROM.
//!
//! The node runs a query of its own, TupleShuffle over BlockShuffle. A rescan gives the same order again.

use super::scan_control::ScanControl;
use super::source::Source;
use super::tuple_shuffle::TupleShuffle;
use errors::{ArgumentError, OrRaise, PgError, Result, raise};
use options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::catalog::relation::Relation;
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node, Scan};
use pg::executor::explain::Explain;
use pg::executor::query::Running;
use pg::require_utf8;
use pg::snapshot::Snapshot;
use pgrx::pg_sys;
use std::ffi::c_int;

/// The arguments of corgipile_shuffle(), in order; None is NULL.
pub struct ShuffleArguments {
    pub row_type: pg_sys::Oid,
    pub seed: Option<i64>,
    pub block_size: Option<String>,
    pub buffer_size: Option<String>,
    pub strategy: Option<String>,
    pub epoch: Option<i32>,
    pub sample: Option<f64>,
    pub share: Option<bool>,
}

impl ShuffleArguments {
    pub fn of_call(arguments: &Arguments) -> ShuffleArguments {
        ShuffleArguments {
            row_type: arguments.type_of(0),
            seed: arguments.get(1),
            block_size: arguments.get(2),
            buffer_size: arguments.get(3),
            strategy: arguments.get(4),
            epoch: arguments.get(5),
            sample: arguments.get(6),
            share: arguments.get(7),
        }
    }
}

/// The rows of a table in shuffled order.
pub struct Shuffled {
    query: Running,
    columns: Vec<Option<usize>>,
    epoch: u64,
}

impl Shuffled {
    /// Plans and starts the read of the table behind a row type.
    pub fn open(
        arguments: ShuffleArguments,
        snapshot: Snapshot<'_>,
        instrument: c_int,
        flags: Flags,
    ) -> Result<Shuffled> {
        require_utf8()?;
        let epoch = arguments.epoch.unwrap_or(1);
        if epoch < 1 {
            let reason = format!("{epoch} is not at least 1");
            return Err(ArgumentError::InvalidArgument { argument: "epoch", reason, hint: None }.into());
        }
        let (block_size, buffer_size) = (arguments.block_size, arguments.buffer_size);
        let mut shuffling = Shuffling::parse(arguments.strategy, arguments.seed, block_size, buffer_size)?;
        shuffling.first_epoch = epoch as u64;
        let shuffling = shuffling.with_sample(arguments.sample)?.with_share(arguments.share)?;
        let Some(relation) = Relation::of_row_type(arguments.row_type)? else {
            return Err(PgError::NotARowType.into());
        };
        if !flags.explain_only() {
            shuffling.tell_of_cut_blocks();
        }
        let planned = Source::plan_relation(&relation, &shuffling)?;
        let columns = relation.live_columns();
        Ok(Shuffled { query: Running::start(planned, snapshot, instrument, flags), columns, epoch: epoch as u64 })
    }

    /// The columns of the row type, by their place in the rows.
    pub fn columns(&self) -> &[Option<usize>] {
        &self.columns
    }

    pub fn query(&self) -> &Running {
        &self.query
    }

    /// Starts the same epoch again.
    pub fn rescan(&self) {
        self.query.rescan();
        self.query.top::<TupleShuffle>().with(|scan, node| scan.control(node, &ScanControl::epoch(self.epoch)));
    }

    /// Ends the read.
    pub fn finish(self) {
        self.query.finish();
    }
}

/// State of the node.
pub struct ShuffleScan {
    /// None in the copies of the plan that EvalPlanQual makes and never runs
    rows: Option<Shuffled>,
    /// the node that has the rows, if they are this node's own without any change
    buffer: Option<Scan<TupleShuffle>>,
    at_end: bool,
}

/// Gives the next tuple of the buffer, which is filled as soon as all were given. False at the end of the epoch.
fn give(node: Node, query: &Running, buffer: &Scan<TupleShuffle>) -> bool {
    let fill = || {
        let tuples = buffer.run(|scan, inner| {
            let tuples = scan.fill_slots(inner);
            (tuples, tuples)
        });
        (tuples, tuples)
    };
    let give = || buffer.with(|scan, _| scan.give(node.scan_slot()));
    give() || (query.run(fill) > 0 && give())
}

static METHODS: Methods = Methods::new::<ShuffleScan>(c"CorgiPileShuffle");

impl CustomScan for ShuffleScan {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> ShuffleScan {
        let open = || {
            let arguments = ShuffleArguments::of_call(&Arguments::of_node(node));
            let rows = Shuffled::open(arguments, node.snapshot(), node.instrument(), eflags).or_raise();
            if rows.columns.len() != node.scan_columns() {
                raise(&PgError::SourceChanged);
            }
            rows
        };
        let rows = (!node.in_eval_plan_qual()).then(open);
        let is_same = |rows: &&Shuffled| {
            let in_place = rows.columns.iter().enumerate().all(|(i, column)| *column == Some(i));
            in_place && node.scans_rows_of(&rows.query)
        };
        let buffer = rows.as_ref().filter(is_same).map(|rows| rows.query.top());
        if buffer.is_some() {
            node.use_minimal_slot();
        }
        ShuffleScan { rows, buffer, at_end: false }
    }

    fn next(&mut self, node: Node) -> bool {
        let Some(Shuffled { query, columns, .. }) = self.rows.as_ref().filter(|_| !self.at_end) else { return false };
        let any = match &self.buffer {
            Some(buffer) => give(node, query, buffer),
            None => query.row().map(|row| node.store_columns(row, columns)).is_some(),
        };
        self.at_end = !any;
        any
    }

    fn rescan(&mut self, _node: Node) {
        self.at_end = false;
        if let Some(rows) = &self.rows {
            rows.rescan();
        }
    }

    fn end(&mut self, node: Node) {
        if let Some(rows) = self.rows.take() {
            node.scan_slot().clear(); // the row is the query's
            rows.finish();
        }
    }

    fn explain(&mut self, _node: Node, explain: Explain) {
        if let Some(rows) = &self.rows {
            explain.inner_query(&rows.query);
        }
    }
}
