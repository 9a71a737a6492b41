//! From bytes to what is computed with, and back to rows.

use tuples::{Matrix, PackedMatrix};

use crate::bytes::Reader;
use crate::csr::{Csr, Places};
use crate::cvi::Cvi;
use crate::dense::Dense;
use crate::dvi::Dvi;
use crate::general::General;
use crate::index::Index;
use crate::operations::{Checked, Form};
use crate::stored::{self, HEADER};
use crate::tree::{Stored, Tree, Unfolded};
use crate::values::Values;
use crate::{Encoding, Error, Info, Number, Operations, Rows};

/// What becomes of a form, whatever its type.
trait Visitor<T: Number> {
    type Output;
    fn visit<F: Form<T> + 'static>(self, form: F) -> Self::Output;
}

/// Hands the form of the bytes to the visitor.
fn visit<T: Number, V: Visitor<T>>(bytes: &[u8], visitor: V) -> Result<V::Output, Error> {
    let (info, reader) = stored::open(bytes)?;
    visit_body(info, reader, visitor)
}

/// The same of bytes whose checksum is known to be right.
fn visit_body<T: Number, V: Visitor<T>>(info: Info, mut reader: Reader<'_>, visitor: V) -> Result<V::Output, Error> {
    Ok(match info.encoding {
        Encoding::Den => visitor.visit(Dense::<T>::read(&info, reader)?),
        Encoding::Csr => visitor.visit(Csr::<T>::read(&info, reader)?),
        Encoding::Cvi => {
            let values = Values::read(&info, &mut reader)?;
            match values.len() {
                ..=0x100 => visitor.visit(Cvi::<T, u8>::read(&info, values, reader)?),
                0x101..=0x10000 => visitor.visit(Cvi::<T, u16>::read(&info, values, reader)?),
                _ => visitor.visit(Cvi::<T, u32>::read(&info, values, reader)?),
            }
        }
        Encoding::Dvi => {
            let values = Values::read(&info, &mut reader)?;
            match values.len() {
                ..=0x100 => visitor.visit(Dvi::<T, u8>::read(&info, values, reader)?),
                0x101..=0x10000 => visitor.visit(Dvi::<T, u16>::read(&info, values, reader)?),
                _ => visitor.visit(Dvi::<T, u32>::read(&info, values, reader)?),
            }
        }
        Encoding::Toc => {
            let stored = Stored::read(&info, reader)?;
            match stored.columns.len() + stored.len() {
                ..=0x10000 => visit_tree::<T, u16, V>(&info, &stored, visitor)?,
                _ => visit_tree::<T, u32, V>(&info, &stored, visitor)?,
            }
        }
        Encoding::Gzip | Encoding::Snappy => visitor.visit(General::read(&info, reader)?),
    })
}

/// Hands over the tree, or all pairs where it saves too little.
fn visit_tree<T: Number, N: Index, V: Visitor<T>>(
    info: &Info,
    stored: &Stored<'_>,
    visitor: V,
) -> Result<V::Output, Error> {
    Ok(match Tree::<T, N>::new(info, stored, false)? {
        Ok(tree) => visitor.visit(tree),
        Err(entries) => {
            let Unfolded { starts, columns, values } = stored.unfold(info, entries)?;
            visitor.visit(Csr::from_parts(info, &starts, columns, values))
        }
    })
}

/// The tree of bytes of TOC, however little work it saves.
#[cfg(test)]
pub(crate) fn open_tree<T: Number>(bytes: &[u8], compact: bool) -> Box<dyn Operations<T>> {
    let (info, reader) = stored::open(bytes).unwrap();
    let stored = Stored::read(&info, reader).unwrap();
    let mut tree = Tree::<T, u32>::new(&info, &stored, true).unwrap().unwrap();
    if compact {
        tree.compact();
    }
    Box::new(Checked::new(tree))
}

/// Makes of the bytes the form that is worked on. Of TOC that is the decode tree, which serves all operations until it
/// is dropped; gzip and Snappy stay as they are and are unpacked by each operation, as the paper compares them.
///
/// # Errors
/// If the bytes are not what [`encode`](crate::encode) made, in every byte.
pub fn open<T: Opens>(bytes: &[u8]) -> Result<Box<dyn Operations<T>>, Error> {
    T::open(bytes)
}

/// A number for which [`open`] is compiled in this crate, and not again wherever it is called from.
pub trait Opens: Number {
    #[doc(hidden)]
    fn open(bytes: &[u8]) -> Result<Box<dyn Operations<Self>>, Error>;
}

impl Opens for f32 {
    fn open(bytes: &[u8]) -> Result<Box<dyn Operations<f32>>, Error> {
        operations(bytes)
    }
}

impl Opens for f64 {
    fn open(bytes: &[u8]) -> Result<Box<dyn Operations<f64>>, Error> {
        operations(bytes)
    }
}

fn operations<T: Number>(bytes: &[u8]) -> Result<Box<dyn Operations<T>>, Error> {
    struct Open;
    impl<T: Number> Visitor<T> for Open {
        type Output = Box<dyn Operations<T>>;
        fn visit<F: Form<T> + 'static>(self, form: F) -> Self::Output {
            Box::new(Checked::new(form))
        }
    }
    visit(bytes, Open)
}

struct AsMatrix {
    /// is it computed with more than once?
    stays: bool,
}

impl Visitor<f32> for AsMatrix {
    /// With it, whether all stored values are finite.
    type Output = (Box<dyn Matrix>, bool);

    fn visit<F: Form<f32> + 'static>(self, mut form: F) -> Self::Output {
        if self.stays {
            form.compact();
        }
        let all_finite = form.all_finite();
        (Box::new(Checked::new(form)), all_finite)
    }
}

/// The same for those who learn from a [`Matrix`].
///
/// # Errors
/// As [`open`].
pub fn matrix(bytes: &[u8]) -> Result<Box<dyn Matrix>, Error> {
    Ok(visit(bytes, AsMatrix { stays: true })?.0)
}

/// Bytes that were opened once, and so are known to be sound: opening them again leaves out the checksum.
#[derive(Debug)]
pub struct Packed {
    info: Info,
    bytes: Box<[u8]>,
}

impl Packed {
    /// A copy of the bytes; the matrix that they are; and whether it is known that no entry is infinite or NaN as f32.
    ///
    /// # Errors
    /// As [`open`].
    pub fn check(bytes: &[u8]) -> Result<(Packed, Box<dyn Matrix>, bool), Error> {
        let (matrix, all_finite) = visit(bytes, AsMatrix { stays: true })?;
        let packed = Packed { info: stored::info(bytes)?, bytes: allocation::copy(bytes).into() };
        Ok((packed, matrix, all_finite))
    }
}

impl PackedMatrix for Packed {
    fn bytes(&self) -> usize {
        size_of::<Packed>() + self.bytes.len()
    }

    fn open(&self) -> Box<dyn Matrix> {
        visit_body(self.info, Reader(&self.bytes[HEADER..]), AsMatrix { stays: false })
            .expect("they were opened before")
            .0
    }
}

/// Decompresses.
///
/// # Errors
/// As [`open`].
pub fn decode(bytes: &[u8]) -> Result<Rows, Error> {
    let (info, mut reader) = stored::open(bytes)?;
    match info.encoding {
        Encoding::Csr => Ok(rows_from_places(&info, Csr::<f64>::read(&info, reader)?.into_parts())),
        Encoding::Cvi => {
            let values = Values::read(&info, &mut reader)?;
            Ok(rows_from_places(&info, Cvi::<f64, u32>::read(&info, values, reader)?.into_parts()))
        }
        Encoding::Toc => Stored::read(&info, reader)?.decode(&info),
        _ => {
            let all = all_entries(&info, reader)?;
            let mut rows = Rows::new(info.columns);
            for i in 0..info.rows {
                rows.push_dense(&all[i * info.columns..(i + 1) * info.columns])?;
            }
            Ok(rows)
        }
    }
}

/// Decompresses to all entries, row by row, zeros included.
///
/// # Errors
/// As [`open`], and if there are more entries than [`limits`](crate::limits) allow to hold one by one.
pub fn decode_dense(bytes: &[u8]) -> Result<Vec<f64>, Error> {
    let (info, reader) = stored::open(bytes)?;
    if info.encoding.holds_zeros() { all_entries(&info, reader) } else { crate::dense::all_entries(&decode(bytes)?) }
}

fn rows_from_places(info: &Info, (places, values): (Places, Vec<f64>)) -> Rows {
    let (starts, indices) = places.into_parts();
    Rows::from_parts(info.columns, starts, indices, values).without_zeros()
}

/// All entries, if the encoding holds them.
fn all_entries(info: &Info, mut reader: Reader<'_>) -> Result<Vec<f64>, Error> {
    Ok(match info.encoding {
        Encoding::Dvi => {
            let values = Values::read(info, &mut reader)?;
            if values.len() <= 0x100 {
                dvi_entries::<u8>(info, values, reader)?
            } else {
                dvi_entries::<u32>(info, values, reader)?
            }
        }
        Encoding::Den => Dense::read(info, reader)?.into_values(),
        _ => General::read(info, reader)?.unpack()?.into_values(),
    })
}

fn dvi_entries<C: Index>(info: &Info, values: Values<'_>, reader: Reader<'_>) -> Result<Vec<f64>, Error> {
    Ok(Dvi::<f64, C>::read(info, values, reader)?.into_values())
}
