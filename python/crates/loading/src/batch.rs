//! Batches: rows gathered from wherever they are in a buffer into arrays of their own.
//!
//! It guarantees that no one else has the memory of a batch, so that it may be changed, and given away without a copy.

use crate::pieces::{ColumnKind, Layout, Number, Piece, PieceColumn, Slices};
use arrow::array::{Array, ArrayRef, new_empty_array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat, interleave};
use simd::prefetch_far;
use source::SourceError;
use std::fmt;

/// Something for numbers of each type.
pub(crate) trait Family {
    /// What it is for numbers of type `T`.
    type Of<T: Number>;
}

macro_rules! types {
    ($($name:ident = $native:ty, $code:literal;)*) => {
        /// Something for numbers of one of the types.
        pub(crate) enum Typed<F: Family> {
            $($name(F::Of<$native>),)*
        }

        /// The numbers of a column, by their type.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Values {
            $(
                #[doc = concat!("Numbers of numpy's type `", $code, "`.")]
                $name(Vec<$native>),
            )*
        }

        impl Values {
            /// Room for numbers of the type that numpy calls so.
            fn with_capacity(code: &str, capacity: usize) -> Values {
                match code {
                    $($code => Values::$name(Vec::with_capacity(capacity)),)*
                    _ => unreachable!("no kind of column has numbers of type {code}"),
                }
            }

            /// A copy of these numbers.
            pub(crate) fn from_slices(slices: Typed<Slices>) -> Values {
                match slices {
                    $(Typed::$name(values) => Values::$name(values.to_vec()),)*
                }
            }

            /// Puts more behind these; false if they are of another type.
            fn append(&mut self, more: Values) -> bool {
                match (self, more) {
                    $((Values::$name(values), Values::$name(mut more)) => values.append(&mut more),)*
                    _ => return false,
                }
                true
            }

            /// How many there are.
            pub fn len(&self) -> usize {
                match self {
                    $(Values::$name(values) => values.len(),)*
                }
            }

            /// Appends these rows of this many numbers each.
            fn gather(&mut self, pieces: &Typed<Runs>, places: &[Place], width: usize) {
                match (self, pieces) {
                    $((Values::$name(to), Typed::$name(from)) => gather(to, from, places, width),)*
                    _ => unreachable!("a column has the same type in all pieces"),
                }
            }
        }

        impl Clone for Typed<Slices> {
            fn clone(&self) -> Self {
                match self {
                    $(Typed::$name(values) => Typed::$name(values.clone()),)*
                }
            }
        }

        impl fmt::Debug for Typed<Slices> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Typed::$name(values) => fmt::Debug::fmt(values, f),)*
                }
            }
        }

        /// A column's numbers in all pieces. There is at least one.
        fn runs(of: Vec<Typed<Slices>>) -> Typed<Runs> {
            match &of[0] {
                $(Typed::$name(_) => Typed::$name(
                    of.into_iter()
                        .map(|values| match values {
                            Typed::$name(values) => values,
                            _ => unreachable!("a column has the same type in all pieces"),
                        })
                        .collect(),
                ),)*
            }
        }

        impl Typed<Runs> {
            fn len(&self) -> usize {
                match self {
                    $(Typed::$name(pieces) => pieces.len(),)*
                }
            }

            fn append(&mut self, more: Typed<Runs>) {
                match (self, more) {
                    $((Typed::$name(pieces), Typed::$name(mut more)) => pieces.append(&mut more),)*
                    _ => unreachable!("a column has the same type in all pieces"),
                }
            }

            fn clear(&mut self, piece: usize) {
                match self {
                    $(Typed::$name(pieces) => pieces[piece] = ScalarBuffer::default(),)*
                }
            }
        }
    };
}

types! {
    I1 = i8, "<i1";
    I2 = i16, "<i2";
    I4 = i32, "<i4";
    I8 = i64, "<i8";
    U1 = u8, "<u1";
    U2 = u16, "<u2";
    U4 = u32, "<u4";
    U8 = u64, "<u8";
    F4 = f32, "<f4";
    F8 = f64, "<f8";
}

impl Values {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The numbers of a column in several pieces.
pub(crate) struct Runs;

impl Family for Runs {
    type Of<T: Number> = Vec<ScalarBuffer<T>>;
}

/// A column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Numbers, those of a row one after the other.
    Fixed(Values),
    /// Text, bytes or lists, a row each.
    Object(ArrayRef),
}

/// Rows, column by column, in the order of the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Column>,
    /// How many rows there are.
    pub rows: usize,
}

impl Batch {
    /// Puts the rows of another batch behind these.
    ///
    /// # Errors
    /// [`SourceError::Invalid`] if it has other columns.
    pub fn append(&mut self, more: Batch) -> Result<(), SourceError> {
        let other = || SourceError::Invalid("rows of other columns cannot be put behind these".to_owned());
        if self.columns.len() != more.columns.len() {
            return Err(other());
        }
        for (column, more) in self.columns.iter_mut().zip(more.columns) {
            match (column, more) {
                (Column::Fixed(values), Column::Fixed(more)) => {
                    if !values.append(more) {
                        return Err(other());
                    }
                }
                (Column::Object(values), Column::Object(more)) => {
                    *values = concat(&[values, &more]).map_err(|error| SourceError::Invalid(error.to_string()))?;
                }
                _ => return Err(other()),
            }
        }
        self.rows += more.rows;
        Ok(())
    }
}

/// Where a row is: its piece, and its number there. A row whose piece is [`MISSING`] was skipped.
pub(crate) type Place = (u32, u32);

/// The piece of rows that are in none.
pub(crate) const MISSING: u32 = u32::MAX;

/// Pieces side by side, a column each.
pub(crate) enum Pieces {
    Fixed(Typed<Runs>),
    Object(Vec<ArrayRef>),
}

impl Pieces {
    /// How many pieces there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            Pieces::Fixed(pieces) => pieces.len(),
            Pieces::Object(pieces) => pieces.len(),
        }
    }

    /// Puts more pieces behind these.
    pub(crate) fn append(&mut self, more: Pieces) {
        match (self, more) {
            (Pieces::Fixed(pieces), Pieces::Fixed(more)) => pieces.append(more),
            (Pieces::Object(pieces), Pieces::Object(mut more)) => pieces.append(&mut more),
            _ => unreachable!("a column has the same type in all pieces"),
        }
    }

    /// Gives back the memory of a piece that no one will gather from any more.
    pub(crate) fn clear(&mut self, piece: usize) {
        match self {
            Pieces::Fixed(pieces) => pieces.clear(piece),
            Pieces::Object(pieces) => pieces[piece] = new_empty_array(pieces[piece].data_type()),
        }
    }
}

/// The pieces by columns; none if there are no pieces.
pub(crate) fn by_columns(pieces: Vec<Piece>) -> Vec<Pieces> {
    let columns = pieces.first().map_or(0, |piece| piece.columns.len());
    let mut fixed: Vec<Vec<Typed<Slices>>> = (0..columns).map(|_| Vec::new()).collect();
    let mut objects: Vec<Vec<ArrayRef>> = vec![Vec::new(); columns];
    for (i, column) in pieces.into_iter().flat_map(|piece| piece.columns.into_iter().enumerate()) {
        match column {
            PieceColumn::Fixed(values) => fixed[i].push(values),
            PieceColumn::Object(array) => objects[i].push(array),
        }
    }
    let column = |(fixed, objects): (Vec<_>, _)| {
        if fixed.is_empty() { Pieces::Object(objects) } else { Pieces::Fixed(runs(fixed)) }
    };
    fixed.into_iter().zip(objects).map(column).collect()
}

/// A batch that is being made.
pub(crate) struct Builder<'a> {
    layout: &'a Layout,
    columns: Vec<Building>,
    rows: usize,
}

enum Building {
    Fixed(Values, usize),
    Object(Vec<ArrayRef>),
}

impl<'a> Builder<'a> {
    /// A batch of `rows` rows.
    pub(crate) fn new(layout: &'a Layout, rows: usize) -> Builder<'a> {
        let column = |(_, kind): &(String, ColumnKind)| match kind {
            ColumnKind::Object => Building::Object(Vec::new()),
            ColumnKind::Fixed { native, shape, .. } => {
                let width = shape.iter().product::<usize>();
                Building::Fixed(Values::with_capacity(native, rows * width), width)
            }
        };
        Builder { layout, columns: layout.columns().iter().map(column).collect(), rows: 0 }
    }

    /// Appends the rows in these places of a buffer.
    pub(crate) fn gather(&mut self, pieces: &[Pieces], places: &[Place]) -> Result<(), SourceError> {
        let present: Vec<Place>;
        let places = if places.iter().any(|(piece, _)| *piece == MISSING) {
            present = places.iter().filter(|(piece, _)| *piece != MISSING).copied().collect();
            &present
        } else {
            places
        };
        if places.is_empty() {
            return Ok(());
        }
        self.rows += places.len();
        for (column, pieces) in self.columns.iter_mut().zip(pieces) {
            match (column, pieces) {
                (Building::Fixed(values, width), Pieces::Fixed(pieces)) => values.gather(pieces, places, *width),
                (Building::Object(parts), Pieces::Object(pieces)) => parts.push(interleaved(pieces, places)?),
                _ => unreachable!("a column has the same type in all pieces"),
            }
        }
        Ok(())
    }

    /// The batch, with as many rows as there were.
    pub(crate) fn finish(self) -> Result<Batch, SourceError> {
        let of = |column| match column {
            Building::Fixed(values, _) => Ok(Column::Fixed(values)),
            Building::Object(mut parts) => match parts.len() {
                0 => Ok(Column::Object(new_empty_array(&arrow::datatypes::DataType::Utf8))),
                1 => Ok(Column::Object(parts.remove(0))),
                _ => {
                    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                    concat(&parts).map(Column::Object).map_err(|error| SourceError::Invalid(error.to_string()))
                }
            },
        };
        debug_assert_eq!(self.layout.columns().len(), self.columns.len());
        Ok(Batch { columns: self.columns.into_iter().map(of).collect::<Result<_, _>>()?, rows: self.rows })
    }
}

/// Bytes of rows for which memory is asked before the first of them is copied: each is where the processor's caches
/// have nothing.
const AHEAD_BYTES: usize = 4 << 10;

/// The least and the most rows for that.
const AHEAD: (usize, usize) = (2, 32);

/// Rows up to this long are asked for as a whole. Of a longer one a line of each page is, so that the processor knows
/// where the page is: in a page it finds the next lines by itself.
const WHOLE_BYTES: usize = 8 << 10;

const LINE: usize = 64;
const PAGE: usize = 4 << 10;

/// Appends the rows in these places.
fn gather<T: Number>(to: &mut Vec<T>, from: &[ScalarBuffer<T>], places: &[Place], width: usize) {
    let bytes = width * size_of::<T>();
    let ahead = (AHEAD_BYTES / bytes.max(1)).clamp(AHEAD.0, AHEAD.1);
    let step = (if bytes <= WHOLE_BYTES { LINE } else { PAGE }) / size_of::<T>();
    let ask = |(piece, row): &Place| {
        let (numbers, start) = (&from[*piece as usize], *row as usize * width);
        (start..start + width).step_by(step).for_each(|number| prefetch_far(numbers, number));
        // the last line, if the row does not begin where a line does
        prefetch_far(numbers, start + width.saturating_sub(1));
    };
    places.iter().take(ahead).for_each(ask);
    if width == 1 {
        to.extend(places.iter().enumerate().map(|(i, (piece, row))| {
            places.get(i + ahead).into_iter().for_each(ask);
            from[*piece as usize][*row as usize]
        }));
        return;
    }
    for (i, (piece, row)) in places.iter().enumerate() {
        places.get(i + ahead).into_iter().for_each(ask);
        let start = *row as usize * width;
        to.extend_from_slice(&from[*piece as usize][start..start + width]);
    }
}

fn interleaved(pieces: &[ArrayRef], places: &[Place]) -> Result<ArrayRef, SourceError> {
    // only those that are wanted, because each costs something
    let mut wanted: Vec<u32> = places.iter().map(|(piece, _)| *piece).collect();
    wanted.sort_unstable();
    wanted.dedup();
    let arrays: Vec<&dyn Array> = wanted.iter().map(|piece| pieces[*piece as usize].as_ref()).collect();
    let index = |piece| wanted.binary_search(&piece).unwrap_or_default();
    let places: Vec<(usize, usize)> = places.iter().map(|(piece, row)| (index(*piece), *row as usize)).collect();
    interleave(&arrays, &places).map_err(|error| SourceError::Invalid(error.to_string()))
}
