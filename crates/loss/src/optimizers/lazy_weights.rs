//! Weights of features that no tuple has touched for some steps.
//!
//! Guarantees: bringing them up to date gives what making every step with a gradient of 0 would have given,
//! to the precision of f32.

/// The numbers of the steps that features may have missed.
#[derive(Debug, Clone, Copy)]
pub struct MissedSteps {
    /// the learning rate of the steps
    pub rate: f64,
    /// the scale of the weights after the steps
    pub scale: f64,
    /// the factor that the penalty of l2 puts on the weights with every step
    pub shrink: f64,
    /// what l1 takes from a weight's magnitude with every step, not counting the scale
    pub threshold: f64,
    /// what l1 has taken from every weight's magnitude so far
    pub l1_applied: f64,
    /// steps since all weights were up to date
    pub time: u32,
    /// steps in all
    pub steps: u64,
    /// weights of each feature
    pub outputs: usize,
}

/// The weights, and when each feature was last brought up to date. Arrays that this training does not need are empty.
#[derive(Debug)]
pub struct LazyWeights<'a> {
    /// per feature one for every output
    pub weights: &'a mut [f32],
    /// the first moments, as many
    pub first: &'a mut [f32],
    /// the second moments, as many
    pub second: &'a mut [f32],
    /// per feature: the bits of [`MissedSteps::l1_applied`] when it was last brought up to date, low half first
    pub l1_applied: &'a mut [u32],
    /// per feature: [`MissedSteps::time`] then
    pub last: &'a mut [u32],
}

impl MissedSteps {
    /// What l1 takes in the last `n` steps, given shrinkⁿ.
    /// Whatever is pending beyond that is of the step that the feature has made.
    #[inline(always)]
    pub(super) fn l1_of_missed(&self, n: u32, shrunk: f64) -> f64 {
        let sum = if self.shrink < 1.0 { (1.0 - shrunk) / (1.0 - self.shrink) } else { n.into() };
        self.threshold / self.scale * sum
    }
}

impl LazyWeights<'_> {
    /// What l1 had taken from every weight when feature `j` was last brought up to date. What it has taken since then,
    /// it takes from the feature's weights as far as their last digits go.
    #[inline(always)]
    pub(super) fn l1_applied_to(&self, steps: &MissedSteps, j: usize) -> f64 {
        match self.l1_applied.get(2 * j..2 * j + 2) {
            Some(&[low, high]) => f64::from_bits(u64::from(low) | u64::from(high) << 32),
            _ => steps.l1_applied,
        }
    }

    /// Says that l1 has nothing to take from feature `j` any more.
    #[inline(always)]
    pub(super) fn mark_l1_applied(&mut self, steps: &MissedSteps, j: usize) {
        if let Some(place) = self.l1_applied.get_mut(2 * j..2 * j + 2) {
            place.copy_from_slice(&l1_bits(steps.l1_applied));
        }
    }

    /// Steps that feature `j` has missed, which are counted in with that.
    #[inline(always)]
    pub(super) fn take_missed(&mut self, steps: &MissedSteps, j: usize) -> u32 {
        let last = &mut self.last[j];
        let missed = steps.time.saturating_sub(*last);
        *last = steps.time;
        missed
    }
}

/// The bits of what l1 has taken, low half first.
#[inline(always)]
pub fn l1_bits(l1_applied: f64) -> [u32; 2] {
    let bits = l1_applied.to_bits();
    [bits as u32, (bits >> 32) as u32]
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
