//! Rows as the heap and the executor have them, reduced to the columns that are wanted.
//!
//! [`Layout`] finds columns in raw tuples without deforming the columns behind them and without a call into
//! PostgreSQL; what it does not understand (a NULL bitmap, a row older than an ADD COLUMN) is left to
//! heap_deform_tuple, so that the answer is always PostgreSQL's.

use super::attribute::fetch;
use super::fixed_layout::Uniform;
use crate::pg::values::typed::TypedDatum;
use crate::pg::values::varlena::header;
use crate::pg::values::vector::VectorReader;
use pgrx::pg_sys;
use std::marker::PhantomData;

/// The wanted columns of one row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    values: &'a [pg_sys::Datum],
    /// as many as values, and so are the types
    nulls: &'a [bool],
    types: RowTypes<'a>,
}

/// The types of a row's columns: one after the other, or in the attributes of a descriptor.
#[derive(Clone, Copy)]
pub(in crate::pg) struct RowTypes<'a> {
    first: *const pg_sys::Oid,
    /// bytes from one to the next
    stride: usize,
    borrowed: PhantomData<&'a [pg_sys::Oid]>,
}

impl<'a> RowTypes<'a> {
    fn of_columns(types: &'a [pg_sys::Oid]) -> RowTypes<'a> {
        RowTypes { first: types.as_ptr(), stride: size_of::<pg_sys::Oid>(), borrowed: PhantomData }
    }

    /// The types of a descriptor's attributes.
    ///
    /// # Safety
    /// The descriptor stays for `'a`.
    pub(in crate::pg) unsafe fn of_descriptor(descriptor: pg_sys::TupleDesc) -> RowTypes<'a> {
        // SAFETY: the caller's promise; the attributes are at the descriptor's end. One without any has no first type,
        // and none is asked for.
        let first = unsafe { (&raw const (*descriptor).attrs).cast::<pg_sys::FormData_pg_attribute>() };
        let first = first.cast::<u8>().wrapping_add(std::mem::offset_of!(pg_sys::FormData_pg_attribute, atttypid));
        RowTypes { first: first.cast(), stride: size_of::<pg_sys::FormData_pg_attribute>(), borrowed: PhantomData }
    }
}

impl<'a> Row<'a> {
    /// A row of these columns.
    ///
    /// # Safety
    /// There are as many nulls and types as values, each value that is not NULL is of its type, and all stay for `'a`.
    #[inline(always)]
    pub(in crate::pg) unsafe fn new(values: &'a [pg_sys::Datum], nulls: &'a [bool], types: RowTypes<'a>) -> Row<'a> {
        Row { values, nulls, types }
    }

    /// Column `i`, None if it is NULL.
    ///
    /// # Panics
    /// If there are not so many columns.
    #[inline(always)]
    pub fn get(self, i: usize) -> Option<TypedDatum<'a>> {
        let value = self.values[i];
        // SAFETY: there are as many nulls and types as values, of which there is an i-th.
        unsafe {
            let is_null = *self.nulls.get_unchecked(i);
            (!is_null).then(|| TypedDatum::new(value, *self.types.first.byte_add(i * self.types.stride)))
        }
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
    /// the declared types of the wanted columns
    types: Vec<pg_sys::Oid>,
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
    /// A layout for the attributes `columns` (from 0); None if one is wanted twice, or is not there.
    ///
    /// # Safety
    /// `descriptor` outlives the layout.
    pub(in crate::pg) unsafe fn new(descriptor: pg_sys::TupleDesc, columns: &[usize]) -> Option<Layout> {
        let mut steps = Vec::new();
        let mut offset = Some(0);
        let attributes = columns.iter().max().map_or(0, |last| last + 1);
        // SAFETY: the caller's promise.
        let all = unsafe { (*descriptor).natts as usize };
        if attributes > all {
            return None;
        }
        // SAFETY: a descriptor has natts attributes.
        let forms = unsafe { (*descriptor).attrs.as_slice(all) };
        for (attribute, form) in forms.iter().enumerate().take(attributes) {
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
        Some(Layout {
            descriptor,
            columns: columns.to_vec(),
            types: columns.iter().map(|column| forms[*column].atttypid).collect(),
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

    /// Where rows have the wanted columns if these are a by-value column and a vector of `len` `real`s, and all before
    /// the last of them are of fixed length.
    pub fn uniform(&self, vectors: VectorReader, len: usize) -> Option<Uniform> {
        let prefix = vectors.prefix_of_reals(len)?;
        let bytes = prefix.len + 4 * len;
        let is_short = bytes < header::MAX_SHORT;
        let (mut value, mut vector, mut end) = (None, None, 0);
        for step in &self.steps {
            let unaligned = step.offset.or(step.after).unwrap_or(end);
            let at = unaligned.next_multiple_of(if step.len == -1 && is_short { 1 } else { step.align });
            end = match (step.column, step.len) {
                (Some(1), -1) => {
                    vector = Some((unaligned, at));
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
        let (start, at) = vector.filter(|_| self.columns.len() == 2)?;
        // A header of one byte is the last of the four before the body.
        let (body, word, bits) = if is_short {
            (at + 1, u32::from(header::short(bytes + 1)) << 24, 0xff00_0000)
        } else {
            (at + header::WORD, header::word(bytes + header::WORD, false), u32::MAX)
        };
        let first = match (is_short, start == at) {
            (true, _) => (word >> 24) as u8,
            (false, true) => word as u8,
            (false, false) => 0, // padding; a short vector would begin here with another byte
        };
        Some(Uniform {
            descriptor: self.descriptor,
            attributes: self.attributes,
            value: value?,
            value_type: self.types[0],
            start: (start, first),
            body,
            word: (word, bits),
            prefix,
            len,
        })
    }

    /// The row type whose tuples these are.
    pub(in crate::pg) fn descriptor(&self) -> pg_sys::TupleDesc {
        self.descriptor
    }

    /// Reads the wanted columns of a tuple, for [`Layout::row`].
    ///
    /// # Safety
    /// `tuple` is a tuple of the layout's row type.
    #[inline(always)]
    pub(in crate::pg) unsafe fn read(&mut self, tuple: pg_sys::HeapTupleHeader) {
        // SAFETY: without NULLs and with enough attributes, the data is what the steps describe; every offset stays
        // within the tuple because the attributes before it do.
        unsafe {
            let attributes = (*tuple).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK;
            let has_null = (*tuple).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            if has_null || (attributes as usize) < self.attributes {
                return self.deform(tuple);
            }
            let data = tuple.cast::<u8>().add((*tuple).t_hoff as usize);
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
                    -1 => header::len_at(at),
                    -2 => std::ffi::CStr::from_ptr(at.cast()).count_bytes() + 1,
                    len => len as usize,
                };
            }
        }
        if self.stale_nulls {
            self.stale_nulls = false;
            self.nulls.fill(false);
        }
    }

    /// As [`Layout::read`], of any tuple.
    ///
    /// # Safety
    /// `tuple` is a tuple of the layout's row type.
    #[cold]
    unsafe fn deform(&mut self, tuple: pg_sys::HeapTupleHeader) {
        // SAFETY: heap_deform_tuple reads only t_data, and fills as many values as the descriptor has attributes.
        unsafe {
            let mut tuple = pg_sys::HeapTupleData { t_data: tuple, ..Default::default() };
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
    }

    /// The row that was read last.
    ///
    /// # Safety
    /// A row was read, and its tuple stays where it is as long as the result is used.
    #[inline]
    pub(in crate::pg) unsafe fn row(&self) -> Row<'_> {
        // SAFETY: the caller's promise: the values are what is in the tuple, of the types that its descriptor says.
        unsafe { Row::new(&self.values, &self.nulls, RowTypes::of_columns(&self.types)) }
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
            unsafe { (header::is_external(*at) && u32::from(*at.add(1)) == ON_DISK).then_some((column, at)) }
        })
    }

    /// Puts a value into the row that was read last.
    ///
    /// # Safety
    /// The value is of the column's type, and stays as long as the row is used.
    pub(in crate::pg) unsafe fn replace(&mut self, column: usize, value: pg_sys::Datum) {
        self.values[column] = value;
    }
}

/// The tag of a pointer to a value in a TOAST table.
const ON_DISK: u32 = pg_sys::vartag_external::VARTAG_ONDISK;
