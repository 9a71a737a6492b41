//! The textbook's SGD in double precision: what training has to agree with.
//!
//! Written from the formulas alone and sharing no code with crate `sgd`, so that the two cannot be wrong together.

/// What is minimized, as a function of the margin y z, where y is -1 or +1 and z the model's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// ln(1 + exp(-y z))
    Logistic,
    /// max(0, 1 - y z)
    Hinge,
}

impl Loss {
    fn value(self, margin: f64) -> f64 {
        match self {
            Loss::Logistic => (-margin).exp().ln_1p(),
            Loss::Hinge => (1.0 - margin).max(0.0),
        }
    }

    /// The derivative by the margin, negated.
    fn push(self, margin: f64) -> f64 {
        match self {
            Loss::Logistic => 1.0 / (1.0 + margin.exp()),
            Loss::Hinge => f64::from(margin < 1.0),
        }
    }
}

/// A linear model that starts at zero.
#[derive(Debug, Clone)]
pub struct Oracle {
    loss: Loss,
    learning_rate: f64,
    decay: f64,
    l2: f64,
    /// One per feature.
    pub weights: Vec<f64>,
    /// The weight of the constant input 1; not shrunk by `l2`.
    pub intercept: f64,
}

impl Oracle {
    /// A model of `features` features; `l2` shrinks the weights by `learning_rate * l2` at every step.
    pub fn new(loss: Loss, features: usize, learning_rate: f64, decay: f64, l2: f64) -> Self {
        Self { loss, learning_rate, decay, l2, weights: vec![0.0; features], intercept: 0.0 }
    }

    /// One epoch over (is of the second class, features) in the order given, then the learning rate decays.
    ///
    /// Returns mean loss and accuracy, each tuple measured before its own update.
    pub fn epoch(&mut self, tuples: &[(bool, Vec<f64>)]) -> (f64, f64) {
        let (mut loss, mut right) = (0.0, 0.0);
        for (second, x) in tuples {
            let y = if *second { 1.0 } else { -1.0 };
            let margin = y * self.value(x);
            loss += self.loss.value(margin);
            right += f64::from(margin > 0.0);
            let step = self.learning_rate * y * self.loss.push(margin);
            for (w, x) in self.weights.iter_mut().zip(x) {
                *w = *w * (1.0 - self.learning_rate * self.l2) + step * x;
            }
            self.intercept += step;
        }
        self.learning_rate *= self.decay;
        (loss / tuples.len() as f64, right / tuples.len() as f64)
    }

    /// w x + b
    pub fn value(&self, x: &[f64]) -> f64 {
        self.weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>() + self.intercept
    }
}

/// Asserts that two vectors are equal but for rounding in single precision: within `tolerance` of the largest element.
pub fn assert_close(given: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(given.len(), expected.len());
    let scale = expected.iter().fold(0.0_f64, |m, e| m.max(e.abs()));
    for (i, (g, e)) in given.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance * scale, "element {i} is {g} and should be {e}: {given:?}, {expected:?}");
    }
}
