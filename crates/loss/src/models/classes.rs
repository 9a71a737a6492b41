//! Losses of several decisions, of which sixteen at a time are looked at.
//!
//! Guarantees: the same bits for every instruction set. It prevents that classes are gone through one by one while the
//! next tuple waits for the outcome.

use simd::{Chunk, LANES, Simd};

use super::objective::MarginLoss;
use super::softmax::Softmax;
use super::squared_hinge::SquaredHinge;
use super::svm::Svm;
use super::svm_one_vs_rest::OneVsRest;
use crate::ModelKind;
use crate::math::{exp_lanes, ln};
use crate::totals::Totals;

/// Decisions of a tuple, with -infinity behind the last of them, up to the end of a chunk.
trait ClassLoss {
    /// As [`ModelKind::class_gradients`].
    fn gradients<S: Simd>(self, simd: S, totals: &mut Totals, decisions: &mut [Chunk], y: f32, weight: f32)
    -> [f32; 2];
}

impl ModelKind {
    /// Counts a tuple with these decisions, without its loss, and replaces them by minus the derivatives of its
    /// weighted loss by each. Returns two numbers that [`class_losses`] makes the loss of, without the weight. Behind
    /// the last decision there is -infinity, up to the end of a chunk, and then 0.
    ///
    /// # Panics
    /// If it is no linear model of classes.
    #[inline(always)]
    pub fn class_gradients<S: Simd>(
        self,
        simd: S,
        totals: &mut Totals,
        decisions: &mut [Chunk],
        y: f32,
        weight: f32,
    ) -> [f32; 2] {
        match self {
            ModelKind::Softmax => Softmax.gradients(simd, totals, decisions, y, weight),
            ModelKind::SvmOneVsRest => OneVsRest(Svm).gradients(simd, totals, decisions, y, weight),
            ModelKind::SquaredHingeOneVsRest => OneVsRest(SquaredHinge).gradients(simd, totals, decisions, y, weight),
            _ => panic!("{self} has one decision"),
        }
    }
}

impl ClassLoss for Softmax {
    #[inline(always)]
    fn gradients<S: Simd>(
        self,
        simd: S,
        totals: &mut Totals,
        decisions: &mut [Chunk],
        y: f32,
        weight: f32,
    ) -> [f32; 2] {
        let class = y as usize;
        let own = decisions.as_flattened()[class];
        let [first, others @ ..] = &*decisions else { return [1.0, 0.0] };
        let mut greatest = simd.load(first);
        for others in others {
            greatest = simd.max(simd.load(others), greatest);
        }
        let greatest = simd.greatest(greatest);
        let (mut sum, mut reached) = (simd.splat(0.0), 0);
        for chunk in &mut *decisions {
            let z = simd.load(chunk);
            reached += simd.count_from(z, own);
            let power = exp_lanes(simd, simd.add(z, simd.splat(-greatest)));
            sum = simd.add(sum, power);
            simd.store(power, chunk);
        }
        totals.correct += u64::from(reached == 1);
        let sum = simd.sum(sum);
        let share = simd.splat(-weight / sum);
        for (i, chunk) in decisions.iter_mut().enumerate() {
            let of_class = simd.mul(simd.load(one_hot(class, i)), simd.splat(weight));
            simd.store(simd.fma(simd.load(chunk), share, of_class), chunk);
        }
        [sum, own - greatest]
    }
}

impl<L: MarginLoss> ClassLoss for OneVsRest<L> {
    #[inline(always)]
    fn gradients<S: Simd>(
        self,
        simd: S,
        totals: &mut Totals,
        decisions: &mut [Chunk],
        y: f32,
        weight: f32,
    ) -> [f32; 2] {
        const { assert!(L::UNITS == 1.0, "margins are decisions") };
        let class = y as usize;
        let own = decisions.as_flattened()[class];
        let (mut sum, mut reached) = (simd.splat(0.0), 0);
        for (i, chunk) in decisions.iter_mut().enumerate() {
            let z = simd.load(chunk);
            reached += simd.count_from(z, own);
            let sign = simd.fma(simd.load(one_hot(class, i)), simd.splat(2.0), simd.splat(-1.0));
            let (mut margins, mut losses) = ([0.0; LANES], [0.0; LANES]);
            simd.store(simd.mul(sign, z), &mut margins);
            for lane in 0..LANES {
                losses[lane] = self.0.loss(margins[lane]);
            }
            sum = simd.add(sum, simd.load(&losses));
            let gradients = simd.load(&self.0.negative_gradients(simd, margins));
            simd.store(simd.mul(simd.mul(sign, simd.splat(weight)), gradients), chunk);
        }
        totals.correct += u64::from(reached == 1);
        [1.0, -simd.sum(sum)]
    }
}

/// The losses of tuples, given what [`ModelKind::class_gradients`] has returned of each: of many at once, which takes
/// barely longer than of one.
#[inline(always)]
pub fn class_losses(powers: &Chunk, less: &Chunk) -> Chunk {
    let mut losses = [0.0; LANES];
    for lane in 0..LANES {
        losses[lane] = ln(powers[lane]) - less[lane];
    }
    losses
}

/// Of chunk `i` of the classes, 1 in the lane of this one, if it is there, and 0 in all others.
#[inline(always)]
fn one_hot(class: usize, i: usize) -> &'static Chunk {
    // its last chunk has no 1
    static WINDOW: [f32; 3 * LANES - 1] = {
        let mut window = [0.0; 3 * LANES - 1];
        window[LANES - 1] = 1.0;
        window
    };
    let lane = class.wrapping_sub(i * LANES);
    let first = if lane < LANES { LANES - 1 - lane } else { 2 * LANES - 1 };
    WINDOW[first..].first_chunk().expect("a chunk from any lane")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::{Kernel, Level};

    use super::*;
    use crate::models::{Objective, ObjectiveVisitor, count_one};

    const KINDS: [ModelKind; 3] = [ModelKind::Softmax, ModelKind::SvmOneVsRest, ModelKind::SquaredHingeOneVsRest];

    struct Gradients<'a>(ModelKind, &'a [f32], f32, f32);

    impl Kernel for Gradients<'_> {
        type Output = (Vec<f32>, f32, u64);

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let Gradients(kind, decisions, y, weight) = self;
            let mut chunks = vec![[f32::NEG_INFINITY; LANES]; decisions.len().div_ceil(LANES)];
            chunks.as_flattened_mut()[..decisions.len()].copy_from_slice(decisions);
            let mut totals = Totals::default();
            let [power, less] = kind.class_gradients(simd, &mut totals, &mut chunks, y, weight);
            let losses = class_losses(&[power; LANES], &[less; LANES]);
            (chunks.as_flattened().to_vec(), losses[0], totals.correct)
        }
    }

    /// One class after the other.
    struct OneByOne<'a>(&'a mut Totals, &'a mut [f32], f32, f32);

    impl ObjectiveVisitor for OneByOne<'_> {
        type Output = ();

        fn visit<O: Objective>(self, objective: O) {
            count_one(simd::Portable, objective, self.0, self.1, self.2, self.3);
        }
    }

    proptest! {
        #[test]
        fn all_classes_at_once_are_as_one_by_one_and_the_same_in_every_instruction_set(
            kind in prop::sample::select(&KINDS[..]),
            decisions in prop::collection::vec(prop_oneof![-120.0f32..120.0, -2.0f32..2.0], 2..50),
            class in any::<prop::sample::Index>(),
            weight in 0.0f32..3.0,
        ) {
            let y = class.index(decisions.len()) as f32;
            let (mut totals, mut expected) = (Totals::default(), decisions.clone());
            kind.with_objective(0.0, OneByOne(&mut totals, &mut expected, y, weight));
            let portable = Level::PORTABLE.run(Gradients(kind, &decisions, y, weight));
            for level in Level::available() {
                let found = level.run(Gradients(kind, &decisions, y, weight));
                prop_assert_eq!(&found, &portable, "{:?}", level);
            }
            let (found, loss, correct) = portable;
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() <= 2e-6 * weight.max(expected.abs()), "{found} {expected}");
            }
            prop_assert!(found[decisions.len()..].iter().all(|beyond| *beyond == 0.0));
            prop_assert!((f64::from(weight * loss) - totals.loss).abs() <= 2e-6 * totals.loss.abs() + 1e-6);
            prop_assert_eq!(correct, totals.correct);
        }
    }

    #[test]
    fn decisions_that_are_not_numbers_do_not_hide() {
        for kind in KINDS {
            for level in Level::available() {
                let (gradients, loss, _) = level.run(Gradients(kind, &[1.0, f32::NAN, 0.5], 0.0, 1.0));
                assert!(loss.is_nan() && (kind != ModelKind::Softmax || gradients[..3].iter().all(|g| g.is_nan())));
            }
        }
    }
}
