//! Momentum: v ← β v + g, w ← w - η v, as PyTorch has it.

use std::fmt;

use super::l1::{flush, pending_l1};
use super::lazy_weights::{LazyWeights, MissedSteps, power};
use super::method::{CATCH_UP_STEPS, Method, Rule, UNIT, Values};
use crate::invalid::{InvalidHyperparameter, Parameter, within};

/// Heavy-ball momentum.
#[derive(Debug, Clone, Copy)]
pub struct Momentum {
    /// in [0, 1)
    pub(super) beta: f64,
}

impl Momentum {
    #[inline(always)]
    /// With the share of the last step that the next one keeps.
    pub fn new([beta, _, _]: Values) -> Momentum {
        Momentum { beta }
    }

    pub(super) const DEFAULT: Momentum = Momentum { beta: 0.9 };
}

impl Method for Momentum {
    const NAME: &'static str = "momentum";
    const MOMENTS: usize = 1;
    const LEARNING_RATE: Option<f64> = None;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "momentum", default: Some(Self::DEFAULT.beta), range: UNIT }];

    fn validate(self) -> Result<(), InvalidHyperparameter> {
        within(UNIT, self.beta, "momentum")
    }

    fn values(self) -> Values {
        [self.beta, 0.0, 0.0]
    }

    type Rule = Step;

    #[inline(always)]
    fn rule(self, _: [f64; 2], rate: f32) -> Step {
        Step { rate, beta: self.beta as f32 }
    }

    /// In n steps without a gradient a weight u (in units of the scale), with η the learning rate, σ the shrinking
    /// factor of l2 and s the scale after them, moves by -η/s v Σ σ^(n-i) βⁱ = -η/s v β (σⁿ - βⁿ) / (σ - β), and v
    /// becomes βⁿ v. If u would change its sign on the way where l1 stops it at 0, the steps are made one by one.
    #[inline(always)]
    fn catch_up(self, steps: &MissedSteps, lazy: &mut LazyWeights, features: impl Iterator<Item = usize>) {
        for j in features {
            let n = lazy.take_missed(steps, j);
            let before = lazy.l1_applied_to(steps, j);
            if n == 0 && before == steps.l1_applied {
                continue;
            }
            lazy.mark_l1_applied(steps, j);
            let missed = CatchUp::new(steps, self.beta, n);
            for i in j * steps.outputs..(j + 1) * steps.outputs {
                let (u, v) = (&mut lazy.weights[i], &mut lazy.first[i]);
                let pending = pending_l1(*u, before, steps.l1_applied);
                if *v != 0.0 || pending > 0.0 {
                    *u = missed.end((*u).into(), (*v).into(), pending) as f32;
                    *v = flush((f64::from(*v) * missed.fade) as f32);
                }
            }
        }
    }
}

impl fmt::Display for Momentum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", Self::NAME, self.beta)
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Step {
    rate: f32,
    beta: f32,
}

impl Rule for Step {
    const IS_PLAIN: bool = false;

    #[inline(always)]
    fn rate(self) -> f32 {
        self.rate
    }

    #[inline(always)]
    fn step_one(self, w: &mut f32, first: Option<&mut f32>, _: Option<&mut f32>, gradient: f32) {
        *w += self.rate * first.map_or(gradient, |v| velocity(v, gradient, self.beta));
    }

    #[inline(always)]
    fn step(self, parameters: &mut [f32], first: &mut [f32], _: &mut [f32], gradient: &[f32], share: f32) {
        for ((w, g), v) in parameters.iter_mut().zip(gradient).zip(first) {
            *w += self.rate * velocity(v, share * g, self.beta);
        }
    }
}

#[inline(always)]
fn velocity(v: &mut f32, gradient: f32, beta: f32) -> f32 {
    *v = flush(beta * *v + gradient);
    *v
}

/// `n` steps of momentum without a gradient.
#[derive(Debug, Clone, Copy)]
struct CatchUp {
    n: u32,
    beta: f64,
    shrink: f64,
    /// βⁿ
    fade: f64,
    /// the way of u per v, with its sign
    way: f64,
    /// η over the scale before the steps
    rate: f64,
    /// what l1 takes per step, over the scale before the steps
    threshold: f64,
    /// what l1 takes in all of the steps
    thresholds: f64,
}

impl CatchUp {
    #[inline(always)]
    fn new(steps: &MissedSteps, beta: f64, n: u32) -> CatchUp {
        let shrink = steps.shrink;
        let (fade, shrunk) = (power(beta, n.into()), power(shrink, n.into()));
        let sum =
            if (shrink - beta).abs() > 1e-9 { beta * (shrunk - fade) / (shrink - beta) } else { f64::from(n) * fade };
        // η v points uphill's opposite: gradients are kept with minus
        let way = steps.rate / steps.scale * sum;
        let before = shrunk / steps.scale;
        let (rate, threshold) = (steps.rate * before, steps.threshold * before);
        CatchUp { n, beta, shrink, fade, way, rate, threshold, thresholds: steps.l1_of_missed(n, shrunk) }
    }

    /// Where u comes to.
    #[inline(always)]
    fn end(&self, u: f64, v: f64, pending: f64) -> f64 {
        if pending == 0.0 {
            return u + self.way * v;
        }
        let first = (pending - self.thresholds).max(0.0);
        let (u, pending) = (nearer_to_0(u, first), pending - first);
        let free = u + self.way * v;
        let sign = if u != 0.0 { u.signum() } else { v.signum() };
        let end = free - sign * pending;
        // u goes away from 0 first and then towards it, or towards it all the time: it is nearest to 0 at the end
        if end * sign > 0.0 && (u != 0.0 || self.rate * self.beta * v.abs() > self.threshold) {
            return end;
        }
        self.step_by_step(u, v, pending)
    }

    #[cold]
    fn step_by_step(&self, mut u: f64, mut v: f64, mut pending: f64) -> f64 {
        let (mut rate, mut threshold) = (self.rate, self.threshold);
        let least = v.abs() * 1e-12;
        let grow = 1.0 / self.shrink;
        for _ in 0..self.n.min(CATCH_UP_STEPS) {
            v *= self.beta;
            rate *= grow;
            threshold *= grow;
            if v.abs() <= least || (u == 0.0 && rate * v.abs() <= threshold) {
                break;
            }
            u += rate * v;
            let by = threshold.min(pending);
            pending -= by;
            u = nearer_to_0(u, by);
        }
        nearer_to_0(u, pending)
    }
}

fn nearer_to_0(u: f64, by: f64) -> f64 {
    let left = u.abs() - by;
    if left <= 0.0 { 0.0 } else { left.copysign(u) }
}
