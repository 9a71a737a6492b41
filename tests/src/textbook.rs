//! Every model and optimizer as a textbook has them, in double precision and dense: what training has to agree with.
//!
//! Written from the formulas alone and sharing no code with crate `sgd`, so that the two cannot be wrong together. One
//! matrix of weights, one gradient, one step: nothing is lazy, fused or sparse here.

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// ln(1 + exp(-y z)), y of -1 or 1
    Logistic,
    /// max(0, 1 - y z), y of -1 or 1
    Hinge,
    /// (z - y)² / 2
    Squares,
    /// -ln of the softmax probability of class y of 0, 1, ...
    CrossEntropy,
}

/// How a gradient becomes a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// w - η g
    Plain,
    /// v = β v + g; w - η v
    Momentum(f64),
    /// Kingma & Ba, with β1, β2 and ε
    Adam(f64, f64, f64),
}

/// One tuple.
#[derive(Debug, Clone)]
pub struct Tuple {
    /// -1 or 1, a target, or the number of a class.
    pub label: f64,
    /// What its gradient and loss are multiplied by.
    pub weight: f64,
    /// All of them.
    pub features: Vec<f64>,
}

/// A model in training; starts at zero.
#[derive(Debug, Clone)]
pub struct Textbook {
    /// What is minimised.
    pub objective: Objective,
    /// How.
    pub rule: Rule,
    /// Rate of the next epoch.
    pub rate: f64,
    /// Tuples per step.
    pub batch_size: usize,
    /// Strength of the penalty on the weights' absolute values.
    pub l1: f64,
    /// Strength of the penalty on half their squares.
    pub l2: f64,
    /// A row per output: its weights and then its intercept.
    pub rows: Vec<Vec<f64>>,
    /// What momentum and Adam remember of the gradients, as `rows`.
    pub velocity: Vec<Vec<f64>>,
    /// What Adam remembers of their squares.
    pub squares: Vec<Vec<f64>>,
    /// Steps made.
    pub steps: i32,
    /// Share of the last epoch's tuples that were right, each before its own step.
    pub accuracy: f64,
}

impl Textbook {
    /// Plain SGD with a step per tuple and no penalties; everything can be changed before the first epoch.
    pub fn new(objective: Objective, features: usize, outputs: usize, rate: f64) -> Self {
        let zeros = vec![vec![0.0; features + 1]; outputs];
        let (rows, velocity, squares) = (zeros.clone(), zeros.clone(), zeros);
        Self {
            objective,
            rule: Rule::Plain,
            rate,
            batch_size: 1,
            l1: 0.0,
            l2: 0.0,
            rows,
            velocity,
            squares,
            steps: 0,
            accuracy: 0.0,
        }
    }

    /// One epoch at this rate; gives the weighted mean of the losses, each before its own step, and the penalties at
    /// the end.
    pub fn epoch(&mut self, tuples: &[Tuple]) -> f64 {
        let (mut loss, mut weight, mut right) = (0.0, 0.0, 0);
        let mean = tuples.iter().map(|tuple| tuple.weight).sum::<f64>() / tuples.len() as f64;
        for batch in tuples.chunks(self.batch_size) {
            let mut gradient = vec![vec![0.0; self.rows[0].len()]; self.rows.len()];
            for tuple in batch {
                loss += tuple.weight * self.loss(tuple);
                weight += tuple.weight;
                right += usize::from(self.is_right(tuple));
                for (gradient, slope) in gradient.iter_mut().zip(self.gradients(tuple)) {
                    for (g, x) in gradient.iter_mut().zip(inputs(tuple)) {
                        *g += tuple.weight / mean * slope * x / batch.len() as f64;
                    }
                }
            }
            self.step(&gradient);
        }
        self.accuracy = right as f64 / tuples.len() as f64;
        let weights = || self.rows.iter().flat_map(|row| &row[..row.len() - 1]);
        let penalty =
            self.l2 / 2.0 * weights().map(|w| w * w).sum::<f64>() + self.l1 * weights().map(|w| w.abs()).sum::<f64>();
        loss / weight + penalty
    }

    /// The value of each output.
    pub fn values(&self, tuple: &Tuple) -> Vec<f64> {
        self.rows.iter().map(|row| row.iter().zip(inputs(tuple)).map(|(w, x)| w * x).sum()).collect()
    }

    /// All weights, output by output, and then all intercepts.
    pub fn parameters(&self) -> Vec<f64> {
        let weights = self.rows.iter().flat_map(|row| row[..row.len() - 1].iter());
        weights.chain(self.rows.iter().filter_map(|row| row.last())).copied().collect()
    }

    fn is_right(&self, tuple: &Tuple) -> bool {
        let z = self.values(tuple);
        match self.objective {
            Objective::Logistic | Objective::Hinge => tuple.label * z[0] > 0.0,
            Objective::Squares => false,
            Objective::CrossEntropy => z.iter().all(|other| *other <= z[tuple.label as usize]),
        }
    }

    fn loss(&self, tuple: &Tuple) -> f64 {
        let z = self.values(tuple);
        match self.objective {
            Objective::Logistic => (1.0 + (-tuple.label * z[0]).exp()).ln(),
            Objective::Hinge => (1.0 - tuple.label * z[0]).max(0.0),
            Objective::Squares => (z[0] - tuple.label).powi(2) / 2.0,
            Objective::CrossEntropy => z.iter().map(|z| z.exp()).sum::<f64>().ln() - z[tuple.label as usize],
        }
    }

    /// The derivative of the loss by each output's value.
    fn gradients(&self, tuple: &Tuple) -> Vec<f64> {
        let z = self.values(tuple);
        let y = tuple.label;
        match self.objective {
            Objective::Logistic => vec![-y / (1.0 + (y * z[0]).exp())],
            Objective::Hinge => vec![if y * z[0] < 1.0 { -y } else { 0.0 }],
            Objective::Squares => vec![z[0] - y],
            Objective::CrossEntropy => {
                let sum: f64 = z.iter().map(|z| z.exp()).sum();
                (0..z.len()).map(|k| z[k].exp() / sum - f64::from(k == y as usize)).collect()
            }
        }
    }

    fn step(&mut self, gradient: &[Vec<f64>]) {
        self.steps += 1;
        for (k, gradient) in gradient.iter().enumerate() {
            let intercept = gradient.len() - 1;
            for (j, &g) in gradient.iter().enumerate() {
                if j != intercept {
                    self.rows[k][j] *= 1.0 - self.rate * self.l2;
                }
                self.rows[k][j] -= self.rate * self.direction(k, j, g);
                if j != intercept {
                    let w = self.rows[k][j];
                    self.rows[k][j] = w.signum() * (w.abs() - self.rate * self.l1).max(0.0);
                }
            }
        }
    }

    fn direction(&mut self, k: usize, j: usize, g: f64) -> f64 {
        let (v, s) = (&mut self.velocity[k][j], &mut self.squares[k][j]);
        match self.rule {
            Rule::Plain => g,
            Rule::Momentum(beta) => {
                *v = beta * *v + g;
                *v
            }
            Rule::Adam(beta1, beta2, epsilon) => {
                *v = beta1 * *v + (1.0 - beta1) * g;
                *s = beta2 * *s + (1.0 - beta2) * g * g;
                let (mean, square) = (*v / (1.0 - beta1.powi(self.steps)), *s / (1.0 - beta2.powi(self.steps)));
                mean / (square.sqrt() + epsilon)
            }
        }
    }
}

fn inputs(tuple: &Tuple) -> impl Iterator<Item = f64> {
    tuple.features.iter().copied().chain([1.0])
}

/// Asserts that two vectors are equal but for rounding in single precision: within `tolerance` of the largest element.
pub fn assert_close(given: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(given.len(), expected.len());
    let scale = expected.iter().fold(0.0_f64, |m, e| m.max(e.abs()));
    for (i, (g, e)) in given.iter().zip(expected).enumerate() {
        assert!((g - e).abs() <= tolerance * scale, "element {i} is {g} and should be {e}: {given:?}, {expected:?}");
    }
}
