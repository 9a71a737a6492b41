//! Mean and standard deviation of the columns in one pass.
//!
//! Guarantees: no cancellation, whatever the mean is: the rows are taken in blocks that stay in the cache, each block
//! is gone through twice (mean, then squared deviations from it), and the blocks are merged by the formulas of Chan,
//! Golub and LeVeque (1983). A constant column has a deviation of exactly 0, because differences are taken from the
//! first row of the block. It prevents E\[x²\] - E\[x\]², which is noise for a timestamp.

use loss::kernels::{Columns, Sums};
use loss::{Standardizer, is_coarse};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use simd::{Chunk, Level};
use tuples::{Batch, LANES, OutOfMemory};

use crate::moment::merge;
use crate::sparse_moments::SparseMoments;

/// Bytes of rows in a block: a part of the first-level cache.
const BLOCK_BYTES: usize = 16 * 1024;

/// Blocks have at least as many rows, since each block costs a merge.
const MIN_BLOCK_ROWS: usize = 16;

/// Mean and variance of every column, while rows arrive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Moments {
    dim: usize,
    #[serde(skip, default = "Level::detect")]
    level: Level,
    count: u64,
    /// of the rows, each of which counts 1 if it has none
    weight: f64,
    mean: Vec<Columns>,
    /// sums of squared deviations from the mean
    squares: Vec<Columns>,
    /// which columns had nothing but 0 and 1 so far
    binary: Vec<[bool; LANES]>,
    /// of sparse tuples, if they are sparse
    sparse: Option<SparseMoments>,
}

impl Serialize for Moments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Moments::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Moments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moments, D::Error> {
        let moments = Moments::deserialize(deserializer)?;
        let chunks = [moments.mean.len(), moments.squares.len(), moments.binary.len()];
        match chunks == [moments.dim / LANES + 1; 3] {
            true => Ok(moments),
            false => Err(D::Error::custom("not as many moments as columns")),
        }
    }
}

impl Moments {
    /// No rows yet, of `dim` features.
    pub fn new(dim: usize) -> Moments {
        Moments::with_level(dim, Level::detect())
    }

    pub(crate) fn with_level(dim: usize, level: Level) -> Moments {
        let chunks = dim / LANES + 1;
        let (mean, squares) = (allocation::zeros(chunks), allocation::zeros(chunks));
        let binary = allocation::filled([true; LANES], chunks);
        Moments { dim, level, count: 0, weight: 0.0, mean, squares, binary, sparse: None }
    }

    /// Adds all rows of `batch`, by place, each as much as it weighs, which is more than 0. Of sparse tuples, what is
    /// not stored counts as 0, and there may be more features than before.
    ///
    /// # Errors
    /// [`OutOfMemory`] if there is no room for the features of sparse tuples.
    ///
    /// # Panics
    /// If a dense batch has another number of features, or only some of the batches are sparse.
    pub fn add(&mut self, batch: &Batch) -> Result<(), OutOfMemory> {
        if batch.is_sparse() {
            assert_eq!(self.count, 0, "all batches are sparse, or none");
            return self.sparse.get_or_insert_default().add(batch);
        }
        assert!(self.sparse.is_none(), "all batches are sparse, or none");
        assert_eq!(batch.dim(), self.dim, "as many features as the moments were made for");
        let (rows, _) = batch.rows().as_chunks::<LANES>();
        let per_row = self.mean.len();
        let per_block = (BLOCK_BYTES / (per_row * size_of::<Chunk>())).max(MIN_BLOCK_ROWS);
        let (mut origin, mut sums) = (allocation::zeros(per_row), allocation::zeros(per_row));
        for (i, rows) in rows.chunks(per_block * per_row).enumerate() {
            let weights = batch.weights().map(|weights| &weights[i * per_block..][..rows.len() / per_row]);
            self.add_block(rows, weights, &mut origin, &mut sums);
        }
        Ok(())
    }

    /// What the dense rows weigh that were added.
    pub(crate) fn weight(&self) -> f64 {
        self.weight
    }

    /// How many rows were added.
    pub fn count(&self) -> u64 {
        self.sparse.as_ref().map_or(self.count, SparseMoments::count)
    }

    /// The scaling that brings the rows added so far to mean 0 and standard deviation 1.
    pub fn finish(&self) -> Standardizer {
        if let Some(sparse) = &self.sparse {
            return sparse.finish();
        }
        let count = self.weight_or_one();
        let mean = self.mean.iter().flatten().take(self.dim);
        let squares = self.squares.iter().flatten().take(self.dim);
        let deviation = |&square: &f64| if square == 0.0 { 1.0 } else { (square / count).sqrt() };
        Standardizer { mean: allocation::collect(mean.copied()), scale: allocation::collect(squares.map(deviation)) }
    }

    /// The same, but columns of nothing but 0 and 1 stay as they are, unless they are constant.
    /// Of sparse tuples there is no scaling: None.
    ///
    /// That a 0/1 column is not centred leaves a row without the category it stands for without a step.
    pub fn finish_automatically(&self) -> Option<Standardizer> {
        if self.sparse.is_some() {
            return None;
        }
        let mut scaling = self.finish();
        let varies = self.squares.iter().flatten().map(|square| *square > 0.0);
        let of_column = scaling.mean.iter_mut().zip(&mut scaling.scale);
        for ((mean, scale), (binary, varies)) in of_column.zip(self.binary.iter().flatten().zip(varies)) {
            if *binary && varies {
                (*mean, *scale) = (0.0, 1.0);
            }
        }
        Some(scaling)
    }

    /// The mean of feature `j` of dense rows.
    ///
    /// # Panics
    /// If there is no such feature.
    pub fn mean(&self, j: u32) -> f64 {
        let j = j as usize;
        self.mean[j / LANES][j % LANES]
    }

    /// Mean and deviation of each feature of dense rows.
    pub fn describe(&self) -> impl Iterator<Item = (f64, f64)> {
        let count = self.weight_or_one();
        self.means_and_squares().map(move |(mean, squares)| (mean, (squares / count).sqrt()))
    }

    /// The features of dense rows of which float32 keeps only steps that are coarse compared with their deviation,
    /// because their numbers lie far from 0: see [`is_coarse`].
    pub fn coarse(&self) -> Vec<u32> {
        let count = self.weight_or_one();
        let moments = (0..).zip(self.means_and_squares());
        moments.filter(|(_, (mean, squares))| is_coarse(*mean, (squares / count).sqrt())).map(|(j, _)| j).collect()
    }

    /// The mean over the rows of |x|², the features being scaled by this, or as they are.
    ///
    /// # Panics
    /// If the scaling is of fewer features.
    pub fn mean_square(&self, scaling: Option<&Standardizer>) -> f64 {
        let of_feature = |j: usize, mean: f64, variance: f64| match scaling {
            Some(scaling) => (variance + (mean - scaling.mean[j]).powi(2)) / scaling.scale[j].powi(2),
            None => variance + mean * mean,
        };
        if let Some(sparse) = &self.sparse {
            return sparse.moments().enumerate().map(|(j, (mean, variance))| of_feature(j, mean, variance)).sum();
        }
        let count = self.weight_or_one();
        let moments = self.mean.iter().flatten().zip(self.squares.iter().flatten()).take(self.dim);
        moments.enumerate().map(|(j, (mean, squares))| of_feature(j, *mean, squares / count)).sum()
    }

    /// Takes notice of columns that have something else than 0 and 1.
    fn look_for_binary(&mut self, rows: &[Chunk]) {
        for (c, binary) in self.binary.iter_mut().enumerate() {
            if !binary.contains(&true) {
                continue;
            }
            for row in rows.chunks_exact(self.mean.len()) {
                for lane in 0..LANES {
                    binary[lane] &= row[c][lane] == 0.0 || row[c][lane] == 1.0;
                }
            }
        }
    }

    /// Takes these as mean, and sum of squared deviations from it, of each feature of this many dense rows, where there
    /// are any.
    ///
    /// # Panics
    /// If the rows were sparse, or another number.
    pub(crate) fn replace_some(&mut self, rows: u64, moments: impl Iterator<Item = Option<(f64, f64)>>) {
        assert!(self.sparse.is_none() && self.count == rows, "the same dense rows");
        let columns = self.mean.iter_mut().flatten().zip(self.squares.iter_mut().flatten());
        for ((mean, squares), imputed) in columns.zip(moments) {
            (*mean, *squares) = imputed.unwrap_or((*mean, *squares));
        }
    }

    /// Takes these as mean, and sum of squared deviations from it, of feature `j` of dense rows.
    pub(crate) fn replace(&mut self, j: usize, mean: f64, squares: f64) {
        let (chunk, lane) = (j / LANES, j % LANES);
        (self.mean[chunk][lane], self.squares[chunk][lane]) = (mean, squares);
        self.binary[chunk][lane] = false;
    }

    /// Mean, and sum of squared deviations from it, of every feature of dense rows.
    pub(crate) fn means_and_squares(&self) -> impl Iterator<Item = (f64, f64)> {
        let columns = self.mean.iter().flatten().zip(self.squares.iter().flatten()).take(self.dim);
        columns.map(|(mean, squares)| (*mean, *squares))
    }

    /// Adds the rows that were measured elsewhere. False if they have another number of features, or if one of both is
    /// of sparse tuples; then nothing was added.
    pub fn unite(&mut self, other: &Moments) -> bool {
        if other.dim != self.dim || (self.count() > 0 && self.sparse.is_some() != other.sparse.is_some()) {
            return false;
        }
        if let Some(sparse) = &other.sparse {
            self.sparse.get_or_insert_default().unite(sparse);
        } else if other.count > 0 {
            self.merge((other.count, other.weight), &other.mean, &other.squares);
            let binary = self.binary.as_flattened_mut().iter_mut().zip(other.binary.as_flattened());
            binary.for_each(|(both, other)| *both &= other);
        }
        true
    }

    /// Adds the rows of one block, at least one; the others are room for its sums.
    fn add_block(&mut self, rows: &[Chunk], weights: Option<&[f32]>, origin: &mut [Columns], sums: &mut [Columns]) {
        self.look_for_binary(rows);
        let count = rows.len() / origin.len();
        let weight = weights.map_or(count as f64, |weights| weights.iter().copied().map(f64::from).sum());
        for (origin, first) in origin.iter_mut().zip(rows) {
            *origin = first.map(f64::from);
        }
        self.level.run(Sums::<false> { rows, weights, origin, sums });
        // from here on, the origin is the mean of the block
        for (origin, sum) in origin.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
            *origin += sum / weight;
        }
        self.level.run(Sums::<true> { rows, weights, origin, sums });
        self.merge((count as u64, weight), origin, sums);
    }

    /// The weight that sums are divided by.
    fn weight_or_one(&self) -> f64 {
        if self.count > 0 { self.weight } else { 1.0 }
    }

    fn merge(&mut self, (count, weight): (u64, f64), mean: &[Columns], squares: &[Columns]) {
        let before = self.weight;
        self.count += count;
        self.weight += weight;
        let share = weight / self.weight;
        let own = self.mean.as_flattened_mut().iter_mut().zip(self.squares.as_flattened_mut());
        for (own, (mean, squares)) in own.zip(mean.as_flattened().iter().zip(squares.as_flattened())) {
            merge(own, (*mean, *squares), before, share);
        }
    }
}
