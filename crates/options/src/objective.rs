//! What a network predicts: the option `objective`.

use choices::choice;
use loss::ModelKind;

choice! {
    /// What a network predicts.
    Objective {
        /// one of the classes that the labels are
        Classification = "classification",
        /// a number
        Regression = "regression",
    }
}

impl Objective {
    /// That of a kind of model.
    pub fn of(kind: ModelKind) -> Objective {
        if kind.is_classifier() { Objective::Classification } else { Objective::Regression }
    }

    /// The network that has it.
    pub fn network(self) -> ModelKind {
        match self {
            Objective::Classification => ModelKind::Mlp,
            Objective::Regression => ModelKind::MlpRegression,
        }
    }
}
