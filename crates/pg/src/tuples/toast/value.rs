//! A value out of line, and the chunks in which it is stored.

use pgrx::pg_sys;

/// A value out of line.
pub struct Value {
    /// which of the wanted columns it is in
    pub column: usize,
    pub table: u32,
    pub id: u32,
    /// bytes that are stored
    pub size: usize,
    pub is_compressed: bool,
    /// chunks in which they are
    pub chunks: usize,
    /// of these, this many are in the index as they should be, and this many were copied
    pub found: usize,
    pub copied: usize,
    /// is there a chunk that should not be?
    pub is_strange: bool,
    /// offset of its varlena in `bytes`
    pub at: usize,
}

/// A piece of a value.
#[derive(Clone, Copy)]
pub struct Chunk {
    /// where it is in the TOAST table: page, line pointer
    pub place: (u32, u16),
    /// offset of its tuple in the page, once it was seen, and its bytes; both 0 if the snapshot does not see it
    pub offset: u16,
    pub len: u16,
    /// whose it is, and which: its number within the value
    pub value: usize,
    pub number: usize,
}

/// Values with more bytes are left to detoast_attr().
const MAX_BYTES: usize = 1 << 20;

/// Bytes of a value in one row of a TOAST table (TOAST_MAX_CHUNK_SIZE): four rows fill a page.
pub const CHUNK: usize = {
    let header = (size_of::<pg_sys::HeapTupleHeaderData>() - 1).next_multiple_of(8);
    let page =
        pg_sys::BLCKSZ as usize - (std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp) + 4 * 4).next_multiple_of(8);
    page / 4 / 8 * 8 - header - 4 - 4 - 4
};

impl Value {
    /// The value to which a pointer in a tuple points.
    ///
    /// # Safety
    /// Such a pointer is there: the first byte says so, and the second that the value is on disk.
    pub unsafe fn at(column: usize, pointer: *const u8) -> Value {
        // SAFETY: the caller's promise: behind its header and its tag, a pointer of this kind is a varatt_external,
        // at any address.
        let pointer = unsafe { pointer.add(2).cast::<pg_sys::varatt_external>().read_unaligned() };
        let size = (pointer.va_extinfo & 0x3fff_ffff) as usize;
        Value {
            column,
            table: pointer.va_toastrelid.to_u32(),
            id: pointer.va_valueid.to_u32(),
            size,
            is_compressed: size + pg_sys::VARHDRSZ < pointer.va_rawsize as usize,
            chunks: size.div_ceil(CHUNK),
            found: 0,
            copied: 0,
            is_strange: false,
            at: 0,
        }
    }

    /// Is it to be fetched here?
    pub fn is_worthwhile(&self) -> bool {
        (1..=MAX_BYTES).contains(&self.size)
    }

    /// Bytes that it takes once it is fetched.
    pub fn space(&self) -> usize {
        if self.is_worthwhile() { (self.size + pg_sys::VARHDRSZ).next_multiple_of(8) } else { 0 }
    }

    /// Has all of it been fetched?
    pub fn is_whole(&self) -> bool {
        self.chunks > 0 && self.copied == self.chunks && !self.is_strange
    }
}
