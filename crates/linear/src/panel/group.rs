//! Sixteen models, lane by lane.

use loss::kernels::Aligned;
use loss::mean::Mean;
use loss::{Hyperparameters, ModelParameters};
use simd::{Chunk, LANES};

/// What a group does with the tuples of a part.
#[derive(Debug, Clone)]
pub(super) struct OfPart {
    /// 1 in the lane of a model that learns from them, else 0
    pub(super) learns: Aligned,
    /// what a step shrinks weights by; 1 without any
    pub(super) shrink: [f64; LANES],
}

/// Weights w = `scale` * `weights`, lane by lane, and intercepts.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// of each feature, those of all models
    pub(super) weights: Vec<Aligned>,
    pub(super) intercepts: Aligned,
    /// in f64, because the factor of one step may differ from 1 by less than f32 can tell
    pub(super) scale: [f64; LANES],
    pub(super) rates: Aligned,
    /// the learning rate times the bound of the loss's second derivative; 0 of steps that are not bounded
    pub(super) bounds: Aligned,
    pub(super) parts: Vec<OfPart>,
    /// has any model a penalty?
    pub(super) shrinks: bool,
    /// does any model still learn?
    pub(super) is_active: bool,
    /// losses of the tuples that were looked at, and how many
    pub(super) losses: [f64; LANES],
    pub(super) counts: [f64; LANES],
}

impl Group {
    /// All zeros, of this many features and parts of the tuples.
    pub(super) fn new(dim: usize, parts: usize) -> Group {
        let zeros = Aligned([0.0; LANES]);
        Group {
            weights: allocation::filled(zeros, dim),
            intercepts: zeros,
            scale: [1.0; LANES],
            rates: zeros,
            bounds: zeros,
            parts: vec![OfPart { learns: zeros, shrink: [1.0; LANES] }; parts],
            shrinks: false,
            is_active: false,
            losses: [0.0; LANES],
            counts: [0.0; LANES],
        }
    }

    /// Begins an epoch of the model in a lane: its learning rate, and whether it learns from each part.
    pub(super) fn begin_epoch(&mut self, lane: usize, hyper: &Hyperparameters, epoch: u32, learns: &[bool]) {
        let rate = hyper.learning_rate_at(epoch);
        self.rates.0[lane] = rate as f32;
        self.bounds.0[lane] = if hyper.bounded { (rate * hyper.kind.curvature()) as f32 } else { 0.0 };
        for (part, learns) in self.parts.iter_mut().zip(learns) {
            part.learns.0[lane] = f32::from(u8::from(*learns));
            part.shrink[lane] = if *learns { 1.0 - hyper.penalty_rate(rate) * hyper.l2 } else { 1.0 };
        }
        self.shrinks |= hyper.l2 > 0.0;
        self.is_active |= learns.contains(&true);
    }

    /// Forgets what was counted, and which models learn.
    pub(super) fn clear(&mut self) {
        (self.losses, self.counts) = ([0.0; LANES], [0.0; LANES]);
        (self.shrinks, self.is_active) = (false, false);
        for part in &mut self.parts {
            (part.learns.0, part.shrink) = ([0.0; LANES], [1.0; LANES]);
        }
    }

    /// Keeps scales from 1/2 up by powers of two, which is exact.
    #[inline(always)]
    pub(super) fn rescale(&mut self) {
        if self.scale.iter().all(|scale| *scale >= 0.5) {
            return;
        }
        let mut factors = [1.0_f32; LANES];
        for (scale, factor) in self.scale.iter_mut().zip(&mut factors) {
            while *scale < 0.5 && *scale > 0.0 {
                *scale *= 2.0;
                *factor *= 0.5;
            }
        }
        for weights in &mut self.weights {
            weights.0.iter_mut().zip(&factors).for_each(|(weight, factor)| *weight *= factor);
        }
    }

    fn weights_of(&self, lane: usize) -> impl Iterator<Item = f32> {
        let scale = self.scale[lane] as f32;
        // + 0.0 makes a negative zero, from a weight that underflows, as positive as all other zeros
        self.weights.iter().map(move |weights| weights.0[lane] * scale + 0.0)
    }

    pub(super) fn model(&self, lane: usize) -> ModelParameters {
        ModelParameters {
            dim: self.weights.len(),
            outputs: 1,
            weights: allocation::collect(self.weights_of(lane)),
            intercepts: vec![self.intercepts.0[lane]],
            network: None,
        }
    }

    /// Adds the model in a lane to a mean, of which it is to have this share.
    pub(super) fn add_to(&self, lane: usize, mean: &mut Mean, share: f64) {
        mean.add(share, [(self.weights_of(lane), self.intercepts.0[lane])].into_iter());
    }

    /// Has the model in a lane, and its loss, only finite numbers?
    pub(super) fn is_finite(&self, lane: usize) -> bool {
        self.losses[lane].is_finite()
            && self.intercepts.0[lane].is_finite()
            && self.weights_of(lane).all(f32::is_finite)
    }
}

/// All lanes of a number.
#[inline(always)]
pub(super) fn splat(number: f32) -> Chunk {
    [number; LANES]
}
