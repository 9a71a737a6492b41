//! The knowledge that a decoder has gained from the rows, for decoders of the same rows in other processes.
//!
//! All decoders must give the learner the same labels. A decoder that finds the classes by itself numbers them in the
//! order in which it meets them.

use super::features::FeatureColumns;
use super::folds::FoundCuts;
use super::imputation::{Imputation, NullCounts};
use super::labels::MetClasses;
use super::learned::{Learned, are_close};
use super::row_groups::RowGroups;
use super::tuple_decoder::Decoder;
use super::weight::Factors;
use errors::limits::{MAX_GROUPS, MAX_WEIGHTS};
use loss::Standardizer;
use model::{Buckets, Coding, Elements};
use serde::{Deserialize, Serialize};
use sgd::profile::Profile;

impl DecoderState {
    /// Without what the model keeps by feature, what was counted, and what is of many groups.
    pub fn without_features(self) -> DecoderState {
        DecoderState {
            standardizer: None,
            fill: None,
            nulls: NullCounts::default(),
            skipped_of: Vec::new(),
            learned: Learned {
                continued: false,
                profile: None,
                bounds: None,
                factors: self.learned.factors.filter(Factors::are_of_one_group),
                ..self.learned
            },
            ..self
        }
    }

    /// Could a decoder have written it? Its sizes are within the limits, and the labels of classes their numbers:
    /// memory is asked for by all of these.
    pub fn is_sound(&self) -> bool {
        let fits = |dim: usize| dim <= MAX_WEIGHTS;
        let is_coding = |coding: &Coding| match coding {
            Coding::OneHot(_) => true,
            Coding::Hashed(Buckets { buckets, .. }) => (1..=MAX_WEIGHTS).contains(&(*buckets as usize)),
            Coding::Vector(Elements { elements }) => fits(*elements),
        };
        self.dim.is_none_or(fits)
            && self.limit.is_none_or(fits)
            && fits(self.learned.observed_dim)
            && self.groups.len() <= MAX_GROUPS
            && self.categories.iter().all(is_coding)
            && self.classes.as_ref().is_none_or(MetClasses::are_sound)
    }

    /// Has a pass over the rows measured them?
    pub fn has_met(&self) -> bool {
        self.learned.met > 0
    }

    /// Were the rows that it was measured in a sample of all?
    pub fn is_of_sample(&self) -> bool {
        self.learned.sampled.is_some()
    }

    /// With what was met of each feature.
    pub fn with_profile(self, profile: Option<Profile>) -> DecoderState {
        DecoderState { learned: Learned { profile, ..self.learned }, ..self }
    }

    /// With these means and deviations, and with what stands for NULLs.
    pub fn with_features(self, standardizer: Option<Standardizer>, fill: Option<Vec<f32>>) -> DecoderState {
        DecoderState { standardizer, fill, ..self }
    }
}

/// The knowledge that a decoder has gained from the rows.
#[derive(Serialize, Deserialize)]
pub struct DecoderState {
    classes: Option<MetClasses>,
    /// numbers of a vector
    dim: Option<usize>,
    /// of columns that are no numbers, in their sequence
    categories: Vec<Coding>,
    /// dimensions that sparse tuples may have
    limit: Option<usize>,
    standardizer: Option<Standardizer>,
    /// what stands for NULLs, by feature, and how many there were
    #[serde(default)]
    fill: Option<Vec<f32>>,
    #[serde(default)]
    nulls: NullCounts,
    /// rows of each group that were left out
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skipped_of: Vec<u64>,
    /// where rows are cut into the parts of folds
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cuts: Option<FoundCuts>,
    /// the groups of rows that were met, by their numbers, if processes are to number them alike
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    #[serde(flatten)]
    learned: Learned,
}

impl Decoder {
    /// The knowledge gained so far. If a preparation pass is needed, it must be over.
    pub fn state(&self) -> DecoderState {
        DecoderState {
            classes: self.labels.met_classes(),
            dim: match &self.features {
                FeatureColumns::Array { dim, .. } => *dim,
                FeatureColumns::Compressed(column) => column.dim(),
                FeatureColumns::Sparse(columns) => columns.fixed_dim(),
                _ => None,
            },
            categories: self.features.categories().into_iter().flatten().map(|(_, coding)| coding).collect(),
            limit: match &self.features {
                FeatureColumns::Sparse(columns) => Some(columns.limit()),
                _ => None,
            },
            standardizer: self.standardizer().cloned(),
            fill: self.fill(),
            nulls: self.imputation.as_ref().map(|imputation| imputation.counts().clone()).unwrap_or_default(),
            skipped_of: self.counts.skipped_of.clone(),
            cuts: self.row_groups.as_ref().and_then(|row_groups| row_groups.cuts()),
            groups: Vec::new(),
            learned: self.learned.clone(),
        }
    }

    /// The same with the groups that were met, for processes that are to number them alike.
    pub fn state_with_groups(&self) -> DecoderState {
        DecoderState { groups: self.group_names(), ..self.state() }
    }

    /// The groups of rows that were met, by their numbers; none if rows have no groups.
    pub fn group_names(&self) -> Vec<String> {
        let groups = self.row_groups().map(RowGroups::groups).unwrap_or_default();
        groups.into_iter().flatten().collect()
    }

    pub fn meet_groups(&mut self, names: &[String]) -> Vec<usize> {
        self.row_groups.as_mut().map(|row_groups| row_groups.know(names)).unwrap_or_default()
    }

    /// Takes over the knowledge of a model whose training is continued: no other classes and categories may come. False
    /// if the label's column cannot have the model's classes.
    pub fn adopt_model(&mut self, state: &DecoderState) -> bool {
        self.adopt(state);
        self.close_by_model()
    }

    /// Before a preparation pass over the rows of a training that begins with a model: its classes and categories are
    /// known, and everything else is to be found again.
    pub fn measure_again(&mut self) {
        (self.preparing, self.scaler) = (true, None);
        (self.learned.target, self.learned.sampled, self.learned.bounds) = (None, None, None);
        self.imputation.iter_mut().for_each(Imputation::seek);
    }

    /// Has the pass found what the state says, but for rounding?
    pub fn has_found(&self, state: &DecoderState) -> bool {
        let scaled = match (self.standardizer(), &state.standardizer) {
            (Some(a), Some(b)) => are_close(&a.mean, &b.mean, &a.scale) && are_close(&a.scale, &b.scale, &a.scale),
            (a, b) => a.is_none() && b.is_none(),
        };
        let fill = |fill: Option<Vec<f32>>| fill.unwrap_or_default().into_iter().map(f64::from).collect::<Vec<f64>>();
        let (a, b) = (fill(self.fill()), fill(state.fill.clone()));
        scaled
            && are_close(&a, &b, &a.iter().map(|a| a.abs()).collect::<Vec<f64>>())
            && (self.learned.met, self.learned.sampled) == (state.learned.met, state.learned.sampled)
            && state
                .learned
                .rows
                .as_ref()
                .is_none_or(|rows| self.learned.rows.as_ref().is_some_and(|own| own.are(rows)))
    }

    /// The pass has found what the state says: to the last bit, tuples are those that the model has learned from.
    pub fn adopt_measures(&mut self, state: &DecoderState) {
        self.set_standardizer(state.standardizer.clone());
        let Learned { target, mean_target, mean_square, .. } = state.learned;
        self.learned = Learned { target, mean_target, mean_square, ..std::mem::take(&mut self.learned) };
        if let (Some(imputation), Some(fill)) = (&mut self.imputation, &state.fill) {
            imputation.set_values(Some(self.features.by_position(fill)));
        }
    }

    /// Sparse features that no row has, and the model has a weight of, are scaled as the model scales them.
    pub fn scale_unseen(&mut self, model: Option<&Standardizer>) {
        let (FeatureColumns::Sparse(columns), Some(own), Some(model)) =
            (&mut self.features, self.scaler.as_ref(), model)
        else {
            return;
        };
        let mut own = own.standardizer().clone();
        own.mean.extend(model.mean.iter().skip(own.mean.len()));
        own.scale.extend(model.scale.iter().skip(own.scale.len()));
        columns.set_limit(own.scale.len());
        self.set_standardizer(Some(own));
    }

    /// Takes over the knowledge of another decoder of the same rows. This one must not have decoded anything.
    pub fn adopt(&mut self, state: &DecoderState) {
        if let Some(classes) = &state.classes {
            self.labels.adopt(classes);
        }
        match &mut self.features {
            FeatureColumns::Array { dim, .. } => *dim = state.dim,
            FeatureColumns::Compressed(column) => column.set_dim(state.dim),
            FeatureColumns::Mixed(columns) => columns.adopt(&state.categories),
            FeatureColumns::Sparse(columns) => {
                columns.fix_dim(state.dim.filter(|_| !columns.is_pair()));
                state.limit.into_iter().for_each(|limit| columns.set_limit(limit));
            }
            FeatureColumns::Columns { .. } => {}
        }
        self.learned = state.learned.clone();
        self.set_transformed(self.learned.transformed.clone());
        if let Some(imputation) = &mut self.imputation {
            let fill = state.fill.as_deref();
            imputation.set_values(fill.map(|fill| self.features.by_position(fill)));
            imputation.set_counts(state.nulls.clone());
        }
        self.set_standardizer(state.standardizer.clone());
        self.counts.skipped_of.clone_from(&state.skipped_of);
        self.meet_groups(&state.groups);
        self.preparing = false;
        self.row_groups.iter_mut().for_each(|row_groups| row_groups.adopt_cuts(state.cuts.as_ref()));
        if self.learned.continued {
            self.close_by_model();
        }
    }

    fn close_by_model(&mut self) -> bool {
        self.learned.continued = true;
        if let FeatureColumns::Mixed(columns) = &mut self.features {
            columns.close_by_model();
        }
        self.labels.close_by_model()
    }
}
