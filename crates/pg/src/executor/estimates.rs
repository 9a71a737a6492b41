//! What our nodes are expected to cost, in the planner's units.
//!
//! A pass over a table is expected to cost what a scan of it does: its pages, in sequence but for seeks from block to
//! block, and its rows. Later passes of a training mostly read tuples that are kept in memory. Measured, a row's
//! numbers take a fifth of an operator each.

use super::seeks::with_inheritors;
use crate::catalog::relation::Relation;
use pgrx::pg_sys;
use std::ptr::null_mut;

/// What the node of a function does, as far as the constants of its call say it.
pub struct Expected {
    /// the name of the table that is read; None of a query, and of what is no constant
    pub table: Option<String>,
    /// how often all rows of a table of this extent are read
    pub passes: Box<dyn Fn(Option<Extent>) -> f64>,
    /// how many models learn in a pass
    pub models: f64,
    /// rows that the function returns
    pub rows: Rows,
    /// the part of the blocks that is read
    pub sample: f64,
    /// the number of blocks of a table of this many pages, if they are not read in sequence
    pub seeks: Box<dyn Fn(u32) -> u32>,
}

/// Rows that a function returns.
#[derive(Debug, Clone, Copy)]
pub enum Rows {
    /// as many as it is declared with, at the end
    Declared,
    /// those of the table, from the first buffer on
    OfTable,
    /// this many after each pass
    OfPass(f64),
    /// this many at the end
    AtEnd(f64),
}

/// Rows and columns of a table.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// of the table
    pub rows: f64,
    /// of each row
    pub columns: f64,
}

impl Expected {
    /// Of a function of which nothing is known.
    pub fn unknown() -> Expected {
        Expected {
            table: None,
            passes: Box::new(|_| 1.0),
            models: 1.0,
            rows: Rows::Declared,
            sample: 1.0,
            seeks: Box::new(|_| 0),
        }
    }

    /// The table's size, if the call names one that the user may look up.
    pub(super) fn size(&self) -> Option<Size> {
        let relation = Relation::lookup(self.table.as_deref()?).ok()?;
        // SAFETY: in a transaction.
        unsafe { Size::of(relation.oid()) }
    }

    /// The rows that the function returns; None: as it is declared.
    pub(super) fn rows(&self, size: Option<&Size>) -> Option<f64> {
        match self.rows {
            Rows::Declared => None,
            Rows::OfTable => size.map(|size| self.sample * size.tuples),
            Rows::OfPass(rows) => Some(rows * (self.passes)(size.map(Size::extent))),
            Rows::AtEnd(rows) => Some(rows),
        }
    }

    /// Costs until the first row, and until the last.
    pub(super) fn costs(&self, size: &Size) -> (f64, f64) {
        // SAFETY: plain variables.
        let (tuple_cost, operator_cost, cached) =
            unsafe { (pg_sys::cpu_tuple_cost, pg_sys::cpu_operator_cost, f64::from(pg_sys::effective_cache_size)) };
        let numbers = size.tuples * size.columns * operator_cost / 5.0;
        let scan = size.cost_of_scan((self.seeks)(size.pages));
        if let Rows::OfTable = self.rows {
            // rows are copied into the buffer, which by default is a tenth of the table
            let total = self.sample * (scan + size.tuples * tuple_cost);
            return (total / 10.0, total);
        }
        let passes = (self.passes)(Some(size.extent()));
        let first = scan + numbers;
        let pages_again = if f64::from(size.pages) > cached { size.cost_of_pages() } else { 0.0 };
        let again = pages_again + size.tuples * tuple_cost / 2.0 + numbers;
        let learning = passes * (self.models - 1.0).max(0.0) * numbers;
        let total = self.sample * (first + (passes - 1.0).max(0.0) * again + learning);
        match self.rows {
            Rows::OfPass(_) => (total / passes.max(1.0), total),
            _ => (total, total),
        }
    }
}

/// The size of a table, with its partitions and children.
#[derive(Default)]
pub(super) struct Size {
    pub pages: u32,
    pub tuples: f64,
    columns: f64,
    /// costs of a page out of sequence, and of one in sequence
    random: f64,
    sequential: f64,
}

impl Size {
    /// That of a table, with its partitions and children; None of what has no pages.
    ///
    /// # Safety
    /// In a transaction.
    pub unsafe fn of(table: pg_sys::Oid) -> Option<Size> {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: the caller's promise. What is in the table is locked, as the planner does for the tables of a query.
        let tables = unsafe { with_inheritors(table, lock) };
        // SAFETY: the caller's promise.
        let sizes = tables.into_iter().filter_map(|table| unsafe { Size::of_one(table) });
        sizes.reduce(|sum, part| Size {
            pages: sum.pages.saturating_add(part.pages),
            tuples: sum.tuples + part.tuples,
            ..part
        })
    }

    /// That of a table alone.
    ///
    /// # Safety
    /// In a transaction.
    unsafe fn of_one(oid: pg_sys::Oid) -> Option<Size> {
        // SAFETY: the relation is locked while it is looked at.
        unsafe {
            let kind = pg_sys::get_rel_relkind(oid) as u8;
            if !matches!(kind, pg_sys::RELKIND_RELATION | pg_sys::RELKIND_MATVIEW) {
                return None;
            }
            let relation = pg_sys::try_relation_open(oid, pg_sys::AccessShareLock as pg_sys::LOCKMODE);
            if relation.is_null() {
                return None;
            }
            let mut size = Size { columns: f64::from((*(*relation).rd_att).natts), ..Size::default() };
            let mut all_visible = 0.0;
            pg_sys::estimate_rel_size(relation, null_mut(), &mut size.pages, &mut size.tuples, &mut all_visible);
            let tablespace = (*(*relation).rd_rel).reltablespace;
            pg_sys::get_tablespace_page_costs(tablespace, &mut size.random, &mut size.sequential);
            pg_sys::relation_close(relation, pg_sys::NoLock as pg_sys::LOCKMODE);
            Some(size)
        }
    }

    fn extent(&self) -> Extent {
        Extent { rows: self.tuples, columns: self.columns }
    }

    fn cost_of_pages(&self) -> f64 {
        f64::from(self.pages) * self.sequential
    }

    /// The cost of reading all rows, with this many seeks.
    pub fn cost_of_scan(&self, seeks: u32) -> f64 {
        cost_of_scan((self.pages, self.tuples), seeks, (self.random, self.sequential))
    }
}

/// The cost of reading a table of this many pages and tuples, with this many seeks; `random` and `sequential` are the
/// costs of its tablespace.
pub(super) fn cost_of_scan((pages, tuples): (u32, f64), seeks: u32, (random, sequential): (f64, f64)) -> f64 {
    // SAFETY: a plain variable.
    let tuple_cost = unsafe { pg_sys::cpu_tuple_cost };
    f64::from(pages) * sequential + f64::from(seeks) * (random - sequential).max(0.0) + tuples * tuple_cost
}
