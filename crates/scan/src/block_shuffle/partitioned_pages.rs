//! The tables of a partitioned or inherited table, or the arms of a UNION ALL,
//! as if their pages were those of one table.
//!
//! Each table has a BlockShuffle node of its own below an Append, which the planner has made: it knows where this table
//! has the wanted columns, and what of the filter is left to be tried on its rows. These nodes are not run: anyone who
//! stands on the Append takes their tables' pages in an order of its own, in which blocks of all tables are mixed.

use super::page_rows::HeapPage;
use decode::Decoder;
use errors::{PgError, Result, RowAt, SourceError};
use pg::executor::custom_scan::Node;
use pg::tuples::heap::{HeapRelation, HeapRows, PageScan};
use pg::tuples::row::Layout;
use pg::tuples::toast::Toast;
use std::ops::Range;
use tuples::Batch;

pub trait TableNode: Clone {
    fn relation(&self) -> Option<HeapRelation<'_>>;
    /// The attributes that are wanted, if rows can be decoded raw.
    fn raw_columns(&self) -> Option<Vec<usize>>;
    /// Does the node's work; the rows that it gives are counted for EXPLAIN ANALYZE.
    fn run<R>(&self, work: impl FnOnce(Node) -> (R, usize)) -> R;
    /// Empties the node's scan slot.
    fn clear_slot(&self);
}

struct TablePages<T> {
    node: T,
    scan: PageScan,
    /// None if its rows have to go through a slot
    layout: Option<Layout>,
    /// its pages, by their numbers among those of all tables
    pages: Range<u32>,
}

pub struct PartitionedPages<T> {
    tables: Vec<TablePages<T>>,
    /// the table of the loaded page
    current: usize,
}

impl<T: TableNode> PartitionedPages<T> {
    /// The tables of nodes that are started, in their sequence.
    pub fn open(nodes: &[T], node: Node) -> Result<PartitionedPages<T>> {
        let relations: Vec<_> = nodes.iter().filter_map(TableNode::relation).collect();
        let scans = PageScan::begin_all(&relations, node.snapshot());
        let mut tables = Vec::with_capacity(nodes.len());
        for ((node, scan), relation) in nodes.iter().zip(scans).zip(&relations) {
            let layout = node.raw_columns().and_then(|columns| relation.layout(&columns));
            tables.push(TablePages { node: node.clone(), pages: 0..scan.pages(), scan, layout });
        }
        let mut all = PartitionedPages { tables, current: 0 };
        let pages = all.pages();
        all.number(&pages)?;
        Ok(all)
    }

    /// Lets the tables have this many pages each, those that there were when another process began.
    pub fn agree(&mut self, pages: &[u32]) -> Result<()> {
        if pages.len() != self.tables.len() {
            return Err(PgError::SourceChanged.into());
        }
        self.number(pages)
    }

    fn number(&mut self, pages: &[u32]) -> Result<()> {
        let mut next = 0u32;
        for (table, pages) in self.tables.iter_mut().zip(pages) {
            let end = next.checked_add(*pages).ok_or(SourceError::TooManyPages)?;
            table.pages = next..end;
            next = end;
        }
        Ok(())
    }

    pub fn pages(&self) -> Vec<u32> {
        self.tables.iter().map(|table| table.pages.len() as u32).collect()
    }

    /// Pages of all tables.
    pub fn count(&self) -> u32 {
        self.tables.last().map_or(0, |table| table.pages.end)
    }

    /// Can the rows of all tables be decoded raw?
    pub fn are_raw(&self) -> bool {
        self.tables.iter().all(|table| table.layout.is_some())
    }

    /// See [`Pages::load`](super::pages::Pages::load).
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        if !self.tables[self.current].pages.contains(&page) {
            self.leave();
            self.current = self.table_of(page);
        }
        let TablePages { scan, pages, .. } = &mut self.tables[self.current];
        let of_table = |page: &u32| pages.contains(page);
        let next = next.filter(of_table).map(|next| next - pages.start);
        scan.load(page - pages.start, next)
    }

    fn table_of(&self, page: u32) -> usize {
        self.tables.partition_point(|table| table.pages.end <= page)
    }

    /// Unpins the loaded page: as many pages as there are tables would be pinned otherwise.
    fn leave(&mut self) {
        let table = &mut self.tables[self.current];
        table.node.clear_slot();
        table.scan.unpin();
    }

    /// See [`Pages::io_concurrency`](super::pages::Pages::io_concurrency).
    pub fn io_concurrency(&self) -> u32 {
        self.tables.iter().map(|table| table.scan.io_concurrency()).max().unwrap_or_default()
    }

    /// See [`Pages::prefetch`](super::pages::Pages::prefetch).
    pub fn prefetch(&mut self, pages: Range<u32>) {
        let first = self.table_of(pages.start);
        for TablePages { scan, pages: own, .. } in &mut self.tables[first..] {
            let wanted = pages.start.max(own.start)..pages.end.min(own.end);
            if wanted.start >= pages.end {
                break;
            }
            if !wanted.is_empty() && scan.io_concurrency() > 0 {
                scan.prefetch(wanted.start - own.start..wanted.end - own.start);
            }
        }
    }

    /// Decodes the `rows` rows of the loaded page into `batch`.
    pub fn decode(&mut self, rows: usize, toast: &mut Toast, decoder: &mut Decoder, batch: &mut Batch) -> Result<()> {
        let TablePages { node, scan, layout, .. } = &mut self.tables[self.current];
        node.run(|leaf| {
            let before = batch.len();
            let result = match layout {
                Some(layout) => {
                    let page = &mut HeapPage { rows: HeapRows::new(scan, layout, toast), names_table: true };
                    leaf.in_tuple_memory(|| decoder.decode_page(batch, page))
                }
                None => (0..rows).try_for_each(|i| {
                    scan.store(i, leaf.scan_slot());
                    if !leaf.passes_qual() {
                        return Ok(());
                    }
                    let at = scan.at_in_table(i);
                    leaf.in_tuple_memory(|| leaf.project().with_row(|row| decoder.decode_row(batch, row, at)))
                }),
            };
            (result, batch.len() - before)
        })
    }

    /// Where row `i` of the loaded page stands.
    pub fn at(&self, i: usize) -> RowAt {
        self.tables[self.current].scan.at_in_table(i)
    }

    /// Puts row `i` of the loaded page into the scan slot of `node`, if it passes its table's filter.
    pub fn give(&mut self, i: usize, node: Node) -> bool {
        let TablePages { node: table, scan, .. } = &mut self.tables[self.current];
        table.run(|leaf| {
            scan.store(i, leaf.scan_slot());
            let passes = leaf.passes_qual();
            if passes {
                node.store_row(leaf.project());
            }
            (passes, usize::from(passes))
        })
    }

    pub fn end(self) {
        self.tables.into_iter().for_each(|table| table.scan.end());
    }
}
