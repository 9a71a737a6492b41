//! The tables of a partitioned or inherited table, or the arms of a UNION ALL, as if their pages were those of one table.
//!
//! Each table has a BlockShuffle node of its own below an Append, which the planner has made: it knows where this table has
//! the wanted columns, and what of the filter is left to be tried on its rows. These nodes are not run: whoever stands on the
//! Append takes their tables' pages in an order of its own, in which blocks of all tables are mixed.

use super::BlockShuffle;
use super::exec::HeapPage;
use crate::errors::{Result, RowAt, SourceError};
use crate::operators::Decoder;
use crate::pg::executor::custom_scan::{Node, Scan};
use crate::pg::tuples::heap::PageScan;
use crate::pg::tuples::row::Layout;
use crate::pg::tuples::toast::Toast;
use std::ops::Range;
use tuples::Batch;

/// One of the tables.
struct Part {
    leaf: Scan<BlockShuffle>,
    scan: PageScan,
    /// None if its rows have to go through a slot
    layout: Option<Layout>,
    /// its pages, by their numbers among those of all tables
    pages: Range<u32>,
}

/// All of them.
pub struct PartitionedPages {
    parts: Vec<Part>,
    /// the table of the loaded page
    current: usize,
}

impl PartitionedPages {
    /// The tables of nodes that are started, in their sequence.
    ///
    /// # Errors
    /// [`SourceError::TooManyPages`]
    pub fn open(leaves: &[Scan<BlockShuffle>], node: Node) -> Result<PartitionedPages> {
        let relations: Vec<_> = leaves.iter().filter_map(|leaf| leaf.with(|_, leaf| leaf.relation())).collect();
        let scans = PageScan::begin_all(&relations, node.snapshot());
        let mut parts = Vec::with_capacity(leaves.len());
        for ((leaf, scan), relation) in leaves.iter().zip(scans).zip(&relations) {
            let columns = leaf.with(|leaf, _| leaf.decodes_raw.clone());
            let layout = columns.and_then(|columns| relation.layout(&columns));
            parts.push(Part { leaf: *leaf, pages: 0..scan.pages(), scan, layout });
        }
        let mut parts = PartitionedPages { parts, current: 0 };
        let pages = parts.pages();
        parts.number(&pages)?;
        Ok(parts)
    }

    /// Lets the tables have so many pages each, those that there were when another process began.
    ///
    /// # Errors
    /// [`SourceError::SourceChanged`] if there are more tables or fewer, [`SourceError::TooManyPages`].
    pub fn agree(&mut self, pages: &[u32]) -> Result<()> {
        if pages.len() != self.parts.len() {
            return Err(SourceError::SourceChanged.into());
        }
        self.number(pages)
    }

    fn number(&mut self, pages: &[u32]) -> Result<()> {
        let mut next = 0u32;
        for (part, pages) in self.parts.iter_mut().zip(pages) {
            let end = next.checked_add(*pages).ok_or(SourceError::TooManyPages)?;
            part.pages = next..end;
            next = end;
        }
        Ok(())
    }

    /// Pages of each table.
    pub fn pages(&self) -> Vec<u32> {
        self.parts.iter().map(|part| part.pages.len() as u32).collect()
    }

    /// Pages of all tables.
    pub fn count(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.pages.end)
    }

    /// Can the rows of all tables be decoded raw?
    pub fn are_raw(&self) -> bool {
        self.parts.iter().all(|part| part.layout.is_some())
    }

    /// See [`Pages::load`](super::pages::Pages::load).
    pub fn load(&mut self, page: u32, next: Option<u32>) -> usize {
        if !self.parts[self.current].pages.contains(&page) {
            self.leave();
            self.current = self.table_of(page);
        }
        let Part { scan, pages, .. } = &mut self.parts[self.current];
        let of_table = |page: &u32| pages.contains(page);
        let next = next.filter(of_table).map(|next| next - pages.start);
        scan.load(page - pages.start, next)
    }

    /// The table that has this page.
    fn table_of(&self, page: u32) -> usize {
        self.parts.partition_point(|part| part.pages.end <= page)
    }

    /// Lets go of the loaded page: as many pages as there are tables would be pinned otherwise.
    fn leave(&mut self) {
        let part = &mut self.parts[self.current];
        part.leaf.with(|_, leaf| leaf.scan_slot().clear());
        part.scan.leave();
    }

    /// See [`Pages::io_concurrency`](super::pages::Pages::io_concurrency).
    pub fn io_concurrency(&self) -> u32 {
        self.parts.iter().map(|part| part.scan.io_concurrency()).max().unwrap_or_default()
    }

    /// See [`Pages::prefetch`](super::pages::Pages::prefetch).
    pub fn prefetch(&mut self, pages: Range<u32>) {
        let first = self.table_of(pages.start);
        for Part { scan, pages: own, .. } in &mut self.parts[first..] {
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
    ///
    /// # Errors
    /// What is wrong with the rows.
    pub fn decode(&mut self, rows: usize, toast: &mut Toast, decoder: &mut Decoder, batch: &mut Batch) -> Result<()> {
        let Part { leaf, scan, layout, .. } = &mut self.parts[self.current];
        leaf.run(|_, leaf| {
            let before = batch.len();
            let result = match layout {
                Some(layout) => {
                    let page = &mut HeapPage { scan, layout, toast, rows, names_table: true };
                    leaf.in_tuple_memory(|| decoder.decode_page(batch, page))
                }
                None => (0..rows).try_for_each(|i| {
                    scan.store(i, leaf.scan_slot());
                    if !leaf.passes_qual() {
                        return Ok(());
                    }
                    let at = scan.at_in_table(i);
                    leaf.in_tuple_memory(|| decoder.decode_row(batch, leaf.project().row(), at))
                }),
            };
            (result, batch.len() - before)
        })
    }

    /// Where row `i` of the loaded page stands.
    pub fn at(&self, i: usize) -> RowAt {
        self.parts[self.current].scan.at_in_table(i)
    }

    /// Puts row `i` of the loaded page into the scan slot of `node`, if it passes its table's filter.
    pub fn give(&mut self, i: usize, node: Node) -> bool {
        let Part { leaf, scan, .. } = &mut self.parts[self.current];
        leaf.run(|_, leaf| {
            scan.store(i, leaf.scan_slot());
            let passes = leaf.passes_qual();
            if passes {
                node.store_row(leaf.project());
            }
            (passes, usize::from(passes))
        })
    }

    pub fn end(self) {
        self.parts.into_iter().for_each(|part| part.scan.end());
    }
}
