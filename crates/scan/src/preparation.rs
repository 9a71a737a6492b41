//! The preparation pass: epoch 0, over all rows in natural order, or over a sample of them.
//!
//! It finds the classes of a softmax model or a network and the number of rows of each, the categories of columns of
//! text, and what the choices depend on that are left to the extension: mean and deviation of the features, those of
//! the targets of a regression, the means that stand for NULLs, and how long rows are. If none of these is needed,
//! there is no such pass.

use super::buffers::Buffers;
use super::scan_control::ScanControl;
use decode::wanted::Wanted;
use decode::{Decoder, FeatureColumns, HELD_OUT, Met, RowSums, Statistics};
use errors::{DecoderError, Error, NodeError, Result, RowFault, TrainingError, some_of};
use loss::{LogTransform, Standardizer, inverse_signed_log};
use options::rows::Standardize;
use pg::check_for_interrupts;
use serde::{Deserialize, Serialize};
use sgd::profile::{Ends, FeatureProfile, Profile, RowSample};
use sgd::{Bounds, Extremes, Moments, PresentMoments, Shapes, TargetMoments};
use tuples::{Batch, TupleSource};

/// Goes through all rows, here or in the worker, and ends the decoder's preparation. `batch` is empty afterwards; the
/// next epoch is still to be begun.
pub fn prepare(buffers: &mut Buffers, batch: &mut Batch, wanted: Wanted) -> Result<()> {
    if buffers.prepare_elsewhere()? {
        return Ok(());
    }
    let found = measure(buffers, batch, wanted)?;
    finish(&mut buffers.decoder, wanted, &found.sums, found.measured)?;
    let sampled = buffers.report().sampled_pages;
    buffers.decoder.set_sampled(sampled.map(|[read, all]| f64::from(read) / f64::from(all)));
    Ok(())
}

/// What a sample of the rows did not contain, if that is why a training that begins with it has failed.
pub fn missing_in_sample(error: &Error) -> Option<String> {
    match error {
        Error::Decoder(DecoderError::Row { fault, .. }) => match &**fault {
            RowFault::Appeared { what, value } => Some(format!("{what} {value}")),
            _ => None,
        },
        Error::Training(TrainingError::OneClass { column, .. }) => {
            Some(format!("a second value of column \"{column}\""))
        }
        Error::Training(TrainingError::NearlyUniqueLabel { column, .. }) => {
            Some(format!("values of column \"{column}\" more than once"))
        }
        Error::Training(TrainingError::NoSuchClass { label, .. }) => Some(format!("label {label}")),
        Error::Training(TrainingError::NoRows(_) | TrainingError::AllLeftOut(_)) => {
            Some("a row to train on".to_owned())
        }
        _ => None,
    }
}

/// Goes through all rows in epoch 0, so that a decoder whose knowledge is that of a model has met all groups. `batch`
/// is empty afterwards, and this epoch is the next.
pub fn find_groups(buffers: &mut Buffers, batch: &mut Batch, epoch: u32) -> Result<()> {
    while buffers.next_batch(batch)? {
        check_for_interrupts();
    }
    *batch = Batch::dense(0);
    // these rows come once more, and are counted then
    buffers.decoder.begin_epoch();
    buffers.control(&ScanControl::epoch(epoch.into()));
    Ok(())
}

/// Goes through all rows. `batch` is empty afterwards, and the decoder's preparation has not ended.
pub fn measure(buffers: &mut Buffers, batch: &mut Batch, wanted: Wanted) -> Result<Found> {
    buffers.decoder.begin_preparation();
    if wanted.more_classes {
        buffers.decoder.take_more_classes();
    }
    let mut measured = Measured::default();
    let mut sums = RowSums::default();
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        buffers.decoder.meet_dim(batch.dim());
        if !wanted.held_out {
            leave_held_out(batch);
        }
        buffers.decoder.add_up(batch, &mut sums);
        leave_weightless(batch);
        measured.samples = buffers.report().sampled_pages.is_some();
        measured.add(wanted, &mut buffers.decoder, batch)?;
    }
    *batch = Batch::dense(0);
    Ok(Found { sums, measured, met: buffers.decoder.met() })
}

/// Takes what other processes have found, each in rows of its own, for what the decoder has met, and ends its
/// preparation. Gives the rows of each class, by the numbers that classes had at first, of all processes and of each.
pub fn unite(decoder: &mut Decoder, wanted: Wanted, all: &[Found]) -> Result<Vec<Vec<u64>>> {
    decoder.begin_preparation();
    if wanted.more_classes {
        decoder.take_more_classes();
    }
    let (mut sums, mut measured, mut parts) = (RowSums::default(), Measured::default(), Vec::new());
    for found in all {
        let mut before = sums.of_classes();
        decoder.unite(&found.met, &found.sums, &mut sums)?;
        let counts = sums.of_classes();
        before.resize(counts.len(), 0);
        parts.push(counts.iter().zip(&before).map(|(after, before)| after - before).collect());
        if !measured.unite(&found.measured) {
            return Err(
                NodeError::Differ("rows do not have the same number of features on all servers".to_owned()).into()
            );
        }
    }
    finish(decoder, wanted, &sums, measured)?;
    Ok(parts)
}

/// Ends a decoder's preparation.
fn finish(decoder: &mut Decoder, wanted: Wanted, sums: &RowSums, mut measured: Measured) -> Result<()> {
    if sums.is_empty() {
        return Err(TrainingError::no_rows("train on", decoder.skipped()).into());
    }
    if let FewTargets::Two([one, other]) = measured.few {
        pg::notice(
            format!("label column \"{}\" has only two values, {one} and {other}", decoder.labels().column()),
            "The model predicts numbers. For two classes and their probabilities, use model => 'logistic'.",
        );
    }
    measured.impute();
    measured.warn_of_coarse(wanted, decoder);
    let statistics = measured.finish(wanted, decoder);
    decoder.end_preparation(sums, statistics)
}

/// What a pass over some rows has found.
#[derive(Serialize, Deserialize)]
pub struct Found {
    /// what rows add up to, by the numbers that groups and classes have there
    sums: RowSums,
    measured: Measured,
    met: Met,
}

impl Found {
    pub fn groups(&self) -> &[String] {
        self.met.groups()
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Measured {
    moments: Option<Moments>,
    present: Option<PresentMoments>,
    shapes: Option<Shapes>,
    targets: TargetMoments,
    few: FewTargets,
    /// of sparse tuples that are not scaled: the sum of |x|², and what they weigh. Nothing is kept by feature.
    squares: f64,
    weight: f64,
    /// of dense rows
    sample: Option<RowSample>,
    /// are the rows a sample of all? Its extremes, if they are dense
    #[serde(skip)]
    samples: bool,
    #[serde(skip)]
    extremes: Option<Extremes>,
}

impl Measured {
    fn add(&mut self, wanted: Wanted, decoder: &mut Decoder, batch: &mut Batch) -> Result<()> {
        // before anything is taken by its logarithm or put in place of a NULL
        if !batch.is_sparse() && !batch.has_mini_batches() && batch.dim() <= Profile::MAX_FEATURES {
            self.sample.get_or_insert_with(|| RowSample::new(batch.dim())).add(batch);
        }
        if decoder.labels().are_targets() && batch.has_mini_batches() {
            let labels = (0..batch.len()).flat_map(|i| batch.mini_batch(i).labels());
            labels.for_each(|target| self.targets.add(*target, 1.0));
        } else if decoder.labels().are_targets() {
            (0..).zip(batch.labels()).for_each(|(i, target)| self.targets.add(*target, batch.weight(i)));
        }
        if wanted.targets && !batch.has_mini_batches() {
            self.few.add(batch.labels());
        }
        if let Some(logs) = decoder.logs_of_arrays() {
            logs.apply(batch, 0..batch.len());
        }
        if self.samples && !batch.is_sparse() && !batch.has_mini_batches() {
            self.extremes.get_or_insert_with(|| Extremes::new(batch.dim())).add(batch);
        }
        if wanted.shapes && batch.dim() > 0 {
            let shapes = self.shapes.get_or_insert_with(|| Shapes::new(batch.dim()));
            match decoder.features().number_columns().filter(|columns| columns.len() < batch.dim()) {
                // the elements of vectors are not chosen from
                Some(columns) if decoder.columns_of_logs().is_none() => {
                    shapes.add_some(batch, |j| columns.binary_search_by_key(&(j as u32), |(_, place)| *place).is_ok());
                }
                _ => shapes.add(batch),
            }
        }
        if let Some(imputation) = decoder.imputation_mut()
            && batch.dim() > 0
        {
            let has_missing = imputation.take_missing();
            decoder.check_size(batch.dim(), wanted.scales)?;
            self.present.get_or_insert_with(|| PresentMoments::new(batch.dim())).add(batch, has_missing)?;
        }
        if wanted.moments && batch.is_sparse() && !wanted.scales {
            let square = |i: usize| batch.sparse_row(i).1.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
            for i in 0..batch.len() {
                self.squares += f64::from(batch.weight(i)) * square(i);
                self.weight += f64::from(batch.weight(i));
            }
        } else if wanted.moments && batch.dim() > 0 {
            decoder.check_size(batch.dim(), wanted.scales)?;
            let dim = if batch.is_sparse() { 0 } else { batch.dim() };
            self.moments.get_or_insert_with(|| Moments::new(dim)).add(batch)?;
        }
        Ok(())
    }

    /// Adds what was measured of other rows. False if they have another number of features.
    fn unite(&mut self, other: &Measured) -> bool {
        self.targets.unite(&other.targets);
        self.few.unite(other.few);
        self.squares += other.squares;
        self.weight += other.weight;
        unite_some(&mut self.moments, &other.moments, Moments::unite)
            && unite_some(&mut self.present, &other.present, PresentMoments::unite)
            && unite_some(&mut self.shapes, &other.shapes, Shapes::unite)
            && unite_some(&mut self.sample, &other.sample, RowSample::unite)
    }

    /// Takes columns with NULLs as they are once their means stand for these.
    fn impute(&mut self) {
        if let (Some(moments), Some(present)) = (&mut self.moments, &self.present) {
            moments.impute(present);
        }
    }

    /// Tells of columns whose numbers single precision cannot hold apart.
    fn warn_of_coarse(&self, wanted: Wanted, decoder: &Decoder) {
        let features = decoder.features();
        let (mut columns, mut constants): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        if let Some(moments) = &self.moments {
            let names = features.number_names();
            let name =
                |j: usize| names.as_ref().map_or_else(|| features.name(j), |names| names[j].clone().into_owned());
            let described: Vec<(f64, f64)> = moments.describe().collect();
            for j in moments.coarse().into_iter().map(|j| j as usize) {
                let (mean, deviation) = described[j];
                if features.may_be_rounded(j, mean) {
                    if deviation == 0.0 { &mut constants } else { &mut columns }.push(name(j));
                }
            }
        }
        if wanted.targets && self.targets.is_coarse() {
            columns.push(decoder.labels().column().to_owned());
        }
        if !columns.is_empty() {
            pg::warning(
                format!(
                    "values are so far from 0 that single precision loses most of their differences: {}",
                    some_of(&columns)
                ),
                "Subtract a number near their mean in a query or a view, as in SELECT x - 1700000000 AS x.",
            );
        }
        if !constants.is_empty() {
            pg::warning(
                format!("all values are the same in single precision: {}", some_of(&constants)),
                "If they differ, subtract a number near their mean in a query or a view; a constant needs no feature.",
            );
        }
    }

    /// What the model keeps of the numbers: bins of a sample, and mean, deviation and missing share of all rows where
    /// these were measured as they are.
    fn profile(&self, decoder: &Decoder) -> Option<Vec<FeatureProfile>> {
        let mut features = self.sample.as_ref()?.features(Ends::default());
        // later rows is compared with the rows as they are
        if decoder.logs_of_arrays().is_some() || decoder.weighs_rows() {
            return Some(features);
        }
        if let Some(present) = &self.present {
            for (feature, (mean, deviation, missing)) in features.iter_mut().zip(present.describe()) {
                (feature.mean, feature.deviation, feature.missing) = (Some(mean), Some(deviation), missing);
            }
        } else if let Some(moments) = &self.moments {
            for (feature, (mean, deviation)) in features.iter_mut().zip(moments.describe()) {
                (feature.mean, feature.deviation) = (Some(mean), Some(deviation));
            }
        }
        Some(features)
    }

    fn finish(mut self, wanted: Wanted, decoder: &Decoder) -> Statistics {
        let profile = self.profile(decoder);
        let said = decoder.columns_of_logs();
        let spanning_decades = match &self.shapes {
            Some(shapes) if said.is_none() => shapes.spanning_decades(wanted.targets),
            _ => Vec::new(),
        };
        let by_logs = said.as_ref().unwrap_or(&spanning_decades);
        let mut means = self.present.as_ref().map(PresentMoments::means);
        if let (Some(means), Some(logs)) = (&mut means, decoder.logs_of_arrays()) {
            means_of_logs(means, &logs);
        }
        if let Some(shapes) = &self.shapes {
            self.moments.iter_mut().for_each(|moments| shapes.replace(by_logs, moments));
            means.iter_mut().for_each(|means| by_logs.iter().for_each(|i| means[*i as usize] = shapes.mean(*i)));
        }
        let features = decoder.features();
        let standardizer = self.moments.as_ref().and_then(|moments| scaling(wanted, moments, features));
        let bounds = self.bounds(wanted, by_logs, standardizer.as_ref());
        // columns of categories alone have no numbers to be measured
        let mean_square = wanted.moments.then(|| match &self.moments {
            Some(moments) => moments.mean_square(standardizer.as_ref()),
            None if self.weight > 0.0 => self.squares / self.weight,
            None => 0.0,
        });
        Statistics {
            standardizer,
            target: wanted.scales_targets.then(|| self.targets.finish()),
            mean_target: wanted.targets.then(|| self.targets.mean()),
            targets: decoder.labels().are_targets().then(|| [self.targets.mean(), self.targets.deviation()]),
            mean_square,
            means,
            spanning_decades,
            profile,
            bounds,
        }
    }

    /// What values these numbers, some of them taken by their logarithms and scaled so, leave possible if they are
    /// those of a sample.
    fn bounds(&self, wanted: Wanted, by_logs: &[u32], standardizer: Option<&Standardizer>) -> Option<Bounds> {
        let (extremes, moments) = (self.extremes.as_ref()?, self.moments.as_ref()?);
        let bounds = extremes.bounds(moments.describe().map(|(mean, _)| mean), by_logs, standardizer);
        Some(match wanted.scales_targets {
            true => bounds.with_target(extremes.of_target(&self.targets.finish())),
            false => bounds,
        })
    }
}

fn unite_some<T: Clone>(own: &mut Option<T>, other: &Option<T>, unite: fn(&mut T, &T) -> bool) -> bool {
    match (&mut *own, other) {
        (Some(own), Some(other)) => unite(own, other),
        (None, Some(other)) => {
            *own = Some(other.clone());
            true
        }
        (_, None) => true,
    }
}

/// The distinct targets met so far, while they are few.
#[derive(Default, Clone, Copy, Serialize, Deserialize)]
enum FewTargets {
    #[default]
    None,
    One(f32),
    /// ascending
    Two([f32; 2]),
    More,
}

impl FewTargets {
    fn add(&mut self, targets: &[f32]) {
        for target in targets.iter().copied() {
            *self = match *self {
                FewTargets::More => return,
                FewTargets::None => FewTargets::One(target),
                FewTargets::One(one) if one != target => FewTargets::Two([one.min(target), one.max(target)]),
                FewTargets::Two(two) if !two.contains(&target) => FewTargets::More,
                same => same,
            };
        }
    }
}

impl FewTargets {
    /// Meets those of other rows.
    fn unite(&mut self, other: FewTargets) {
        match other {
            FewTargets::None => {}
            FewTargets::One(one) => self.add(&[one]),
            FewTargets::Two(two) => self.add(&two),
            FewTargets::More => *self = FewTargets::More,
        }
    }
}

/// What stands for a NULL is a number of the data: that of which the mean of the logarithms is the logarithm.
fn means_of_logs(means: &mut [f32], logs: &LogTransform) {
    let of_logs = means.iter_mut().enumerate().filter(|(i, _)| logs.contains(*i));
    of_logs.for_each(|(_, mean)| *mean = inverse_signed_log((*mean).into()));
}

/// Removes the tuples that are held out for validation: nothing is learned from them.
fn leave_held_out(batch: &mut Batch) {
    let stay = batch.tags().map(|tags| places_where(tags, |tag| tag & HELD_OUT == 0));
    keep_only(batch, stay);
}

/// Removes the tuples that weigh nothing, after they were added up: nothing is to be as if there were such rows.
fn leave_weightless(batch: &mut Batch) {
    let stay = batch.weights().map(|weights| places_where(weights, |weight| *weight > 0.0));
    keep_only(batch, stay);
}

fn places_where<T>(items: &[T], stays: impl Fn(&T) -> bool) -> Vec<u32> {
    allocation::collect((0..).zip(items).filter(|(_, item)| stays(item)).map(|(place, _)| place))
}

fn keep_only(batch: &mut Batch, places: Option<Vec<u32>>) {
    if let Some(places) = places.filter(|places| places.len() < batch.len()) {
        batch.retain(&places);
    }
}

/// Sparse features keep their zeros: they are divided by their deviation, but not centred,
/// and that only if the user wants it.
fn scaling(wanted: Wanted, moments: &Moments, features: &FeatureColumns) -> Option<Standardizer> {
    match wanted.standardize {
        Standardize::None => None,
        Standardize::Automatic => moments.finish_automatically(),
        Standardize::All => {
            let mut standardizer = moments.finish();
            if matches!(features, FeatureColumns::Sparse(_)) {
                standardizer.mean.fill(0.0);
            }
            Some(standardizer)
        }
    }
}
