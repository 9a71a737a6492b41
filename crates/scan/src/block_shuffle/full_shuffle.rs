//! The copy of the source that a full shuffle reads: all rows, in random order, in a temporary file.
//!
//! Each row carries its number in the source. Its key is a function of seed, epoch and that number, so that a copy is
//! sorted again for the next epoch from whatever order it has, and the source is read once.

use crate::scan_control::FullShuffleCosts;
use pg::executor::custom_scan::{Node, Slot};
use pg::tuples::sorter::{NumberedRows, SortSpace};
use pg::tuples::spool::Spool;
use pg::{check_for_interrupts, with_scans_from_the_start};
use shuffle::SortKeys;
use std::time::{Duration, Instant};

/// Makes the copies of a source, and knows what they cost.
#[derive(Default)]
pub struct FullShuffleCopies {
    rows: Option<NumberedRows>,
    /// how the last copy is sorted: not at all in a preparation pass
    keys: Option<SortKeys>,
    costs: FullShuffleCosts,
}

impl FullShuffleCopies {
    /// The copy for an epoch: the one there is if it will do, else it sorted again, else a new one of the child's rows.
    pub fn for_epoch(&mut self, node: Node, copy: Option<Spool>, keys: Option<SortKeys>) -> Spool {
        self.costs.epoch = Duration::ZERO;
        let old = match copy {
            Some(copy) if self.keys == keys => return copy,
            old => old,
        };
        let start = Instant::now();
        let rows = self.rows.get_or_insert_with(|| NumberedRows::new(node.child_row_type()));
        let copied = match (old, keys) {
            (Some(old), Some(keys)) => sort_again(rows, old, keys),
            (_, Some(keys)) => sort_child(node, rows, keys),
            (_, None) => (copy_child(node, rows), None),
        };
        let (spool, space) = copied;
        self.keys = keys;
        self.costs.bytes = spool.bytes();
        self.costs.space = space.or(self.costs.space.take());
        self.costs.epoch = start.elapsed();
        self.costs.total += self.costs.epoch;
        spool
    }

    pub fn costs(&self) -> &FullShuffleCosts {
        &self.costs
    }

    /// Takes over the costs of copies that another process has made.
    pub fn adopt_costs(&mut self, costs: FullShuffleCosts) {
        self.costs = costs;
    }

    /// Releases what it holds of PostgreSQL.
    pub fn end(&mut self) {
        if let Some(rows) = self.rows.take() {
            rows.end();
        }
    }
}

/// The child's rows, sorted.
fn sort_child(node: Node, rows: &mut NumberedRows, keys: SortKeys) -> (Spool, Option<SortSpace>) {
    let mut sort = rows.sort();
    each_child_row(node, rows, |number| keys.key(number), |row| sort.push(row));
    let mut spool = rows.spool();
    let space = sort.finish(rows, &mut spool);
    (spool, Some(space))
}

/// The child's rows as they come, to be sorted later.
fn copy_child(node: Node, rows: &mut NumberedRows) -> Spool {
    let mut spool = rows.spool();
    each_child_row(node, rows, |_| 0, |row| spool.push(row));
    spool.finish();
    rows.clear();
    spool
}

fn each_child_row(node: Node, rows: &mut NumberedRows, key: impl Fn(u64) -> i64, mut take: impl FnMut(Slot<'_>)) {
    with_scans_from_the_start(|| {
        let mut number = 0;
        while let Some(row) = node.child_row() {
            check_for_interrupts();
            take(rows.with_number(row, number, key(number)));
            number += 1;
        }
    });
}

/// The rows of a copy, sorted again. The old one is gone before the new one is written.
fn sort_again(rows: &mut NumberedRows, mut old: Spool, keys: SortKeys) -> (Spool, Option<SortSpace>) {
    let mut sort = rows.sort();
    for page in 0..old.pages() {
        for i in 0..old.load(page) {
            sort.push(rows.with_new_key(&mut old, i, |number| keys.key(number)));
        }
    }
    rows.clear();
    old.end();
    let mut spool = rows.spool();
    let space = sort.finish(rows, &mut spool);
    (spool, Some(space))
}
