//! What a heap page says about its tuples, checked.
//!
//! PostgreSQL checks a page's header when it reads the page, and takes a page of zeros, as a crash or
//! zero_damaged_pages leaves it, for an empty one. It does not check line pointers. Anyone who reads tuples here
//! without PostgreSQL's functions would follow one that is damaged out of the page, and out of shared memory.

use pgrx::pg_sys;

const PAGE: usize = pg_sys::BLCKSZ as usize;

/// SizeOfPageHeaderData
const HEADER: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);

/// SizeofHeapTupleHeader
const TUPLE_HEADER: usize = std::mem::offset_of!(pg_sys::HeapTupleHeaderData, t_bits);

const ALIGNMENT: usize = pg_sys::MAXIMUM_ALIGNOF as usize;

/// A line pointer: 15 bits of offset, 2 of flags, 15 of length.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Line(pub u32);

impl Line {
    /// How many of them a page has.
    ///
    /// # Safety
    /// `page` is a page in a buffer that is pinned.
    #[inline(always)]
    pub unsafe fn count(page: *const u8) -> usize {
        // SAFETY: a page begins with its header.
        let end = usize::from(unsafe { (*page.cast::<pg_sys::PageHeaderData>()).pd_lower });
        end.min(PAGE).saturating_sub(HEADER) / size_of::<u32>()
    }

    /// The one with this number, from 1.
    ///
    /// # Safety
    /// `page` is a page in a buffer that is pinned, with at least this many line pointers ([`Line::count`]).
    #[inline(always)]
    pub unsafe fn of(page: *const u8, number: u16) -> Line {
        // SAFETY: line pointers are behind the header.
        unsafe { Line(page.add(HEADER).cast::<u32>().add(usize::from(number).wrapping_sub(1)).read()) }
    }

    /// All line pointers of a page, and whether the tuples to which they point lie within it.
    ///
    /// # Safety
    /// `page` is a page in a buffer that is pinned and locked, as long as the slice is used.
    #[inline(always)]
    pub unsafe fn all<'a>(page: *const u8) -> (&'a [Line], bool) {
        // SAFETY: line pointers are behind the header, as many as `count` says,
        // and the lock keeps them from being changed.
        let lines = unsafe { std::slice::from_raw_parts(page.add(HEADER).cast::<Line>(), Line::count(page)) };
        // a loop of its own, without branches: the compiler makes vector instructions of it
        let sound = lines.iter().fold(true, |sound, line| sound & (!line.is_normal() | line.is_within_page()));
        (lines, sound)
    }

    /// Does it point to a tuple?
    #[inline(always)]
    pub fn is_normal(self) -> bool {
        self.0 >> 15 & 3 == pg_sys::LP_NORMAL
    }

    /// Where in the page the tuple begins.
    #[inline(always)]
    pub fn offset(self) -> usize {
        (self.0 & 0x7fff) as usize
    }

    /// How many bytes it has.
    #[inline(always)]
    pub fn len(self) -> usize {
        (self.0 >> 17) as usize
    }

    /// Does the tuple lie within the page, and may its header be read?
    #[inline(always)]
    pub fn is_within_page(self) -> bool {
        let (offset, len) = (self.0 & 0x7fff, self.0 >> 17);
        // without branches, and 32 bits wide as the pointer is, since it is asked for every tuple
        (offset >= HEADER as u32)
            & offset.is_multiple_of(ALIGNMENT as u32)
            & (len >= TUPLE_HEADER as u32)
            & (offset + len <= PAGE as u32)
    }
}
