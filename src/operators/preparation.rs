//! The preparation pass: epoch 0, over all rows in natural order.
//!
//! It finds the classes of a softmax model or a network and the number of rows of each, the categories of columns of
//! text, and what the choices depend on that are left to the extension: mean and deviation of the features, those of
//! the targets of a regression, the means that stand for NULLs, and how long rows are. If none of these is needed,
//! there is no such pass.

use super::buffers::Buffers;
use super::decoder::{Decoder, FeatureColumns, HELD_OUT, Statistics};
use crate::errors::{Result, TrainingError};
use crate::options::rows::Standardize;
use crate::pg::check_for_interrupts;
use serde::{Deserialize, Serialize};
use sgd::{ModelKind, Moments, PresentMoments, Standardizer, TargetMoments};
use tuples::{Batch, TupleSource};

/// What the pass is to find out beside classes and categories.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Wanted {
    standardize: Standardize,
    /// are features or targets to be measured?
    moments: bool,
    /// are targets numbers that are to be scaled?
    targets: bool,
}

impl Wanted {
    /// Nothing.
    pub const NOTHING: Wanted = Wanted { standardize: Standardize::None, moments: false, targets: false };

    /// For a model of this kind, of the rows of this decoder; is a learning rate left open?
    pub fn new(standardize: Standardize, kind: ModelKind, decoder: &Decoder, has_open_rate: bool) -> Wanted {
        if decoder.has_mini_batches() {
            return Wanted::NOTHING;
        }
        let scales = match standardize {
            Standardize::None => false,
            Standardize::All => true,
            Standardize::Automatic => !matches!(decoder.features(), FeatureColumns::Sparse(_)),
        };
        let targets = standardize != Standardize::None && !kind.is_classifier();
        Wanted { standardize, moments: scales || targets || has_open_rate, targets }
    }

    /// What features are to be scaled by, and not their targets.
    pub const fn of_features(standardize: Standardize) -> Wanted {
        Wanted { standardize, moments: true, targets: false }
    }

    /// Is it to find anything?
    pub fn anything(self) -> bool {
        self.moments
    }
}

/// Goes through all rows, here or in the worker, and ends the decoder's preparation. `batch` is empty afterwards; the
/// next epoch is still to be begun.
///
/// # Errors
/// [`TrainingError::NoRows`]; what can be wrong with the rows; those of
/// [`Decoder::end_preparation`](super::Decoder::end_preparation).
pub fn prepare(buffers: &mut Buffers, batch: &mut Batch, wanted: Wanted) -> Result<()> {
    if buffers.prepare_elsewhere()? {
        return Ok(());
    }
    let (mut moments, mut targets): (Option<Moments>, _) = (None, TargetMoments::default());
    let mut present: Option<PresentMoments> = None;
    let mut counts: Vec<u64> = Vec::new();
    while buffers.next_batch(batch)? {
        check_for_interrupts();
        buffers.decoder.meet_dim(batch.dim());
        leave_held_out(batch);
        if wanted.targets {
            batch.labels().iter().for_each(|target| targets.add(*target));
        }
        if let Some(imputation) = buffers.decoder.imputation_mut()
            && batch.dim() > 0
        {
            let has_missing = imputation.take_missing();
            buffers.decoder.check_size(batch.dim(), wanted.moments)?;
            present.get_or_insert_with(|| PresentMoments::new(batch.dim())).add(batch, has_missing)?;
        }
        if wanted.moments && batch.dim() > 0 {
            buffers.decoder.check_size(batch.dim(), true)?;
            let dim = if batch.is_sparse() { 0 } else { batch.dim() };
            moments.get_or_insert_with(|| Moments::new(dim)).add(batch)?;
        }
        let labels_of_blocks =
            (0..if batch.has_mini_batches() { batch.len() } else { 0 }).flat_map(|i| batch.mini_batch(i).labels());
        let labels_of_tuples = if batch.has_mini_batches() { &[] } else { batch.labels() };
        for label in labels_of_tuples.iter().chain(labels_of_blocks) {
            let class = buffers.decoder.labels().class(*label);
            if class >= counts.len() {
                counts.resize(class + 1, 0);
            }
            counts[class] += 1;
        }
    }
    if counts.is_empty() {
        return Err(TrainingError::NoRows("train on").into());
    }
    if let (Some(moments), Some(present)) = (&mut moments, &present) {
        moments.impute(present);
    }
    let standardizer = moments.as_ref().and_then(|moments| scaling(wanted, moments, buffers.decoder.features()));
    let mean_square = moments.as_ref().map(|moments| moments.mean_square(standardizer.as_ref()));
    *batch = Batch::dense(0);
    let target = wanted.targets.then(|| targets.finish());
    // columns of categories alone have no numbers to be measured
    let mean_square = mean_square.or(wanted.moments.then_some(0.0));
    let means = present.map(|present| present.means());
    buffers.decoder.end_preparation(&counts, Statistics { standardizer, target, mean_square, means })
}

/// Removes the tuples that are held out for validation: nothing is learned from them.
fn leave_held_out(batch: &mut Batch) {
    let Some(tags) = batch.tags().filter(|tags| tags.iter().any(|tag| tag & HELD_OUT != 0)) else { return };
    let stay: Vec<u32> = (0..).zip(tags).filter(|(_, tag)| *tag & HELD_OUT == 0).map(|(place, _)| place).collect();
    batch.retain(&stay);
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
