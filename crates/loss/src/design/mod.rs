//! What a network is made of: how many units in which layers, and what they compute and decide.

mod decide;
pub mod products;
pub mod units;

use choices::choice;
use serde::{Deserialize, Serialize};

use crate::math::{cross_entropy, softplus};
pub use decide::decide_rows;
pub(crate) use decide::{Tuple, decide};

/// More hidden layers than this are no feed-forward network that plain gradients could train.
const MAX_LAYERS: usize = 16;

/// The sizes of the hidden layers, from the features on: one to sixteen of them, each at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct Hidden {
    len: usize,
    sizes: [u32; MAX_LAYERS],
}

impl Hidden {
    /// The most layers that there can be.
    pub const MAX_LAYERS: usize = MAX_LAYERS;

    /// Layers of these sizes; None if there is no layer, too many of them, or one is empty.
    pub fn new(sizes: &[u32]) -> Option<Hidden> {
        if !(1..=MAX_LAYERS).contains(&sizes.len()) || sizes.contains(&0) {
            return None;
        }
        let mut hidden = Hidden { len: sizes.len(), sizes: [0; MAX_LAYERS] };
        hidden.sizes[..sizes.len()].copy_from_slice(sizes);
        Some(hidden)
    }

    /// The sizes.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes[..self.len]
    }

    /// Units in all of them.
    pub fn units(&self) -> usize {
        self.sizes().iter().map(|&size| size as usize).sum()
    }
}

impl Default for Hidden {
    /// One of 100, as scikit-learn has it.
    fn default() -> Hidden {
        let mut sizes = [0; MAX_LAYERS];
        sizes[0] = 100;
        Hidden { len: 1, sizes }
    }
}

impl From<Hidden> for Vec<u32> {
    fn from(hidden: Hidden) -> Vec<u32> {
        hidden.sizes().to_vec()
    }
}

impl TryFrom<Vec<u32>> for Hidden {
    type Error = &'static str;

    fn try_from(sizes: Vec<u32>) -> Result<Hidden, &'static str> {
        Hidden::new(&sizes).ok_or("hidden layers are 1 to 16 sizes from 1")
    }
}

choice! {
    /// What a hidden unit makes of its input z.
    Activation: Relu {
        /// 1 / (1 + e^(-z)).
        Sigmoid = "sigmoid",
        /// max(0, z).
        Relu = "relu",
        /// tanh z.
        Tanh = "tanh",
    }
}

impl Activation {
    /// The learning rate unless another is given, but with Adam: the flatter the units, the larger.
    pub fn learning_rate(self) -> f64 {
        match self {
            Activation::Sigmoid => 1.0,
            Activation::Relu | Activation::Tanh => 0.1,
        }
    }
}

choice! {
    /// What the last layer's numbers mean.
    Output {
        /// Of two classes there is one output z, and the second has the probability 1 / (1 + e^(-z)). Of more there is
        /// one for each, which tells its class from all others; the loss is the sum of theirs.
        Sigmoid = "sigmoid",
        /// An output for each class, whose probabilities are e^(z_k) / Σ e^(z_j).
        Softmax = "softmax",
        /// One output, which is the prediction: there are no classes, and the loss is (z - y)²/2.
        Identity = "identity",
    }
}

impl Output {
    /// Those of classes.
    pub const OF_CLASSES: [Output; 2] = [Output::Sigmoid, Output::Softmax];

    /// Whether its numbers stand for classes.
    pub fn has_classes(self) -> bool {
        Output::OF_CLASSES.contains(&self)
    }

    /// The loss of a tuple of this class with these decisions, and -ln of the class's probability, to the rounding of
    /// f64. They differ where each of more than two classes has an output of its own.
    ///
    /// # Panics
    /// If there are no classes.
    pub fn losses(self, decisions: &[f32], class: usize) -> (f64, f64) {
        let binary = |(k, z): (usize, &f32)| softplus(if k == class { -f64::from(*z) } else { f64::from(*z) });
        let both = |loss| (loss, loss);
        match (self, decisions) {
            (Output::Identity, _) => panic!("a number has no class"),
            (_, [z]) => both(binary((1, z))),
            (Output::Sigmoid, many) => {
                // of the probabilities p, made to add up to 1: those of Network::probabilities
                let logs = |z: &f32| -softplus(-f64::from(*z));
                let greatest = many.iter().map(logs).fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = many.iter().map(|z| (logs(z) - greatest).exp()).sum();
                (many.iter().enumerate().map(binary).sum(), sum.ln() - (logs(&many[class]) - greatest))
            }
            (Output::Softmax, many) => both(cross_entropy(many, class)),
        }
    }
}

/// What a network is to be made of, and where its first weights come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Design {
    /// Sizes of the hidden layers.
    pub hidden: Hidden,
    /// What hidden units compute.
    pub activation: Activation,
    /// None: sigmoid for two classes, softmax for more. A regression says that it is the identity.
    pub output: Option<Output>,
    /// What the first weights are drawn by.
    pub seed: i64,
}

impl Design {
    /// The network for this many classes; of a regression it is the same for any number.
    pub fn network(&self, classes: usize) -> Network {
        let output = self.output.unwrap_or(if classes == 2 { Output::Sigmoid } else { Output::Softmax });
        Network { hidden: self.hidden, activation: self.activation, output }
    }

    /// A number that tells designs apart, unless chance has it otherwise (FNV-1a);
    /// where the weights come from is no matter.
    pub fn mark(&self) -> u32 {
        let output = self.output.map_or(0, |output| 1 + output as u32);
        let words = self.hidden.sizes().iter().copied().chain([self.activation as u32, output]);
        let bytes = words.flat_map(u32::to_le_bytes);
        bytes.fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    }

    /// Weights of the network for this many features and classes, without intercepts.
    pub fn weights(&self, dim: usize, classes: usize) -> usize {
        let network = self.network(classes);
        network.weights(dim, network.outputs(classes))
    }
}

/// What a network is made of, besides its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    /// Sizes of the hidden layers.
    pub hidden: Hidden,
    /// What hidden units compute.
    pub activation: Activation,
    /// What the last layer means.
    pub output: Output,
}

impl Network {
    /// Outputs for this many classes.
    pub fn outputs(&self, classes: usize) -> usize {
        match self.output {
            Output::Sigmoid if classes == 2 => 1,
            Output::Identity => 1,
            Output::Sigmoid | Output::Softmax => classes,
        }
    }

    /// Classes that this many outputs distinguish, 0 of a regression; None if that cannot be.
    pub fn classes(&self, outputs: usize) -> Option<usize> {
        match (self.output, outputs) {
            (Output::Sigmoid, 1) => Some(2),
            (Output::Sigmoid, 3..) | (Output::Softmax, 2..) => Some(outputs),
            (Output::Identity, 1) => Some(0),
            _ => None,
        }
    }

    /// Inputs and outputs of each layer, for this many features and outputs; the last one makes the outputs.
    pub fn layers(&self, dim: usize, outputs: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let hidden = self.hidden;
        (0..=hidden.len).map(move |i| {
            let inputs = if i == 0 { dim } else { hidden.sizes[i - 1] as usize };
            (inputs, if i == hidden.len { outputs } else { hidden.sizes[i] as usize })
        })
    }

    /// Weights for this many features and outputs, without intercepts.
    pub fn weights(&self, dim: usize, outputs: usize) -> usize {
        let layers = self.layers(dim, outputs);
        layers.fold(0, |sum: usize, (inputs, outputs)| sum.saturating_add(inputs.saturating_mul(outputs)))
    }

    /// Intercepts for this many outputs: one for each unit.
    pub fn intercepts(&self, outputs: usize) -> usize {
        self.hidden.units().saturating_add(outputs)
    }

    /// Features and outputs of a network of this many weights and intercepts; None if there is no such network.
    pub fn sizes(&self, weights: usize, intercepts: usize) -> Option<(usize, usize)> {
        let outputs = intercepts.checked_sub(self.hidden.units())?;
        self.classes(outputs)?;
        let first = self.hidden.sizes[0] as usize;
        let dim = weights.checked_sub(self.weights(0, outputs))? / first;
        (dim > 0 && self.weights(dim, outputs) == weights).then_some((dim, outputs))
    }

    /// The probabilities of the classes, from the decisions; their sum is 1.
    ///
    /// # Panics
    /// If there are not as many places as classes, or no classes.
    pub fn probabilities(&self, decisions: &[f32], out: &mut [f64]) {
        match (self.output, decisions) {
            (Output::Sigmoid, [z]) => out.copy_from_slice(&[crate::probability(-z), crate::probability(*z)]),
            (Output::Sigmoid, many) => {
                assert_eq!(out.len(), many.len(), "a place for every class");
                // the greatest one as the unit: all of them may be next to nothing
                let logs = |z: &f32| -softplus(-f64::from(*z));
                let greatest = many.iter().map(logs).fold(f64::NEG_INFINITY, f64::max);
                out.iter_mut().zip(many).for_each(|(p, z)| *p = (logs(z) - greatest).exp());
                let sum: f64 = out.iter().sum();
                out.iter_mut().for_each(|p| *p /= sum);
            }
            (Output::Softmax, many) => crate::softmax(many, out),
            (Output::Identity, _) => panic!("a number has no probability"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(hidden: &[u32], output: Output) -> Network {
        Network { hidden: Hidden::new(hidden).unwrap(), activation: Activation::Relu, output }
    }

    #[test]
    fn hidden_layers_have_sizes_and_a_limit() {
        assert_eq!(Hidden::default().sizes(), [100]);
        assert_eq!(Hidden::new(&[3, 1]).unwrap().sizes(), [3, 1]);
        assert_eq!(Hidden::new(&[]), None);
        assert_eq!(Hidden::new(&[3, 0]), None);
        assert!(Hidden::new(&[1; 16]).is_some());
        assert_eq!(Hidden::new(&[1; 17]), None);
        assert_eq!(serde_json::to_string(&Hidden::default()).unwrap(), "[100]");
        assert!(serde_json::from_str::<Hidden>("[]").is_err());
    }

    #[test]
    fn sizes_follow_from_how_many_numbers_there_are() {
        for (hidden, output, outputs) in [
            (&[4, 3][..], Output::Softmax, 5),
            (&[4], Output::Sigmoid, 1),
            (&[1, 2, 3], Output::Sigmoid, 7),
            (&[2, 5], Output::Identity, 1),
        ] {
            let network = network(hidden, output);
            let (weights, intercepts) = (network.weights(9, outputs), network.intercepts(outputs));
            assert_eq!(network.sizes(weights, intercepts), Some((9, outputs)));
            assert_eq!(network.sizes(weights + 1, intercepts).filter(|_| hidden[0] > 1), None);
            assert_eq!(network.sizes(weights, hidden.len()), None);
            assert_eq!(network.sizes(0, intercepts), None);
        }
        assert_eq!(network(&[4, 3], Output::Softmax).weights(9, 5), 36 + 12 + 15);
        assert_eq!(network(&[u32::MAX, u32::MAX], Output::Softmax).weights(usize::MAX, 2), usize::MAX);
    }

    #[test]
    fn two_classes_have_one_sigmoid_output_or_two_of_softmax() {
        let design = Design::default();
        assert_eq!(design.network(2).output, Output::Sigmoid);
        assert_eq!(design.network(3).output, Output::Softmax);
        let outputs = |output, classes| network(&[1], output).outputs(classes);
        assert_eq!((outputs(Output::Sigmoid, 2), outputs(Output::Softmax, 2), outputs(Output::Sigmoid, 3)), (1, 2, 3));
        assert_eq!(network(&[1], Output::Sigmoid).classes(2), None);
        assert_eq!([0, 1, 2].map(|outputs| network(&[1], Output::Identity).classes(outputs)), [None, Some(0), None]);
        assert_eq!((outputs(Output::Identity, 1), outputs(Output::Identity, 2)), (1, 1));
    }

    #[test]
    fn probabilities_are_those_of_the_output_and_add_up_to_1() {
        let mut p = [0.0; 2];
        network(&[1], Output::Sigmoid).probabilities(&[1.0], &mut p);
        assert!((p[1] - 1.0 / (1.0 + (-1f64).exp())).abs() < 1e-15 && (p[0] + p[1] - 1.0).abs() < 1e-15);
        let mut p = [0.0; 3];
        network(&[1], Output::Sigmoid).probabilities(&[0.0, 0.0, -2000.0], &mut p);
        assert_eq!(p, [0.5, 0.5, 0.0]);
        network(&[1], Output::Sigmoid).probabilities(&[-1e30, -1e30, f32::MIN], &mut p);
        assert_eq!(p, [0.5, 0.5, 0.0]);
    }
}
