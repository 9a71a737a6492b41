//! A model as a graph of ONNX, whose answers are those of corgipile_predict(): what crates/onnx writes of the model's
//! parts.

use super::columns::{is_pair, kinds, refuse_words};
use errors::limits::MAX_ONNX_BYTES;
use errors::{ModelError, Result};
use loss::{Activation, Link, LogTransform, Output};
use model::{Buckets, Categories, ColumnKind, FeatureKind, Model};
use onnx::{Answer, Column, Description, Features, Fitted, Instead, Kind, Logarithms, NULL_TEXT, Probabilities};
use options::rows::{Nulls, Unseen};
use serde_json::json;
use sgd::platt::Sigmoids;
use tuples::HashedColumn;

pub fn graph(model: &Model) -> Result<Vec<u8>> {
    refuse_words(model, "a graph of ONNX")?;
    let linear = model.linear();
    let layers = match linear.network {
        Some(network) => network.layers(linear.dim, linear.outputs).collect(),
        None => vec![(linear.dim, linear.outputs)],
    };
    let is_sparse = model.feature_kind.index_base().is_some();
    let description = Description {
        name: model.name.as_deref().unwrap_or("corgipile"),
        producer_version: env!("CARGO_PKG_VERSION"),
        metadata: metadata(model),
        features: features(model),
        fill: model.fill().filter(|_| model.nulls == Nulls::Impute && !is_sparse),
        logarithms: match &model.logs {
            None => Logarithms::None,
            Some(LogTransform::All) => Logarithms::All,
            Some(LogTransform::Features(features)) => Logarithms::These(features),
        },
        scaling: model.scaling(),
        clip: model.clip,
        layers,
        weights: linear.weights,
        intercepts: linear.intercepts,
        activation: match linear.network.map(|network| network.activation) {
            Some(Activation::Sigmoid) => onnx::Activation::Sigmoid,
            Some(Activation::Tanh) => onnx::Activation::Tanh,
            Some(Activation::Relu) | None => onnx::Activation::Relu,
        },
        answer: answer(model),
    };
    onnx::model(&description, MAX_ONNX_BYTES).map_err(|error| {
        let model = model.in_error();
        match error {
            onnx::Error::NullText(column) => ModelError::NullTextInOnnx { model, column }.into(),
            onnx::Error::TooLarge(bytes) => ModelError::TooLargeForOnnx { model, bytes }.into(),
        }
    })
}

/// What a program can read besides the graph. Every value is JSON.
fn metadata(model: &Model) -> Vec<(String, String)> {
    let mut entries =
        vec![("model", json!(model.kind.name())), ("features", json!(model.features)), ("null_text", json!(NULL_TEXT))];
    if model.kind.is_classifier() {
        entries.push(("classes", json!(model.classes)));
    }
    if model.feature_kind.buckets() > 0 {
        entries.push(("buckets", json!(model.feature_kind.buckets())));
    }
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_string())).collect()
}

fn features(model: &Model) -> Features<'_> {
    match &model.feature_kind {
        FeatureKind::Array => Features::Array(&model.features[0]),
        FeatureKind::Sparse { index_base } => {
            let (indices, values) = match is_pair(model) {
                true => (model.features[0].clone(), model.features[1].clone()),
                false => (format!("{}.indices", model.features[0]), format!("{}.values", model.features[0])),
            };
            Features::Sparse { indices, values, base: *index_base, unseen: unseen(model) }
        }
        FeatureKind::Columns(_) => {
            let columns = model.features.iter().zip(kinds(model));
            Features::Columns(columns.map(|(name, kind)| Column { name, kind: kind_of(model, name, kind) }).collect())
        }
    }
}

fn kind_of<'a>(model: &Model, name: &str, kind: &'a ColumnKind) -> Kind<'a> {
    match kind {
        ColumnKind::Number => Kind::Number,
        ColumnKind::Categories(known) => {
            Kind::Categories { values: known.values(), null: null_of(model, known), unseen: unseen(model) }
        }
        ColumnKind::Vector(len) => Kind::Vector(*len),
        ColumnKind::Hashed(Buckets { buckets, .. }) => {
            let place = || HashedColumn::new(name).bucket(None, *buckets) as usize;
            let null = if model.nulls == Nulls::Impute { Instead::Place(place()) } else { Instead::NoAnswer };
            Kind::Hashed { buckets: *buckets, null }
        }
    }
}

/// What stands for NULL in a column of categories.
fn null_of(model: &Model, known: &Categories) -> Instead {
    match (model.nulls, known.null()) {
        (Nulls::Impute, Some(place)) => Instead::Place(place),
        // training has met none: it is not one of those that are known
        (Nulls::Impute, None) => unseen(model),
        (Nulls::Skip | Nulls::Error, _) => Instead::NoAnswer,
    }
}

fn unseen(model: &Model) -> Instead {
    match model.unseen {
        Unseen::Zero => Instead::Nothing,
        Unseen::Error => Instead::NoAnswer,
    }
}

fn answer(model: &Model) -> Answer<'_> {
    if !model.kind.is_classifier() {
        return match model.kind.link() {
            Link::Identity => Answer::Number,
            Link::Logarithm => Answer::Exponential,
        };
    }
    let output = model.linear().network.map(|network| network.output);
    let probabilities = match output {
        _ if !model.has_probabilities() => Probabilities::None,
        _ if model.sigmoids.is_some() => Probabilities::Sigmoid,
        Some(Output::Sigmoid) => Probabilities::Sigmoid,
        Some(Output::Softmax | Output::Identity) | None => Probabilities::Softmax,
    };
    let opposite = |numbers: Vec<f64>| numbers.into_iter().map(|number| -number).collect();
    let fitted =
        |sigmoids: &Sigmoids| Fitted { factors: opposite(sigmoids.slopes()), terms: opposite(sigmoids.offsets()) };
    Answer::Classes {
        labels: &model.classes,
        values: model.values.as_deref(),
        probabilities,
        fitted: model.sigmoids.as_ref().map(fitted),
    }
}
