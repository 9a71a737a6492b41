//! What is settled when a training is opened: what its source can be, and what that means for the request.

use super::features::check_options;
use super::resume::{Resume, refuse};
use decode::Decoder;
use errors::{Result, TrainingError};
use loss::{Hyperparameters, Solver};
use options::chosen::Rate;
use options::request::Request;
use pg::values::array::AnyArray;
use pgrx::pg_sys;
use scan::Source;

/// Of compressed mini-batches each is a step, and no one looks into it to choose a rate or to bound a step.
pub fn fit_to_mini_batches(request: &mut Request, decoder: &Decoder) {
    for point in request.points.iter_mut().filter(|_| decoder.has_mini_batches()) {
        let hyper = &mut point.hyperparameters;
        (hyper.batch_size, point.has_open_batch_size) = (Hyperparameters::WHOLE_MINI_BATCHES, false);
        if point.rate == Rate::Open {
            (point.rate, point.has_open_epochs, hyper.bounded) = (Rate::Given, false, false);
            hyper.averaging = request.options.averaging == Some(true);
            point.multiply_rate();
        }
    }
}

/// Reports that this many processes, or servers, make a step by as many compressed mini-batches.
pub fn notice_steps(decoder: &Decoder, processes: usize) {
    if decoder.has_mini_batches() && processes > 1 {
        pg::notice(
            format!("each step uses {processes} compressed mini-batches, one of each process or server"),
            "For steps of the same number of rows as with a single process, compress with a smaller batch_rows.",
        );
    }
}

pub fn label_type(source: &Source, label: &str, decoder: &Decoder) -> Result<pg_sys::Oid> {
    Ok(match source.type_of(label)? {
        // an array of them for each mini-batch
        labels if decoder.has_mini_batches() => AnyArray::new(labels).map_or(labels, |array| array.element()),
        label => label,
    })
}

/// Checks whether the features of the source go with the request, and with the model that is continued, whose classes
/// and categories the decoder takes over.
pub fn check_decoder(
    request: &Request,
    resume: Option<&Resume>,
    features: &[String],
    decoder: &mut Decoder,
) -> Result<()> {
    if let Some(resume) = resume {
        // Newton's method has no mini-batches of any size, and none that are compressed
        let is_newton = request.first_point().hyperparameters.solver == Solver::Newton;
        resume.check_mini_batches(decoder.has_mini_batches(), request.options.batch_size.is_some() || is_newton)?;
    }
    if let Some(resume) = resume {
        // before the options, which are those of its features
        resume.check(features, decoder.features())?;
    }
    check_options(&request.options, decoder.features())?;
    if decoder.has_mini_batches() && request.first_point().hyperparameters.solver == Solver::Newton {
        return Err(TrainingError::NotOnCompressed("solver newton").into());
    }
    if let Some(resume) = resume
        && !decoder.adopt_model(&resume.decoder_state)
    {
        let hint = "Continue with labels of the type that the model was trained on.";
        return Err(refuse(&resume.model, "the label column's type does not have its classes", hint));
    }
    if let Some(group) = resume.and_then(|resume| resume.group.clone()) {
        // the first of them, whichever comes first
        decoder.meet_groups(&[group]);
    }
    Ok(())
}

/// Does a model go on in several groups? Several processes number them alike, and so do servers: they look for them
/// first.
pub fn goes_on_in_groups(request: &Request, resume: Option<&Resume>) -> bool {
    request.row_groups.group.is_some() && resume.is_some_and(|resume| resume.group.is_none())
}

/// Why a worker cannot fill the buffers of such a training, if it cannot.
pub fn no_loader_because(request: &Request, decoder: &Decoder) -> Option<&'static str> {
    let obstacles = [
        (request.workers > 1, "each of several processes loads its own"),
        (!request.row_groups.is_empty(), "the rows have groups or a validation set"),
        (decoder.has_mini_batches(), "the rows are compressed"),
        (request.shuffling.strategy.keeps_tuples(), "the strategy keeps tuples in the buffer"),
    ];
    obstacles.into_iter().find(|(applies, _)| *applies).map(|(_, why)| why)
}
