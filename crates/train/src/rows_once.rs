//! A node that does its work when its first row is wanted, and gives a row for each thing that came of it. The rows are
//! kept: a rescan gives them again, and never does the work twice.

use errors::{OrRaise, Result};
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use pg::executor::explain::Explain;
use pg::values::output::OutputValue;

/// What such a node does.
pub trait Work: Sized + 'static {
    /// The node's callbacks.
    fn methods() -> &'static Methods;

    /// Plans and starts the read of the source.
    fn open(node: Node, flags: Flags) -> Result<Self>;

    /// The columns of row number `position`, from 0, if there are that many. The first call does the work.
    fn row(&mut self, position: usize) -> Result<Option<impl AsRef<[OutputValue]>>>;

    /// Ends the read of the source.
    fn close(self);

    fn show(&self, explain: Explain);
}

/// State of the node.
pub struct RowsOnce<W> {
    /// None in the copies of the plan that EvalPlanQual makes and never runs
    work: Option<W>,
    position: usize,
}

impl<W: Work> CustomScan for RowsOnce<W> {
    fn methods() -> &'static Methods {
        W::methods()
    }

    fn begin(node: Node, eflags: Flags) -> RowsOnce<W> {
        let open = || W::open(node, eflags).or_raise();
        RowsOnce { work: (!node.in_eval_plan_qual()).then(open), position: 0 }
    }

    fn next(&mut self, node: Node) -> bool {
        let Some(work) = &mut self.work else { return false };
        let Some(row) = work.row(self.position).or_raise() else { return false };
        self.position += 1;
        node.store_values(row.as_ref());
        true
    }

    fn rescan(&mut self, _node: Node) {
        self.position = 0;
    }

    fn end(&mut self, _node: Node) {
        if let Some(work) = self.work.take() {
            work.close();
        }
    }

    fn explain(&mut self, _node: Node, explain: Explain) {
        if let Some(work) = &self.work {
            work.show(explain);
        }
    }
}
