//! Where the pages come from: the heap, or a spool of another plan's rows.

use crate::error::RowAt;

use crate::pg::custom_scan::{Node, Slot};
use crate::pg::heap::PageScan;
use crate::pg::row::Layout;
use crate::pg::spool::Spool;
use crate::pg::{check_for_interrupts, with_scans_from_the_start};
use std::ops::Range;

/// Pages with rows, to be visited in any order.
pub enum Pages {
    Heap(PageScan),
    Spool(Spool),
}

impl Pages {
    /// The pages of the node's table, or those of its child's rows, which are all read now.
    pub fn open(node: Node) -> Pages {
        if let Some(relation) = node.relation() {
            return Pages::Heap(PageScan::begin(relation, node.snapshot()));
        }
        let mut spool = Spool::new(node.child_descriptor());
        with_scans_from_the_start(|| {
            while let Some(row) = node.child_row() {
                check_for_interrupts();
                spool.push(row);
            }
        });
        spool.finish();
        Pages::Spool(spool)
    }

    pub fn count(&self) -> u32 {
        match self {
            Pages::Heap(scan) => scan.pages(),
            Pages::Spool(spool) => spool.pages(),
        }
    }

    /// Loads a page, the one before being done with, and returns how many rows it has. `next` is the one that comes next.
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        match self {
            Pages::Heap(scan) => scan.load(page, next),
            Pages::Spool(spool) => spool.load(page),
        }
    }

    /// How many pages ahead it pays to ask for.
    pub fn io_concurrency(&self) -> u32 {
        match self {
            Pages::Heap(scan) => scan.io_concurrency(),
            Pages::Spool(_) => 0,
        }
    }

    /// Asks for pages that will be loaded soon.
    pub fn prefetch(&mut self, pages: Range<u32>) {
        if let Pages::Heap(scan) = self {
            scan.prefetch(pages);
        }
    }

    /// Where row `i` of the loaded page stands.
    pub fn at(&self, i: usize) -> RowAt {
        match self {
            Pages::Heap(scan) => scan.at(i),
            Pages::Spool(spool) => spool.at(i),
        }
    }

    /// Puts row `i` of the loaded page into the node's scan slot.
    pub fn store(&mut self, i: usize, slot: Slot) {
        match self {
            Pages::Heap(scan) => scan.store(i, slot),
            Pages::Spool(spool) => spool.store(i, slot),
        }
    }

    /// A layout for `columns` of the rows, None if they cannot be decoded raw.
    pub fn layout(&self, node: Node, columns: &[usize]) -> Option<Layout> {
        match self {
            Pages::Heap(_) => node.relation()?.layout(columns),
            Pages::Spool(spool) => spool.layout(columns),
        }
    }

    pub fn end(self) {
        match self {
            Pages::Heap(scan) => scan.end(),
            Pages::Spool(spool) => spool.end(),
        }
    }
}
