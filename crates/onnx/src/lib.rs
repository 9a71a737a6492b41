//! A model as a graph of ONNX, with all that is done to its features: what is missing is filled in, logarithms,
//! scaling, categories.
//!
//! Guarantees: the graph computes in double precision from floats, and rounds to float where the model has floats
//! between two steps, so that what differs from the model's own answers is the rounding of its sums. A row to which the
//! model has no answer has none here: NaN, and an empty label. It prevents a number that looks like an answer from
//! coming out of a row that the model would refuse.
//!
//! A graph has an input for each column, with a value for each row:
//!
//! Column | Input | NULL
//! --- | --- | ---
//! numbers, booleans as 0 and 1 | `float[rows]` | NaN
//! vectors next to others | `float[rows, elements]` | NaN, of elements
//! categories | `string[rows]` | [`NULL_TEXT`]
//! hashed texts | `int64[rows]`, the bucket: no operator of ONNX sees the bytes of a text | -1
//! arrays | `float[rows, features]` | NaN, of elements
//! sparse indices and values | `int64[rows, entries]`, `float[rows, entries]`; index -1 for none | NaN, of values
//!
//! And outputs: `value`, `label`, `probabilities` and `decisions`, those of them that the model has.

#![forbid(unsafe_code)]

mod answers;
mod description;
mod features;
mod graph;
mod layers;
mod proto;
#[cfg(test)]
mod tests;

pub use description::{
    Activation, Answer, Column, Description, Features, Fitted, Instead, Kind, Logarithms, Probabilities,
};

use graph::Graph;
use prost::Message;

/// What stands for NULL among texts: the last character of Unicode's first plane, which is not assigned and never will
/// be.
pub const NULL_TEXT: &str = "\u{ffff}";

/// Why a model has no graph.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// of this column
    #[error("the text that stands for NULL is a category of column \"{0}\"")]
    NullText(String),
    /// it would be this many bytes
    #[error("the graph would be {0} bytes")]
    TooLarge(usize),
}

/// The bytes of a model's graph, of which there may be this many.
///
/// # Errors
/// [`Error::NullText`], [`Error::TooLarge`]
pub fn model(description: &Description<'_>, max_bytes: usize) -> Result<Vec<u8>, Error> {
    // most of the bytes, before they are written
    let (means, fill) =
        (description.scaling.map_or(0, |(mean, _)| mean.len()), description.fill.map_or(0, <[f32]>::len));
    let numbers = 4 * (description.weights.len() + description.intercepts.len() + fill) + 16 * means;
    if numbers > max_bytes {
        return Err(Error::TooLarge(numbers));
    }
    let mut graph = Graph::default();
    let features = features::write(&mut graph, description)?;
    let decisions = layers::write(&mut graph, description, features);
    answers::write(&mut graph, description, &decisions);
    let entry = |(key, value): &(String, String)| proto::Entry { key: key.clone(), value: value.clone() };
    let operators = |(domain, version): (&str, i64)| proto::OperatorSet { domain: domain.to_owned(), version };
    let model = proto::Model {
        ir_version: proto::IR_VERSION,
        producer_name: "corgipile".to_owned(),
        producer_version: description.producer_version.to_owned(),
        graph: Some(graph.finish(description.name)),
        opset_import: proto::OPERATORS.map(operators).to_vec(),
        metadata_props: description.metadata.iter().map(entry).collect(),
    };
    match model.encoded_len() {
        bytes if bytes > max_bytes => Err(Error::TooLarge(bytes)),
        _ => Ok(model.encode_to_vec()),
    }
}
