//! Linear support vector machines with the squared hinge of more than two classes, one for each class against all
//! others: the sum over the classes k of max(0, 1 - m_k)², where the margin m_k is z_k for the tuple's own class and
//! -z_k for the others. A tuple is put into the class of the greatest decision.

use super::definition::{Defaults, LinearModel, Model, Task};
use super::squared_hinge::SquaredHinge;
use super::svm_one_vs_rest::OneVsRest;

pub(crate) type SquaredHingeOneVsRest = OneVsRest<SquaredHinge>;

impl Model for SquaredHingeOneVsRest {
    const NAME: &'static str = "squared_hinge_one_vs_rest";
    const ALIASES: &'static [&'static str] = &["l2_multiclass_svm"];
    const DESCRIPTION: &'static str = "an SVM";
    const TASK: Task = Task::Classes;
    const HAS_PROBABILITIES: bool = false;
    const CURVATURE: f64 = SquaredHinge::CURVATURE;

    fn exact_loss(decisions: &[f32], y: f64, number: f64) -> f64 {
        Self::sum(decisions, y, |margin| SquaredHinge::exact_loss(&[margin], 1.0, number))
    }

    /// The sum of those of the classes, each against the others.
    fn constant_loss(shares: &[f64]) -> Option<f64> {
        shares.iter().map(|share| SquaredHinge::constant_loss(&[*share, 1.0 - share])).sum()
    }

    fn defaults() -> Defaults {
        SquaredHinge::defaults()
    }
}

impl LinearModel for SquaredHingeOneVsRest {
    #[inline(always)]
    fn objective(_: f32) -> SquaredHingeOneVsRest {
        OneVsRest(SquaredHinge)
    }
}
