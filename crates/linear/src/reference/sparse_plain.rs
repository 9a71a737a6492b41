//! Learning from sparse rows one by one, by plain SGD with one output and no l1: what most trainings on such rows are.
//!
//! Guarantees: the bits are those of the steps of [`sparse`](super::sparse), which can do everything. It prevents that
//! choices which are the same for all rows are made for each, and that the processor waits for memory: rows come from
//! random places, and so do the weights that they need; their order is known, so all is asked for ahead.

use std::ops::Range;

use loss::models::{Objective, Pointwise, PointwiseVisitor, count_one};
use simd::{Entries, Simd, prefetch, prefetch_far};
use tuples::{Batch, SparseParts};

use super::arrays::Arrays;
use super::lazy::{make_room_for_step, restore_exempt};
use super::state::TrainerState;

/// What a row has to be that anything is learned from.
pub(super) const BEYOND: &str = "indices below the number of features, and as many values";

/// How many rows ahead is asked for where a row ends and for its label, for its entries, and for its weights: each in
/// time for the next. The entries of this many rows belong into the cache of the second level: the first has the
/// weights.
const ENDS_AHEAD: usize = 24;
const ENTRIES_AHEAD: usize = 12;
const WEIGHTS_AHEAD: usize = 4;

/// As many weights fit a cache that is near enough.
const CACHED: usize = 1 << 14;

/// Entries of a cache line.
const LINE: usize = 16;

/// Entries that are asked for of a row, and of which weights are: the processor itself goes on along longer rows, and
/// the near caches hold no more.
const ASKED: usize = 512;

/// A stretch of the order to learn from; all indices are below the capacity.
pub(super) struct Plain<'a, S> {
    pub(super) simd: S,
    pub(super) state: &'a mut TrainerState,
    pub(super) arrays: Arrays<'a>,
    pub(super) batch: &'a Batch,
    pub(super) range: Range<usize>,
}

impl<S: Simd> PointwiseVisitor for Plain<'_, S> {
    type Output = ();

    #[inline(always)]
    fn visit<L: Pointwise>(self, loss: L) {
        match self.state.hyper.bounded {
            false => self.learn::<false, L>(loss),
            true => self.learn::<true, L>(loss),
        }
    }
}

impl<S: Simd> Plain<'_, S> {
    #[inline(always)]
    fn learn<const BOUNDED: bool, L: Pointwise>(self, loss: L) {
        let Plain { simd, state, mut arrays, batch, range } = self;
        let tuples = Tuples {
            rows: batch.sparse_parts().expect("a batch of sparse tuples"),
            labels: batch.labels(),
            weights: batch.weights(),
            order: batch.order(),
        };
        let bend = state.curvature_of_step();
        for k in range.clone() {
            tuples.ask_ahead(k, arrays.weights);
            let i = tuples.order[k] as usize;
            let (indices, values) = tuples.rows.row(i);
            let entries = Entries::new(indices, values, arrays.weights.len()).expect(BEYOND);
            let [product, square] = entries.dot::<BOUNDED>(arrays.weights);
            let weight = tuples.weights.map_or(1.0, |weights| weights[i]);
            let mut out = [product * state.now.scale as f32 + arrays.intercepts.values[0]];
            let bend = if BOUNDED { bend * f64::from(Objective::bend(loss, &out, tuples.labels[i])) } else { 0.0 };
            count_one(simd, loss, &mut state.now.totals, &mut out, tuples.labels[i], weight);
            if BOUNDED {
                out[0] *= (1.0 / (1.0 + bend * (f64::from(weight) * (f64::from(square) + 1.0)))) as f32;
            }
            make_room_for_step(simd, state, &mut arrays);
            let step = state.begin_plain_step();
            restore_exempt(state, &mut arrays);
            entries.add_to(arrays.weights, out[0] * step.scaled_rate);
            arrays.intercepts.values[0] += step.rate * out[0];
            arrays.out.copy_from_slice(&out);
        }
        if !range.is_empty() {
            arrays.intercepts.gradient.copy_from_slice(arrays.out);
        }
    }
}

/// The tuples of a batch in its order.
struct Tuples<'a> {
    rows: SparseParts<'a>,
    labels: &'a [f32],
    weights: Option<&'a [f32]>,
    order: &'a [u32],
}

impl Tuples<'_> {
    /// The tuple at place `k` of the order is about to be learned from: asks for what comes after it.
    #[inline(always)]
    fn ask_ahead(&self, k: usize, weights: &[f32]) {
        if let Some(&i) = self.order.get(k + ENDS_AHEAD) {
            prefetch(self.rows.ends, i as usize);
            prefetch(self.labels, i as usize);
            if let Some(weights) = self.weights {
                prefetch(weights, i as usize);
            }
        }
        if let Some(&i) = self.order.get(k + ENTRIES_AHEAD) {
            let (start, end) = (self.rows.start(i as usize), self.rows.ends[i as usize]);
            for entry in (start..end.min(start + ASKED)).step_by(LINE) {
                prefetch_far(self.rows.indices, entry);
                prefetch_far(self.rows.values, entry);
            }
            // the last lines, which the steps above may have gone past
            prefetch_far(self.rows.indices, end.wrapping_sub(1));
            prefetch_far(self.rows.values, end.wrapping_sub(1));
        }
        if weights.len() > CACHED
            && let Some(&i) = self.order.get(k + WEIGHTS_AHEAD)
        {
            let (indices, _) = self.rows.row(i as usize);
            for &index in &indices[..indices.len().min(ASKED)] {
                prefetch(weights, index as usize);
            }
        }
    }
}
