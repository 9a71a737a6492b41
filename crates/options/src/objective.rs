//! What a network predicts: the option `objective`.

use choices::choice;
use loss::ModelKind;

choice! {
    /// What a network predicts.
    Objective {
        /// one of the classes that the labels are
        Classification = "classification",
        Regression = "regression",
    }
}

impl Objective {
    pub fn of(kind: ModelKind) -> Objective {
        if kind.is_classifier() { Objective::Classification } else { Objective::Regression }
    }

    pub fn network(self) -> ModelKind {
        match self {
            Objective::Classification => ModelKind::Mlp,
            Objective::Regression => ModelKind::MlpRegression,
        }
    }
}
