//! Mean and deviation of the targets of a regression, and models of targets that are brought to mean 0 and deviation 1.

use loss::variance_sum::VarianceSum;
use loss::{ModelKind, ModelParameters, is_coarse};
use serde::{Deserialize, Serialize};

/// Mean and deviation of targets, while they arrive.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct TargetMoments(VarianceSum);

impl TargetMoments {
    /// Adds the targets that were measured elsewhere.
    pub fn unite(&mut self, other: &TargetMoments) {
        self.0.merge(&other.0);
    }

    /// Adds a target that weighs so much.
    pub fn add(&mut self, target: f32, weight: f32) {
        self.0.add_weighted(target.into(), weight.into());
    }

    /// Does float32 keep only steps that are coarse compared with their deviation? See [`is_coarse`].
    pub fn is_coarse(&self) -> bool {
        let (mean, variance) = self.0.moments();
        is_coarse(mean, variance.sqrt())
    }

    /// The mean of the targets added so far.
    pub fn mean(&self) -> f64 {
        self.0.moments().0
    }

    /// The population standard deviation of the targets added so far.
    pub fn deviation(&self) -> f64 {
        self.0.moments().1.sqrt()
    }

    /// What the targets added so far are scaled by.
    pub fn finish(&self) -> TargetScale {
        let (mean, variance) = self.0.moments();
        TargetScale { mean, scale: if variance > 0.0 { variance.sqrt() } else { 1.0 } }
    }
}

/// Brings targets to mean 0 and standard deviation 1, and models of such targets to the units of the data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TargetScale {
    /// The mean of the targets.
    pub mean: f64,
    /// The population standard deviation of the targets, 1 if they are all the same.
    pub scale: f64,
}

impl TargetScale {
    /// Scales a target.
    #[inline]
    pub fn apply(&self, target: f32) -> f32 {
        ((f64::from(target) - self.mean) / self.scale) as f32
    }

    /// The loss that a model of this kind has of scaled targets, times this, is that of the targets.
    pub fn loss_unit(&self, kind: ModelKind) -> f64 {
        self.scale.powi(kind.target_units().loss)
    }

    /// Makes a model of scaled targets, linear or a network, one of the targets: its last layer is scaled.
    pub fn unscale(&self, model: &mut ModelParameters) {
        let TargetScale { mean, scale } = *self;
        TargetScale::of_last_layer(model, |w| w * scale, |b| b * scale + mean);
    }

    /// Makes a model of targets one of scaled targets: the inverse of [`unscale`](TargetScale::unscale).
    pub fn scale(&self, model: &mut ModelParameters) {
        let TargetScale { mean, scale } = *self;
        TargetScale::of_last_layer(model, |w| w / scale, |b| (b - mean) / scale);
    }

    fn of_last_layer(model: &mut ModelParameters, weight: impl Fn(f64) -> f64, intercept: impl Fn(f64) -> f64) {
        let inputs = model.network.and_then(|network| network.hidden.sizes().last().copied());
        let inputs = inputs.map_or(model.dim, |units| units as usize);
        let weights = model.weights.len().saturating_sub(inputs * model.outputs);
        let intercepts = model.intercepts.len().saturating_sub(model.outputs);
        model.weights[weights..].iter_mut().for_each(|w| *w = weight(f64::from(*w)) as f32);
        model.intercepts[intercepts..].iter_mut().for_each(|b| *b = intercept(f64::from(*b)) as f32);
    }
}

#[cfg(test)]
mod tests {
    use sgd_tests::decision;

    use super::*;
    use loss::{Design, Hidden, Output};

    #[test]
    fn a_model_of_scaled_targets_predicts_targets_when_it_is_unscaled() {
        let mut moments = TargetMoments::default();
        [1e6, 1e6 + 2.0, 1e6 + 4.0, 1e6 + 2.0].iter().for_each(|y| moments.add(*y, 1.0));
        let scale = moments.finish();
        assert_eq!((scale.mean, scale.scale), (1e6 + 2.0, 2.0_f64.sqrt()));
        let mut model =
            ModelParameters { weights: vec![2.0, -1.0], intercepts: vec![0.5], ..ModelParameters::new(2, 1) };
        let scaled = f64::from(decision(&model, &[3.0, 4.0]));
        scale.unscale(&mut model);
        let expected = scaled * scale.scale + scale.mean;
        assert!((f64::from(decision(&model, &[3.0, 4.0])) - expected).abs() < 0.1, "{expected}");
        scale.scale(&mut model);
        assert!((f64::from(decision(&model, &[3.0, 4.0])) - scaled).abs() < 0.1, "{scaled}");
        assert_eq!(scale.apply((1e6 + 2.0) as f32), 0.0);
        assert!((scale.loss_unit(ModelKind::Linear) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn of_a_network_the_last_layer_is_unscaled() {
        let network =
            Design { output: Some(Output::Identity), hidden: Hidden::new(&[2]).unwrap(), ..Design::default() };
        let mut model = ModelParameters {
            dim: 1,
            outputs: 1,
            weights: vec![1.0, -1.0, 3.0, 5.0],
            intercepts: vec![0.0, 0.25, 0.5],
            network: Some(network.network(1)),
        };
        // relu: 3 * 2 + 0.5 and 5 * 2.25 + 0.5
        assert_eq!((decision(&model, &[2.0]), decision(&model, &[-2.0])), (6.5, 11.75));
        TargetScale { mean: 100.0, scale: 4.0 }.unscale(&mut model);
        assert_eq!((decision(&model, &[2.0]), decision(&model, &[-2.0])), (126.0, 147.0));
    }

    #[test]
    fn targets_that_are_all_the_same_are_moved_only() {
        let mut moments = TargetMoments::default();
        (0..5).for_each(|_| moments.add(7.0, 1.0));
        assert_eq!(moments.finish(), TargetScale { mean: 7.0, scale: 1.0 });
        assert_eq!(TargetMoments::default().finish(), TargetScale { mean: 0.0, scale: 1.0 });
    }
}
