//! Adam (Kingma & Ba 2015): m ← β1 m + (1 - β1) g, v ← β2 v + (1 - β2) g², w ← w - η m̂ / (√v̂ + ε), where m̂ and v̂
//! are m and v divided by 1 - β1^t and 1 - β2^t in step t.

use std::fmt;

use tuples::LANES;

use super::l1::{cut, flush, pending_l1};
use super::lazy_weights::{LazyWeights, MissedSteps, power};
use super::method::{CATCH_UP_STEPS, Method, Rule, UNIT, Values};
use crate::invalid::{InvalidHyperparameter, Parameter, require, within};
use crate::range::Range;

/// Adam: means of the gradient and of its square.
#[derive(Debug, Clone, Copy)]
pub struct Adam {
    /// in [0, 1)
    pub(super) beta1: f64,
    /// in [0, 1)
    pub(super) beta2: f64,
    /// above 0
    pub(super) epsilon: f64,
}

impl Adam {
    #[inline(always)]
    /// With decay rates of both means, and what keeps the quotient finite.
    pub fn new([beta1, beta2, epsilon]: Values) -> Adam {
        Adam { beta1, beta2, epsilon }
    }

    pub(super) const DEFAULT: Adam = Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8 };
}

impl Method for Adam {
    const NAME: &'static str = "adam";
    const MOMENTS: usize = 2;
    const LEARNING_RATE: Option<f64> = Some(0.001);
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "beta1", default: Some(Self::DEFAULT.beta1), range: UNIT },
        Parameter { name: "beta2", default: Some(Self::DEFAULT.beta2), range: UNIT },
        Parameter { name: "epsilon", default: Some(Self::DEFAULT.epsilon), range: Range::above(0.0) },
    ];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        within(UNIT, self.beta1, "beta1")?;
        within(UNIT, self.beta2, "beta2")?;
        // what is added to the root of a gradient's square must not vanish in f32
        let sound = self.epsilon >= f64::from(f32::MIN_POSITIVE) && self.epsilon <= 1e30;
        require(sound, "epsilon", "must be greater than 0 and finite in type real")
    }

    fn values(self) -> Values {
        [self.beta1, self.beta2, self.epsilon]
    }

    type Rule = Step;

    #[inline(always)]
    fn rule(self, unbiased: [f64; 2], rate: f32) -> Step {
        let Adam { beta1, beta2, epsilon } = self;
        Step {
            rate: rate / unbiased[0] as f32,
            keep: [beta1 as f32, beta2 as f32],
            take: [(1.0 - beta1) as f32, (1.0 - beta2) as f32],
            root: (1.0 / unbiased[1].sqrt()) as f32,
            epsilon: epsilon as f32,
        }
    }

    /// 1 - β1^t and 1 - β2^t after t steps.
    #[inline(always)]
    fn count_step(self, [first, second]: [f64; 2]) -> [f64; 2] {
        let Adam { beta1, beta2, .. } = self;
        [beta1 * first + (1.0 - beta1), beta2 * second + (1.0 - beta2)]
    }

    /// The steps are made one by one, for sixteen weights at once, until the moments have faded.
    #[inline(always)]
    fn catch_up(self, steps: &MissedSteps, lazy: &mut LazyWeights, features: impl Iterator<Item = usize>) {
        let mut missed = CatchUp::new(self, steps);
        for j in features {
            missed.add(self, steps, lazy, j);
        }
        missed.run(lazy);
    }
}

impl fmt::Display for Adam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Adam { beta1, beta2, epsilon } = self;
        write!(f, "{}, beta1 {beta1}, beta2 {beta2}, epsilon {epsilon:e}", Self::NAME)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Step {
    rate: f32,
    keep: [f32; 2],
    take: [f32; 2],
    root: f32,
    epsilon: f32,
}

impl Rule for Step {
    const IS_PLAIN: bool = false;

    #[inline(always)]
    fn rate(self) -> f32 {
        self.rate
    }

    #[inline(always)]
    fn step_one(self, w: &mut f32, first: Option<&mut f32>, second: Option<&mut f32>, gradient: f32) {
        *w += self.rate
            * match (first, second) {
                (Some(m), Some(v)) => self.direction(m, v, gradient),
                _ => gradient,
            };
    }

    #[inline(always)]
    fn step(self, parameters: &mut [f32], first: &mut [f32], second: &mut [f32], gradient: &[f32], share: f32) {
        for (((w, g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
            *w += self.rate * self.direction(m, v, share * g);
        }
    }
}

impl Step {
    #[inline(always)]
    fn direction(self, m: &mut f32, v: &mut f32, g: f32) -> f32 {
        *m = flush(self.keep[0] * *m + self.take[0] * g);
        *v = flush(self.keep[1] * *v + self.take[1] * (g * g));
        *m / (v.sqrt() * self.root + self.epsilon)
    }
}

/// Sixteen weights on their way through steps of adam without a gradient.
#[derive(Debug)]
struct CatchUp {
    /// in use
    count: usize,
    places: [usize; LANES],
    missed: [f32; LANES],
    u: [f32; LANES],
    m: [f32; LANES],
    v: [f32; LANES],
    /// 1 - β1^t and 1 - β2^t
    unbiased: [[f32; LANES]; 2],
    /// η over the scale
    rate: [f32; LANES],
    pending: [f32; LANES],
    beta: [f32; 2],
    epsilon: f32,
    /// of σ
    reciprocal: f32,
    /// what l1 takes per step, over η
    threshold: f32,
    /// by which the steps that are left are longer together than the last one
    rest: f32,
}

/// Steps are made in groups of this many, after which it is seen whether they still matter.
const GROUP: u32 = 16;

/// Together shorter than this share of the learning rate, and of the weight, steps do not matter.
const NEGLIGIBLE: [f32; 2] = [1.0 / (1 << 20) as f32, 1.0 / (1 << 24) as f32];

impl CatchUp {
    #[inline(always)]
    fn new(adam: Adam, steps: &MissedSteps) -> CatchUp {
        let Adam { beta1, beta2, epsilon } = adam;
        // the ratio of one step to the one before, while epsilon does not matter; it is less when it does
        let ratio = beta1 / beta2.sqrt().max(f64::MIN_POSITIVE);
        let rest = if ratio < 1.0 { ratio / (1.0 - ratio) } else { f64::INFINITY };
        CatchUp {
            count: 0,
            places: [0; LANES],
            missed: [0.0; LANES],
            u: [0.0; LANES],
            m: [0.0; LANES],
            v: [0.0; LANES],
            unbiased: [[1.0; LANES]; 2],
            rate: [0.0; LANES],
            pending: [0.0; LANES],
            beta: [beta1 as f32, beta2 as f32],
            epsilon: epsilon as f32,
            reciprocal: (1.0 / steps.shrink) as f32,
            threshold: (steps.threshold / steps.rate) as f32,
            rest: rest as f32,
        }
    }

    /// Adds all weights of feature `j` that have a way to go, and lets their moments fade.
    #[inline(always)]
    fn add(&mut self, adam: Adam, steps: &MissedSteps, lazy: &mut LazyWeights, j: usize) {
        let n = lazy.take_missed(steps, j);
        let before = lazy.l1_applied_to(steps, j);
        if n == 0 && before == steps.l1_applied {
            return;
        }
        lazy.mark_l1_applied(steps, j);
        let Adam { beta1, beta2, .. } = adam;
        let fade = [power(beta1, n.into()), power(beta2, n.into())];
        let made = steps.steps.saturating_sub(n.into());
        let unbiased = [beta1, beta2].map(|beta| (1.0 - power(beta, made)) as f32);
        let shrunk = power(steps.shrink, n.into());
        let of_missed = steps.l1_of_missed(n, shrunk);
        let rate = (steps.rate * shrunk / steps.scale) as f32;
        let outputs = steps.outputs;
        for place in j * outputs..(j + 1) * outputs {
            let (m, v) = (lazy.first[place], lazy.second[place]);
            lazy.first[place] = flush((f64::from(m) * fade[0]) as f32);
            lazy.second[place] = flush((f64::from(v) * fade[1]) as f32);
            let pending = pending_l1(lazy.weights[place], before, steps.l1_applied);
            if m == 0.0 || n == 0 {
                lazy.weights[place] = cut(lazy.weights[place], pending as f32);
                continue;
            }
            let first = (pending - of_missed).max(0.0);
            let i = self.count;
            (self.places[i], self.missed[i], self.pending[i], self.rate[i]) =
                (place, n as f32, (pending - first) as f32, rate);
            (self.u[i], self.m[i], self.v[i]) = (cut(lazy.weights[place], first as f32), m, v);
            (self.unbiased[0][i], self.unbiased[1][i]) = (unbiased[0], unbiased[1]);
            self.count += 1;
            if self.count == LANES {
                self.run(lazy);
            }
        }
    }

    /// Takes the steps of all weights that were added, and forgets them.
    #[inline(always)]
    fn run(&mut self, lazy: &mut LazyWeights) {
        let mut done = 0;
        while done < CATCH_UP_STEPS && self.matters() {
            for _ in 0..GROUP {
                self.step();
            }
            done += GROUP;
        }
        for i in 0..self.count {
            lazy.weights[self.places[i]] = cut(self.u[i], self.pending[i]);
        }
        self.count = 0;
        self.missed = [0.0; LANES];
    }

    /// Whether a weight still has a way to go.
    #[inline(always)]
    fn matters(&self) -> bool {
        let mut matters = false;
        for i in 0..LANES {
            let next = self.next(i).abs() * (1.0 + self.rest);
            let relevant = next > self.rate[i] * NEGLIGIBLE[0] && next > self.u[i].abs() * NEGLIGIBLE[1];
            matters |= self.missed[i] > 0.0 && relevant;
        }
        matters
    }

    /// About the step that weight `i` makes next.
    #[inline(always)]
    fn next(&self, i: usize) -> f32 {
        let root = (self.v[i] / self.unbiased[1][i]).sqrt();
        self.rate[i] * self.m[i] / (self.unbiased[0][i] * (root + self.epsilon))
    }

    /// One step of every weight that has some left.
    #[inline(always)]
    fn step(&mut self) {
        let [keep1, keep2] = self.beta;
        for i in 0..LANES {
            let left = self.missed[i] > 0.0;
            self.missed[i] -= 1.0;
            self.m[i] = flush(self.m[i] * keep1);
            self.v[i] = flush(self.v[i] * keep2);
            self.unbiased[0][i] = self.unbiased[0][i] * keep1 + (1.0 - keep1);
            self.unbiased[1][i] = self.unbiased[1][i] * keep2 + (1.0 - keep2);
            self.rate[i] *= self.reciprocal;
            let by = self.pending[i].min(self.threshold * self.rate[i]);
            let free = self.u[i] + self.next(i);
            let u = cut(free, by);
            // what the weight has not noticed is still pending
            let by = if u == 0.0 { by } else { free.abs() - u.abs() };
            self.u[i] = if left { u } else { self.u[i] };
            self.pending[i] = if left { (self.pending[i] - by).max(0.0) } else { self.pending[i] };
        }
    }
}
