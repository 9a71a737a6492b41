//! Values of variable length: the header that tells their kind and length, and values of types of our own, which are
//! bytes behind a length word.
//!
//! The headers are read as `varatt.h` writes them on little-endian machines, and nowhere else than here.

use super::typed::TypedDatum;
use crate::catalog::types::{is_own_type, is_varlena};
use crate::context::Context;
use crate::declared::declared_by_hand;
use crate::errors::{Error, OrRaise, Result};
use crate::interrupts::check_for_interrupts;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::pg_sys;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

#[cfg(not(target_endian = "little"))]
compile_error!("the headers of variable-length values are read as they are on little-endian machines");

/// The first byte or the length word of a value, as varatt.h has them.
pub(crate) mod header {
    /// Bytes of a length word.
    pub const WORD: usize = 4;

    /// Bytes, header left out, with which a value is too long for a header of one byte (VARATT_SHORT_MAX, less the
    /// header).
    pub const MAX_SHORT: usize = 0x7f;

    /// Does a value with this first byte lie behind a length word, uncompressed?
    #[inline(always)]
    pub fn is_plain(first: u8) -> bool {
        first & 3 == 0
    }

    /// Does it lie behind a header of one byte?
    #[inline(always)]
    pub fn is_short(first: u8) -> bool {
        first & 1 == 1 && first != 1
    }

    /// Is it a pointer to where the value is stored?
    #[inline(always)]
    pub fn is_external(first: u8) -> bool {
        first == 1
    }

    /// Bytes of the whole value, by its length word.
    #[inline(always)]
    pub fn word_len(word: u32) -> usize {
        (word >> 2) as usize
    }

    /// Bytes of the whole value, by its header of one byte.
    #[inline(always)]
    pub fn short_len(first: u8) -> usize {
        usize::from(first >> 1)
    }

    /// The length word of a value of this many bytes, with the word.
    pub const fn word(len: usize, compressed: bool) -> u32 {
        (len as u32) << 2 | if compressed { 2 } else { 0 }
    }

    /// The header of one byte of a value of this many bytes, with the header.
    pub const fn short(len: usize) -> u8 {
        (len as u8) << 1 | 1
    }

    /// VARSIZE_ANY(): bytes that a value takes in a tuple, header and all.
    ///
    /// # Safety
    /// A value of variable length begins at `at`.
    #[inline]
    pub unsafe fn len_at(at: *const u8) -> usize {
        // SAFETY: the first byte tells how long the header is that says how many bytes there are.
        unsafe {
            match *at {
                first if is_external(first) => pgrx::varsize_any(at.cast()),
                first if is_short(first) => short_len(first),
                _ => word_len(at.cast::<u32>().read_unaligned()),
            }
        }
    }

    /// Where the body of a value is that is neither compressed nor stored elsewhere; None of any other.
    ///
    /// # Safety
    /// A value of variable length begins at `at`.
    #[inline(always)]
    pub unsafe fn body_at(at: *const u8) -> Option<*const u8> {
        // SAFETY: the value has its header, and behind it the body.
        unsafe {
            match *at {
                first if is_plain(first) => Some(at.add(WORD)),
                first if is_short(first) => Some(at.add(1)),
                _ => None,
            }
        }
    }

    /// The bytes behind the header of such a value; None of any other.
    ///
    /// # Safety
    /// A value of variable length begins at `at`, and stays as it is for `'a`.
    #[inline(always)]
    pub unsafe fn content_at<'a>(at: *const u8) -> Option<&'a [u8]> {
        // SAFETY: the header says how many bytes there are with it, which is as many as it has itself at least.
        unsafe {
            let (header, len) = match *at {
                first if is_plain(first) => (WORD, word_len(at.cast::<u32>().read_unaligned())),
                first if is_short(first) => (1, short_len(first)),
                _ => return None,
            };
            Some(std::slice::from_raw_parts(at.add(header), len.saturating_sub(header)))
        }
    }
}

/// Most bytes that a value may have: PostgreSQL's limit for any value, with its length word.
pub const MAX_BYTES: usize = 0x3FFF_FFFF - pg_sys::VARHDRSZ;

/// Most bytes that a C string may have: what PostgreSQL gives memory for, less the zero at its end.
pub const MAX_TEXT: usize = 0x3FFF_FFFF - 1;

/// Bytes of a large value that are written between two looks for interrupts: less than a millisecond's work.
pub const PIECE: usize = 1 << 20;

/// A value that may be changed: its bytes lie behind a length word of four bytes, uncompressed, and are no one else's.
pub struct Bytes<'m>(*mut pg_sys::varlena, PhantomData<&'m ()>);

impl<'m> Bytes<'m> {
    /// A new value with these bytes.
    pub fn new(context: Context<'m>, bytes: &[u8]) -> Result<Bytes<'m>> {
        Bytes::of_parts(context, &[bytes])
    }

    /// A new value of these parts, one behind the other.
    pub(super) fn of_parts(context: Context<'m>, parts: &[&[u8]]) -> Result<Bytes<'m>> {
        Bytes::written(context, parts.iter().map(|part| part.len()).sum(), |mut at| {
            for piece in parts.iter().flat_map(|part| part.chunks(PIECE)) {
                check_for_interrupts();
                // SAFETY: there is room for all parts.
                unsafe {
                    std::ptr::copy_nonoverlapping(piece.as_ptr(), at, piece.len());
                    at = at.add(piece.len());
                }
            }
        })
    }

    /// A new value of `len` zeros.
    pub fn zeros(context: Context<'m>, len: usize) -> Result<Bytes<'m>> {
        Bytes::written(context, len, |at| {
            for start in (0..len).step_by(PIECE) {
                check_for_interrupts();
                // SAFETY: there is room for as many bytes.
                unsafe { std::ptr::write_bytes(at.add(start), 0, PIECE.min(len - start)) };
            }
        })
    }

    /// A new value of `len` bytes, all of which `write` writes in place.
    fn written(context: Context<'m>, len: usize, write: impl FnOnce(*mut u8)) -> Result<Bytes<'m>> {
        if len > MAX_BYTES {
            return Err(Error::StateTooLarge(len));
        }
        // SAFETY: palloc gives as many bytes as asked for, or raises an error.
        unsafe {
            let at = context.enter(|| pg_sys::palloc(len + pg_sys::VARHDRSZ)).cast::<pg_sys::varlena>();
            pgrx::set_varsize_4b(at, (len + pg_sys::VARHDRSZ) as i32);
            write(at.cast::<u8>().add(pg_sys::VARHDRSZ));
            Ok(Bytes(at, PhantomData))
        }
    }

    /// A copy of a value. An ERROR if its type is not one of variable length.
    pub fn from_typed(context: Context<'m>, value: TypedDatum<'_>) -> Bytes<'m> {
        check_varlena(value);
        // SAFETY: the type has just been looked at.
        unsafe { Bytes::copy_of(context, value.datum()) }
    }

    /// A copy of a value.
    ///
    /// # Safety
    /// The datum is a value of variable length.
    pub(crate) unsafe fn copy_of(context: Context<'m>, datum: pg_sys::Datum) -> Bytes<'m> {
        // SAFETY: the caller's promise; a detoasted copy has a length word of four bytes.
        unsafe {
            match header::content_at(datum.cast_mut_ptr::<u8>()) {
                // as long as this one is
                Some(bytes) => Bytes::new(context, bytes).or_raise(),
                None => Bytes(context.enter(|| pg_sys::pg_detoast_datum_copy(datum.cast_mut_ptr())), PhantomData),
            }
        }
    }

    /// The value itself if it can be changed where it lies, else a copy.
    ///
    /// # Safety
    /// The datum is a value of variable length, and no one else reads or changes it: it is the transition value of the
    /// aggregate that calls.
    pub(crate) unsafe fn in_place(context: Context<'m>, datum: pg_sys::Datum) -> Bytes<'m> {
        let at = datum.cast_mut_ptr::<u8>();
        // SAFETY: the caller's promise: there is a header, and the value is the caller's to change.
        unsafe { if header::is_plain(*at) { Bytes(at.cast(), PhantomData) } else { Bytes::copy_of(context, datum) } }
    }

    /// The value as one of a type of our own, whose values are whatever bytes. An ERROR if the type is not one of
    /// those.
    pub fn typed(&self, type_oid: pg_sys::Oid) -> TypedDatum<'_> {
        if type_oid != pg_sys::BYTEAOID && !is_own_type(type_oid) {
            pgrx::error!("type {} is not one of bytes", type_oid.to_u32());
        }
        // SAFETY: functions of these types take any bytes, and self keeps them where they are.
        unsafe { TypedDatum::new(pg_sys::Datum::from(self.0), type_oid) }
    }

    /// Gives the memory back before its context goes.
    pub fn free(self) {
        // SAFETY: palloced; no one else has it.
        unsafe { pg_sys::pfree(self.0.cast()) }
    }

    /// The value as PostgreSQL passes it on.
    pub fn into_value(self) -> Value<'m> {
        Value(pg_sys::Datum::from(self.0), PhantomData)
    }
}

/// What the output function of a type returns: a C string, written part by part.
pub struct TextOutput<'m> {
    at: *mut u8,
    len: usize,
    room: usize,
    memory: PhantomData<&'m ()>,
}

impl<'m> TextOutput<'m> {
    /// An empty one with room for `room` bytes.
    pub fn with_room(context: Context<'m>, room: usize) -> Result<TextOutput<'m>> {
        if room > MAX_TEXT {
            return Err(Error::StateTooLarge(room));
        }
        // SAFETY: palloc gives as many bytes as asked for, or raises an error.
        let at = context.enter(|| unsafe { pg_sys::palloc(room + 1) }).cast();
        Ok(TextOutput { at, len: 0, room, memory: PhantomData })
    }

    /// Appends a part, which has no zeros.
    ///
    /// # Panics
    /// If there is no room for it.
    pub fn push(&mut self, part: &[u8]) {
        assert!(part.len() <= self.room - self.len, "as much as was said");
        for piece in part.chunks(PIECE) {
            check_for_interrupts();
            // SAFETY: there is room for as many bytes.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), self.at.add(self.len), piece.len()) };
            self.len += piece.len();
        }
    }

    /// The text as PostgreSQL passes it on.
    pub fn into_value(self) -> Value<'m> {
        // SAFETY: there is room for one byte more than for the text.
        unsafe { self.at.add(self.len).write(0) };
        Value(pg_sys::Datum::from(self.at), PhantomData)
    }
}

/// Shows `f` the bytes of a value of one of our types, of a bytea or a text, detoasted if need be.
pub fn with_bytes<R>(value: TypedDatum<'_>, f: impl FnOnce(&[u8]) -> R) -> R {
    check_varlena(value);
    // SAFETY: the type has just been looked at.
    unsafe { with_content(value.datum(), f) }
}

/// As [`with_bytes`], of a value whose type is known.
///
/// # Safety
/// The datum is a value of variable length.
#[inline]
pub(crate) unsafe fn with_content<R>(datum: pg_sys::Datum, f: impl FnOnce(&[u8]) -> R) -> R {
    let at = datum.cast_mut_ptr::<pg_sys::varlena>();
    // SAFETY: the caller's promise.
    if let Some(bytes) = unsafe { header::content_at(at.cast()) } {
        return f(bytes);
    }
    // SAFETY: the caller's promise. Packed, the value has a header of one byte or four that says how many follow; it
    // stays where it is while `f` runs, and a copy is freed by no one else.
    unsafe {
        let packed = pg_sys::pg_detoast_datum_packed(at);
        let bytes = std::slice::from_raw_parts(pgrx::vardata_any(packed).cast::<u8>(), pgrx::varsize_any_exhdr(packed));
        let result = f(bytes);
        if packed != at {
            pg_sys::pfree(packed.cast());
        }
        result
    }
}

/// An ERROR if the value's type is not one of variable length. The last type that was looked at is remembered.
fn check_varlena(value: TypedDatum<'_>) {
    thread_local! {
        static LAST: std::cell::Cell<pg_sys::Oid> = const { std::cell::Cell::new(pg_sys::Oid::INVALID) };
    }
    let type_oid = value.type_oid();
    // OIDs of types come again only when four billion have passed, and with those of the same length all is well
    if LAST.get() == type_oid {
        return;
    }
    if !is_varlena(type_oid) {
        pgrx::error!("type {} has no values of variable length", type_oid.to_u32());
    }
    LAST.set(type_oid);
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the length word says how many bytes follow it.
        unsafe {
            let len = pgrx::varsize_4b(self.0) - pg_sys::VARHDRSZ;
            std::slice::from_raw_parts(self.0.cast::<u8>().add(pg_sys::VARHDRSZ), len)
        }
    }
}

impl DerefMut for Bytes<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        let len = self.len();
        // SAFETY: the length word says how many bytes follow it, and they are no one else's.
        unsafe { std::slice::from_raw_parts_mut(self.0.cast::<u8>().add(pg_sys::VARHDRSZ), len) }
    }
}

/// What a function returns: a value of the type that its declaration in SQL says, which only the install script knows.
///
/// PostgreSQL trusts a function to return what it is declared to return; so does this type.
pub struct Value<'m>(pub(crate) pg_sys::Datum, pub(crate) PhantomData<&'m ()>);

// SAFETY: the datum is what the function's declaration says.
unsafe impl BoxRet for Value<'_> {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> pgrx::datum::Datum<'fcx> {
        // SAFETY: the datum is of the function's result type, and lives in the memory context of the call.
        unsafe { fcinfo.return_raw_datum(self.0) }
    }
}

declared_by_hand!(Value<'_>);
