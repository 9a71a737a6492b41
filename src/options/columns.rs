//! What the columns that a call names are: each is one thing, the label, a feature, the weight and so on.

use super::call::invalid;
use super::chosen::Options;
use super::folds::{FoldSpec, FoldsBy};
use crate::errors::{ArgumentError, Error, Result};

/// A column is the label, a feature, the weight, the flag of what is held out, or the group, and nothing else beside.
pub fn check_columns(
    label: &str,
    features: Option<&[String]>,
    options: &Options,
    group_by: Option<&str>,
) -> Result<()> {
    let used = |name: &str| used_as(name, label, features);
    let weight = options.weight.as_deref();
    let flag = options.validation_column.as_deref();
    if let Some((name, role)) = weight.and_then(|name| Some((name, used(name)?))) {
        return Err(invalid_option("weight", name, role));
    }
    let is_weight = |name: &str| (weight == Some(name)).then_some("the weight");
    if let Some((name, role)) = flag.and_then(|name| Some((name, used(name).or_else(|| is_weight(name))?))) {
        return Err(invalid_option("validation_column", name, role));
    }
    let is_flag = |name: &str| (flag == Some(name)).then_some("the validation column");
    let role = |name: &str| used(name).or_else(|| is_weight(name)).or_else(|| is_flag(name));
    match group_by.and_then(|name| Some((name, role(name)?))) {
        Some((name, role)) => Err(invalid("group_by", format!("column \"{name}\" is {role}"))),
        None => Ok(()),
    }
}

/// The column that decides about folds is neither label nor feature.
pub fn check_fold_column(folds: Option<&FoldSpec>, label: &str, features: Option<&[String]>) -> Result<()> {
    let Some((folds, name)) = folds.and_then(|folds| Some((folds, folds.column()?))) else { return Ok(()) };
    match used_as(name, label, features) {
        Some(role) => Err(ArgumentError::InvalidArgument {
            argument: if matches!(folds.by, FoldsBy::Time(_)) { "folds_by_time" } else { "folds_by" },
            reason: format!("column \"{name}\" is {role}"),
            hint: Some("Say by features which columns the model learns from, without this one.".into()),
        }
        .into()),
        None => Ok(()),
    }
}

/// Names of features, each given, none twice, none the label.
///
/// # Errors
/// [`ArgumentError::InvalidArgument`]
pub fn check_features(features: Vec<Option<String>>, label: &str) -> Result<Vec<String>> {
    if features.is_empty() {
        return Err(ArgumentError::InvalidArgument {
            argument: "features",
            reason: "it is an empty array".into(),
            hint: Some("Name the feature columns, or leave features out to use all that can be.".into()),
        }
        .into());
    }
    let mut names: Vec<String> = Vec::with_capacity(features.len());
    for name in features {
        let name = name.ok_or_else(|| invalid("features", "it contains a NULL".into()))?;
        let refuse = |reason: &str, hint: &str| ArgumentError::InvalidArgument {
            argument: "features",
            reason: format!("column \"{name}\" is {reason}"),
            hint: Some(hint.to_owned()),
        };
        if name == label {
            return Err(refuse(
                "the label",
                "A model that knows the answer learns nothing: leave it out, or say another label.",
            )
            .into());
        }
        if names.contains(&name) {
            return Err(refuse("there twice", "Name each column once.").into());
        }
        names.push(name);
    }
    Ok(names)
}

/// What a column is, if it is the label or a feature.
fn used_as(name: &str, label: &str, features: Option<&[String]>) -> Option<&'static str> {
    if name == label {
        return Some("the label");
    }
    features.is_some_and(|features| features.iter().any(|feature| feature == name)).then_some("a feature")
}

fn invalid_option(key: &str, column: &str, role: &str) -> Error {
    ArgumentError::InvalidOption { key: key.into(), reason: format!("names column \"{column}\", which is {role}") }
        .into()
}
