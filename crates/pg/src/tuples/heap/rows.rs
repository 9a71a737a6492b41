//! The visible tuples of the page that was loaded last.

use super::scan::PageScan;
use crate::tuples::fixed_layout::{Destination, Run, Uniform};
use crate::tuples::place::RowAt;
use crate::tuples::row::{Layout, Row};
use crate::tuples::toast::Toast;

/// The visible tuples of a page, decoded as far as a layout wants. No other page is loaded as long as they are read.
pub struct HeapRows<'a> {
    scan: &'a mut PageScan,
    layout: &'a mut Layout,
    toast: &'a mut Toast,
    rows: usize,
}

impl<'a> HeapRows<'a> {
    /// The rows of the page that `scan` has loaded last, as far as `layout` wants them,
    /// with what they have in TOAST tables.
    ///
    /// # Panics
    /// If the layout is one for another relation.
    pub fn new(scan: &'a mut PageScan, layout: &'a mut Layout, toast: &'a mut Toast) -> HeapRows<'a> {
        assert!(layout.descriptor() == scan.descriptor(), "a layout for this relation");
        toast.forget();
        let rows = scan.rows();
        HeapRows { scan, layout, toast, rows }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline]
    pub fn row(&mut self, i: usize) -> Row<'_> {
        assert!(i < self.rows);
        let scan = &*self.scan;
        // SAFETY: the tuples are visible ones of the page that is pinned, which keeps them in place as long as self is
        // borrowed; they are of the layout's row type, as new() has seen, and `i` is one of them.
        unsafe { self.toast.row(i, self.rows, |i| scan.tuple(i).cast_mut().cast(), self.layout) }
    }

    /// Where rows have label and features if these are an array of `len` numbers of the same length,
    /// see [`Layout::uniform`].
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.layout
    }

    /// Copies rows before `end`, from the last to the first, as far as they are as `uniform` says.
    ///
    /// # Panics
    /// If `uniform` is for another relation, or there are fewer rows.
    #[inline]
    pub fn copy_run(&self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run {
        assert!(end <= self.rows && uniform.descriptor == self.layout.descriptor());
        let tuple = |i| {
            self.scan.prefetch_next(i);
            // SAFETY: `i` is below `end`, and so one of the page's visible tuples.
            unsafe { self.scan.tuple(i) }
        };
        // SAFETY: up to `end` these are tuples of the page that is pinned,
        // of the row type for which `uniform` was made.
        unsafe { uniform.copy(end, tuple, to) }
    }

    /// Row `i` is being read: brings a share of the next page closer to the processor.
    #[inline]
    pub fn prefetch_next(&self, i: usize) {
        self.scan.prefetch_next(i);
    }

    /// Where row `i` stands; with the table if `names_table`.
    #[inline]
    pub fn at(&self, i: usize, names_table: bool) -> RowAt {
        if names_table { self.scan.at_in_table(i) } else { self.scan.at(i) }
    }
}
