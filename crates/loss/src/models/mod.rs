//! The models, a file for each with its loss, its checks and its names, and their list.

mod classes;
mod definition;
mod dispatched;
mod epsilon_insensitive;
mod huber;
mod linear;
mod logistic;
mod mlp;
mod mlp_regression;
mod objective;
mod poisson;
mod quantile;
mod softmax;
mod squared_hinge;
mod squared_hinge_one_vs_rest;
mod svm;
mod svm_one_vs_rest;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use classes::class_losses;
pub use definition::Derivatives;
use definition::{Defaults, LinearModel, Model};
pub use definition::{Link, LossNumber, TargetUnits, Task};
pub use objective::{Objective, ObjectiveVisitor, Pointwise, PointwiseVisitor, count_one};
pub use softmax::{FEW, few_softmax_gradients, softmax_gradient};

/// As many times the mean of the counts, and one more, is a mean loss of rates that have diverged: it never becomes
/// infinite. That of the best constant is less than a hundred times the mean, whatever the counts.
const DIVERGED_RATES: f64 = 1e6;

/// Makes the list of models: the variants, in the order in which they are listed to users, and their types.
/// The linear ones come first. It begins with a dollar, for `with_model`.
macro_rules! models {
    (
        $d:tt
        linear { $($(#[$linear_doc:meta])* $linear:ident = $linear_type:ty,)* }
        networks { $($(#[$network_doc:meta])* $network:ident = $network_type:ty,)* }
    ) => {
        /// Which loss a model minimises, and whether it is linear.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ModelKind {
            $($(#[$linear_doc])* $linear,)*
            $($(#[$network_doc])* $network,)*
        }

        /// Evaluates an expression with a model's own type.
        macro_rules! with_model {
            ($d kind:expr, $d model:ident => $d body:expr) => {
                match $d kind {
                    $(ModelKind::$linear => {
                        type $d model = $linear_type;
                        $d body
                    })*
                    $(ModelKind::$network => {
                        type $d model = $network_type;
                        $d body
                    })*
                }
            };
        }

        impl ModelKind {
            /// The linear models.
            pub const LINEAR: [ModelKind; [$(stringify!($linear)),*].len()] = [$(ModelKind::$linear),*];

            /// All of them, the linear ones first.
            pub const ALL: [ModelKind; [$(stringify!($linear),)* $(stringify!($network),)*].len()] =
                [$(ModelKind::$linear,)* $(ModelKind::$network,)*];

            /// Hands what a linear model minimises, with this number of the loss, to the visitor.
            #[inline(always)]
            pub fn with_objective<V: ObjectiveVisitor>(self, number: f32, visitor: V) -> V::Output {
                match self {
                    $(ModelKind::$linear => visitor.visit(<$linear_type>::objective(number)),)*
                    $(ModelKind::$network => panic!("a network's objective is that of its outputs"),)*
                }
            }
        }
    };
}

models! {
    $
    linear {
        /// Logistic regression: ln(1 + e^(-y z)), y = -1 or 1.
        Logistic = logistic::Logistic,
        /// Linear support vector machine: the hinge loss max(0, 1 - y z), y = -1 or 1.
        Svm = svm::Svm,
        /// Linear regression: (z - y)²/2, y any number.
        Linear = linear::Linear,
        /// Multinomial logistic regression: the cross entropy -ln p_y with p_k = e^(z_k) / Σ e^(z_j), y = 0, 1, ...
        Softmax = softmax::Softmax,
        /// Poisson regression: half of the deviance of e^z, y at least 0.
        Poisson = poisson::Poisson,
        /// Quantile regression: the pinball loss, y any number.
        Quantile = quantile::Quantile,
        /// Support vector regression: max(0, |y - z| - ε), y any number.
        EpsilonInsensitive = epsilon_insensitive::EpsilonInsensitive,
        /// Huber's robust regression: squared up to a multiple of the residuals' scale, a line beyond, y any number.
        Huber = huber::Huber,
        /// Linear support vector machines, one for each class against the others: a sum of hinges, y = 0, 1, ...
        SvmOneVsRest = svm_one_vs_rest::SvmOneVsRest,
        /// Linear support vector machine: the squared hinge max(0, 1 - y z)², y = -1 or 1.
        SquaredHinge = squared_hinge::SquaredHinge,
        /// The same for each class against the others: a sum of squared hinges, y = 0, 1, ...
        SquaredHingeOneVsRest = squared_hinge_one_vs_rest::SquaredHingeOneVsRest,
    }
    networks {
        /// Feed-forward network of a [`Design`](crate::Design): the cross entropy of its outputs, y = 0, 1, ...
        Mlp = mlp::Mlp,
        /// Feed-forward network whose one output is a number: (z - y)²/2, y any number.
        MlpRegression = mlp_regression::MlpRegression,
    }
}

impl ModelKind {
    /// Its own name, which is the one that is stored and shown.
    pub fn name(self) -> &'static str {
        with_model!(self, M => M::NAME)
    }

    /// What else [`FromStr`] reads.
    fn aliases(self) -> &'static [&'static str] {
        with_model!(self, M => M::ALIASES)
    }

    /// What it is, in an error: "an SVM".
    pub fn description(self) -> &'static str {
        with_model!(self, M => M::DESCRIPTION)
    }

    /// What labels and decisions mean.
    pub fn task(self) -> Task {
        with_model!(self, M => M::TASK)
    }

    /// Whether its decisions stand for probabilities.
    pub fn has_probabilities(self) -> bool {
        with_model!(self, M => M::HAS_PROBABILITIES)
    }

    /// How a decision becomes a prediction, of a regression.
    pub fn link(self) -> Link {
        with_model!(self, M => M::LINK)
    }

    /// The number that its loss has, if it has one.
    pub fn loss_number(self) -> Option<LossNumber> {
        with_model!(self, M => M::LOSS_NUMBER)
    }

    /// Whether the number of its loss is a multiple of the scale of the residuals, which is found along with the model.
    pub fn follows_residuals(self) -> bool {
        with_model!(self, M => M::FOLLOWS_RESIDUALS)
    }

    /// How its loss changes with the units of the targets, of a regression.
    pub fn target_units(self) -> TargetUnits {
        with_model!(self, M => M::TARGET_UNITS)
    }

    /// A bound of the second derivative of its loss by a decision.
    pub fn curvature(self) -> f64 {
        with_model!(self, M => M::CURVATURE)
    }

    /// Whether the first derivative of its loss by a decision jumps somewhere, of a linear model.
    pub fn has_corners(self) -> bool {
        with_model!(self, M => M::HAS_CORNERS)
    }

    /// Whether its loss has a second derivative by its one decision everywhere: then there is Newton's method.
    pub fn is_smooth(self) -> bool {
        with_model!(self, M => M::IS_SMOOTH)
    }

    /// Whether a penalty may be chosen by the number of rows: where that of scikit-learn is, or means the same.
    pub fn has_automatic_penalty(self) -> bool {
        self.is_linear() && (self.is_classifier() || self.is_smooth())
    }

    /// Loss and derivatives of tuples with these decisions and labels.
    #[inline(always)]
    pub fn derivatives(self, decisions: &[f64], labels: &[f64], out: &mut [Derivatives]) {
        with_model!(self, M => {
            for ((&z, &y), out) in decisions.iter().zip(labels).zip(out) {
                *out = M::derivatives(z, y);
            }
        });
    }

    /// What it starts from unless the user says otherwise.
    pub(crate) fn defaults(self) -> Defaults {
        with_model!(self, M => M::defaults())
    }

    /// The loss of a tuple with these decisions, to the rounding of f64, if this is the number of the loss.
    pub fn exact_loss(self, decisions: &[f32], y: f64, number: f64) -> f64 {
        with_model!(self, M => M::exact_loss(decisions, y, number))
    }

    /// The least mean loss of a model that says the same of every tuple, if classes have these shares of the tuples,
    /// which add up to 1; None of a model without classes.
    pub fn constant_loss(self, shares: &[f64]) -> Option<f64> {
        with_model!(self, M => M::constant_loss(shares))
    }

    /// All that [`FromStr`] reads: the names first, then the aliases.
    pub fn names() -> Vec<&'static str> {
        let aliases = Self::ALL.into_iter().flat_map(Self::aliases).copied();
        Self::ALL.map(Self::name).into_iter().chain(aliases).collect()
    }

    /// The [names](ModelKind::names), for the hint of an error.
    pub fn known() -> String {
        Self::names().join(", ")
    }

    /// Whether it has no hidden layers.
    pub fn is_linear(self) -> bool {
        Self::LINEAR.contains(&self)
    }

    /// Whether it puts tuples into classes.
    pub fn is_classifier(self) -> bool {
        self.task() != Task::Regression
    }

    /// Whether it has an output for each of any number of classes, whose numbers from 0 are its labels.
    pub fn has_class_numbers(self) -> bool {
        self.task() == Task::Classes
    }

    /// The model that is one of this kind for each class against all others; None unless that is how more than two
    /// classes are distinguished.
    pub fn one_vs_rest(self) -> Option<ModelKind> {
        match self {
            ModelKind::Svm => Some(ModelKind::SvmOneVsRest),
            ModelKind::SquaredHinge => Some(ModelKind::SquaredHingeOneVsRest),
            _ => None,
        }
    }

    /// The model of which this is one for each class against all others; itself if it is not that.
    pub fn of_one_class(self) -> ModelKind {
        Self::LINEAR.into_iter().find(|kind| kind.one_vs_rest() == Some(self)).unwrap_or(self)
    }

    /// Whether its labels are -1 and 1 and its decisions' signs are classes.
    pub fn is_binary(self) -> bool {
        self.task() == Task::Binary
    }

    /// Whether a model of this many outputs can learn from this label.
    pub fn accepts_label(self, label: f32, outputs: u32) -> bool {
        match self.task() {
            Task::Binary => label == 1.0 || label == -1.0,
            Task::Regression => self.accepts_target(label),
            Task::Classes => label >= 0.0 && label < outputs as f32 && label.fract() == 0.0,
        }
    }

    /// Whether a regression can learn from this target, which is finite.
    pub fn accepts_target(self, target: f32) -> bool {
        target.is_finite() && (self.link() == Link::Identity || target >= 0.0)
    }

    /// Whether a model that has not diverged may have this mean loss of targets with this mean.
    pub fn is_loss(self, loss: f64, mean_target: f64) -> bool {
        loss.is_finite() && (self.link() == Link::Identity || loss <= DIVERGED_RATES * (mean_target + 1.0))
    }

    /// Whether targets that are brought to mean 0 and deviation 1 make the same model, in other units.
    pub fn scales_targets(self) -> bool {
        self.task() == Task::Regression && self.link() == Link::Identity
    }

    /// Whether a linear model has one decision per tuple, of which its loss is a function.
    pub fn is_pointwise(self) -> bool {
        struct IsPointwise;
        impl ObjectiveVisitor for IsPointwise {
            type Output = bool;
            fn visit<O: Objective>(self, _: O) -> bool {
                O::POINTWISE
            }
        }
        self.is_linear() && self.with_objective(0.0, IsPointwise)
    }

    /// Minus the derivative of the loss where the decision is 0, up to a factor that does not depend on the label; of a
    /// model with one output, whose number of the loss is the default.
    pub fn pull_at_zero(self, label: f64) -> f64 {
        let number = self.loss_number().map_or(0.0, |number| number.default);
        match self {
            ModelKind::Poisson => label - 1.0,
            ModelKind::Quantile => label.signum() * if label < 0.0 { 1.0 - number } else { number },
            ModelKind::EpsilonInsensitive => label.signum(),
            ModelKind::Huber => label.clamp(-number, number),
            _ => label,
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No model is called this.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown model \"{0}\"")]
pub struct UnknownModel(pub String);

impl FromStr for ModelKind {
    type Err = UnknownModel;

    /// By its name or an alias, in any case.
    fn from_str(name: &str) -> Result<ModelKind, UnknownModel> {
        let is_meant = |known: &str| known.eq_ignore_ascii_case(name);
        let kind = Self::ALL
            .into_iter()
            .find(|kind| is_meant(kind.name()) || kind.aliases().iter().any(|alias| is_meant(alias)));
        kind.ok_or_else(|| UnknownModel(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_from_its_name() {
        for kind in ModelKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.to_string(), kind.name());
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert!(
            ModelKind::known()
                .starts_with("logistic, svm, linear, softmax, poisson, quantile, epsilon_insensitive, huber, svm_one_vs_rest, squared_hinge, squared_hinge_one_vs_rest, mlp, mlp_regression, logistic_regression, ")
        );
    }

    #[test]
    fn a_kind_has_aliases_and_case_does_not_matter() {
        for (name, kind) in [
            ("Logistic", ModelKind::Logistic),
            ("logistic_regression", ModelKind::Logistic),
            ("SUPPORT_VECTOR_MACHINE", ModelKind::Svm),
            ("linear_regression", ModelKind::Linear),
            ("softmax_regression", ModelKind::Softmax),
            ("Poisson_Regression", ModelKind::Poisson),
            ("Multinomial_Logistic_Regression", ModelKind::Softmax),
            ("neural_network", ModelKind::Mlp),
            ("MultiLayer_Perceptron", ModelKind::Mlp),
        ] {
            assert_eq!(name.parse(), Ok(kind), "{name}");
        }
        let names = ModelKind::names();
        let different: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "no two models share a name");
    }

    #[test]
    fn no_constant_has_less_loss_than_the_best_one() {
        let shares = [0.2, 0.8];
        for kind in [ModelKind::Logistic, ModelKind::Svm] {
            let loss = |z: f32| 0.2 * kind.exact_loss(&[z], -1.0, 0.0) + 0.8 * kind.exact_loss(&[z], 1.0, 0.0);
            let least = (-400..=400).map(|z| loss(z as f32 / 100.0)).fold(f64::INFINITY, f64::min);
            let best = kind.constant_loss(&shares).unwrap();
            assert!((least - best).abs() < 1e-4, "{kind}: {least} {best}");
        }
        let shares = [0.5, 0.25, 0.25, 0.0];
        let entropy = 1.5 * std::f64::consts::LN_2;
        assert_eq!(ModelKind::SvmOneVsRest.constant_loss(&shares), Some(2.0), "1 + 1/2 + 1/2");
        for kind in [ModelKind::Softmax, ModelKind::Mlp] {
            assert!((kind.constant_loss(&shares).unwrap() - entropy).abs() < 1e-12);
        }
        assert_eq!(ModelKind::Linear.constant_loss(&[]), None);
    }

    #[test]
    fn an_unknown_name_is_refused_and_quoted() {
        let error = "Logistics".parse::<ModelKind>().unwrap_err();
        assert_eq!(error, UnknownModel("Logistics".to_owned()));
        assert_eq!(error.to_string(), "unknown model \"Logistics\"");
    }
}
