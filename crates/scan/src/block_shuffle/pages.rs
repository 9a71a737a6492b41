//! Where the pages come from: the heap, several heaps, or a spool of another plan's rows.

use super::partitioned_pages::{PartitionedPages, TableNode};
use errors::{Result, RowAt};
use pg::executor::custom_scan::Node;
use pg::tuples::heap::PageScan;
use pg::tuples::row::Layout;
use pg::tuples::spool::Spool;
use pg::{check_for_interrupts, with_scans_from_the_start};
use std::ops::Range;

/// Pages with rows, to be visited in any order.
pub enum Pages<T> {
    Heap(PageScan),
    PartitionedPages(PartitionedPages<T>),
    Spool(Spool),
}

impl<T: TableNode> Pages<T> {
    /// The pages of the node's table, those of the tables of `leaves`, or those of its child's rows,
    /// which are all read now.
    pub fn open(node: Node, leaves: Option<&[T]>) -> Result<Pages<T>> {
        if let Some(relation) = node.relation() {
            return Ok(Pages::Heap(PageScan::begin(relation, node.snapshot())));
        }
        if let Some(leaves) = leaves {
            return Ok(Pages::PartitionedPages(PartitionedPages::open(leaves, node)?));
        }
        let mut spool = Spool::new(node.child_row_type());
        with_scans_from_the_start(|| {
            while let Some(row) = node.child_row() {
                check_for_interrupts();
                spool.push(row);
            }
        });
        spool.finish();
        Ok(Pages::Spool(spool))
    }

    pub fn of_tables(&self) -> Vec<u32> {
        match self {
            Pages::PartitionedPages(tables) => tables.pages(),
            pages => vec![pages.count()],
        }
    }

    pub fn count(&self) -> u32 {
        match self {
            Pages::Heap(scan) => scan.pages(),
            Pages::PartitionedPages(tables) => tables.count(),
            Pages::Spool(spool) => spool.pages(),
        }
    }

    /// Loads a page, the one before being done with, and returns how many rows it has.
    /// `next` is the one that comes next.
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        match self {
            Pages::Heap(scan) => scan.load(page, next),
            Pages::PartitionedPages(tables) => tables.load(page, next),
            Pages::Spool(spool) => spool.load(page),
        }
    }

    /// How many pages ahead it pays to ask for.
    pub fn io_concurrency(&self) -> u32 {
        match self {
            Pages::Heap(scan) => scan.io_concurrency(),
            Pages::PartitionedPages(tables) => tables.io_concurrency(),
            Pages::Spool(_) => 0,
        }
    }

    /// Asks for pages that will be loaded soon.
    pub fn prefetch(&mut self, pages: Range<u32>) {
        match self {
            Pages::Heap(scan) => scan.prefetch(pages),
            Pages::PartitionedPages(tables) => tables.prefetch(pages),
            Pages::Spool(_) => {}
        }
    }

    /// Puts row `i` of the loaded page into the node's scan slot. False if a table's filter has left it out.
    pub fn give(&mut self, i: usize, node: Node) -> bool {
        match self {
            Pages::Heap(scan) => scan.store(i, node.scan_slot()),
            Pages::Spool(spool) => spool.store(i, node.scan_slot()),
            Pages::PartitionedPages(tables) => {
                return node.run_child(|| {
                    let given = tables.give(i, node);
                    (given, usize::from(given))
                });
            }
        }
        true
    }

    /// Where row `i` of the loaded page stands.
    pub fn at(&self, i: usize) -> RowAt {
        match self {
            Pages::Heap(scan) => scan.at(i),
            Pages::PartitionedPages(tables) => tables.at(i),
            Pages::Spool(spool) => spool.at(i),
        }
    }

    /// A layout for `columns` of the rows, None if they cannot be decoded raw, or each table has one of its own.
    pub fn layout(&self, node: Node, columns: &[usize]) -> Option<Layout> {
        match self {
            Pages::Heap(_) => node.relation()?.layout(columns),
            Pages::PartitionedPages(_) => None,
            Pages::Spool(spool) => spool.layout(columns),
        }
    }

    /// The spool, if the pages are those of one.
    pub fn into_spool(self) -> Option<Spool> {
        match self {
            Pages::Spool(spool) => Some(spool),
            Pages::Heap(_) | Pages::PartitionedPages(_) => None,
        }
    }

    pub fn end(self) {
        match self {
            Pages::Heap(scan) => scan.end(),
            Pages::PartitionedPages(tables) => tables.end(),
            Pages::Spool(spool) => spool.end(),
        }
    }
}
