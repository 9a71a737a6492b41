//! The decoder: its knowledge of the rows, and the weighting and scaling of the tuples that it has appended.

use super::features::FeatureColumns;
use super::imputation::Imputation;
use super::labels::Labels;
use super::learned::{Learned, MetRows, RowCounts};
use super::row_groups::RowGroups;
use super::transformed::Transformed;
use super::weight::{Factors, RowSums, Weight};
use errors::limits::MAX_WEIGHTS;
use errors::{Result, TrainingError};
use loss::{Extent, Hyperparameters, LogTransform, Penalized, Scaler, Standardizer};
use options::rows::{Nulls, Transform};
use sgd::profile::{FeatureProfile, Profile};
use sgd::{Bounds, Outside, TargetScale};
use tuples::Batch;

/// What a preparation pass has found, besides classes and categories.
#[derive(Default)]
pub struct Statistics {
    pub standardizer: Option<Standardizer>,
    pub target: Option<TargetScale>,
    /// of a regression, if it was to be found
    pub mean_target: Option<f64>,
    /// the mean of |x|² of the numbers, as they are learned from
    pub mean_square: Option<f64>,
    /// mean and deviation of targets, whether they are to be scaled or not
    pub targets: Option<[f64; 2]>,
    /// what stands for NULLs among the numbers
    pub means: Option<Vec<f32>>,
    /// columns of numbers that are to be taken by their logarithms, in addition to those that were named
    pub spanning_decades: Vec<u32>,
    /// of the numbers, if they are dense, what is kept with the model
    pub profile: Option<Vec<FeatureProfile>>,
    /// of the numbers, if they are dense, what values these leave possible if they are those of a sample
    pub bounds: Option<Bounds>,
}

/// Bytes that the weights of a model and their scaling may have, to fit a row of corgipile.models.
const MAX_MODEL_BYTES: usize = 900_000_000;

/// The label of a row that is to be left out.
pub(super) const SKIPPED: f32 = f32::NAN;

/// Turns rows (label, features..., weight) into training tuples.
pub struct Decoder {
    pub(super) labels: Labels,
    pub(super) features: FeatureColumns,
    pub(super) weight: Option<Weight>,
    pub(super) nulls: Nulls,
    /// what stands for NULLs in features, if anything is to
    pub(super) imputation: Option<Imputation>,
    /// which features of tuples are taken by their logarithms
    pub(super) logs: Option<LogTransform>,
    pub(super) scaler: Option<Scaler>,
    /// at how many deviations what is scaled is cut off
    pub(super) clip: Option<f32>,
    pub(super) learned: Learned,
    /// of a sample, the first value that its bounds leave outside
    pub(super) outside: Option<Outside>,
    /// are classes or categories being found?
    pub(super) preparing: bool,
    pub(super) counts: RowCounts,
    /// bits of the labels, and weights, of a page
    pub(super) values: Vec<u64>,
    pub(super) row_weights: Vec<f32>,
    /// None if all rows are of one group and none is held out
    pub(super) row_groups: Option<Box<RowGroups>>,
    /// the group tag of the row under way as far as its columns determine it, and those of a page
    pub(super) group_tag: u32,
    pub(super) group_tags: Vec<u32>,
    /// do tuples have their targets in double precision, too? That of the row under way, and those of a page
    pub(super) is_exact: bool,
    pub(super) exact_label: f64,
    pub(super) exact_labels: Vec<f64>,
    /// are the tuples of a page weighed and standardized when all of them are there, and were written down?
    pub(super) finishes_later: bool,
}

impl Decoder {
    pub(super) fn new(
        labels: Labels,
        features: FeatureColumns,
        weight: Option<Weight>,
        (nulls, imputation): (Nulls, Option<Imputation>),
        (standardizer, clip): (Option<Standardizer>, Option<f32>),
        row_groups: Option<Box<RowGroups>>,
    ) -> Decoder {
        let needed =
            |mixed: &FeatureColumns| matches!(mixed, FeatureColumns::Mixed(columns) if columns.need_preparation());
        let finds_means = imputation.as_ref().is_some_and(Imputation::needs_preparation);
        let preparing = labels.need_preparation() || needed(&features) || finds_means;
        Decoder {
            labels,
            features,
            weight,
            nulls,
            imputation,
            logs: None,
            scaler: standardizer.map(|standardizer| Scaler::new(standardizer, clip)),
            clip,
            learned: Learned::default(),
            outside: None,
            preparing,
            counts: RowCounts::default(),
            values: Vec::new(),
            row_weights: Vec::new(),
            row_groups,
            group_tag: 0,
            group_tags: Vec::new(),
            is_exact: false,
            exact_label: 0.0,
            exact_labels: Vec::new(),
            finishes_later: false,
        }
    }

    /// The same decoder, which takes these numbers by their logarithms.
    pub(super) fn with_transformed(mut self, transformed: Transformed) -> Decoder {
        self.set_transformed(transformed);
        self
    }

    /// The same decoder, for rows that a model is compared with: their targets are kept in double precision.
    pub(super) fn with_exact_targets(mut self) -> Decoder {
        self.is_exact = self.labels.are_targets();
        self
    }

    pub(super) fn set_transformed(&mut self, transformed: Transformed) {
        self.logs = transformed.of_tuples(&self.features);
        self.learned.transformed = transformed;
    }

    /// The columns of numbers, counted among themselves, of which it was said that they are taken by their logarithms.
    pub fn columns_of_logs(&self) -> Option<Vec<u32>> {
        self.learned.transformed.said_of(&self.features)
    }

    /// What is done in a preparation pass to arrays whose numbers are to be taken by their logarithms. Columns are
    /// measured both ways, whether it was said of them or is to be chosen, lest the model depend on that.
    pub fn logs_of_arrays(&self) -> Option<LogTransform> {
        self.learned.transformed.of_numbers().filter(|_| !self.features.are_columns())
    }

    /// Which numbers are taken by their logarithms.
    pub fn transform(&self) -> Transform {
        self.learned.transformed.to_option(&self.features)
    }

    /// The labels met so far.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    pub fn features(&self) -> &FeatureColumns {
        &self.features
    }

    /// The groups that rows fall into, and what is held out; None if all rows are of one group and none is held out.
    pub fn row_groups(&self) -> Option<&RowGroups> {
        self.row_groups.as_deref()
    }

    /// The rows that follow are of this block of the source.
    #[inline]
    pub fn begin_block(&mut self, block: u32) {
        if let Some(row_groups) = &mut self.row_groups {
            row_groups.begin_block(block);
        }
    }

    /// Must all rows be gone through before anything can be learned? Then tuples have provisional labels and, if there
    /// are categories, only their numbers, until [`end_preparation`](Decoder::end_preparation).
    pub fn needs_preparation(&self) -> bool {
        self.preparing
    }

    /// All rows are gone through before anything is learned: what is to be measured must not be transformed before
    /// that, and of columns with categories, hashed ones too, only the numbers are measured.
    pub fn begin_preparation(&mut self) {
        self.preparing |= matches!(self.features, FeatureColumns::Mixed(_));
        self.logs = None;
    }

    /// All rows have been gone through: they add up to `sums`, by classes in the sequence of [`Labels::class`], and the
    /// rest was found, too: it is what the tuples are to be scaled by from now on.
    pub fn end_preparation(&mut self, sums: &RowSums, found: Statistics) -> Result<()> {
        let counts = sums.of_classes();
        let classes = self.labels.close(&counts)?;
        self.learned.factors = if self.has_weights() { Some(self.labels.factors(sums, &classes)?) } else { None };
        self.learned.effective_rows = sums.effective_rows(self.learned.factors.as_ref(), &classes);
        self.row_groups.iter_mut().for_each(|row_groups| row_groups.end_preparation(&classes));
        self.learned.met = counts.iter().sum();
        let classes = classes.iter().filter_map(|i| counts.get(*i as usize).copied());
        let weights = self.learned.factors.as_ref().map_or(0, Factors::digest);
        self.learned.rows = Some(MetRows { classes: classes.collect(), targets: found.targets, weights });
        let mut standardizer = found.standardizer;
        (self.learned.target, self.learned.mean_target) = (found.target, found.mean_target);
        let others = match &self.features {
            FeatureColumns::Mixed(columns) => columns.mean_square_of_others(),
            _ => 0.0,
        };
        self.learned.mean_square = found.mean_square.map(|numbers| numbers + others);
        let mut means = found.means;
        if let FeatureColumns::Mixed(columns) = &mut self.features {
            columns.close(self.labels.outputs());
            standardizer = standardizer.map(|numbers| columns.expand(&numbers));
            means = Some(columns.by_position(&columns.expand_numbers(&means.unwrap_or_default())));
            let dim = columns.dim();
            self.check_size(dim, standardizer.is_some())?;
        }
        self.learned.bounds = found.bounds.map(|numbers| match &self.features {
            FeatureColumns::Mixed(columns) => numbers.expand(columns.own_dim(), columns.number_places()),
            _ => numbers,
        });
        if let Some(imputation) = &mut self.imputation {
            imputation.set_values(means);
        }
        let transformed = match found.spanning_decades.is_empty() {
            true => std::mem::take(&mut self.learned.transformed),
            false => Transformed::Numbers(found.spanning_decades),
        };
        self.set_transformed(transformed);
        if let FeatureColumns::Sparse(columns) = &mut self.features {
            // a dimension that was not met has no deviation
            let met = standardizer.as_ref().map(|standardizer| standardizer.scale.len());
            columns.set_limit(met.unwrap_or(MAX_WEIGHTS / self.labels.outputs().max(1)));
        }
        self.learned.profile = found.profile.and_then(|numbers| self.profile_with(numbers));
        self.set_standardizer(standardizer);
        self.preparing = false;
        Ok(())
    }

    /// What was met of each feature, with these of the numbers.
    fn profile_with(&self, numbers: Vec<FeatureProfile>) -> Option<Profile> {
        let rows = self.learned.met;
        let features = match &self.features {
            FeatureColumns::Mixed(columns) => {
                let nulls = self.imputation.as_ref().map_or(&[][..], |imputation| &imputation.counts().features);
                columns.profile(numbers, self.counts.decoded, nulls)?
            }
            _ => numbers,
        };
        (features.len() <= Profile::MAX_FEATURES).then_some(Profile { rows, features })
    }

    /// What a preparation pass has met of each feature, if that is kept.
    pub fn profile(&self) -> Option<&Profile> {
        self.learned.profile.as_ref()
    }

    /// There may be more than two classes, which the preparation pass is about to find.
    pub fn take_more_classes(&mut self) {
        self.labels.take_more_classes();
    }

    pub fn target(&self) -> Option<TargetScale> {
        self.learned.target
    }

    /// A preparation pass has met all rows, or only this part of them, drawn at random.
    pub fn set_sampled(&mut self, share: Option<f64>) {
        self.learned.sampled = share;
        self.learned.bounds.take_if(|_| share.is_none());
    }

    /// Has a preparation pass met only a sample of the rows?
    pub fn is_of_sample(&self) -> bool {
        self.learned.sampled.is_some()
    }

    /// What a row of the sample cannot have come near to, if a row that was decoded since the preparation pass has such
    /// a value.
    pub fn outside_of_sample(&self) -> Option<String> {
        let outside = self.outside?;
        Some(match outside.feature {
            None => format!("a value as extreme as one of column \"{}\"", self.labels.column()),
            Some(i) => {
                let name = self.features.number_at(i).unwrap_or_else(|| self.features.name(i));
                format!("a value as extreme as one of feature {name}")
            }
        })
    }

    /// All rows were decoded, so that none is left that could be outside of the sample.
    pub fn end_sample(&mut self) {
        self.learned.bounds = None;
    }

    /// How many tuples a preparation pass has met, or would have met without a sample, and features; those of
    /// compressed mini-batches are not counted.
    pub fn extent(&self) -> Extent {
        let features = match &self.features {
            FeatureColumns::Array { dim, .. } => dim.unwrap_or_default(),
            FeatureColumns::Columns { types, .. } => types.len(),
            FeatureColumns::Mixed(columns) => columns.dim(),
            FeatureColumns::Sparse(_) => self.learned.observed_dim,
            FeatureColumns::Compressed(_) => 0,
        };
        let tuples = self.learned.sampled.map_or(self.learned.met, |share| (self.learned.met as f64 / share) as u64);
        Extent { tuples, features }
    }

    /// Features of a model of these rows, once a preparation pass has ended.
    pub fn dim(&self) -> usize {
        match &self.features {
            FeatureColumns::Sparse(columns) => {
                columns.fixed_dim().unwrap_or(self.learned.observed_dim).max(self.learned.observed_dim)
            }
            FeatureColumns::Compressed(column) => column.dim().unwrap_or_default(),
            _ => self.extent().features,
        }
    }

    /// The mean of |x|² of the tuples, if a preparation pass was to find it.
    pub fn mean_square(&self) -> Option<f64> {
        self.learned.mean_square
    }

    /// What is said of a training, in the units that tuples are learned from in.
    pub fn in_units(&self, hyper: Hyperparameters) -> Hyperparameters {
        let has_none = hyper.l2_on == Penalized::Categories && !self.has_categories();
        let hyper = if has_none { Hyperparameters { l2: 0.0, ..hyper } } else { hyper };
        let hyper = self.learned.target.map_or(hyper, |target| hyper.of_scaled_targets(target.scale));
        self.learned.mean_square.map_or(hyper, |square| {
            hyper.with_reach(square, self.learned.mean_target.filter(|_| self.learned.target.is_none()))
        })
    }

    /// Rows to learn from that would say as much if each weighed the same; 0 if there was no preparation pass.
    pub fn effective_rows(&self) -> f64 {
        self.learned.effective_rows / self.learned.sampled.unwrap_or(1.0)
    }

    /// Are there columns of categories, which have a weight for each of them?
    pub fn has_categories(&self) -> bool {
        matches!(&self.features, FeatureColumns::Mixed(columns) if columns.has_categories())
    }

    /// The features that the penalty l2 is not on, ascending.
    pub fn exempt(&self, hyper: &Hyperparameters) -> Vec<u32> {
        if hyper.l2_on == Penalized::Categories { self.numbers() } else { Vec::new() }
    }

    /// The features that are numbers next to categories, ascending.
    pub fn numbers(&self) -> Vec<u32> {
        match &self.features {
            FeatureColumns::Mixed(columns) => allocation::collect(columns.number_places()),
            _ => Vec::new(),
        }
    }

    /// The mean of the targets of a regression, if a preparation pass was to find it.
    pub fn mean_target(&self) -> Option<f64> {
        self.learned.mean_target
    }

    /// What stands for NULLs in features, if anything is to.
    pub fn imputation(&self) -> Option<&Imputation> {
        self.imputation.as_ref()
    }

    /// As [`Decoder::imputation`], to be changed.
    pub fn imputation_mut(&mut self) -> Option<&mut Imputation> {
        self.imputation.as_mut()
    }

    /// By feature of the model, what stands for NULLs; 0 for categories.
    pub fn fill(&self) -> Option<Vec<f32>> {
        let values = self.imputation.as_ref()?.values()?;
        Some(match &self.features {
            FeatureColumns::Mixed(columns) if columns.own_dim() == 0 => return None,
            FeatureColumns::Mixed(columns) => columns.expand_numbers(&columns.numbers_of(values)),
            _ => allocation::copy(values),
        })
    }

    pub(super) fn set_standardizer(&mut self, standardizer: Option<Standardizer>) {
        self.scaler = standardizer.map(|standardizer| Scaler::new(standardizer, self.clip));
    }

    /// At how many deviations standardized features are cut off, if they are.
    pub fn clip(&self) -> Option<f32> {
        self.clip.filter(|_| self.scaler.is_some())
    }

    pub fn standardizer(&self) -> Option<&Standardizer> {
        self.scaler.as_ref().map(Scaler::standardizer)
    }

    /// Checks whether a model of this many features can be stored.
    pub fn check_size(&self, dim: usize, standardized: bool) -> Result<()> {
        let outputs = self.labels.outputs();
        let weights = dim.saturating_mul(outputs);
        let beside = if standardized { 16 } else { 0 } + if self.imputation.is_some() { 4 } else { 0 };
        let bytes = weights.saturating_mul(4).saturating_add(dim.saturating_mul(beside));
        if weights > MAX_WEIGHTS || bytes > MAX_MODEL_BYTES {
            return Err(TrainingError::TooManyWeights { dim, outputs }.into());
        }
        Ok(())
    }

    /// A preparation pass has met tuples of this many features.
    pub fn meet_dim(&mut self, dim: usize) {
        self.learned.observed_dim = self.learned.observed_dim.max(dim);
    }

    /// Features of the tuples that a preparation pass has met, if they are sparse arrays; else 0,
    /// or less than there are.
    pub fn observed_dim(&self) -> usize {
        if matches!(self.features, FeatureColumns::Sparse(_)) { self.learned.observed_dim } else { 0 }
    }

    /// Are features of types that take long to be made into `real`s?
    pub fn converts(&self) -> bool {
        self.features.convert()
    }

    /// Does a row have a whole mini-batch?
    pub fn has_mini_batches(&self) -> bool {
        matches!(self.features, FeatureColumns::Compressed(_))
    }

    /// Are rows being decoded into sparse tuples?
    pub fn is_sparse(&self) -> bool {
        match self.features {
            FeatureColumns::Sparse(_) => true,
            FeatureColumns::Mixed(ref columns) => !self.preparing && !columns.are_dense(),
            _ => false,
        }
    }

    /// Weighs and standardizes the tuples that were appended from `first` on. The rows' own weights are in
    /// `row_weights`, unless there is no column of them.
    #[inline]
    pub(super) fn finish(&mut self, batch: &mut Batch, first: usize) {
        if self.finishes_later {
            return;
        }
        self.counts.decoded += if batch.has_mini_batches() { 0 } else { (first..batch.len()).len() as u64 };
        if self.row_groups.is_some() && first < batch.len() {
            self.finish_tags(&batch.labels()[first..], batch.has_mini_batches());
            batch.tags_mut()[first..].copy_from_slice(&self.group_tags);
        }
        if first == batch.len() || batch.has_mini_batches() {
            return;
        }
        if self.is_exact {
            batch.exact_labels_mut()[first..].copy_from_slice(&self.exact_labels);
        }
        if self.is_weighted() {
            self.weigh(batch, first);
        }
        if self.preparing {
            return;
        }
        if let Some(logs) = &self.logs {
            logs.apply(batch, first..batch.len());
        }
        if let Some(scaler) = &self.scaler {
            self.counts.clipped += scaler.apply(batch, first..batch.len());
        }
        if let Some(target) = &self.learned.target {
            batch.labels_mut()[first..].iter_mut().for_each(|label| *label = target.apply(*label));
        }
        if let (Some(bounds), None) = (&self.learned.bounds, &self.outside) {
            self.outside = bounds.first_outside(batch, first..batch.len());
        }
    }

    /// Tags may depend on classes; those of mini-batches do not.
    fn finish_tags(&mut self, labels: &[f32], are_mini_batches: bool) {
        let Decoder { row_groups, group_tags, labels: classes, .. } = self;
        if let (Some(row_groups), false) = (row_groups, are_mini_batches) {
            row_groups.finish(group_tags, labels, |label| classes.class(label));
        }
    }
}
