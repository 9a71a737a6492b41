//! Rows as the heap and the executor have them, reduced to the columns that are wanted.
//!
//! [`Layout`] finds columns in raw tuples without deforming the columns behind them and without a call into
//! PostgreSQL; what it does not understand (a NULL bitmap, a row older than an ADD COLUMN) is left to
//! heap_deform_tuple, so that the answer is always PostgreSQL's.

use super::fixed_layout::Uniform;
use crate::pg::values::array::{ArrayReader, DATA};
use pgrx::pg_sys;

/// The wanted columns of one row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    values: &'a [pg_sys::Datum],
    nulls: &'a [bool],
}

impl<'a> Row<'a> {
    pub(in crate::pg) fn new(values: &'a [pg_sys::Datum], nulls: &'a [bool]) -> Row<'a> {
        Row { values, nulls }
    }

    /// Column `i`, None if it is NULL.
    #[inline]
    pub fn get(self, i: usize) -> Option<pg_sys::Datum> {
        (!self.nulls[i]).then_some(self.values[i])
    }
}

/// One attribute on the way to the last wanted one.
struct Step {
    /// bytes, or -1 for a varlena, -2 for a C string
    len: i16,
    align: usize,
    by_value: bool,
    /// offset in the tuple's data, if it is the same in every tuple without NULLs
    offset: Option<usize>,
    /// where the attribute before it ends, if that is: there may be no step for that attribute
    after: Option<usize>,
    /// which of the wanted columns it is
    column: Option<usize>,
}

/// How to find the wanted columns in raw tuples of one row type.
pub struct Layout {
    descriptor: pg_sys::TupleDesc,
    columns: Vec<usize>,
    steps: Vec<Step>,
    /// which of the wanted columns are varlenas
    varlenas: Vec<usize>,
    /// attributes that a tuple must have for the fast path
    attributes: usize,
    values: Vec<pg_sys::Datum>,
    nulls: Vec<bool>,
    /// were `nulls` filled in by heap_deform_tuple?
    stale_nulls: bool,
    all_values: Vec<pg_sys::Datum>,
    all_nulls: Vec<bool>,
}

impl Layout {
    /// A layout for the attributes `columns` (from 0); None if one is wanted twice.
    ///
    /// # Safety
    /// `descriptor` outlives the layout.
    pub(in crate::pg) unsafe fn new(descriptor: pg_sys::TupleDesc, columns: &[usize]) -> Option<Layout> {
        let mut steps = Vec::new();
        let mut offset = Some(0);
        let attributes = columns.iter().max().map_or(0, |last| last + 1);
        for attribute in 0..attributes {
            // SAFETY: columns come from the descriptor's own attribute numbers.
            let form = unsafe { &*(*descriptor).attrs.as_ptr().add(attribute) };
            let align = match form.attalign as u8 {
                b'c' => 1,
                b's' => 2,
                b'i' => 4,
                _ => 8,
            };
            // A varlena with a short header is not aligned: where it starts is known only if no padding could come.
            let start = match form.attlen {
                -1 => offset.filter(|o: &usize| o.is_multiple_of(align)),
                _ => offset.map(|o: usize| o.next_multiple_of(align)),
            };
            let mut wanted = columns.iter().enumerate().filter(|(_, c)| **c == attribute).map(|(i, _)| i);
            let column = wanted.next();
            if wanted.next().is_some() {
                return None;
            }
            let after = offset;
            offset = start.filter(|_| form.attlen > 0).map(|s| s + form.attlen as usize);
            if column.is_some() || start.is_none() || form.attlen < 0 {
                steps.push(Step { len: form.attlen, align, by_value: form.attbyval, offset: start, after, column });
            }
        }
        // SAFETY: as above.
        let all = unsafe { (*descriptor).natts as usize };
        Some(Layout {
            descriptor,
            columns: columns.to_vec(),
            varlenas: steps.iter().filter(|step| step.len == -1).filter_map(|step| step.column).collect(),
            steps,
            attributes,
            values: vec![pg_sys::Datum::null(); columns.len()],
            nulls: vec![false; columns.len()],
            stale_nulls: false,
            all_values: vec![pg_sys::Datum::null(); all],
            all_nulls: vec![false; all],
        })
    }

    /// Where rows have the wanted columns if these are a by-value column and an array of `len` `real`s, and all before the
    /// last of them are of fixed length.
    pub fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform> {
        let header = arrays.header_of_reals(len)?;
        let bytes = DATA + 4 * len;
        let is_short = bytes < MAX_SHORT;
        let (mut value, mut array, mut end) = (None, None, 0);
        for step in &self.steps {
            let unaligned = step.offset.or(step.after).unwrap_or(end);
            let at = unaligned.next_multiple_of(if step.len == -1 && is_short { 1 } else { step.align });
            end = match (step.column, step.len) {
                (Some(1), -1) => {
                    array = Some((unaligned, at));
                    at + bytes + if is_short { 1 } else { 4 }
                }
                (_, ..0) => return None,
                (column, len) => {
                    if column == Some(0) && step.by_value {
                        value = Some((at, len));
                    }
                    at + len as usize
                }
            };
        }
        let (start, at) = array.filter(|_| self.columns.len() == 2)?;
        // The length word as in varatt.h, little-endian: a short one is the last byte before the body.
        let (body, word, bits) = if is_short {
            (at + 1, ((bytes as u32 + 1) << 1 | 1) << 24, 0xff00_0000)
        } else {
            (at + 4, (bytes as u32 + 4) << 2, u32::MAX)
        };
        let first = match (is_short, start == at) {
            (true, _) => (word >> 24) as u8,
            (false, true) => word as u8,
            (false, false) => 0, // padding; a short array would begin here with another byte
        };
        Some(Uniform {
            attributes: self.attributes,
            value: value?,
            start: (start, first),
            body,
            word: (word, bits),
            header,
            len,
        })
    }

    /// The wanted columns of a tuple; valid as long as the tuple is.
    ///
    /// # Safety
    /// `header` is a tuple of the layout's row type.
    #[inline(always)]
    pub(in crate::pg) unsafe fn read(&mut self, header: pg_sys::HeapTupleHeader) -> Row<'_> {
        // SAFETY: without NULLs and with enough attributes, the data is what the steps describe; every offset stays
        // within the tuple because the attributes before it do.
        unsafe {
            let attributes = (*header).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK;
            let has_null = (*header).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            if has_null || (attributes as usize) < self.attributes {
                return self.deform(header);
            }
            let data = header.cast::<u8>().add((*header).t_hoff as usize);
            let mut offset = 0;
            for step in &self.steps {
                let end = step.after.unwrap_or(offset);
                offset = match step.offset {
                    Some(offset) => offset,
                    None if step.len == -1 && *data.add(end) != 0 => end,
                    None => end.next_multiple_of(step.align),
                };
                let at = data.add(offset);
                if let Some(column) = step.column {
                    self.values[column] = if step.by_value { fetch(at, step.len) } else { at.into() };
                }
                offset += match step.len {
                    -1 => varlena_size(at),
                    -2 => std::ffi::CStr::from_ptr(at.cast()).count_bytes() + 1,
                    len => len as usize,
                };
            }
        }
        if self.stale_nulls {
            self.stale_nulls = false;
            self.nulls.fill(false);
        }
        Row::new(&self.values, &self.nulls)
    }

    #[cold]
    unsafe fn deform(&mut self, header: pg_sys::HeapTupleHeader) -> Row<'_> {
        // SAFETY: heap_deform_tuple reads only t_data, and fills as many values as the descriptor has attributes.
        unsafe {
            let mut tuple = pg_sys::HeapTupleData { t_data: header, ..Default::default() };
            pg_sys::heap_deform_tuple(
                &mut tuple,
                self.descriptor,
                self.all_values.as_mut_ptr(),
                self.all_nulls.as_mut_ptr(),
            );
        }
        for (i, &attribute) in self.columns.iter().enumerate() {
            self.values[i] = self.all_values[attribute];
            self.nulls[i] = self.all_nulls[attribute];
        }
        self.stale_nulls = true;
        Row::new(&self.values, &self.nulls)
    }

    /// The row that was read last.
    #[inline]
    pub(in crate::pg) fn row(&self) -> Row<'_> {
        Row::new(&self.values, &self.nulls)
    }

    /// The wanted columns that the row that was read last has in a TOAST table, and the pointers to them.
    ///
    /// # Safety
    /// That row's tuple is still there.
    #[inline]
    pub(in crate::pg) unsafe fn out_of_line(&self) -> impl Iterator<Item = (usize, *const u8)> {
        self.varlenas.iter().filter(|column| !self.nulls[**column]).filter_map(|&column| {
            let at = self.values[column].cast_mut_ptr::<u8>().cast_const();
            // SAFETY: a varlena is there; if its first byte says that it is a pointer, the second says to what.
            unsafe { (*at == 0x01 && u32::from(*at.add(1)) == ON_DISK).then_some((column, at)) }
        })
    }

    /// Puts a value into the row that was read last.
    pub(in crate::pg) fn replace(&mut self, column: usize, value: pg_sys::Datum) {
        self.values[column] = value;
    }
}

/// The tag of a pointer to a value in a TOAST table.
const ON_DISK: u32 = pg_sys::vartag_external::VARTAG_ONDISK;

/// Bytes with which an array is too long for a short header (VARATT_SHORT_MAX, less the header's own).
const MAX_SHORT: usize = 0x7f;

/// fetch_att() for pass-by-value types.
#[inline]
pub(in crate::pg) unsafe fn fetch(at: *const u8, len: i16) -> pg_sys::Datum {
    // SAFETY: the attribute is aligned and `len` bytes long.
    unsafe {
        match len {
            1 => pg_sys::Datum::from(*at.cast::<i8>()),
            2 => pg_sys::Datum::from(*at.cast::<i16>()),
            4 => pg_sys::Datum::from(*at.cast::<i32>()),
            _ => pg_sys::Datum::from(*at.cast::<i64>()),
        }
    }
}

/// VARSIZE_ANY(): bytes that a varlena takes in a tuple, header and all (little-endian, varatt.h).
#[inline]
unsafe fn varlena_size(at: *const u8) -> usize {
    // SAFETY: a varlena begins at `at`; its header says how many bytes it has.
    unsafe {
        match *at {
            0x01 => pgrx::varsize_any(at.cast()),
            b if b & 1 == 1 => (b >> 1) as usize,
            _ => (at.cast::<u32>().read_unaligned() >> 2) as usize,
        }
    }
}
