//! Bringing the weights of features up to date that no tuple has touched for some steps.
//!
//! Guarantees: the outcome is that of making every step with a gradient of 0, to the precision of f32. How an optimizer
//! gets there is its own business ([`Method::catch_up`]).

use loss::optimizers::{F64_CUTS, Method, MissedSteps, l1_bits, wrap};
use loss::with_method;
use simd::{Kernel, Simd};
use tuples::pause;

use super::arrays::Arrays;
use super::state::TrainerState;

/// A scale below this is folded into the weights, which takes the time to go through all of them.
const LEAST_SCALE: f64 = 1.0 / (1u64 << 40) as f64;

/// This many steps are counted since the last sweep.
const MOST_STEPS: u32 = u32::MAX - 1;

#[inline(always)]
pub(crate) fn bring_up_to_date(state: &TrainerState, arrays: &mut Arrays, features: impl Iterator<Item = usize>) {
    let steps = MissedSteps {
        rate: state.now.rate,
        scale: state.now.scale,
        shrink: state.shrink(),
        threshold: state.threshold(),
        l1_applied: state.now.l1_applied,
        time: state.now.time,
        steps: state.now.taken.steps,
        outputs: state.now.outputs as usize,
    };
    with_method!(state.hyper.optimizer, method => method.catch_up(&steps, &mut arrays.lazy_weights(), features));
}

/// Brings all features up to date, applies l1, and folds the scale into the weights.
pub(super) struct ApplyPending<'a, 'b> {
    pub(super) state: &'a mut TrainerState,
    pub(super) arrays: &'a mut Arrays<'b>,
}

impl Kernel for ApplyPending<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        apply_pending(self.state, self.arrays);
    }
}

#[inline(always)]
fn apply_pending(state: &mut TrainerState, arrays: &mut Arrays) {
    if state.is_lazy() {
        state.now.l1_applied += state.take_pending_l1();
        bring_up_to_date(state, arrays, pause::pausing(0..state.now.dim as usize));
        pause::parts_mut(arrays.last).for_each(|last| last.fill(0));
    }
    if state.now.scale != 1.0 {
        arrays.exempt.iter_mut().for_each(|exempt| exempt.fold(state.now.scale));
        let scale = state.now.scale as f32;
        pause::parts_mut(arrays.weights).flatten().for_each(|u| *u *= scale);
    }
    state.now.l1_applied = wrap(state.now.l1_applied * state.now.scale, state.threshold(), F64_CUTS);
    (state.now.time, state.now.scale) = (0, 1.0);
    mark_l1_applied(state, arrays);
}

/// Says that l1 has nothing to take from any feature.
#[inline(always)]
pub(crate) fn mark_l1_applied(state: &TrainerState, arrays: &mut Arrays) {
    let bits = l1_bits(state.now.l1_applied);
    pause::parts_mut(arrays.l1_applied.as_chunks_mut::<2>().0).for_each(|applied| applied.fill(bits));
}

/// Folds the scale into the weights if it is too small for another step, and ends the count of steps if it is full.
#[inline(always)]
pub(super) fn make_room_for_step<S: Simd>(simd: S, state: &mut TrainerState, arrays: &mut Arrays) {
    if state.now.scale < LEAST_SCALE || state.now.time >= MOST_STEPS {
        simd.call(ApplyPending { state, arrays });
    }
}

/// Gives weights without l2 back what a step has taken, if that is time. The step is not made yet.
#[inline(always)]
pub(super) fn restore_exempt(state: &TrainerState, arrays: &mut Arrays) {
    if let Some(exempt) = &mut arrays.exempt
        && exempt.is_due(state.now.scale)
    {
        exempt.restore(state.now.scale, arrays.weights, state.now.outputs as usize);
    }
}
