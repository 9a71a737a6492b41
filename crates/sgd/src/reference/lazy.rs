//! Bringing the weights of features up to date that no tuple has touched for some steps.
//!
//! Guarantees: the outcome is that of making every step with a gradient of 0, to the precision of f32. In n such steps a
//! weight u (in units of the scale), with η the learning rate, σ the shrinking factor of l2 and s the scale after them,
//! goes through
//! - plain SGD: nothing but what l1 takes, whose sum is known;
//! - momentum: v becomes βⁿ v, and u moves by -η/s v Σ σ^(n-i) βⁱ = -η/s v β (σⁿ - βⁿ) / (σ - β); if it would change its
//!   sign on the way where l1 stops it at 0, the steps are made one by one;
//! - adam: the steps are made one by one, for sixteen weights at once, until the moments have faded.

use tuples::{LANES, pause};

use super::arrays::Arrays;
use super::sparse::weights_of;
use super::state::TrainerState;
use super::update::{F64_CUTS, cut, due, flush, wrap};
use crate::Optimizer;

/// Brings features up to date.
#[inline(always)]
pub(crate) fn bring_up_to_date(head: &TrainerState, arrays: &mut Arrays, features: impl Iterator<Item = usize>) {
    match head.optimizer() {
        Optimizer::Sgd => {
            for j in features {
                let before = paid(head, arrays, j);
                if before != head.taken {
                    pay(head, arrays, j);
                    for u in weights_of(arrays.weights, head, j) {
                        *u = cut(*u, due(*u, before, head.taken) as f32);
                    }
                }
            }
        }
        Optimizer::Momentum { beta } => {
            for j in features {
                coast(head, arrays, beta, j);
            }
        }
        Optimizer::Adam { beta1, beta2, epsilon } => {
            let mut fading = Fading::new(head, beta1, beta2, epsilon);
            for j in features {
                fading.add(head, arrays, j);
            }
            fading.run(arrays);
        }
    }
}

/// Brings all features up to date, pays l1, and folds the scale into the weights.
#[inline(always)]
pub(crate) fn apply_pending(head: &mut TrainerState, arrays: &mut Arrays) {
    if head.is_lazy() {
        head.taken += head.pay();
        bring_up_to_date(head, arrays, pause::pausing(0..head.dim as usize));
        pause::parts_mut(arrays.last).for_each(|last| last.fill(0));
    }
    if head.scale != 1.0 {
        let scale = head.scale as f32;
        pause::parts_mut(arrays.weights).flatten().for_each(|u| *u *= scale);
    }
    head.taken = wrap(head.taken * head.scale, head.threshold(), F64_CUTS);
    (head.time, head.scale) = (0, 1.0);
    pay_all(head, arrays);
}

/// Says that no feature has anything to pay.
#[inline(always)]
pub(crate) fn pay_all(head: &TrainerState, arrays: &mut Arrays) {
    let bits = bits(head.taken);
    pause::parts_mut(arrays.taken.as_chunks_mut::<2>().0).for_each(|taken| taken.fill(bits));
}

/// What l1 had taken from every weight when feature `j` last paid. What the feature owes since then, its weights pay as far
/// as their last digits go.
#[inline(always)]
fn paid(head: &TrainerState, arrays: &Arrays, j: usize) -> f64 {
    match arrays.taken.get(2 * j..2 * j + 2) {
        Some(&[low, high]) => f64::from_bits(u64::from(low) | u64::from(high) << 32),
        _ => head.taken,
    }
}

#[inline(always)]
fn bits(taken: f64) -> [u32; 2] {
    let bits = taken.to_bits();
    [bits as u32, (bits >> 32) as u32]
}

/// Says that l1 has nothing to take from feature `j` any more.
#[inline(always)]
fn pay(head: &TrainerState, arrays: &mut Arrays, j: usize) {
    if let Some(place) = arrays.taken.get_mut(2 * j..2 * j + 2) {
        place.copy_from_slice(&bits(head.taken));
    }
}

/// Steps that feature `j` has missed, which are counted in with that.
#[inline(always)]
fn missed(head: &TrainerState, arrays: &mut Arrays, j: usize) -> u32 {
    let last = &mut arrays.last[j];
    let missed = head.time.saturating_sub(*last);
    *last = head.time;
    missed
}

/// What l1 takes in the last `n` steps, given σⁿ. Whatever is owed beyond that is of the step that the feature has made.
#[inline(always)]
fn of_missed(head: &TrainerState, n: u32, shrunk: f64) -> f64 {
    let shrink = head.shrink();
    let sum = if shrink < 1.0 { (1.0 - shrunk) / (1.0 - shrink) } else { n.into() };
    head.threshold() / head.scale * sum
}

/// Brings feature `j` up to date under momentum.
#[inline(always)]
fn coast(head: &TrainerState, arrays: &mut Arrays, beta: f64, j: usize) {
    let n = missed(head, arrays, j);
    let before = paid(head, arrays, j);
    if n == 0 && before == head.taken {
        return;
    }
    pay(head, arrays, j);
    let glide = Glide::new(head, beta, n);
    let outputs = head.outputs as usize;
    for i in j * outputs..(j + 1) * outputs {
        let (u, v) = (&mut arrays.weights[i], &mut arrays.first[i]);
        let owed = due(*u, before, head.taken);
        if *v != 0.0 || owed > 0.0 {
            *u = glide.end((*u).into(), (*v).into(), owed) as f32;
            *v = flush((f64::from(*v) * glide.fade) as f32);
        }
    }
}

/// `n` steps of momentum without a gradient.
#[derive(Debug, Clone, Copy)]
struct Glide {
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

impl Glide {
    #[inline(always)]
    fn new(head: &TrainerState, beta: f64, n: u32) -> Glide {
        let shrink = head.shrink();
        let (fade, shrunk) = (power(beta, n.into()), power(shrink, n.into()));
        let sum =
            if (shrink - beta).abs() > 1e-9 { beta * (shrunk - fade) / (shrink - beta) } else { f64::from(n) * fade };
        // η v points uphill's opposite: gradients are kept with minus
        let way = head.rate / head.scale * sum;
        let before = shrunk / head.scale;
        let (rate, threshold) = (head.rate * before, head.threshold() * before);
        Glide { n, beta, shrink, fade, way, rate, threshold, thresholds: of_missed(head, n, shrunk) }
    }

    /// Where u comes to.
    #[inline(always)]
    fn end(&self, u: f64, v: f64, owed: f64) -> f64 {
        if owed == 0.0 {
            return u + self.way * v;
        }
        let first = (owed - self.thresholds).max(0.0);
        let (u, owed) = (nearer_to_0(u, first), owed - first);
        let free = u + self.way * v;
        let sign = if u != 0.0 { u.signum() } else { v.signum() };
        let end = free - sign * owed;
        // u goes away from 0 first and then towards it, or towards it all the time: it is nearest to 0 at the end
        if end * sign > 0.0 && (u != 0.0 || self.rate * self.beta * v.abs() > self.threshold) {
            return end;
        }
        self.step_by_step(u, v, owed)
    }

    #[cold]
    fn step_by_step(&self, mut u: f64, mut v: f64, mut owed: f64) -> f64 {
        let (mut rate, mut threshold) = (self.rate, self.threshold);
        let least = v.abs() * 1e-12;
        let grow = 1.0 / self.shrink;
        for _ in 0..self.n.min(MOST_STEPS) {
            v *= self.beta;
            rate *= grow;
            threshold *= grow;
            if v.abs() <= least || (u == 0.0 && rate * v.abs() <= threshold) {
                break;
            }
            u += rate * v;
            let by = threshold.min(owed);
            owed -= by;
            u = nearer_to_0(u, by);
        }
        nearer_to_0(u, owed)
    }
}

fn nearer_to_0(u: f64, by: f64) -> f64 {
    let left = u.abs() - by;
    if left <= 0.0 { 0.0 } else { left.copysign(u) }
}

/// base^n by squaring, the same on every machine.
pub(crate) fn power(base: f64, mut n: u64) -> f64 {
    if base == 1.0 {
        return 1.0;
    }
    // e^-80 is nothing to f32
    if n as f64 * (1.0 - base) > 80.0 {
        return 0.0;
    }
    let (mut square, mut product) = (base, 1.0);
    while n > 0 {
        if n & 1 == 1 {
            product *= square;
        }
        square *= square;
        n >>= 1;
    }
    product
}

/// Sixteen weights on their way through steps of adam without a gradient.
#[derive(Debug)]
struct Fading {
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
    owed: [f32; LANES],
    beta: [f32; 2],
    epsilon: f32,
    /// of σ
    reciprocal: f32,
    /// what l1 takes per step, over η
    threshold: f32,
    /// by which the steps that are left are longer together than the last one
    rest: f32,
}

/// Steps are made in groups of so many, after which it is seen whether they still matter.
const GROUP: u32 = 16;

/// More steps than that are not made one by one, lest betas next to 1 take for ever: what is left of the moments then, a
/// trace of it unless beta1 is above 0.999, moves the weight no more.
const MOST_STEPS: u32 = 1 << 15;

/// Together shorter than this share of the learning rate, and of the weight, steps do not matter.
const NEGLIGIBLE: [f32; 2] = [1.0 / (1 << 20) as f32, 1.0 / (1 << 24) as f32];

impl Fading {
    #[inline(always)]
    fn new(head: &TrainerState, beta1: f64, beta2: f64, epsilon: f64) -> Fading {
        // the ratio of one step to the one before, while epsilon does not matter; it is less when it does
        let ratio = beta1 / beta2.sqrt().max(f64::MIN_POSITIVE);
        let rest = if ratio < 1.0 { ratio / (1.0 - ratio) } else { f64::INFINITY };
        Fading {
            count: 0,
            places: [0; LANES],
            missed: [0.0; LANES],
            u: [0.0; LANES],
            m: [0.0; LANES],
            v: [0.0; LANES],
            unbiased: [[1.0; LANES]; 2],
            rate: [0.0; LANES],
            owed: [0.0; LANES],
            beta: [beta1 as f32, beta2 as f32],
            epsilon: epsilon as f32,
            reciprocal: (1.0 / head.shrink()) as f32,
            threshold: (head.threshold() / head.rate) as f32,
            rest: rest as f32,
        }
    }

    /// Adds all weights of feature `j` that have a way to go, and lets their moments fade.
    #[inline(always)]
    fn add(&mut self, head: &TrainerState, arrays: &mut Arrays, j: usize) {
        let n = missed(head, arrays, j);
        let paid = paid(head, arrays, j);
        if n == 0 && paid == head.taken {
            return;
        }
        pay(head, arrays, j);
        let Optimizer::Adam { beta1, beta2, .. } = head.optimizer() else { return };
        let fade = [power(beta1, n.into()), power(beta2, n.into())];
        let before = head.steps.saturating_sub(n.into());
        let unbiased = [beta1, beta2].map(|beta| (1.0 - power(beta, before)) as f32);
        let shrunk = power(head.shrink(), n.into());
        let of_missed = of_missed(head, n, shrunk);
        let rate = (head.rate * shrunk / head.scale) as f32;
        let outputs = head.outputs as usize;
        for place in j * outputs..(j + 1) * outputs {
            let (m, v) = (arrays.first[place], arrays.second[place]);
            arrays.first[place] = flush((f64::from(m) * fade[0]) as f32);
            arrays.second[place] = flush((f64::from(v) * fade[1]) as f32);
            let owed = due(arrays.weights[place], paid, head.taken);
            if m == 0.0 || n == 0 {
                arrays.weights[place] = cut(arrays.weights[place], owed as f32);
                continue;
            }
            let first = (owed - of_missed).max(0.0);
            let i = self.count;
            (self.places[i], self.missed[i], self.owed[i], self.rate[i]) =
                (place, n as f32, (owed - first) as f32, rate);
            (self.u[i], self.m[i], self.v[i]) = (cut(arrays.weights[place], first as f32), m, v);
            (self.unbiased[0][i], self.unbiased[1][i]) = (unbiased[0], unbiased[1]);
            self.count += 1;
            if self.count == LANES {
                self.run(arrays);
            }
        }
    }

    /// Takes the steps of all weights that were added, and forgets them.
    #[inline(always)]
    fn run(&mut self, arrays: &mut Arrays) {
        let mut done = 0;
        while done < MOST_STEPS && self.matters() {
            for _ in 0..GROUP {
                self.step();
            }
            done += GROUP;
        }
        for i in 0..self.count {
            arrays.weights[self.places[i]] = cut(self.u[i], self.owed[i]);
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
            let by = self.owed[i].min(self.threshold * self.rate[i]);
            let free = self.u[i] + self.next(i);
            let u = cut(free, by);
            // what the weight has not noticed is still owed
            let by = if u == 0.0 { by } else { free.abs() - u.abs() };
            self.u[i] = if left { u } else { self.u[i] };
            self.owed[i] = if left { (self.owed[i] - by).max(0.0) } else { self.owed[i] };
        }
    }
}
