//! What a training checks of its features, and what a model keeps of them.

use decode::FeatureColumns;
use errors::{Result, TrainingError};
use model::{Categories, Coding, ColumnKind, Elements, FeatureKind};
use options::chosen::Options;
use options::entry::invalid;
use options::rows::{Clip, Hashing, Standardize, ToHash};

/// Checks the options that apply to some kinds of features only.
pub fn check_options(options: &Options, features: &FeatureColumns) -> Result<()> {
    let pair = features.is_pair();
    let only_sparse = "applies only to sparse features: an array of indices and an array of values";
    if options.index_base.is_some() && !pair {
        return Err(invalid("index_base", only_sparse));
    }
    if options.dimensions.is_some() && !pair {
        return Err(invalid("dimensions", only_sparse));
    }
    if matches!(features, FeatureColumns::Compressed(_)) {
        if options.standardize == Standardize::All {
            return Err(TrainingError::NotOnCompressed("the option standardize").into());
        }
        if options.batch_size.is_some() {
            return Err(TrainingError::NotOnCompressed("the option batch_size").into());
        }
        if options.bounded_steps == Some(true) {
            return Err(TrainingError::NotOnCompressed("the option bounded_steps").into());
        }
    }
    if matches!(options.winsorize, Clip::At(_)) {
        check_clip(options.standardize, features)?;
    }
    if options.handle_unknown.is_some() && !matches!(features, FeatureColumns::Mixed(_) | FeatureColumns::Sparse(_)) {
        return Err(invalid("handle_unknown", "applies only to categories and to sparse features"));
    }
    match &options.hash {
        None => Ok(()),
        Some(hashing) => check_hash(hashing, features),
    }
}

/// Checks option `winsorize`: what is not standardized has no deviations to be counted.
fn check_clip(standardize: Standardize, features: &FeatureColumns) -> Result<()> {
    match (features, standardize) {
        (FeatureColumns::Compressed(_), _) => Err(TrainingError::NotOnCompressed("the option winsorize").into()),
        (_, Standardize::None) | (FeatureColumns::Sparse(_), Standardize::Automatic) => {
            Err(invalid("winsorize", "applies only to features that are standardized"))
        }
        _ => Ok(()),
    }
}

/// Checks option `hash`: without columns of text it says nothing, and the columns that it names are such.
fn check_hash(hashing: &Hashing, features: &FeatureColumns) -> Result<()> {
    let FeatureColumns::Mixed(columns) = features else {
        return Err(invalid("hash", "applies only to features of text, enums and words"));
    };
    if let (ToHash::Nothing, Some(column)) = (&hashing.columns, columns.bags().next()) {
        return Err(invalid("hash", &format!("cannot be off: the words of column \"{column}\" are hashed")));
    }
    let ToHash::These(named) = &hashing.columns else { return Ok(()) };
    let is_category = |name: &String| columns.names().any(|(column, has_categories)| has_categories && column == name);
    match named.iter().find(|name| !is_category(name)) {
        Some(name) => {
            Err(invalid("hash", &format!("names column \"{name}\", which is not a feature of text or an enum")))
        }
        None => Ok(()),
    }
}

/// What the model keeps of its features.
pub fn feature_kind(features: &FeatureColumns, columns: &[String]) -> FeatureKind {
    match (features, features.index_base()) {
        (FeatureColumns::Array { .. } | FeatureColumns::Compressed(_), _) => FeatureKind::Array,
        (FeatureColumns::Sparse(_), Some(index_base)) => FeatureKind::Sparse { index_base },
        _ => {
            let categories = features.categories().unwrap_or_default();
            let of_column = |name: &String| categories.iter().find(|(column, _)| column == name);
            let kind = |name| match of_column(name) {
                Some((_, Coding::Hashed(buckets))) => ColumnKind::Hashed(*buckets),
                Some((_, Coding::Vector(Elements { elements }))) => ColumnKind::Vector(*elements),
                Some((_, Coding::OneHot(names))) => {
                    Categories::new(names.clone()).map_or(ColumnKind::Number, ColumnKind::Categories)
                }
                None => ColumnKind::Number,
            };
            FeatureKind::Columns(columns.iter().map(kind).collect())
        }
    }
}
