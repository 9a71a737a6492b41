//! Rows as the heap and the executor have them, reduced to the columns that are wanted.
//!
//! [`Layout`] finds columns in raw tuples without deforming the columns behind them and without a call into
//! PostgreSQL; what it does not understand (a row older than an ADD COLUMN) is left to heap_deform_tuple, so
//! that the answer is always PostgreSQL's.

use super::attribute::fetch;
use super::fixed_layout::{Numbers, Stretch, Uniform, VectorAt};
use crate::compat::{self, first_attribute};
use crate::values::number::NumberType;
use crate::values::typed::TypedDatum;
use crate::values::varlena::header;
use crate::values::vector::VectorReader;
use pgrx::pg_sys;
use std::cell::OnceCell;
use std::marker::PhantomData;
use std::rc::Rc;

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
pub(crate) struct RowTypes<'a> {
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
    pub(crate) unsafe fn of_descriptor(descriptor: pg_sys::TupleDesc) -> RowTypes<'a> {
        // SAFETY: the caller's promise; the attributes are at the descriptor's end. One without any has no first type,
        // and none is asked for.
        let first = unsafe { first_attribute(descriptor) };
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
    pub(crate) unsafe fn new(values: &'a [pg_sys::Datum], nulls: &'a [bool], types: RowTypes<'a>) -> Row<'a> {
        Row { values, nulls, types }
    }

    /// Column `i`, None if it is NULL.
    ///
    /// # Panics
    /// If there are fewer columns.
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

impl Step {
    /// Where the attribute is, if the one before it, for which there is a step, ends at `offset`.
    ///
    /// # Safety
    /// It is in the data, and is not NULL.
    #[inline(always)]
    unsafe fn find(&self, data: *mut u8, offset: usize) -> *mut u8 {
        let end = self.after.unwrap_or(offset);
        // SAFETY: the caller's promise: a byte is there, of the attribute or of the padding before it.
        unsafe {
            data.add(match self.offset {
                Some(offset) => offset,
                None if self.len == -1 && *data.add(end) != 0 => end,
                None => end.next_multiple_of(self.align),
            })
        }
    }

    /// The attribute's value.
    ///
    /// # Safety
    /// The attribute is there.
    #[inline(always)]
    unsafe fn fetch(&self, at: *mut u8) -> pg_sys::Datum {
        // SAFETY: the caller's promise.
        if self.by_value { unsafe { fetch(at, self.len) } } else { at.into() }
    }

    /// Bytes of the attribute.
    ///
    /// # Safety
    /// The attribute is there.
    #[inline(always)]
    unsafe fn bytes(&self, at: *const u8) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match self.len {
                -1 => header::len_at(at),
                -2 => std::ffi::CStr::from_ptr(at.cast()).count_bytes() + 1,
                len => len as usize,
            }
        }
    }
}

/// Where columns of numbers of these types are, if they can be copied by the stretch.
type StretchesOf = (Vec<NumberType>, Option<Rc<[Stretch]>>);

/// How to find the wanted columns in raw tuples of one row type.
pub struct Layout {
    descriptor: pg_sys::TupleDesc,
    columns: Vec<usize>,
    /// the declared types of the wanted columns
    types: Vec<pg_sys::Oid>,
    steps: Vec<Step>,
    /// all attributes up to the last wanted one: the way through a tuple with NULLs
    attributes_with_nulls: Vec<Step>,
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
    /// where columns of numbers are, once it was asked for
    stretches: OnceCell<StretchesOf>,
}

impl Layout {
    /// A layout for the attributes `columns` (from 0); None if one is wanted twice, or is not there.
    ///
    /// # Safety
    /// `descriptor` outlives the layout.
    pub(crate) unsafe fn new(descriptor: pg_sys::TupleDesc, columns: &[usize]) -> Option<Layout> {
        let (mut steps, mut attributes_with_nulls) = (Vec::new(), Vec::new());
        let mut offset = Some(0);
        let attributes = columns.iter().max().map_or(0, |last| last + 1);
        // SAFETY: the caller's promise.
        let forms = unsafe { compat::attributes(descriptor) };
        if attributes > forms.len() {
            return None;
        }
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
            let (len, by_value) = (form.attlen, form.attbyval);
            if column.is_some() || start.is_none() || len < 0 {
                steps.push(Step { len, align, by_value, offset: start, after, column });
            }
            attributes_with_nulls.push(Step { len, align, by_value, offset: None, after: None, column });
        }
        Some(Layout {
            descriptor,
            columns: columns.to_vec(),
            types: columns.iter().map(|column| forms[*column].atttypid).collect(),
            varlenas: steps.iter().filter(|step| step.len == -1).filter_map(|step| step.column).collect(),
            steps,
            attributes_with_nulls,
            attributes,
            values: vec![pg_sys::Datum::null(); columns.len()],
            nulls: vec![false; columns.len()],
            stale_nulls: false,
            all_values: vec![pg_sys::Datum::null(); forms.len()],
            all_nulls: vec![false; forms.len()],
            stretches: OnceCell::new(),
        })
    }

    /// Where rows have the wanted columns if these are a by-value column and a vector of `len` numbers of fixed length,
    /// and all before the last of them are of fixed length.
    pub fn uniform(&self, vectors: VectorReader, len: usize) -> Option<Uniform> {
        let (prefix, number) = vectors.prefix(len)?;
        let bytes = number.width()?.checked_mul(len)?.checked_add(prefix.len)?;
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
        let vector = VectorAt { start: (start, first), body, word: (word, bits), prefix };
        let stretch = Stretch { at: body + prefix.len, number, count: len };
        Some(self.uniform_of(value?, Numbers::Vector(vector, stretch), len))
    }

    /// The same if the columns behind the first have numbers of these types, one after the other, and all are of fixed
    /// length.
    pub fn uniform_columns(&self, numbers: &[NumberType]) -> Option<Uniform> {
        let of_layout = self.stretches.get_or_init(|| (numbers.to_vec(), self.stretches_of(numbers).map(Rc::from)));
        let stretches = match of_layout {
            (same, stretches) if same == numbers => stretches.clone()?,
            _ => Rc::from(self.stretches_of(numbers)?),
        };
        let value = self.fixed(0)?;
        Some(self.uniform_of(value, Numbers::Columns(stretches), numbers.len()))
    }

    fn uniform_of(&self, value: (usize, i16), numbers: Numbers, len: usize) -> Uniform {
        let (descriptor, attributes, value_type) = (self.descriptor, self.attributes, self.types[0]);
        Uniform { descriptor, attributes, value, value_type, numbers, len }
    }

    /// Where each of the columns behind the first is; those that are back to back, and of one type, together.
    fn stretches_of(&self, numbers: &[NumberType]) -> Option<Vec<Stretch>> {
        let mut stretches: Vec<Stretch> = Vec::new();
        for (i, &number) in numbers.iter().enumerate() {
            let width = number.width()?;
            let (at, _) = self.fixed(i + 1).filter(|(_, len)| *len as usize == width)?;
            match stretches.last_mut() {
                Some(last) if last.number == number && last.at + last.count * width == at => last.count += 1,
                _ => stretches.push(Stretch { at, number, count: 1 }),
            }
        }
        (self.columns.len() == numbers.len() + 1).then_some(stretches)
    }

    /// The offset and the bytes of a column, if it is passed by value and in the same place in every row without NULLs.
    fn fixed(&self, column: usize) -> Option<(usize, i16)> {
        let step = self.steps.iter().find(|step| step.column == Some(column) && step.by_value)?;
        Some((step.offset?, step.len))
    }

    /// The row type whose tuples these are.
    pub(crate) fn descriptor(&self) -> pg_sys::TupleDesc {
        self.descriptor
    }

    /// Reads the wanted columns of a tuple, for [`Layout::row`].
    ///
    /// # Safety
    /// `tuple` is a tuple of the layout's row type.
    #[inline(always)]
    pub(crate) unsafe fn read(&mut self, tuple: pg_sys::HeapTupleHeader) {
        // SAFETY: without NULLs and with enough attributes, the data is what the steps describe; every offset stays
        // within the tuple because the attributes before it do.
        unsafe {
            let attributes = (*tuple).t_infomask2 as u32 & pg_sys::HEAP_NATTS_MASK;
            let has_null = (*tuple).t_infomask as u32 & pg_sys::HEAP_HASNULL != 0;
            if (attributes as usize) < self.attributes {
                return self.deform(tuple);
            }
            if has_null {
                return self.read_with_nulls(tuple);
            }
            let data = tuple.cast::<u8>().add((*tuple).t_hoff as usize);
            let mut offset = 0;
            for step in &self.steps {
                let at = step.find(data, offset);
                if let Some(column) = step.column {
                    self.values[column] = step.fetch(at);
                }
                offset = at.offset_from(data) as usize + step.bytes(at);
            }
        }
        if self.stale_nulls {
            self.stale_nulls = false;
            self.nulls.fill(false);
        }
    }

    /// As [`Layout::read`], of a tuple with NULLs.
    ///
    /// # Safety
    /// As for the item above, and the tuple has a bitmap of NULLs and as many attributes as are needed.
    unsafe fn read_with_nulls(&mut self, tuple: pg_sys::HeapTupleHeader) {
        // SAFETY: the bitmap has a bit for each attribute, 0 for NULL; the others lie behind each other.
        unsafe {
            let bits = (&raw const (*tuple).t_bits).cast::<u8>();
            let data = tuple.cast::<u8>().add((*tuple).t_hoff as usize);
            let mut offset = 0;
            for (attribute, step) in self.attributes_with_nulls.iter().enumerate() {
                let is_null = *bits.add(attribute / 8) & 1 << (attribute % 8) == 0;
                let at = if is_null { data.add(offset) } else { step.find(data, offset) };
                if let Some(column) = step.column {
                    self.nulls[column] = is_null;
                    self.values[column] = if is_null { pg_sys::Datum::null() } else { step.fetch(at) };
                }
                if !is_null {
                    offset = at.offset_from(data) as usize + step.bytes(at);
                }
            }
        }
        self.stale_nulls = true;
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
    pub(crate) unsafe fn row(&self) -> Row<'_> {
        // SAFETY: the caller's promise: the values are what is in the tuple, of the types that its descriptor says.
        unsafe { Row::new(&self.values, &self.nulls, RowTypes::of_columns(&self.types)) }
    }

    /// The wanted columns that the row that was read last has in a TOAST table, and the pointers to them.
    ///
    /// # Safety
    /// That row's tuple is still there.
    #[inline]
    pub(crate) unsafe fn out_of_line(&self) -> impl Iterator<Item = (usize, *const u8)> {
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
    pub(crate) unsafe fn replace(&mut self, column: usize, value: pg_sys::Datum) {
        self.values[column] = value;
    }
}

/// The tag of a pointer to a value in a TOAST table.
const ON_DISK: u32 = pg_sys::vartag_external::VARTAG_ONDISK;
