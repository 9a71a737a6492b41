//! What is in the chunks: each page of a TOAST table is visited once, and what it has of any value is copied.

use super::guardless::{HeapTupleSatisfiesVisibility, LockBuffer, ReadBufferExtended, ReleaseBuffer};
use super::value::{CHUNK, Chunk, Value};
use crate::tuples::page::Line;
use crate::tuples::prefetch::{PAGE_LINES, fetch_line};
use crate::values::varlena::header;
use pgrx::pg_sys;

/// Copies chunks, in ascending order of their places, to where their values are in `bytes`.
///
/// # Safety
/// The relation is the chunks' TOAST table, the snapshot one for it; `bytes` has room for the values. To be called
/// where an ERROR may jump over the frame: nothing here owns anything.
pub(super) unsafe fn copy_chunks(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    ring: pg_sys::BufferAccessStrategy,
    chunks: &mut [Chunk],
    values: &mut [Value],
    bytes: *mut u8,
) {
    let (fork, mode) = (pg_sys::ForkNumber::MAIN_FORKNUM, pg_sys::ReadBufferMode::RBM_NORMAL);
    // SAFETY: while the page is locked no one moves its line pointers; as long as it is pinned, tuples that the
    // snapshot sees stay where they are, and never change.
    unsafe {
        let read = |chunk: &Chunk| ReadBufferExtended(relation, fork, chunk.place.0, mode, ring);
        let Some(first) = chunks.first() else { return };
        let mut buffer = read(first);
        let mut rest = chunks;
        while !rest.is_empty() {
            let page = rest[0].place.0;
            let here = rest.iter().take_while(|chunk| chunk.place.0 == page).count();
            let (chunks, behind) = rest.split_at_mut(here);
            let start: *mut u8 = pg_sys::BufferGetPage(buffer).cast();
            LockBuffer(buffer, pg_sys::BUFFER_LOCK_SHARE as i32);
            for chunk in chunks.iter_mut() {
                (chunk.offset, chunk.len) =
                    visible_offset(relation, snapshot, buffer, start, chunk.place).unwrap_or_default();
            }
            LockBuffer(buffer, pg_sys::BUFFER_LOCK_UNLOCK as i32);
            let next = behind.first().map(read);
            let ahead = next.map_or(start, |next| pg_sys::BufferGetPage(next).cast());
            for (i, chunk) in chunks.iter().enumerate() {
                prefetch_share(ahead, i, here);
                if chunk.offset != 0 {
                    copy_chunk(start.add(chunk.offset.into()), chunk, &mut values[chunk.value], bytes);
                }
            }
            ReleaseBuffer(buffer);
            let Some(next) = next else { return };
            buffer = next;
            rest = behind;
        }
    }
}

/// Offset and bytes of the tuple in this place of a locked page, if there is one that the snapshot sees.
///
/// # Safety
/// The page is in the buffer, which is pinned and locked; the relation is its own, and the snapshot a TOAST snapshot.
unsafe fn visible_offset(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    buffer: pg_sys::Buffer,
    page: *mut u8,
    (block, number): (u32, u16),
) -> Option<(u16, u16)> {
    // SAFETY: the line pointer is one of the page's, and the tuple's header is read only if it is within the page.
    unsafe {
        if number == 0 || usize::from(number) > Line::count(page) {
            return None;
        }
        let line = Line::of(page, number);
        if !line.is_normal() || !line.is_within_page() {
            return None;
        }
        let seen = Some((line.offset() as u16, line.len() as u16));
        let header: pg_sys::HeapTupleHeader = page.add(line.offset()).cast();
        // To a TOAST snapshot that is enough; as for the rest, PostgreSQL knows.
        if u32::from((*header).t_infomask) & pg_sys::HEAP_XMIN_COMMITTED != 0 {
            return seen;
        }
        let mut tuple = pg_sys::HeapTupleData {
            t_len: line.len() as u32,
            t_tableOid: (*relation).rd_id,
            t_data: header,
            ..Default::default()
        };
        pgrx::itemptr::item_pointer_set_all(&mut tuple.t_self, block, number);
        if HeapTupleSatisfiesVisibility(&mut tuple, snapshot, buffer) { seen } else { None }
    }
}

/// Copies the chunk in this tuple, if it is what it should be.
///
/// # Safety
/// The tuple is as long as the chunk says, and `bytes` has room for the value.
#[inline(always)]
unsafe fn copy_chunk(tuple: *const u8, chunk: &Chunk, value: &mut Value, bytes: *mut u8) {
    // SAFETY: the caller's promise. A tuple of a TOAST table without NULLs is a value's id, the chunk's number, and a
    // varlena: one that is so long that these can be read, and the varlena as long as it says, lies within the page.
    // Its value has room for a chunk of the length that is compared.
    unsafe {
        let tuple_header = &*tuple.cast::<pg_sys::HeapTupleHeaderData>();
        let plain = u32::from(tuple_header.t_infomask2) & pg_sys::HEAP_NATTS_MASK == 3
            && u32::from(tuple_header.t_infomask) & pg_sys::HEAP_HASNULL == 0;
        let data_len = usize::from(chunk.len).saturating_sub(tuple_header.t_hoff.into());
        if data_len < 8 + 4 {
            return;
        }
        let data = tuple.add(tuple_header.t_hoff.into());
        let whose = data.cast::<(u32, u32)>().read_unaligned();
        if !plain || whose != (value.id, chunk.number as u32) {
            return;
        }
        let varlena = data.add(8);
        let (start_of_bytes, size) = match *varlena {
            first if header::is_plain(first) => {
                (header::WORD, header::word_len(varlena.cast::<u32>().read_unaligned()))
            }
            first if header::is_short(first) => (1, header::short_len(first)),
            _ => return,
        };
        let from = chunk.number * CHUNK;
        let len = CHUNK.min(value.size - from);
        if size != start_of_bytes + len || size > data_len - 8 {
            return;
        }
        let payload = varlena.add(start_of_bytes);
        let start = bytes.add(value.at);
        if chunk.number == 0 {
            let word = header::word(value.size + pg_sys::VARHDRSZ, value.is_compressed);
            start.cast::<u32>().write_unaligned(word);
        }
        std::ptr::copy_nonoverlapping(payload, start.add(pg_sys::VARHDRSZ + from), len);
        value.copied += 1;
    }
}

/// Brings share `i` of `shares` of a page closer to the processor.
#[inline(always)]
fn prefetch_share(page: *const u8, i: usize, shares: usize) {
    for line in PAGE_LINES * i / shares..PAGE_LINES * (i + 1) / shares {
        fetch_line(page, line);
    }
}
