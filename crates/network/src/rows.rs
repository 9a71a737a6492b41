//! Tuples of a batch as a matrix: those that wait until their mini-batch is complete.
//!
//! They are copied: what they were in may be gone by then, and rows that lie one after the other multiply faster.

use loss::design::products;
use simd::{Kernel, Level, Simd};
use tuples::pause::Pauses;
use tuples::{Batch, Matrix, OutOfMemory};

/// Tuples, dense or sparse.
#[derive(Debug)]
pub(super) struct Rows {
    columns: usize,
    features: Features,
    pub(super) labels: Vec<f32>,
    /// 1 where the batch has none
    pub(super) weights: Vec<f32>,
    level: Level,
}

#[derive(Debug)]
enum Features {
    Dense(Vec<f32>),
    Sparse(Entries),
}

/// Entries of sparse rows, one row after the other.
#[derive(Debug, Default)]
struct Entries {
    ends: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
}

impl Entries {
    /// Columns and values of each row.
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, f32)>> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let row = std::mem::replace(&mut start, end)..end;
            let values = &self.values[row.clone()];
            self.indices[row].iter().zip(values).map(|(&index, &value)| (index as usize, value))
        })
    }
}

impl Rows {
    pub(super) fn new(sparse: bool, columns: usize, level: Level) -> Rows {
        let features = if sparse { Features::Sparse(Entries::default()) } else { Features::Dense(Vec::new()) };
        Rows { columns, features, labels: Vec::new(), weights: Vec::new(), level }
    }

    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    pub(super) fn is_sparse(&self) -> bool {
        matches!(self.features, Features::Sparse(_))
    }

    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// Columns of the entries, as they come; None if all have an entry.
    pub(super) fn indices(&self) -> Option<&[u32]> {
        match &self.features {
            Features::Dense(_) => None,
            Features::Sparse(entries) => Some(&entries.indices),
        }
    }

    pub(super) fn clear(&mut self) {
        match &mut self.features {
            Features::Dense(rows) => rows.clear(),
            Features::Sparse(Entries { ends, indices, values }) => {
                ends.clear();
                indices.clear();
                values.clear();
            }
        }
        self.labels.clear();
        self.weights.clear();
    }

    /// Appends a copy of tuple `i`.
    pub(super) fn push(&mut self, batch: &Batch, i: usize) -> Result<(), OutOfMemory> {
        match &mut self.features {
            Features::Dense(rows) => extend(rows, batch.features(i))?,
            Features::Sparse(Entries { ends, indices, values }) => {
                let (of_row, values_of_row) = batch.sparse_row(i);
                extend(indices, of_row)?;
                extend(values, values_of_row)?;
                ends.push(indices.len());
            }
        }
        self.labels.push(batch.label(i));
        self.weights.push(batch.weight(i));
        Ok(())
    }

    fn check(&self, of_columns: usize, of_rows: usize, width: usize) {
        assert_eq!(of_columns, self.columns * width, "numbers for every column");
        assert_eq!(of_rows, self.len() * width, "numbers for every row");
    }
}

fn extend<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<(), OutOfMemory> {
    allocation::try_reserve(to, from.len())?;
    to.extend_from_slice(from);
    Ok(())
}

impl Matrix for Rows {
    fn rows(&self) -> usize {
        self.len()
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn bytes(&self) -> usize {
        let features = match &self.features {
            Features::Dense(rows) => size_of_val(&rows[..]),
            Features::Sparse(Entries { ends, indices, values }) => {
                size_of_val(&ends[..]) + size_of_val(&indices[..]) + size_of_val(&values[..])
            }
        };
        features + size_of_val(&self.labels[..]) + size_of_val(&self.weights[..])
    }

    fn times_vector(&self, v: &[f32], out: &mut [f32], scratch: &mut Vec<f32>) {
        self.times_matrix(v, 1, out, scratch);
    }

    fn vector_times(&self, v: &[f32], out: &mut [f32], scratch: &mut Vec<f32>) {
        self.transposed_times_matrix(v, 1, out, scratch);
    }

    fn times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], _: &mut Vec<f32>) {
        self.check(m.len(), out.len(), width);
        match &self.features {
            Features::Dense(rows) => products::times(rows, m, self.len(), width, out),
            Features::Sparse(entries) => self.level.run(Product::<false> { entries, m, width, out }),
        }
    }

    fn transposed_times_matrix(&self, m: &[f32], width: usize, out: &mut [f32], _: &mut Vec<f32>) {
        self.check(out.len(), m.len(), width);
        match &self.features {
            Features::Dense(rows) => products::add_transposed_times(rows, m, self.len(), width, out),
            Features::Sparse(entries) => self.level.run(Product::<true> { entries, m, width, out }),
        }
    }
}

/// Each row of `out` is the sum of the rows of `m` that its entries name, times their values. Transposed, each row of
/// `m`, times the values of its entries, is added to the rows of `out` that they name.
struct Product<'a, const TRANSPOSED: bool> {
    entries: &'a Entries,
    m: &'a [f32],
    width: usize,
    out: &'a mut [f32],
}

impl<const TRANSPOSED: bool> Kernel for Product<'_, TRANSPOSED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Product { entries, m, width, out } = self;
        let mut pauses = Pauses::default();
        for (place, row) in entries.rows().enumerate() {
            let of_row = place * width..(place + 1) * width;
            if !TRANSPOSED {
                out[of_row.clone()].fill(0.0);
            }
            for (index, value) in row {
                let of_index = index * width..(index + 1) * width;
                match TRANSPOSED {
                    true => add(&mut out[of_index], &m[of_row.clone()], value),
                    false => add(&mut out[of_row.clone()], &m[of_index], value),
                }
                pauses.after(width);
            }
        }
    }
}

#[inline(always)]
fn add(to: &mut [f32], row: &[f32], factor: f32) {
    to.iter_mut().zip(row).for_each(|(to, x)| *to += factor * x);
}
