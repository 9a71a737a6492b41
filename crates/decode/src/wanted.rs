//! What the preparation pass is to find out.

use super::{Decoder, FeatureColumns};
use loss::{Link, ModelKind};
use options::chosen::Options;
use options::rows::{Standardize, Transform};
use serde::{Deserialize, Serialize};

/// What the pass is to find out besides classes and categories.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wanted {
    pub standardize: Standardize,
    /// are features to be scaled?
    pub scales: bool,
    /// are features or targets to be measured?
    pub moments: bool,
    /// are targets numbers that are to be measured?
    pub targets: bool,
    pub scales_targets: bool,
    /// may there be more than two classes of a model for two, which then has another kind?
    pub more_classes: bool,
    /// are columns of numbers measured by their logarithms, too?
    pub shapes: bool,
    /// are rows that are held out measured like all others, because the model that is stored will learn from them?
    pub held_out: bool,
}

impl Wanted {
    pub const NOTHING: Wanted = Wanted {
        standardize: Standardize::None,
        scales: false,
        moments: false,
        targets: false,
        scales_targets: false,
        more_classes: false,
        shapes: false,
        held_out: false,
    };

    /// For a model of this kind, of the rows of this decoder; is a learning rate left open?
    pub fn new(options: &Options, kind: ModelKind, decoder: &Decoder, has_open_rate: bool) -> Wanted {
        let standardize = options.standardize;
        // whatever is done to features: the same rates and thresholds suit labels of any unit. Plain least squares need
        // no such thing
        let scales_all = standardize != Standardize::None && !decoder.has_mini_batches();
        let scales_targets = kind.scales_targets() && (scales_all || kind != ModelKind::Linear);
        let more_classes = kind.one_vs_rest().is_some();
        if decoder.has_mini_batches() {
            return Wanted { more_classes, targets: scales_targets, scales_targets, ..Wanted::NOTHING };
        }
        let scales = match standardize {
            Standardize::None => false,
            Standardize::All => true,
            Standardize::Automatic => !matches!(decoder.features(), FeatureColumns::Sparse(_)),
        };
        // the rate of a model with a logarithmic link follows from their mean
        let targets = scales_targets || (has_open_rate && kind.link() == Link::Logarithm);
        let is_open = options.transform == Some(Transform::Automatic) && standardize == Standardize::Automatic;
        let shapes = (is_open && decoder.features().are_columns()) || decoder.columns_of_logs().is_some();
        Wanted {
            standardize,
            scales,
            moments: scales || targets || has_open_rate,
            targets,
            scales_targets,
            more_classes,
            shapes,
            held_out: false,
        }
    }

    /// What features are to be scaled by, and not their targets.
    pub const fn of_features(standardize: Standardize) -> Wanted {
        Wanted {
            standardize,
            scales: true,
            moments: true,
            targets: false,
            scales_targets: false,
            more_classes: false,
            shapes: false,
            held_out: false,
        }
    }

    pub fn anything(self) -> bool {
        self.moments || self.targets || self.more_classes
    }
}
