//! What the tuples of an epoch add up to, counted many at a time.
//!
//! Guarantees: the same sums wherever the sequence of tuples is cut, because tuples wait here until there are
//! [`WAITING`] of them. It prevents that counting a tuple takes as long as learning from it.

use loss::ModelKind;
use loss::models::{Pointwise, PointwiseVisitor};
use loss::totals::Totals;
use simd::{Kernel, Simd};
use tuples::LANES;

/// Tuples that are counted together.
pub(super) const WAITING: usize = 128;

/// Margins, labels and weights of tuples that wait. Labels are only of interest to losses that
/// [need](Pointwise::NEEDS_LABELS) them.
pub(super) struct Waiting<'a> {
    pub(super) margins: &'a mut [f32],
    pub(super) labels: &'a mut [f32],
    pub(super) weights: &'a mut [f32],
}

/// Counted tuples, and those that wait to be counted.
#[derive(Debug, Clone)]
pub(crate) struct LossAccumulator {
    totals: Totals,
    waiting: usize,
    pub(super) margins: [f32; WAITING],
    pub(super) labels: [f32; WAITING],
    /// 1 unless tuples are weighted
    pub(super) weights: [f32; WAITING],
}

impl LossAccumulator {
    pub(crate) fn new() -> LossAccumulator {
        LossAccumulator {
            totals: Totals::default(),
            waiting: 0,
            margins: [0.0; WAITING],
            labels: [0.0; WAITING],
            weights: [1.0; WAITING],
        }
    }

    /// Forgets all tuples.
    pub(crate) fn clear(&mut self) {
        *self = LossAccumulator::new();
    }

    /// Tuples that can be written until they are counted; at least 1.
    #[inline(always)]
    pub(super) fn room(&self) -> usize {
        WAITING - self.waiting
    }

    /// Where to write the next tuples, no more than there is [`room`](LossAccumulator::room) for.
    #[inline(always)]
    pub(super) fn next_mut(&mut self, count: usize) -> Waiting<'_> {
        let places = self.waiting..self.waiting + count;
        Waiting {
            margins: &mut self.margins[places.clone()],
            labels: &mut self.labels[places.clone()],
            weights: &mut self.weights[places],
        }
    }

    /// Takes note that `count` tuples were written, up to the end at most.
    #[inline(always)]
    pub(super) fn written<S: Simd, L: Pointwise>(&mut self, simd: S, loss: L, weighted: bool, count: usize) {
        self.waiting += count;
        self.totals.tuples += count as u64;
        if self.waiting == WAITING {
            simd.call(Count { accumulator: self, loss, weighted });
        }
    }

    /// Counts as many as can wait: each lane by itself at first. Eight losses added up in f32 lose nothing to speak of.
    #[inline(always)]
    fn count<S: Simd, L: Pointwise>(&mut self, simd: S, loss: L, weighted: bool) {
        let mut losses = [0.0f32; WAITING];
        loss.losses(&self.margins, &self.labels, &mut losses);
        if weighted {
            losses.iter_mut().zip(&self.weights).for_each(|(lost, w)| *lost *= w);
            self.totals.weight += self.weights.iter().map(|&w| f64::from(w)).sum::<f64>();
        } else {
            self.totals.weight += WAITING as f64;
        }
        let mut sum = simd.splat(0.0);
        for chunk in losses.as_chunks().0 {
            sum = simd.add(sum, simd.load(chunk));
        }
        let mut sums = [0.0; LANES];
        simd.store(sum, &mut sums);
        self.totals.loss += fold(sums);
        loss.count(&mut self.totals, &self.margins, &self.labels, &self.weights);
        self.waiting = 0;
    }

    /// Counts those that wait, one by one.
    fn count_rest<L: Pointwise>(&mut self, loss: L) {
        let waiting = std::mem::take(&mut self.waiting);
        let (margins, labels) = (&self.margins[..waiting], &self.labels[..waiting]);
        for ((&m, &y), &w) in margins.iter().zip(labels).zip(&self.weights) {
            self.totals.loss += f64::from(w) * f64::from(loss.loss(m, y));
            self.totals.weight += f64::from(w);
        }
        loss.count(&mut self.totals, margins, labels, &self.weights[..waiting]);
    }

    /// All tuples so far, of a model of this kind with this number of the loss.
    pub(crate) fn totals(&self, kind: ModelKind, number: f32) -> Totals {
        *self.clone().totals_mut(kind, number)
    }

    /// The same, to be changed: nothing waits any more.
    pub(crate) fn totals_mut(&mut self, kind: ModelKind, number: f32) -> &mut Totals {
        kind.with_pointwise(number, CountRest(self));
        &mut self.totals
    }
}

/// Counts as many tuples as can wait.
struct Count<'a, L> {
    accumulator: &'a mut LossAccumulator,
    loss: L,
    weighted: bool,
}

impl<L: Pointwise> Kernel for Count<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        self.accumulator.count(simd, self.loss, self.weighted);
    }
}

/// Counts the tuples that wait.
struct CountRest<'a>(&'a mut LossAccumulator);

impl PointwiseVisitor for CountRest<'_> {
    type Output = ();

    fn visit<L: Pointwise>(self, loss: L) {
        self.0.count_rest(loss);
    }
}

/// The sum of the lanes, folded in halves.
#[inline(always)]
fn fold(lanes: [f32; LANES]) -> f64 {
    let mut sums = [0.0; LANES];
    for lane in 0..LANES {
        sums[lane] = f64::from(lanes[lane]);
    }
    for half in [8, 4, 2, 1] {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
    }
    sums[0]
}
