//! When a training begins with a sample of the rows, and what it begins again with where that says too little.

use super::resume::Resume;
use decode::wanted::Wanted;
use decode::{Decoder, FeatureColumns};
use options::request::Request;
use options::rows::Prepare;

/// What a training starts again with, as it was before anything was read.
pub struct Fallback {
    pub request: Request,
    pub decoder: Decoder,
    /// a value that the sample did not contain, and that may take a step of any length
    pub missing: Option<String>,
    /// what is reported of the choices if the sample turns out to say enough
    pub notices: Vec<(String, Option<&'static str>)>,
}

/// May a sample of the rows stand for all of them before the first epoch? Not where something is counted in that pass
/// that has to be exact, nor where others go through the rows, too.
pub fn may_sample(request: &Request, resume: Option<&Resume>, decoder: &Decoder, wanted: Wanted) -> bool {
    let is_sparse = matches!(decoder.features(), FeatureColumns::Sparse(_));
    // the first weights of a network depend on the number of features, and what is scaled has to be met
    let needs_dim = is_sparse && (wanted.scales || !request.kind.is_linear());
    request.options.statistics == Prepare::Sample
        && request.workers == 1
        && request.search.is_none()
        && !request.shares()
        && request.shuffling.sample.is_none()
        && !request.shuffling.strategy.keeps_tuples()
        && !decoder.has_weights()
        && !decoder.has_mini_batches()
        && !needs_dim
        && resume.is_none_or(|resume| resume.decoder_state.is_of_sample())
}

impl Fallback {
    /// With the request before anything was chosen, and a decoder that knows nothing of the rows.
    pub fn new(request: Request, decoder: Decoder) -> Fallback {
        Fallback { request, decoder, missing: None, notices: Vec::new() }
    }
}
