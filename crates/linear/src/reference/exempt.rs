//! Features that the penalty of l2 leaves alone, although it is a factor on all weights.
//!
//! What the factor has taken from their weights is given back from time to time, before it is a thousandth of them, and
//! whenever weights are brought up to date.

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
        for feature in self.features.iter().map(|feature| *feature as usize) {
            let own = weights.get_mut(feature * outputs..(feature + 1) * outputs).unwrap_or_default();
            own.iter_mut().for_each(|weight| *weight *= factor);
        }
    }

    /// The factor is 1 again: weights are what they are.
    pub(super) fn begin_again(&mut self) {
        self.scale = 1.0;
    }
}
