//! The trainer that a model begins with.

use super::learners::check_network;
use super::resume::Resume;
use decode::Decoder;
use errors::Result;
use loss::Hyperparameters;
use sgd::Trainer;
use tuples::Batch;

/// A trainer for tuples like those of the batch: a new one, or that of the training that is continued.
pub fn new_trainer(
    decoder: &Decoder,
    resume: Option<&Resume>,
    hyper: Hyperparameters,
    batch: &Batch,
) -> Result<Trainer> {
    let (outputs, sparse) = (decoder.labels().outputs(), batch.is_sparse());
    let dim = match hyper.design {
        // the first weights of a network depend on the number of features
        Some(_) => batch.dim().max(decoder.observed_dim()),
        None if decoder.mean_square().is_some() => batch.dim().max(decoder.observed_dim()),
        None => batch.dim(),
    };
    decoder.check_size(dim, decoder.standardizer().is_some())?;
    check_network(&hyper, dim, outputs)?;
    let hyper = decoder.in_units(hyper);
    let trainer = match resume {
        Some(resume) => resume.trainer(hyper, dim, outputs, sparse)?,
        None => Trainer::new(hyper, dim, outputs, sparse)?,
    };
    Ok(trainer.exempt(&decoder.exempt(&hyper))?)
}
