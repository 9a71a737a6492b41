//! Features that rows do not distinguish.

/// Features that are combinations of others, or nearly, so that rows do not tell their weights.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Collinearity {
    /// The features, each of which those before it determine.
    pub features: Vec<usize>,
    /// A lower bound of the condition number of the Hessian, whose features are brought to variance 1; 1 without such
    /// features.
    pub condition: f64,
}

impl Collinearity {
    /// Of features, and the share of the variance of each that the others leave.
    pub fn of(features: impl Iterator<Item = (usize, f64)>) -> Collinearity {
        let (features, shares): (Vec<usize>, Vec<f64>) = features.unzip();
        Collinearity { features, condition: 1.0 / shares.into_iter().fold(1.0, f64::min) }
    }
}
