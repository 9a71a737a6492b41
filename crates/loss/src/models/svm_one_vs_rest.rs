//! Linear support vector machines of more than two classes, one for each class against all others: the sum over the
//! classes k of max(0, 1 - m_k), where the margin m_k is z_k for the tuple's own class and -z_k for the others.
//! A tuple is put into the class of the greatest decision.

use simd::Simd;

use super::definition::{Defaults, LinearModel, Model, Task};
use super::objective::{MarginLoss, Objective};
use super::svm::Svm;
use crate::totals::Totals;

/// A loss of the margin for each class, of margins in units of 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OneVsRest<L>(pub(super) L);

/// A hinge for each class.
pub(crate) type SvmOneVsRest = OneVsRest<Svm>;

impl<L> OneVsRest<L> {
    /// The sum over the classes of a loss of the margin.
    pub(super) fn sum(decisions: &[f32], y: f64, loss: impl Fn(f32) -> f64) -> f64 {
        let of_class = |(k, z): (usize, &f32)| loss(if k == y as usize { *z } else { -z });
        decisions.iter().enumerate().map(of_class).sum()
    }
}

impl Model for SvmOneVsRest {
    const NAME: &'static str = "svm_one_vs_rest";
    const ALIASES: &'static [&'static str] = &["multiclass_svm"];
    const DESCRIPTION: &'static str = "an SVM";
    const TASK: Task = Task::Classes;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = Svm::CURVATURE;
    const HAS_CORNERS: bool = true;

    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64 {
        Self::sum(decisions, y, |margin| Svm::exact_loss(&[margin], 1.0, number))
    }

    /// The sum of those of the classes, each against the others.
    fn constant_loss(shares: &[f64]) -> Option<f64> {
        Some(shares.iter().map(|share| 2.0 * share.min(1.0 - share)).sum())
    }

    fn defaults() -> Defaults {
        Svm::defaults()
    }
}

impl LinearModel for SvmOneVsRest {
    #[inline(always)]
    fn objective(_: f32) -> SvmOneVsRest {
        OneVsRest(Svm)
    }
}

impl<L: MarginLoss> Objective for OneVsRest<L> {
    const POINTWISE: bool = false;

    /// As of softmax, a tie is wrong.
    #[inline(always)]
    fn loss_and_gradient<S: Simd>(self, simd: S, totals: &mut Totals, out: &mut [f32], y: f32, weight: f32) -> f32 {
        const { assert!(L::UNITS == 1.0, "margins are decisions") };
        let class = y as usize;
        let own = out[class];
        let (mut loss, mut reached) = (0.0, 0);
        for (k, z) in out.iter_mut().enumerate() {
            reached += u32::from(*z >= own);
            let sign = if k == class { 1.0 } else { -1.0 };
            let margin = sign * *z;
            loss += self.0.loss(margin);
            *z = weight * (sign * self.0.negative_gradient(simd, margin));
        }
        totals.correct += u64::from(reached == 1);
        loss
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simd::Portable;

    use super::super::squared_hinge::SquaredHinge;
    use super::super::squared_hinge_one_vs_rest::SquaredHingeOneVsRest;
    use super::*;

    /// Checks each output of a tuple against the loss of its class alone.
    fn check<L: MarginLoss>(
        of_each: L,
        z: [f32; 5],
        class: usize,
        weight: f32,
        exact: f64,
    ) -> Result<(), TestCaseError> {
        let (mut totals, mut out) = (Totals::default(), z);
        let loss = OneVsRest(of_each).loss_and_gradient(Portable, &mut totals, &mut out, class as f32, weight);
        let mut sum = 0.0;
        for k in 0..5 {
            let sign = if k == class { 1.0 } else { -1.0 };
            let gradient = weight * sign * MarginLoss::negative_gradient(of_each, Portable, sign * z[k]);
            prop_assert!((out[k] - gradient).abs() <= 1e-6 * gradient.abs());
            sum += MarginLoss::loss(of_each, sign * z[k]);
        }
        prop_assert!((loss - sum).abs() < 1e-5 * (1.0 + sum));
        prop_assert!((f64::from(loss) - exact).abs() < 1e-5 * (1.0 + exact));
        let is_greatest = z.iter().enumerate().all(|(k, other)| k == class || *other < z[class]);
        prop_assert_eq!(totals.correct, u64::from(is_greatest));
        Ok(())
    }

    proptest! {
        #[test]
        fn each_output_is_the_svm_of_its_class_against_the_others(
            z in prop::array::uniform5(-3.0f32..3.0), class in 0usize..5, weight in 0.5f32..2.0,
        ) {
            check(Svm, z, class, weight, SvmOneVsRest::exact_loss(&z, class as f64, 0.0))?;
            check(SquaredHinge, z, class, weight, SquaredHingeOneVsRest::exact_loss(&z, class as f64, 0.0))?;
        }
    }
}
