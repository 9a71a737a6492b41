//! From decisions to the derivatives of the loss, and the counts of what the decisions were worth.

use loss::models::{Objective, ObjectiveVisitor, count_one};
use loss::totals::Totals;
use simd::{Kernel, Simd};

use super::state::TrainerState;

/// Counts a tuple with these decisions and replaces them by minus the derivatives of its weighted loss by each.
#[inline(always)]
pub(crate) fn loss_and_gradient<S: Simd>(simd: S, state: &mut TrainerState, out: &mut [f32], y: f32, weight: f32) {
    state
        .hyper
        .kind
        .with_objective(state.hyper.loss_number as f32, One { simd, totals: &mut state.now.totals, out, y, weight });
}

/// The same for the decisions of many tuples with one output, to the same bits.
#[inline(always)]
pub(crate) fn losses_and_gradients<S: Simd>(
    simd: S,
    state: &mut TrainerState,
    out: &mut [f32],
    labels: &[f32],
    weights: &[f32],
) {
    simd.call(LossesAndGradients { state, out, labels, weights });
}

/// How much the loss of a tuple with these decisions bends, in units of the model's curvature.
#[inline(always)]
pub(crate) fn bend(state: &TrainerState, decisions: &[f32], y: f32) -> f32 {
    state.hyper.kind.with_objective(state.hyper.loss_number as f32, Bend { decisions, y })
}

struct Bend<'a> {
    decisions: &'a [f32],
    y: f32,
}

impl ObjectiveVisitor for Bend<'_> {
    type Output = f32;

    #[inline(always)]
    fn visit<O: Objective>(self, objective: O) -> f32 {
        objective.bend(self.decisions, self.y)
    }
}

struct One<'a, S> {
    simd: S,
    totals: &'a mut Totals,
    out: &'a mut [f32],
    y: f32,
    weight: f32,
}

impl<S: Simd> ObjectiveVisitor for One<'_, S> {
    type Output = ();

    #[inline(always)]
    fn visit<O: Objective>(self, objective: O) {
        count_one(self.simd, objective, self.totals, self.out, self.y, self.weight);
    }
}

struct LossesAndGradients<'a> {
    state: &'a mut TrainerState,
    out: &'a mut [f32],
    labels: &'a [f32],
    weights: &'a [f32],
}

impl Kernel for LossesAndGradients<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let LossesAndGradients { state, out, labels, weights } = self;
        state.hyper.kind.with_objective(
            state.hyper.loss_number as f32,
            Many { simd, totals: &mut state.now.totals, out, labels, weights },
        );
    }
}

struct Many<'a, S> {
    simd: S,
    totals: &'a mut Totals,
    out: &'a mut [f32],
    labels: &'a [f32],
    weights: &'a [f32],
}

impl<S: Simd> ObjectiveVisitor for Many<'_, S> {
    type Output = ();

    #[inline(always)]
    fn visit<O: Objective>(self, objective: O) {
        objective.losses_and_gradients(self.simd, self.totals, self.out, self.labels, self.weights);
    }
}
