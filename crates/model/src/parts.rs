//! What is stored of a model, and exported: the fields are columns of corgipile.stored_models and keys of the document
//! (docs/reference/model-format.md), by the same names.

use super::features::{Coding, FeatureKind};
use super::keyed_values::{Fault, KeyedValues, required};
use super::shared::Arrays;
use super::table::FloatArray;
use choices::Choice;
use loss::{ModelKind, ModelParameters, Network, Standardizer};
use pg::catalog::types::{existing_base_type, qualified_type_name};
use pgrx::pg_sys;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use sgd::platt::Sigmoids;
use sgd::profile::Profile;
use std::collections::BTreeMap;

/// What it takes to predict with a model, besides its [`Numbers`].
#[derive(Serialize)]
pub struct Fitted {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// the name of its kind
    pub model: String,
    pub label: String,
    #[serde(serialize_with = "type_name")]
    pub label_type: pg_sys::Oid,
    /// ascending; of two, the first is the negative class; None for models that predict numbers
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// names of the feature columns
    pub features: Vec<String>,
    pub feature_kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub categories: Option<BTreeMap<String, Coding>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_base: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_layer_sizes: Option<Vec<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// the record of its training, some of which predictions obey
    pub hyperparameters: Map<String, Value>,
    /// rows that were held out, if the model was calibrated, and how far it was from the truth
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_rows: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_scores: Option<FloatArray<f64>>,
    /// what its decisions say of probabilities, if that was fitted
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigmoid_slopes: Option<FloatArray<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sigmoid_offsets: Option<FloatArray<f64>>,
}

/// The numbers of a model. They may be many, and need not be read where others have put them into shared memory.
#[derive(Clone, Serialize)]
pub struct Numbers {
    pub weights: FloatArray<f32>,
    pub intercepts: FloatArray<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_mean: Option<FloatArray<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_scale: Option<FloatArray<f64>>,
    /// by feature, what stands for NULLs
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feature_fill: Option<FloatArray<f32>>,
}

/// What is kept of a training that no prediction reads.
#[derive(Default, Serialize)]
pub struct Kept {
    pub source: String,
    /// rows left out in each epoch
    pub skipped: i64,
    /// rows in which NULLs of features were imputed; None if it does not impute
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imputed: Option<i64>,
    pub preparation_seconds: f64,
    /// space that the copy of a full shuffle took, if one was made
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffle_bytes: Option<i64>,
    /// what its features were like, if that is kept
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// An epoch of corgipile.training_history. Other keys are refused,
/// because they would break that view for all who see the model.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpochRecord {
    epoch: i32,
    loss: Option<f64>,
    accuracy: Option<f64>,
    learning_rate: Option<f64>,
    tuples: Option<i64>,
    seconds: Option<f64>,
    r2: Option<f64>,
    shuffle_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_loss: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validation_score: Option<f64>,
}

impl Fitted {
    /// A model that was trained now, on these features.
    pub fn new(
        kind: ModelKind,
        (features, feature_kind): (&[String], &FeatureKind),
        network: Option<Network>,
    ) -> Fitted {
        let sizes = |network: &Network| network.hidden.sizes().iter().map(|size| *size as i32).collect();
        Fitted {
            name: None,
            model: kind.name().to_owned(),
            label: String::new(),
            label_type: pg_sys::Oid::INVALID,
            classes: None,
            features: features.to_vec(),
            feature_kind: feature_kind.name().to_owned(),
            categories: feature_kind.categories(features),
            index_base: feature_kind.index_base().map(|base| base as i32),
            hidden_layer_sizes: network.as_ref().map(sizes),
            activation: network.map(|network| network.activation.name().to_owned()),
            output: network.map(|network| network.output.name().to_owned()),
            hyperparameters: Map::new(),
            calibration_rows: None,
            calibration_scores: None,
            sigmoid_slopes: None,
            sigmoid_offsets: None,
        }
    }

    pub fn read(values: &impl KeyedValues) -> Result<Fitted, Fault> {
        Ok(Fitted {
            name: values.get("name")?,
            model: required("model", values.get("model")?)?,
            label: required("label", values.get("label")?)?,
            label_type: required("label_type", values.type_oid("label_type")?)?,
            classes: values.list("classes")?,
            features: required("features", values.list("features")?)?,
            feature_kind: required("feature_kind", values.get("feature_kind")?)?,
            categories: values.json("categories")?,
            index_base: values.get("index_base")?,
            hidden_layer_sizes: values.list("hidden_layer_sizes")?,
            activation: values.get("activation")?,
            output: values.get("output")?,
            hyperparameters: values.json("hyperparameters")?.unwrap_or_default(),
            calibration_rows: values.get("calibration_rows")?,
            calibration_scores: values.floats("calibration_scores")?,
            sigmoid_slopes: values.floats("sigmoid_slopes")?,
            sigmoid_offsets: values.floats("sigmoid_offsets")?,
        })
    }

    /// With probabilities of its decisions.
    pub fn with_sigmoids(self, sigmoids: Option<&Sigmoids>) -> Fitted {
        Fitted {
            sigmoid_slopes: sigmoids.map(|sigmoids| FloatArray(sigmoids.slopes())),
            sigmoid_offsets: sigmoids.map(|sigmoids| FloatArray(sigmoids.offsets())),
            ..self
        }
    }
}

impl Numbers {
    pub fn new(linear: ModelParameters, standardizer: Option<Standardizer>, fill: Option<Vec<f32>>) -> Numbers {
        let (mean, scale) = standardizer.map(|s| (FloatArray(s.mean), FloatArray(s.scale))).unzip();
        Numbers {
            weights: FloatArray(linear.weights),
            intercepts: FloatArray(linear.intercepts),
            feature_mean: mean,
            feature_scale: scale,
            feature_fill: fill.map(FloatArray),
        }
    }

    pub fn read(values: &impl KeyedValues) -> Result<Numbers, Fault> {
        Ok(Numbers {
            weights: required("weights", values.floats("weights")?)?,
            intercepts: required("intercepts", values.floats("intercepts")?)?,
            feature_mean: values.floats("feature_mean")?,
            feature_scale: values.floats("feature_scale")?,
            feature_fill: values.floats("feature_fill")?,
        })
    }

    #[inline]
    pub fn arrays(&self) -> Arrays<'_> {
        fn slice<T>(array: &Option<FloatArray<T>>) -> &[T] {
            array.as_ref().map_or(&[], |FloatArray(numbers)| numbers)
        }
        Arrays {
            weights: &self.weights.0,
            intercepts: &self.intercepts.0,
            mean: slice(&self.feature_mean),
            scale: slice(&self.feature_scale),
            fill: slice(&self.feature_fill),
        }
    }
}

impl Kept {
    pub fn read(values: &impl KeyedValues) -> Result<Kept, Fault> {
        Ok(Kept {
            source: values.get("source")?.unwrap_or_default(),
            skipped: values.get("skipped")?.unwrap_or_default(),
            imputed: values.get("imputed")?,
            preparation_seconds: values.get("preparation_seconds")?.unwrap_or_default(),
            shuffle_bytes: values.get("shuffle_bytes")?,
            profile: values.json("profile")?,
        })
    }
}

/// A type that was dropped is one of texts.
fn type_name<S: Serializer>(oid: &pg_sys::Oid, serializer: S) -> Result<S::Ok, S::Error> {
    let name = existing_base_type(*oid).map(|_| qualified_type_name(*oid));
    serializer.serialize_str(name.as_deref().unwrap_or("pg_catalog.text"))
}
