//! The mean of models that a training has come through, kept in f64.

use tuples::OutOfMemory;

use crate::ModelParameters;
use crate::bytes::Coder;

/// A weighted mean of the iterates of a linear model.
#[derive(Debug)]
pub struct Mean {
    /// output by output, each its weights
    weights: Vec<Vec<f64>>,
    intercepts: Vec<f64>,
    has_any: bool,
}

impl Mean {
    /// That of nothing, with room for this many features.
    pub fn new(dim: usize, outputs: usize) -> Result<Mean, OutOfMemory> {
        let mut mean = Mean { weights: vec![Vec::new(); outputs], intercepts: vec![0.0; outputs], has_any: false };
        mean.reserve(dim)?;
        Ok(mean)
    }

    /// Makes room for this many features; new ones have a mean of 0, as they had a weight of 0.
    pub fn reserve(&mut self, dim: usize) -> Result<(), OutOfMemory> {
        for weights in &mut self.weights {
            let more = dim.saturating_sub(weights.len());
            allocation::try_reserve_exact(weights, more)?;
            weights.resize(weights.len() + more, 0.0);
        }
        Ok(())
    }

    /// Adds an iterate, whose share in the new mean is given: the weights of each output, and its intercept.
    /// There is room for them.
    pub fn add<W: Iterator<Item = f32>>(&mut self, share: f64, iterate: impl Iterator<Item = (W, f32)>) {
        let mix = |mean: &mut f64, w: f32| *mean += share * (f64::from(w) - *mean);
        for ((means, mean), (weights, intercept)) in self.weights.iter_mut().zip(&mut self.intercepts).zip(iterate) {
            means.iter_mut().zip(weights).for_each(|(mean, w)| mix(mean, w));
            mix(mean, intercept);
        }
        self.has_any = true;
    }

    /// Makes `model`, of as many features at most, the mean; it stays what it is if nothing was added.
    pub fn replace(&self, model: &mut ModelParameters) {
        if self.has_any {
            for (weights, means) in model.weights.chunks_exact_mut(model.dim.max(1)).zip(&self.weights) {
                weights.iter_mut().zip(means).for_each(|(w, mean)| *w = *mean as f32);
            }
            model.intercepts.iter_mut().zip(&self.intercepts).for_each(|(b, mean)| *b = *mean as f32);
        }
    }

    /// |w|² and |w|₁ of the mean.
    pub fn norms(&self) -> (f64, f64) {
        let weights = || self.weights.iter().flatten();
        (weights().map(|w| w * w).sum(), weights().map(|w| w.abs()).sum())
    }

    /// |w|² of the weights of these features.
    pub fn squares_of(&self, features: &[u32]) -> f64 {
        let own =
            |weights: &Vec<f64>| features.iter().filter_map(|j| weights.get(*j as usize)).map(|w| w * w).sum::<f64>();
        self.weights.iter().map(own).sum()
    }

    /// Writes or reads the mean of this many features, which there is room for.
    pub fn code(&mut self, coder: &mut Coder<'_>, dim: usize) -> Option<()> {
        let mut has_any = u64::from(self.has_any);
        coder.value(&mut has_any)?;
        self.has_any = has_any != 0;
        self.weights.iter_mut().try_for_each(|weights| coder.finite(&mut weights[..dim]))?;
        coder.finite(&mut self.intercepts)
    }
}
