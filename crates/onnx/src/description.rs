//! What a model is, as plain data: what there has to be known of it to write its graph.

/// A model.
pub struct Description<'a> {
    /// what it is called
    pub name: &'a str,
    /// the version of the software that it comes from
    pub producer_version: &'a str,
    /// what else is to be said of it, by key
    pub metadata: Vec<(String, String)>,
    /// where its features come from
    pub features: Features<'a>,
    /// by feature, what stands for a missing number; without it there is no answer to a row with one
    pub fill: Option<&'a [f32]>,
    /// which numbers are taken by their logarithms: sign(x) ln(1 + |x|)
    pub logarithms: Logarithms<'a>,
    /// mean and deviation of each feature but buckets, if the weights are for standardized ones
    pub scaling: Option<(&'a [f64], &'a [f64])>,
    /// at how many deviations standardized features are cut off, if they are
    pub clip: Option<f32>,
    /// inputs and outputs of each layer, the last one being that of the decisions
    pub layers: Vec<(usize, usize)>,
    /// layer after layer, each output by output
    pub weights: &'a [f32],
    /// layer after layer
    pub intercepts: &'a [f32],
    /// what the units of all layers but the last compute
    pub activation: Activation,
    /// what its decisions mean
    pub answer: Answer<'a>,
}

/// Where the features come from.
pub enum Features<'a> {
    /// one column of arrays of numbers
    Array(&'a str),
    /// columns, whose features follow each other, and behind them those of the buckets that hashed columns share
    Columns(Vec<Column<'a>>),
    /// indices, of which `base` is the smallest, and values
    Sparse {
        /// what the indices are called
        indices: String,
        /// what the values are called
        values: String,
        /// the smallest index
        base: u32,
        /// what becomes of an index beyond the largest
        unseen: Instead,
    },
}

/// A column.
pub struct Column<'a> {
    /// its name
    pub name: &'a str,
    /// what it has
    pub kind: Kind<'a>,
}

/// What a column has.
pub enum Kind<'a> {
    /// a number, which is one feature
    Number,
    /// this many numbers, which are a feature each
    Vector(usize),
    /// a feature for each value, and perhaps one behind them for NULL
    Categories {
        /// in the order of their weights
        values: &'a [String],
        /// what stands for NULL
        null: Instead,
        /// what stands for any other text
        unseen: Instead,
    },
    /// the features of this many buckets, which all such columns share
    Hashed {
        /// how many
        buckets: u32,
        /// what stands for NULL
        null: Instead,
    },
}

/// What stands for a text or an index that is missing, or that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// a category, by its place, or a bucket
    Place(usize),
    /// it counts for nothing
    Nothing,
    /// there is no answer to such a row
    NoAnswer,
}

/// Which features are taken by their logarithms.
pub enum Logarithms<'a> {
    /// none
    None,
    /// all of them
    All,
    /// these, ascending
    These(&'a [u32]),
}

impl Logarithms<'_> {
    /// Is this feature one of them?
    pub fn contains(&self, feature: usize) -> bool {
        match self {
            Logarithms::None => false,
            Logarithms::All => true,
            Logarithms::These(these) => u32::try_from(feature).is_ok_and(|i| these.binary_search(&i).is_ok()),
        }
    }
}

/// What a hidden unit computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// 1 / (1 + e^-z)
    Sigmoid,
    /// z, or 0 if that is more
    Relu,
    /// the hyperbolic tangent
    Tanh,
}

/// What the decisions mean.
pub enum Answer<'a> {
    /// the only one is what is predicted
    Number,
    /// e to the power of the only one is what is predicted
    Exponential,
    /// of one decision, the second class if it is above 0; of several, the class with the largest
    Classes {
        /// the classes, ascending
        labels: &'a [String],
        /// the labels as numbers, unless they are texts
        values: Option<&'a [f64]>,
        /// what their probabilities are
        probabilities: Probabilities,
        /// what was fitted to the decisions, if probabilities are those of that
        fitted: Option<Fitted>,
    },
}

/// A line for each decision.
pub struct Fitted {
    /// what each decision is multiplied by
    pub factors: Vec<f64>,
    /// what is added then
    pub terms: Vec<f64>,
}

/// What the probabilities of classes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probabilities {
    /// there are no such ones
    None,
    /// of one decision the logistic function, of several e to the power of each, divided by their sum
    Softmax,
    /// the logistic function of each decision; of several, divided by their sum
    Sigmoid,
}
