//! From rows to training tuples: (label, features) as SGD wants them.
//!
//! Nothing that cannot be learned from gets through: NULLs, NaN, infinities, other lengths, a third class are errors that
//! name the row, or, for NULLs and if asked, are left out and counted.

mod labels;

use crate::error::{Result, RowAt, RowFault};
use crate::pg::array::{ArrayFault, ArrayReader};
use crate::pg::number::{NumberFault, NumberType, narrow};
use crate::pg::row::Row;
use crate::pg::uniform::{Destination, Run, Uniform};
pub use labels::Labels;
use pgrx::pg_sys::Datum;
use serde::{Deserialize, Serialize};
use tuples::{Batch, RowsMut};

/// What to do with rows that have a NULL label or feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nulls {
    #[default]
    Error,
    Skip,
}

/// The columns that are the features.
pub enum Features {
    /// one column with arrays of numbers
    Array(ArrayReader),
    /// one column of numbers per feature
    Columns(Vec<NumberType>),
}

/// The rows of one page.
pub trait PageRows {
    fn len(&self) -> usize;
    /// The label and then the features of row `i`.
    fn row(&mut self, i: usize) -> Row<'_>;
    /// Where row `i` stands.
    fn at(&self, i: usize) -> RowAt;
    /// Where rows have label and features if these are an array of `len` `real`s, and no columns are in their way.
    fn uniform(&self, arrays: ArrayReader, len: usize) -> Option<Uniform>;
    /// Copies labels and features of the rows before `end`, from the last to the first, until one is not as `uniform`
    /// says.
    fn copy_run(&mut self, end: usize, uniform: &Uniform, to: Destination<'_>) -> Run;
    /// Row `i` is being read, the rows behind it have been: time to fetch a share of the next page.
    fn prefetch_next(&self, i: usize);
}

/// Whether a row became a tuple, or is to be left out.
type Decoded = std::result::Result<bool, Box<RowFault>>;

/// Turns rows (label, features...) into training tuples.
pub struct Decoder {
    labels: Labels,
    features: Features,
    /// names of the features' columns, for messages
    names: Vec<String>,
    nulls: Nulls,
    /// features per tuple, once known
    dim: Option<usize>,
    skipped: u64,
    /// labels of a page
    values: Vec<Datum>,
}

impl Decoder {
    /// A decoder of rows of `source`. For arrays, `dim` is what the first row has if it is not given.
    pub fn new(labels: Labels, features: Features, names: Vec<String>, nulls: Nulls, dim: Option<usize>) -> Decoder {
        let dim = match &features {
            Features::Columns(types) => Some(types.len()),
            Features::Array(_) => dim,
        };
        Decoder { labels, features, names, nulls, dim, skipped: 0, values: Vec::new() }
    }

    /// The labels met so far.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Forgets how many rows were left out: a new epoch begins.
    pub fn begin_epoch(&mut self) {
        self.skipped = 0;
    }

    /// Are the features the elements of one array column?
    pub fn decodes_arrays(&self) -> bool {
        matches!(self.features, Features::Array(_))
    }

    /// Rows left out since the epoch began.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Decodes all rows of a page into `batch`, which gets its number of features if it is new.
    pub fn decode_page(&mut self, batch: &mut Batch, page: &mut impl PageRows) -> Result<()> {
        if !(0..page.len()).any(|i| self.prepare(batch, page.row(i))) {
            // Nothing to learn the number of features from: every row has a fault, or the page no row.
            return (0..page.len()).try_for_each(|i| {
                self.decode(page.row(i), &mut 0.0, &mut []).map_err(|fault| fault.at(page.at(i))).map(|_| ())
            });
        }
        let first = batch.len();
        let mut rows = batch.extend(page.len())?;
        let mut skipped = false;
        let uniform = match (&self.features, self.dim) {
            (Features::Array(arrays), Some(dim)) => page.uniform(*arrays, dim),
            _ => None,
        };
        // Tuples are added to a page from its end: in this order their addresses ascend.
        let mut end = page.len();
        while end > 0 {
            if let Some(uniform) = &uniform {
                end = self.decode_run(page, end, uniform, &mut rows)?;
                if end == 0 {
                    break;
                }
            }
            end -= 1;
            let i = end;
            page.prefetch_next(i);
            let (label, features) = rows.row_mut(i);
            match self.decode(page.row(i), label, features) {
                Ok(true) => {}
                Ok(false) => {
                    *label = SKIPPED;
                    skipped = true;
                }
                Err(fault) => return Err(fault.at(page.at(i))),
            }
        }
        if skipped {
            batch.retain_from(first, |label| !label.is_nan());
        }
        Ok(())
    }

    /// Decodes rows before `end`, from the last to the first, as long as they have the usual shape and no fault; returns
    /// the end of those that are left.
    #[inline]
    fn decode_run(
        &mut self,
        page: &mut impl PageRows,
        end: usize,
        uniform: &Uniform,
        rows: &mut RowsMut<'_>,
    ) -> Result<usize> {
        let (labels, arrays, stride) = rows.parts_mut();
        self.values.resize(self.values.len().max(end), Datum::null());
        let run = page.copy_run(end, uniform, Destination { values: &mut self.values, arrays, stride });
        if !run.finite {
            return Ok(end); // row by row, then, to find the one at fault
        }
        for i in (run.first..end).rev() {
            labels[i] = self.labels.sign(self.values[i]).map_err(|fault| fault.at(page.at(i)))?;
        }
        Ok(run.first)
    }

    /// Decodes one row into `batch`.
    pub fn decode_row(&mut self, batch: &mut Batch, row: Row<'_>, at: RowAt) -> Result<()> {
        if !self.prepare(batch, row) {
            return self.decode(row, &mut 0.0, &mut []).map_err(|fault| fault.at(at)).map(|_| ());
        }
        let last = batch.len();
        let mut label = 0.0;
        if self.decode(row, &mut label, batch.push(0.0)?).map_err(|fault| fault.at(at))? {
            batch.labels_mut()[last] = label;
        } else {
            batch.truncate(last);
        }
        Ok(())
    }

    /// Makes `batch` one for our number of features, which is that of the first feature array that comes along. False if
    /// it is still not known.
    #[inline]
    fn prepare(&mut self, batch: &mut Batch, row: Row<'_>) -> bool {
        if self.dim.is_none() {
            self.dim = match (&self.features, row.get(1)) {
                (Features::Array(reader), Some(array)) => reader.len(array).ok().filter(|len| *len > 0),
                _ => None,
            };
        }
        match self.dim {
            Some(dim) if batch.is_empty() && batch.dim() != dim => *batch = Batch::new(dim),
            Some(_) => {}
            None => return false,
        }
        true
    }

    /// Decodes one row in place. False if it is to be left out.
    #[inline(always)]
    fn decode(&mut self, row: Row<'_>, label_out: &mut f32, out: &mut [f32]) -> Decoded {
        let Some(label) = row.get(0) else { return self.null(RowFault::NullLabel) };
        match &self.features {
            Features::Array(reader) => {
                let Some(array) = row.get(1) else { return self.null(RowFault::NullFeatures) };
                if out.is_empty() {
                    // no array so far had a length to go by
                    return self.array_fault(reader.len(array).err().unwrap_or(ArrayFault::Length(0)), 0);
                }
                if let Err(fault) = reader.read(array, out) {
                    return self.array_fault(fault, out.len());
                }
            }
            Features::Columns(types) => {
                for (i, (number, place)) in types.iter().zip(out).enumerate() {
                    let Some(value) = row.get(i + 1) else {
                        return self.null(RowFault::NullFeature(self.feature_name(i)));
                    };
                    *place = match narrow(number.read(value)) {
                        Ok(value) => value,
                        Err(fault) => return Err(number_fault(fault, self.feature_name(i))),
                    };
                }
            }
        }
        *label_out = self.labels.sign(label)?;
        Ok(true)
    }

    #[cold]
    fn null(&mut self, fault: RowFault) -> Decoded {
        match self.nulls {
            Nulls::Error => Err(Box::new(fault)),
            Nulls::Skip => {
                self.skipped += 1;
                Ok(false)
            }
        }
    }

    #[cold]
    fn array_fault(&mut self, fault: ArrayFault, expected: usize) -> Decoded {
        Err(match fault {
            ArrayFault::Null(i) => return self.null(RowFault::NullFeature(self.feature_name(i - 1))),
            ArrayFault::Number(i, fault) => number_fault(fault, self.feature_name(i - 1)),
            ArrayFault::Length(0) => Box::new(RowFault::Empty),
            ArrayFault::Length(found) => Box::new(RowFault::Length(found, expected)),
            ArrayFault::Dimensions(n) => Box::new(RowFault::Dimensions(n)),
        })
    }

    /// Feature `i`, from 0, as the user knows it.
    fn feature_name(&self, i: usize) -> String {
        match &self.features {
            Features::Array(_) => format!("{}[{}]", self.names[0], i + 1),
            Features::Columns(_) => self.names[i].clone(),
        }
    }
}

/// The label of a row that is to be left out.
const SKIPPED: f32 = f32::NAN;

#[cold]
fn number_fault(fault: NumberFault, name: String) -> Box<RowFault> {
    Box::new(match fault {
        NumberFault::NotFinite(value) => RowFault::NotFinite(name, value),
        NumberFault::OutOfRange(value) => RowFault::OutOfRange(name, value),
    })
}
