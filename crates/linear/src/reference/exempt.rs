//! Features that the penalty of l2 leaves alone, although it is a factor on all weights.
//!
//! What the factor has taken from their weights is given back from time to time, before it is a thousandth of them, and
//! at the end of an epoch. When that is depends on the steps alone: replicas of a training do it at the same step,
//! whatever else is done with one of them.

use std::ops::Range;

/// The features, and how much was taken from their weights.
#[derive(Debug)]
pub(crate) struct Exempt {
    features: Vec<u32>,
    /// the factor when their weights were given back what it had taken
    scale: f64,
}

/// The factor may take this share of a weight before it is given back.
const TAKEN: f64 = 1.0 / 1024.0;

impl Exempt {
    /// Of weights that nothing was taken from.
    pub(super) fn new(features: Vec<u32>) -> Exempt {
        Exempt { features, scale: 1.0 }
    }

    pub(super) fn features(&self) -> impl Iterator<Item = usize> {
        self.features.iter().map(|feature| *feature as usize)
    }

    /// Has the factor, which is `scale` now, taken so much that it should be given back?
    #[inline(always)]
    pub(super) fn is_due(&self, scale: f64) -> bool {
        scale < self.scale * (1.0 - TAKEN)
    }

    /// Gives back what the factor, which is `scale` now, has taken: from weights of sparse features, which are in units
    /// of it.
    pub(super) fn restore(&mut self, scale: f64, weights: &mut [f32], outputs: usize) {
        let factor = (self.scale / scale) as f32;
        self.scale = scale;
        self.own(outputs, weights.len()).for_each(|own| weights[own].iter_mut().for_each(|weight| *weight *= factor));
    }

    /// The weights as they are, and what was given back, to be [put back](Exempt::put_back).
    pub(super) fn take_down(&self, weights: &[f32], outputs: usize) -> (f64, Vec<f32>) {
        let mut own = Vec::new();
        self.own(outputs, weights.len()).for_each(|places| allocation::append(&mut own, &weights[places]));
        (self.scale, own)
    }

    /// Makes the weights what they were.
    pub(super) fn put_back(&mut self, (scale, before): (f64, Vec<f32>), weights: &mut [f32], outputs: usize) {
        self.scale = scale;
        self.own(outputs, weights.len())
            .zip(before.chunks(outputs))
            .for_each(|(own, before)| weights[own].copy_from_slice(before));
    }

    /// The factor, which was `scale`, is 1 again, and was multiplied into the weights.
    pub(super) fn fold(&mut self, scale: f64) {
        self.scale /= scale;
    }

    /// Where, of this many weights, those of each feature are that has some by now.
    fn own(&self, outputs: usize, weights: usize) -> impl Iterator<Item = Range<usize>> {
        let own = self.features().map(move |feature| feature * outputs..(feature + 1) * outputs);
        own.filter(move |own| own.end <= weights)
    }
}
