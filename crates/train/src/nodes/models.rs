//! Models on their way to nodes: as documents, and linear ones as their numbers.

use super::messages::bytes_of;
use errors::{Error, ModelError, NodeError, Result};
use loss::ModelParameters;
use model::{self, Model};
use std::rc::Rc;

/// The model's document; why it cannot be sent, if it cannot.
pub fn document_of(model: &Model) -> Result<(String, Option<String>)> {
    match model::export(model) {
        Err(Error::Model(error @ ModelError::ModelTooLarge(_))) => Ok((String::new(), Some(error.to_string()))),
        exported => Ok((exported?, None)),
    }
}

/// The document of a model in the bytes behind a text, of which it has this many.
pub fn model_of(words: &[u32], document: usize) -> Result<Rc<Model>> {
    let bytes = bytes_of(words);
    let document = bytes.get(..document).and_then(|text| std::str::from_utf8(text).ok());
    Ok(Rc::new(model::of_document(document.ok_or(NodeError::NonsenseAsked)?)?))
}

/// Weights and intercepts of linear models, one after the other.
pub fn words_of_models<'a>(models: impl Iterator<Item = &'a ModelParameters>) -> Vec<u32> {
    let numbers = models.flat_map(|model| model.weights.iter().chain(&model.intercepts));
    allocation::collect(numbers.map(|number| number.to_bits()))
}

/// The models that such words are, one for each of these groups, of this many features and outputs; None if there are
/// not as many words.
pub fn linear_models(
    groups: Vec<usize>,
    words: &[u32],
    (dim, outputs): (usize, usize),
) -> Option<Vec<(usize, ModelParameters)>> {
    let weights = dim.checked_mul(outputs)?;
    let words_of_one = weights.checked_add(outputs).filter(|words_of_one| *words_of_one > 0)?;
    let fits = groups.len().checked_mul(words_of_one) == Some(words.len());
    let model = |(group, words): (usize, &[u32])| {
        let mut numbers: Vec<f32> = allocation::collect(words.iter().map(|word| f32::from_bits(*word)));
        let intercepts = numbers.split_off(weights);
        (group, ModelParameters { dim, outputs, weights: numbers, intercepts, network: None })
    };
    fits.then(|| groups.into_iter().zip(words.chunks(words_of_one)).map(model).collect())
}
