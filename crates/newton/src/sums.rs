//! Loss, gradient and Hessian of all tuples at one point.
//!
//! Guarantees: each element is the sum of its tuples in their sequence, each of which is multiplied and added with one
//! rounding of f64; so no bit depends on blocks, ranges or vector instructions. The loop over the Hessian's upper
//! triangle keeps eight by eight elements in registers while a block of rows passes: it is bound by the processor's
//! multiplications.

use loss::models::Derivatives;
use loss::totals::Totals;
use loss::{Link, ModelKind, Standardizer};
use simd::{DOUBLES, Doubles, Kernel, LANES, Level, Simd, prefetch};
use tuples::{Batch, OutOfMemory};

/// The sums over tuples of weight times loss, and of its first and second derivatives by weights and intercept.
#[derive(Debug)]
pub(crate) struct Sums {
    kind: ModelKind,
    level: Level,
    sparse: bool,
    dim: usize,
    /// numbers of a row: `dim` + 1, rounded up to whole panels
    stride: usize,
    /// row by row, the upper triangle; the intercept comes behind the features
    hessian: Vec<f64>,
    gradient: Vec<f64>,
    totals: Totals,
    block: Block,
}

/// Rows of a block at most.
const MOST_ROWS: usize = 64;

/// Bytes of a block's rows in f64: half of the first cache level, so that their multiples fit, too.
const BLOCK_BYTES: usize = 16 << 10;

/// Rows that are asked for ahead.
const AHEAD: usize = 8;

/// A block of dense rows, as the Hessian's kernel reads it: panel by panel of eight features.
#[derive(Debug, Default)]
struct Block {
    rows: usize,
    panels: usize,
    /// `rows` for each panel
    values: Vec<Doubles>,
    /// the same, each row times the second derivative of its loss
    scaled: Vec<Doubles>,
}

impl Block {
    fn new(stride: usize) -> Block {
        let rows = (BLOCK_BYTES / (stride * size_of::<f64>())).clamp(DOUBLES, MOST_ROWS);
        let panels = stride / DOUBLES;
        let empty = || allocation::filled([0.0; DOUBLES], rows * panels);
        Block { rows, panels, values: empty(), scaled: empty() }
    }
}

impl Sums {
    /// Those of no tuples.
    pub(crate) fn new(kind: ModelKind, dim: usize, sparse: bool, level: Level) -> Result<Sums, OutOfMemory> {
        let stride = stride(dim);
        let block = if sparse { Block::default() } else { Block::new(stride) };
        Ok(Sums {
            kind,
            level,
            sparse,
            dim,
            stride,
            hessian: allocation::try_zeros(stride * stride)?,
            gradient: allocation::try_zeros(stride)?,
            totals: Totals::default(),
            block,
        })
    }

    /// Whether the loss says nothing of how far labels spread, so that its own size has to: half the squared error.
    pub(crate) fn has_dispersion(&self) -> bool {
        self.kind == ModelKind::Linear
    }

    /// Whether labels are classes, -1 and 1.
    pub(crate) fn has_classes(&self) -> bool {
        self.kind.is_classifier()
    }

    /// Features.
    pub(crate) fn dim(&self) -> usize {
        self.dim
    }

    /// What the tuples add up to, besides the derivatives.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The same, to be changed.
    pub(crate) fn totals_mut(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// The sum of the derivatives by weight `i`, or by the intercept, which is number [`dim`](Sums::dim).
    pub(crate) fn gradient(&self, i: usize) -> f64 {
        self.gradient[i]
    }

    /// The sum of the second derivatives by two of them.
    pub(crate) fn hessian(&self, i: usize, j: usize) -> f64 {
        self.hessian[i.min(j) * self.stride + i.max(j)]
    }

    /// Where the descent starts, if that is not at weights that are 0: of a logarithmic link at the intercept of the
    /// best constant, ln of the mean label, since the weights of 0 may be far from any counts. Turns sums at 0 into
    /// those there, where each tuple's rate is the mean instead of 1. None if there is no such intercept.
    pub(crate) fn move_to_constant(&mut self) -> Option<f64> {
        let (weight, at) = (self.totals.weight, self.dim);
        let labels = weight - self.gradient[at];
        let mean = labels / weight;
        if self.kind.link() != Link::Logarithm || !(mean.is_finite() && mean > 0.0) {
            return None;
        }
        let intercept = mean.ln();
        for i in 0..=at {
            // the sums of each feature are the elements of the intercept's column
            self.gradient[i] += (mean - 1.0) * self.hessian[i * self.stride + at];
        }
        self.hessian.iter_mut().for_each(|element| *element *= mean);
        self.totals.loss += weight * (mean - 1.0) - labels * intercept;
        let (of_targets, variance) = self.totals.targets.moments();
        self.totals.residuals = self.totals.tuples as f64 * (variance + (of_targets - mean).powi(2));
        Some(intercept)
    }

    /// Forgets all tuples.
    pub(crate) fn clear(&mut self) {
        self.hessian.fill(0.0);
        self.gradient.fill(0.0);
        self.totals = Totals::default();
    }

    /// What the rounding of a feature to f32 adds to its second derivative at most, if it was rounded before it was
    /// standardized.
    pub(crate) fn rounding(&self, i: usize, standardizer: Option<&Standardizer>) -> f64 {
        let (mean, scale) = match standardizer {
            Some(Standardizer { mean, scale }) => (mean.get(i).copied(), scale.get(i).copied()),
            None => (None, None),
        };
        let offset = mean.unwrap_or(0.0) / scale.unwrap_or(1.0);
        // the sum of the squares of the features as they were, in units of the scale
        let (intercept, last) = (self.hessian(self.dim, self.dim), self.hessian(i, self.dim));
        let squares = offset * offset * intercept + 2.0 * offset * last + self.hessian(i, i);
        // of an error that is uniform up to half a unit in the last place
        (f64::from(f32::EPSILON) / 2.0).powi(2) / 3.0 * squares
    }

    /// The first derivatives, and behind them the rows of the upper triangle of the second ones.
    pub(crate) fn derivatives(&self) -> Result<Vec<f64>, OutOfMemory> {
        let numbers = self.dim + 1;
        let mut derivatives = allocation::try_zeros(numbers + numbers * (numbers + 1) / 2)?;
        let (gradient, mut rest) = derivatives.split_at_mut(numbers);
        gradient.copy_from_slice(&self.gradient[..numbers]);
        for i in 0..numbers {
            let (row, others) = rest.split_at_mut(numbers - i);
            row.copy_from_slice(&self.hessian[i * self.stride..][i..numbers]);
            rest = others;
        }
        Ok(derivatives)
    }

    /// Takes others for its own: as many, in the same sequence.
    pub(crate) fn set_derivatives(&mut self, derivatives: &[f64]) {
        let numbers = self.dim + 1;
        let (gradient, mut rest) = derivatives.split_at(numbers);
        self.gradient[..numbers].copy_from_slice(gradient);
        for i in 0..numbers {
            let (row, others) = rest.split_at(numbers - i);
            self.hessian[i * self.stride..][i..numbers].copy_from_slice(row);
            rest = others;
        }
    }

    /// Makes room for this many features of sparse tuples.
    pub(crate) fn grow(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        let mut grown = Sums::new(self.kind, dim, self.sparse, self.level)?;
        let place = |i: usize| if i == self.dim { dim } else { i };
        for i in 0..=self.dim {
            grown.gradient[place(i)] = self.gradient[i];
            for j in i..=self.dim {
                grown.hessian[place(i) * grown.stride + place(j)] = self.hessian[i * self.stride + j];
            }
        }
        grown.totals = self.totals;
        *self = grown;
        Ok(())
    }

    /// Adds the tuples at these places, at the point of these weights, behind which the intercept stands.
    pub(crate) fn add(&mut self, batch: &Batch, places: &[u32], point: &[f64]) {
        assert_eq!(point.len(), self.dim + 1, "a number for each weight and the intercept");
        if batch.is_sparse() {
            places.iter().for_each(|place| self.add_sparse(batch, *place as usize, point));
            return;
        }
        assert_eq!(batch.dim(), self.dim, "as many features as weights");
        let mut padded = vec![[0.0; DOUBLES]; self.stride / DOUBLES];
        padded.as_flattened_mut()[..point.len()].copy_from_slice(point);
        let rows = self.block.rows;
        for from in (0..places.len()).step_by(rows) {
            let (places, next) = places[from..].split_at(rows.min(places.len() - from));
            self.level.run(AddBlock { sums: self, batch, places, next, point: &padded });
        }
    }

    /// Adds a sparse tuple: of its Hessian, as many elements as pairs of its entries.
    fn add_sparse(&mut self, batch: &Batch, place: usize, point: &[f64]) {
        let (indices, values) = batch.sparse_row(place);
        let entries = || indices.iter().map(|j| *j as usize).zip(values.iter().map(|x| f64::from(*x)));
        let all = || entries().chain([(self.dim, 1.0)]);
        let z = entries().map(|(j, x)| point[j] * x).sum::<f64>() + point[self.dim];
        let weight = f64::from(batch.weight(place));
        let y = batch.exact_label(place);
        let mut derivatives = [Derivatives::default()];
        self.kind.derivatives(&[z], &[y], &mut derivatives);
        let Derivatives { first, second, .. } = derivatives[0].times(weight);
        for (n, (i, x)) in all().enumerate() {
            self.gradient[i] = first.mul_add(x, self.gradient[i]);
            let row = &mut self.hessian[i * self.stride..][..self.stride];
            let scaled = second * x;
            all().skip(n).for_each(|(j, x)| row[j] = scaled.mul_add(x, row[j]));
        }
        count(&mut self.totals, self.kind, z, y, weight, derivatives[0]);
    }
}

/// Numbers of a row, in whole panels.
fn stride(dim: usize) -> usize {
    (dim + 1).next_multiple_of(DOUBLES)
}

/// Counts a tuple of this decision.
#[inline(always)]
fn count(totals: &mut Totals, kind: ModelKind, z: f64, y: f64, weight: f64, derivatives: Derivatives) {
    totals.loss += weight * derivatives.loss;
    totals.weight += weight;
    totals.tuples += 1;
    if kind.is_classifier() {
        // a decision of 0 is for the first class, as predictions are: in the first pass all are
        totals.correct += u64::from((z > 0.0) == (y > 0.0));
    } else {
        // the first derivative is the error, of all regressions that have a second one
        totals.residuals += derivatives.first * derivatives.first;
        totals.targets.add(y);
    }
}

/// Adds a block of dense tuples.
struct AddBlock<'a> {
    sums: &'a mut Sums,
    batch: &'a Batch,
    places: &'a [u32],
    /// the places behind
    next: &'a [u32],
    point: &'a [Doubles],
}

impl Kernel for AddBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let AddBlock { sums, batch, places, next, point } = self;
        let count_of = places.len();
        let mut decisions = [0.0; MOST_ROWS];
        for (k, &place) in places.iter().enumerate() {
            if let Some(&ahead) = places.get(k + AHEAD).or_else(|| next.get((k + AHEAD).wrapping_sub(count_of))) {
                let row = batch.row(ahead as usize);
                (0..row.len()).step_by(LANES).for_each(|i| prefetch(row, i));
            }
            decisions[k] = pack(simd, &mut sums.block, k, batch.row(place as usize), point);
        }
        let (mut labels, mut weights) = ([0.0; MOST_ROWS], [1.0; MOST_ROWS]);
        for (k, &place) in places.iter().enumerate() {
            labels[k] = batch.exact_label(place as usize);
            if let Some(of_batch) = batch.weights() {
                weights[k] = f64::from(of_batch[place as usize]);
            }
        }
        let mut derivatives = [Derivatives::default(); MOST_ROWS];
        sums.kind.derivatives(&decisions[..count_of], &labels[..count_of], &mut derivatives[..count_of]);
        for k in 0..count_of {
            count(&mut sums.totals, sums.kind, decisions[k], labels[k], weights[k], derivatives[k]);
            derivatives[k] = derivatives[k].times(weights[k]);
        }
        add_gradient(simd, sums, &derivatives[..count_of]);
        add_hessian(simd, sums, count_of);
    }
}

/// Puts a row into the block. Returns its decision.
#[inline(always)]
fn pack<S: Simd>(simd: S, block: &mut Block, k: usize, row: &[f32], point: &[Doubles]) -> f64 {
    let mut sum = simd.splat_double(0.0);
    let (row, _) = row.as_chunks::<DOUBLES>();
    for ((panel, weights), values) in point.iter().enumerate().zip(row) {
        let values: Doubles = std::array::from_fn(|lane| f64::from(values[lane]));
        block.values[panel * block.rows + k] = values;
        sum = simd.fma_doubles(simd.load_doubles(&values), simd.load_doubles(weights), sum);
    }
    let mut lanes = [0.0; DOUBLES];
    simd.store_doubles(sum, &mut lanes);
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Adds the rows of the block times the first derivatives, and keeps them times the second ones.
#[inline(always)]
fn add_gradient<S: Simd>(simd: S, sums: &mut Sums, derivatives: &[Derivatives]) {
    let block = &mut sums.block;
    let (gradient, _) = sums.gradient.as_chunks_mut::<DOUBLES>();
    for (panel, gradient) in gradient.iter_mut().enumerate() {
        let mut sum = simd.load_doubles(gradient);
        let rows = panel * block.rows..panel * block.rows + derivatives.len();
        for ((row, scaled), of_row) in block.values[rows.clone()].iter().zip(&mut block.scaled[rows]).zip(derivatives) {
            sum = simd.fma_doubles(simd.splat_double(of_row.first), simd.load_doubles(row), sum);
            for lane in 0..DOUBLES {
                scaled[lane] = of_row.second * row[lane];
            }
        }
        simd.store_doubles(sum, gradient);
    }
}

/// Adds the products of the block's rows with themselves.
#[inline(always)]
fn add_hessian<S: Simd>(simd: S, sums: &mut Sums, count: usize) {
    let Sums { hessian, block, stride, .. } = sums;
    for p in 0..block.panels {
        let scaled = &block.scaled[p * block.rows..][..count];
        for q in p..block.panels {
            let values = &block.values[q * block.rows..][..count];
            let tile = &mut hessian[p * DOUBLES * *stride + q * DOUBLES..];
            if S::REGISTERS >= 16 {
                add_tile::<8, S>(simd, tile, *stride, scaled, values, 0);
            } else {
                add_tile::<4, S>(simd, tile, *stride, scaled, values, 0);
                add_tile::<4, S>(simd, &mut tile[4 * *stride..], *stride, scaled, values, 4);
            }
        }
    }
}

/// Adds to N rows of a tile, whose factors begin at this lane.
#[inline(always)]
fn add_tile<const N: usize, S: Simd>(
    simd: S,
    tile: &mut [f64],
    stride: usize,
    scaled: &[Doubles],
    values: &[Doubles],
    first: usize,
) {
    let mut vectors = [simd.splat_double(0.0); N];
    for (r, vector) in vectors.iter_mut().enumerate() {
        *vector = simd.load_doubles(tile[r * stride..].first_chunk().expect("a row of the tile"));
    }
    for (scaled, values) in scaled.iter().zip(values) {
        let values = simd.load_doubles(values);
        for r in 0..N {
            vectors[r] = simd.fma_doubles(simd.splat_double(scaled[first + r]), values, vectors[r]);
        }
    }
    for (r, vector) in vectors.iter().enumerate() {
        simd.store_doubles(*vector, tile[r * stride..].first_chunk_mut().expect("a row of the tile"));
    }
}
