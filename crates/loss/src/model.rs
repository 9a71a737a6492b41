//! A model, linear or a network: what training hands over and prediction uses.
//!
//! Guarantees: decisions and `sgd::Evaluation` compute the same bits for the same tuple, so that a
//! prediction can never contradict the accuracy that was reported.

use std::ops::Range;

use crate::design::{Tuple, decide};
use crate::kernels::{decision, sparse_decision};
use crate::view::ParametersView;
use crate::{Network, Standardizer};

/// Weights and intercepts of one output, or with softmax of one output per class; or those of a network, of which a
/// linear model is one without hidden layers.
///
/// With one output a tuple is positive if its decision is above 0, negative otherwise, also at exactly 0. With softmax
/// it belongs to the class of the greatest decision, the first of them if there are several.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelParameters {
    /// Features per tuple.
    pub dim: usize,
    /// 1, or the number of classes with softmax.
    pub outputs: usize,
    /// `outputs * dim`, output by output: one weight per feature. Of a network, that for each layer,
    /// one after the other.
    pub weights: Vec<f32>,
    /// One per output: the decision where all features are 0. Of a network, that for each layer.
    pub intercepts: Vec<f32>,
    /// The hidden layers and what they compute, if there are any.
    pub network: Option<Network>,
}

impl ParametersView<'_> {
    /// As [`ModelParameters::decisions`].
    ///
    /// # Panics
    /// As in the item above.
    #[inline]
    pub fn decisions(&self, features: &[f32], out: &mut [f32]) {
        assert_eq!(features.len(), self.dim, "as many features as weights");
        assert_eq!(out.len(), self.outputs, "a place for every output");
        if let Some(network) = self.network {
            return decide(network, self, Tuple::Dense(features), out);
        }
        for (k, z) in out.iter_mut().enumerate() {
            *z = decision(&self.weights[k * self.dim..][..self.dim], self.intercepts[k], features);
        }
    }

    /// As [`ModelParameters::decisions_sparse`].
    ///
    /// # Panics
    /// As in the item above.
    #[inline]
    pub fn decisions_sparse(&self, indices: &[u32], values: &[f32], out: &mut [f32]) {
        assert_eq!(indices.len(), values.len(), "a value for every index");
        assert_eq!(out.len(), self.outputs, "a place for every output");
        if let Some(network) = self.network {
            return decide(network, self, Tuple::Sparse(indices, values), out);
        }
        for (k, z) in out.iter_mut().enumerate() {
            *z = sparse_decision(&self.weights[k * self.dim..][..self.dim], self.intercepts[k], indices, values);
        }
    }

    /// The probabilities of the classes that decisions stand for: of softmax and networks.
    ///
    /// # Panics
    /// If `out` has not a place for every class.
    pub fn probabilities(&self, decisions: &[f32], out: &mut [f64]) {
        match self.network {
            Some(network) => network.probabilities(decisions, out),
            None => crate::softmax(decisions, out),
        }
    }

    /// A copy.
    pub fn to_model(&self) -> ModelParameters {
        ModelParameters {
            dim: self.dim,
            outputs: self.outputs,
            weights: allocation::copy(self.weights),
            intercepts: self.intercepts.to_vec(),
            network: self.network.copied(),
        }
    }
}

impl ModelParameters {
    /// The linear model that training starts from: all zeros.
    pub fn new(dim: usize, outputs: usize) -> ModelParameters {
        let (weights, intercepts) = (allocation::zeros(outputs * dim), allocation::zeros(outputs));
        ModelParameters { dim, outputs, weights, intercepts, network: None }
    }

    /// Makes this a model of features as they are, of one whose features are standardized: (x - mean) / scale.
    ///
    /// # Panics
    /// If there are not as many means and scales as features.
    pub fn take_unstandardized(&mut self, mean: &[f64], scale: &[f64]) {
        assert!(mean.len() == self.dim && scale.len() == self.dim, "a mean and a scale for each feature");
        self.change_units(mean.iter().zip(scale).map(|(mean, scale)| (*mean, *scale)));
    }

    /// Makes this a model of features (x - mean') / scale', of one of features (x - mean) / scale, given
    /// (mean - mean') / scale' and scale / scale' of each feature.
    fn change_units(&mut self, of_features: impl Iterator<Item = (f64, f64)> + Clone) {
        let units = match &self.network {
            Some(network) => network.hidden.sizes()[0] as usize,
            None => self.outputs,
        };
        let rows = self.weights.chunks_exact_mut(self.dim.max(1)).zip(&mut self.intercepts).take(units);
        for (weights, intercept) in rows {
            let mut moved = 0.0;
            for (weight, (mean, scale)) in weights.iter_mut().zip(of_features.clone()) {
                let divided = f64::from(*weight) / scale;
                moved += divided * mean;
                *weight = divided as f32;
            }
            *intercept = (f64::from(*intercept) - moved) as f32;
        }
    }

    /// Makes this a model of features that are standardized as `to` says, of one whose features are standardized as
    /// `from` says; where one says nothing of a feature, it is as it is.
    pub fn restandardize(&mut self, from: Option<&Standardizer>, to: Option<&Standardizer>) {
        let of = |of: Option<&Standardizer>, i: usize| {
            of.and_then(|of| Some((*of.mean.get(i)?, *of.scale.get(i)?))).unwrap_or((0.0, 1.0))
        };
        let change = |i| {
            let ((mean, scale), (mean_to, scale_to)) = (of(from, i), of(to, i));
            ((mean - mean_to) / scale_to, scale / scale_to)
        };
        self.change_units((0..self.dim).map(change));
    }

    /// Of all models of one output that predict the same for tuples whose `columns` have one 1 each, at a place that
    /// was `seen`, takes the one whose weights of these places are the least, the intercept left out: their mean is 0
    /// in each column. So does a penalty that is all but 0. A tuple without a 1 in a column then gets the mean of its
    /// categories.
    ///
    /// # Panics
    /// If there are several outputs, or no such places.
    pub fn center(&mut self, columns: &[Range<usize>], seen: &[bool]) {
        assert_eq!(self.outputs, 1, "one output");
        for column in columns {
            let there = || column.clone().filter(|place| seen[*place]);
            let sum: f64 = there().map(|place| f64::from(self.weights[place])).sum();
            let mean = sum / there().count().max(1) as f64;
            there().for_each(|place| self.weights[place] = (f64::from(self.weights[place]) - mean) as f32);
            self.intercepts[0] = (f64::from(self.intercepts[0]) + mean) as f32;
        }
    }

    /// The weights of one output of a linear model.
    pub fn weights_of(&self, output: usize) -> &[f32] {
        &self.weights[output * self.dim..][..self.dim]
    }

    /// The model where it lies.
    pub fn view(&self) -> ParametersView<'_> {
        let ModelParameters { dim, outputs, weights, intercepts, network } = self;
        ParametersView { dim: *dim, outputs: *outputs, weights, intercepts, network: network.as_ref() }
    }

    /// w·x + intercept of every output, in f32, summed in the order that SIMD dictates on every machine.
    ///
    /// # Panics
    /// If `features` are not `dim` long or `out` is not `outputs` long.
    pub fn decisions(&self, features: &[f32], out: &mut [f32]) {
        self.view().decisions(features, out);
    }

    /// The same for a sparse row: 0-based indices and their values. An index of `dim` or more has weight 0.
    ///
    /// # Panics
    /// If `values` are not as many as `indices` or `out` is not `outputs` long.
    pub fn decisions_sparse(&self, indices: &[u32], values: &[f32], out: &mut [f32]) {
        self.view().decisions_sparse(indices, values, out);
    }

    /// The output of the greatest decision, the first of them if there are several: the class with softmax.
    pub fn class_of(decisions: &[f32]) -> usize {
        let mut best = 0;
        for (k, z) in decisions.iter().enumerate() {
            if *z > decisions[best] {
                best = k;
            }
        }
        best
    }

    /// Whether no parameter is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.intercepts.iter().chain(&self.weights).all(|w| w.is_finite())
    }

    /// Swaps the classes of a linear model with one output: flips all signs, which is exact.
    /// Zeros stay as positive as training makes them.
    pub fn negate(&mut self) {
        for parameter in self.weights.iter_mut().chain(&mut self.intercepts) {
            *parameter = 0.0 - *parameter;
        }
    }
}
