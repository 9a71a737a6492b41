//! Values out of line (TOAST), fetched for many rows at once.
//!
//! detoast_attr() opens the TOAST table, searches its index and visits its pages for one value; the values of rows on one
//! page mostly lie side by side. Here the index is read once for all of them, each page of the TOAST table is visited once,
//! in ascending order, and what it has of any of them is copied. Memory is bounded: what a page refers to is fetched in
//! groups of rows.
//!
//! Rows are seen as detoast_attr() sees them, under a TOAST snapshot. A value that is in any way not as it should be (a
//! chunk is missing, or has another size), or so large that nothing is gained, is left where it is: whoever reads it
//! calls detoast_attr(), with its errors.

use super::page::Line;
use super::row::{Layout, Row};
use pgrx::pg_sys;
use pgrx::pg_sys::ffi::pg_guard_ffi_boundary;
use std::cell::Cell;
use std::ops::Range;

thread_local! {
    static DETOASTED: Cell<u64> = const { Cell::new(0) };
}

/// Values that were fetched from out of line or decompressed, since the process began.
pub fn detoasted() -> u64 {
    DETOASTED.with(Cell::get)
}

/// Counts such values.
pub(in crate::pg) fn count(values: u64) {
    DETOASTED.with(|count| count.set(count.get() + values));
}

/// Fetches the values of a scan's wanted columns. What was fetched stays until the next group of rows.
pub struct Toast {
    /// a ring of buffers for TOAST tables that are large, as for a scan of them
    ring: pg_sys::BufferAccessStrategy,
    /// the page's values out of line, row by row
    values: Vec<Value>,
    /// index of each row's first, and how many there are
    starts: Vec<usize>,
    /// where each group of rows ends; empty if the page has not been looked at
    groups: Vec<usize>,
    /// the rows whose values are here
    fetched: Range<usize>,
    /// those values, one after the other, as varlenas
    bytes: Vec<u64>,
    /// for use within a call: the values to be fetched by table and id, and their chunks
    sorted: Vec<usize>,
    /// values that others, the second of each pair, are as well
    aliases: Vec<(usize, usize)>,
    chunks: Vec<Chunk>,
    /// did the last pages asked for in advance have to come from disk?
    cold: bool,
    asked: u32,
}

/// A value out of line.
struct Value {
    /// which of the wanted columns it is in
    column: usize,
    table: u32,
    id: u32,
    /// bytes that are stored
    size: usize,
    is_compressed: bool,
    /// chunks in which they are
    chunks: usize,
    /// of these, so many are in the index as they should be, and so many were copied
    found: usize,
    copied: usize,
    /// is there a chunk that should not be?
    is_strange: bool,
    /// offset of its varlena in `bytes`
    at: usize,
}

/// A piece of a value.
#[derive(Clone, Copy)]
struct Chunk {
    /// where it is in the TOAST table: page, line pointer
    place: (u32, u16),
    /// offset of its tuple in the page, once it was seen, and its bytes; both 0 if the snapshot does not see it
    offset: u16,
    len: u16,
    /// whose it is, and which: its number within the value
    value: usize,
    number: usize,
}

/// Bytes that are fetched at once, unless one row has more: they should stay in the processor's cache until they are read.
const GROUP_BYTES: usize = 256 << 10;

/// Values with more bytes are left to detoast_attr().
const MAX_BYTES: usize = 1 << 20;

/// Bytes of a value in one row of a TOAST table (TOAST_MAX_CHUNK_SIZE): four rows fill a page.
const CHUNK: usize = {
    let header = (size_of::<pg_sys::HeapTupleHeaderData>() - 1).next_multiple_of(8);
    let page =
        pg_sys::BLCKSZ as usize - (std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp) + 4 * 4).next_multiple_of(8);
    page / 4 / 8 * 8 - header - 4 - 4 - 4
};

/// Index entries of other values that are read past rather than searching the index again.
const MAX_FOREIGN: u32 = 16;

impl Toast {
    /// Called while the query's own memory is the current one.
    pub fn new() -> Toast {
        Toast {
            // SAFETY: allocates in the current memory context.
            ring: unsafe { pg_sys::GetAccessStrategy(pg_sys::BufferAccessStrategyType::BAS_BULKREAD) },
            values: Vec::new(),
            starts: Vec::new(),
            groups: Vec::new(),
            fetched: 0..0,
            bytes: Vec::new(),
            sorted: Vec::new(),
            aliases: Vec::new(),
            chunks: Vec::new(),
            cold: true,
            asked: 0,
        }
    }

    /// Another page was loaded.
    pub fn forget(&mut self) {
        self.groups.clear();
        self.fetched = 0..0;
    }

    /// Row `i` of the `rows` rows of a page, whose tuples `tuple` gives, with its values out of line.
    ///
    /// # Safety
    /// The tuples are of the layout's row type, and stay where they are. The datums are valid until the next call.
    #[inline]
    pub(in crate::pg) unsafe fn row<'a>(
        &mut self,
        i: usize,
        rows: usize,
        tuple: impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &'a mut Layout,
    ) -> Row<'a> {
        // SAFETY: the caller's promise.
        unsafe {
            layout.read(tuple(i));
            if layout.out_of_line().next().is_some() {
                self.complete(i, rows, tuple, layout);
            }
            layout.row()
        }
    }

    /// Fetches the values of row `i`, unless they are there, and puts them into the row that `layout` has read.
    unsafe fn complete(
        &mut self,
        i: usize,
        rows: usize,
        tuple: impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &mut Layout,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.fetched.contains(&i) {
                if self.groups.is_empty() {
                    self.look_at_page(rows, &tuple, layout);
                }
                let group = self.groups.partition_point(|end| *end <= i);
                let start = group.checked_sub(1).map_or(0, |before| self.groups[before]);
                self.fetched = 0..0;
                self.fetch(self.starts[start]..self.starts[self.groups[group]]);
                self.fetched = start..self.groups[group];
                layout.read(tuple(i));
            }
        }
        let bytes = self.bytes.as_ptr().cast::<u8>();
        for value in &self.values[self.starts[i]..self.starts[i + 1]] {
            if value.is_whole() {
                layout.replace(value.column, bytes.wrapping_add(value.at).into());
            }
        }
    }

    /// Finds the values that the page's rows have out of line, and divides the rows into groups.
    unsafe fn look_at_page(
        &mut self,
        rows: usize,
        tuple: &impl Fn(usize) -> pg_sys::HeapTupleHeader,
        layout: &mut Layout,
    ) {
        self.values.clear();
        self.starts.clear();
        let mut bytes = 0;
        for row in 0..rows {
            self.starts.push(self.values.len());
            // SAFETY: the caller's promise; the layout finds pointers of this kind.
            unsafe {
                layout.read(tuple(row));
                self.values.extend(layout.out_of_line().map(|(column, pointer)| Value::at(column, pointer)));
            }
            bytes += self.values[self.starts[row]..].iter().map(Value::space).sum::<usize>();
            if bytes > GROUP_BYTES {
                // the row itself begins the next group, unless it is alone
                bytes = self.values[self.starts[row]..].iter().map(Value::space).sum();
                if row > self.groups.last().copied().unwrap_or(0) {
                    self.groups.push(row);
                }
            }
        }
        self.starts.push(self.values.len());
        self.groups.push(rows);
    }

    /// Fetches these values.
    fn fetch(&mut self, range: Range<usize>) {
        crate::pg::check_for_interrupts();
        // each page would have to be asked whether it is too young for the snapshot
        if crate::pg::compat::snapshots_expire() {
            return;
        }
        let mut end = 0;
        self.sorted.clear();
        for (i, value) in self.values.iter_mut().enumerate().take(range.end).skip(range.start) {
            if value.is_worthwhile() {
                (value.found, value.copied, value.is_strange, value.at) = (0, 0, false, end);
                end += value.space();
                self.sorted.push(i);
            }
        }
        count(self.sorted.len() as u64);
        self.bytes.resize(self.bytes.len().max(end / 8), 0);
        let values = &self.values;
        let key = |i: usize| (values[i].table, values[i].id);
        self.sorted.sort_unstable_by_key(|i| key(*i));
        self.aliases.clear();
        self.sorted.dedup_by(|i, before| {
            let same = key(*i) == key(*before);
            if same {
                self.aliases.push((*i, *before));
            }
            same
        });
        let mut rest = 0..self.sorted.len();
        while !rest.is_empty() {
            let table = self.values[self.sorted[rest.start]].table;
            let same = rest.clone().take_while(|i| self.values[self.sorted[*i]].table == table).count();
            self.fetch_from(table, rest.start..rest.start + same);
            rest.start += same;
        }
        for (i, other) in &self.aliases {
            let Value { at, copied, is_strange, .. } = self.values[*other];
            let value = &mut self.values[*i];
            (value.at, value.copied, value.is_strange) = (at, copied, is_strange);
        }
    }

    /// Fetches values of one TOAST table: those in this part of `sorted`.
    fn fetch_from(&mut self, table: u32, range: Range<usize>) {
        let chunks = self.sorted[range.clone()].iter().map(|i| self.values[*i].chunks).sum();
        self.chunks.clear();
        self.chunks.reserve(chunks);
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        // SAFETY: table, index, snapshot and scan as in heap_fetch_toast_slice(). What an ERROR leaves open is closed by
        // the resource owner; none of the frames that it jumps over owns anything.
        unsafe {
            let relation = pg_sys::table_open(table.into(), lock);
            let mut snapshot = pg_sys::SnapshotData::default();
            pg_guard_ffi_boundary(|| {
                let (mut indexes, mut n) = (std::ptr::null_mut(), 0);
                let valid = toast_open_indexes(relation, lock, &mut indexes, &mut n);
                init_toast_snapshot(&mut snapshot);
                let scan = index_beginscan(relation, *indexes.add(valid as usize), &mut snapshot, 2, 0);
                (*scan).xs_want_itup = true;
                find_chunks(scan, &self.sorted[range], &mut self.values, &mut self.chunks);
                index_endscan(scan);
                toast_close_indexes(indexes, n, lock);
            });
            if !self.chunks.is_sorted_by_key(|chunk| chunk.place) {
                self.chunks.sort_unstable_by_key(|chunk| chunk.place);
            }
            self.prefetch(relation);
            let pages = pg_sys::RelationGetNumberOfBlocksInFork(relation, pg_sys::ForkNumber::MAIN_FORKNUM);
            let large = pages > pg_sys::NBuffers as u32 / 4;
            let ring = if large { self.ring } else { std::ptr::null_mut() };
            let bytes = self.bytes.as_mut_ptr().cast();
            pg_guard_ffi_boundary(|| {
                copy_chunks(relation, &mut snapshot, ring, &mut self.chunks, &mut self.values, bytes);
            });
            pg_sys::table_close(relation, lock);
        }
    }

    /// Asks the operating system for the pages of the chunks. Asking for a cached page costs as much as reading it: while
    /// pages turn out to be cached, only one in 16 is asked for.
    unsafe fn prefetch(&mut self, relation: pg_sys::Relation) {
        // SAFETY: the relation is open; looks into its tablespace's options and the setting (effective_io_concurrency).
        if unsafe { pg_sys::get_tablespace_io_concurrency((*(*relation).rd_rel).reltablespace) } == 0 {
            return;
        }
        let mut last = None;
        for Chunk { place: (page, _), .. } in &self.chunks {
            if last.replace(page) == Some(page) {
                continue;
            }
            self.asked = self.asked.wrapping_add(1);
            if self.cold || self.asked.is_multiple_of(16) {
                // SAFETY: the relation is open.
                let result = unsafe { pg_sys::PrefetchBuffer(relation, pg_sys::ForkNumber::MAIN_FORKNUM, *page) };
                self.cold = result.initiated_io;
            }
        }
    }
}

impl Value {
    /// The value to which a pointer in a tuple points.
    unsafe fn at(column: usize, pointer: *const u8) -> Value {
        // SAFETY: behind its header and its tag, a pointer of this kind is a varatt_external, at any address.
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
    fn is_worthwhile(&self) -> bool {
        (1..=MAX_BYTES).contains(&self.size)
    }

    /// Bytes that it takes once it is fetched.
    fn space(&self) -> usize {
        if self.is_worthwhile() { (self.size + pg_sys::VARHDRSZ).next_multiple_of(8) } else { 0 }
    }

    /// Has all of it been fetched?
    fn is_whole(&self) -> bool {
        self.chunks > 0 && self.copied == self.chunks && !self.is_strange
    }
}

/// Finds the chunks of the values that `sorted` names by their ids in ascending order.
///
/// # Safety
/// The scan is one of their TOAST table's index, with two keys and index tuples; `chunks` has room for all of them. To be
/// called where an ERROR may jump over the frame: nothing here owns anything.
unsafe fn find_chunks(scan: pg_sys::IndexScanDesc, sorted: &[usize], values: &mut [Value], chunks: &mut Vec<Chunk>) {
    // SAFETY: the scan's keys are copied by index_rescan(); an entry of a TOAST table's index is a value's id and a
    // chunk's number, neither NULL, behind its header.
    unsafe {
        let mut keys = [pg_sys::ScanKeyData::default(); 2];
        let mut next = 0;
        while next < sorted.len() {
            let id = |i: usize| values[sorted[i]].id;
            let bounds = [
                (id(next), pg_sys::BTGreaterEqualStrategyNumber, pg_sys::F_OIDGE),
                (id(sorted.len() - 1), pg_sys::BTLessEqualStrategyNumber, pg_sys::F_OIDLE),
            ];
            for (key, (id, strategy, function)) in keys.iter_mut().zip(bounds) {
                ScanKeyInit(key, 1, strategy as u16, function.into(), id.into());
            }
            index_rescan(scan, keys.as_mut_ptr(), 2, std::ptr::null_mut(), 0);
            let mut foreign = 0;
            while foreign <= MAX_FOREIGN {
                let place = index_getnext_tid(scan, pg_sys::ScanDirection::ForwardScanDirection);
                let Some(place) = place.as_ref() else { return };
                let (id, number) = (*scan).xs_itup.add(1).cast::<(u32, i32)>().read_unaligned();
                while next < sorted.len() && values[sorted[next]].id < id {
                    next += 1; // what has not come by now will not come
                }
                let Some(i) = sorted.get(next) else { return };
                let value = &mut values[*i];
                if value.id != id {
                    foreign += 1;
                    if value.id - id > MAX_FOREIGN {
                        break;
                    }
                    continue;
                }
                if value.found == value.chunks || number != value.found as i32 {
                    value.is_strange = true;
                    continue;
                }
                let page = u32::from(place.ip_blkid.bi_hi) << 16 | u32::from(place.ip_blkid.bi_lo);
                chunks.push(Chunk { place: (page, place.ip_posid), offset: 0, len: 0, value: *i, number: value.found });
                value.found += 1;
            }
        }
    }
}

/// Copies chunks, in ascending order of their places, to where their values are in `bytes`.
///
/// # Safety
/// The relation is the chunks' TOAST table, the snapshot one for it; `bytes` has room for the values. To be called where an
/// ERROR may jump over the frame: nothing here owns anything.
unsafe fn copy_chunks(
    relation: pg_sys::Relation,
    snapshot: pg_sys::Snapshot,
    ring: pg_sys::BufferAccessStrategy,
    chunks: &mut [Chunk],
    values: &mut [Value],
    bytes: *mut u8,
) {
    let (fork, mode) = (pg_sys::ForkNumber::MAIN_FORKNUM, pg_sys::ReadBufferMode::RBM_NORMAL);
    // SAFETY: while the page is locked nobody moves its line pointers; as long as it is pinned, tuples that the snapshot
    // sees stay where they are, and never change.
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
                (chunk.offset, chunk.len) = see(relation, snapshot, buffer, start, chunk.place).unwrap_or_default();
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
unsafe fn see(
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
#[inline(always)]
unsafe fn copy_chunk(tuple: *const u8, chunk: &Chunk, value: &mut Value, bytes: *mut u8) {
    // SAFETY: a tuple of a TOAST table without NULLs is a value's id, the chunk's number, and a varlena, which tells its
    // length (little-endian, varatt.h): one that is so long that these can be read, and the varlena as long as it says, lies
    // within the page. Its value has room for a chunk of the length that is compared.
    unsafe {
        let header = &*tuple.cast::<pg_sys::HeapTupleHeaderData>();
        let plain = u32::from(header.t_infomask2) & pg_sys::HEAP_NATTS_MASK == 3
            && u32::from(header.t_infomask) & pg_sys::HEAP_HASNULL == 0;
        let data_len = usize::from(chunk.len).saturating_sub(header.t_hoff.into());
        if data_len < 8 + 4 {
            return;
        }
        let data = tuple.add(header.t_hoff.into());
        let whose = data.cast::<(u32, u32)>().read_unaligned();
        if !plain || whose != (value.id, chunk.number as u32) {
            return;
        }
        let varlena = data.add(8);
        let (start_of_bytes, size) = match *varlena {
            b if b & 3 == 0 => (4, (varlena.cast::<u32>().read_unaligned() >> 2) as usize),
            b if b & 1 == 1 && b != 1 => (1, usize::from(b >> 1)),
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
            // The length word as in varatt.h, little-endian.
            let length = ((value.size + pg_sys::VARHDRSZ) as u32) << 2 | if value.is_compressed { 2 } else { 0 };
            start.cast::<u32>().write_unaligned(length);
        }
        std::ptr::copy_nonoverlapping(payload, start.add(pg_sys::VARHDRSZ + from), len);
        value.copied += 1;
    }
}

/// Brings share `i` of `shares` of a page closer to the processor.
#[inline(always)]
fn prefetch_share(page: *const u8, i: usize, shares: usize) {
    const LINES: usize = pg_sys::BLCKSZ as usize / 64;
    #[cfg(target_arch = "x86_64")]
    for line in LINES * i / shares..LINES * (i + 1) / shares {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch of any address does no harm.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(page.wrapping_add(line * 64).cast()) };
    }
}

// As in pg_sys, but without a barrier for errors around each call: there is one around them all.
unsafe extern "C-unwind" {
    fn toast_open_indexes(
        relation: pg_sys::Relation,
        lock: pg_sys::LOCKMODE,
        indexes: *mut *mut pg_sys::Relation,
        n: *mut i32,
    ) -> i32;
    fn toast_close_indexes(indexes: *mut pg_sys::Relation, n: i32, lock: pg_sys::LOCKMODE);
    fn init_toast_snapshot(snapshot: pg_sys::Snapshot);
    fn index_beginscan(
        relation: pg_sys::Relation,
        index: pg_sys::Relation,
        snapshot: pg_sys::Snapshot,
        keys: i32,
        order_bys: i32,
    ) -> pg_sys::IndexScanDesc;
    fn index_rescan(scan: pg_sys::IndexScanDesc, keys: pg_sys::ScanKey, n: i32, order_bys: pg_sys::ScanKey, m: i32);
    fn index_getnext_tid(scan: pg_sys::IndexScanDesc, direction: pg_sys::ScanDirection::Type) -> pg_sys::ItemPointer;
    fn index_endscan(scan: pg_sys::IndexScanDesc);
    fn ScanKeyInit(key: pg_sys::ScanKey, attribute: i16, strategy: u16, function: pg_sys::Oid, value: pg_sys::Datum);
    fn ReadBufferExtended(
        relation: pg_sys::Relation,
        fork: pg_sys::ForkNumber::Type,
        block: u32,
        mode: pg_sys::ReadBufferMode::Type,
        ring: pg_sys::BufferAccessStrategy,
    ) -> pg_sys::Buffer;
    fn LockBuffer(buffer: pg_sys::Buffer, mode: i32);
    fn ReleaseBuffer(buffer: pg_sys::Buffer);
    fn HeapTupleSatisfiesVisibility(
        tuple: pg_sys::HeapTuple,
        snapshot: pg_sys::Snapshot,
        buffer: pg_sys::Buffer,
    ) -> bool;
}
