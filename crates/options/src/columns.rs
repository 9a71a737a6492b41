//! What the columns that a call names are: each is one thing, the label, a feature, the weight and so on.

use super::call::{invalid, refused};
use super::chosen::Options;
use super::entry;
use super::folds::{FoldSpec, FoldsBy};
use errors::{Error, Result};

/// A column is the label, a feature, the weight, the flag of what is held out, or the group, and nothing else.
pub fn check_columns(
    label: &str,
    features: Option<&[String]>,
    options: &Options,
    group_by: Option<&str>,
) -> Result<()> {
    let (weight, flag) = (options.weight.as_deref(), options.validation_column.as_deref());
    let is = |column: Option<&str>, name: &str, role| (column == Some(name)).then_some(role);
    let used = |name: &str| used_as(name, label, features);
    let used_or_weight = |name: &str| used(name).or_else(|| is(weight, name, "the weight"));
    let role = |name: &str| used_or_weight(name).or_else(|| is(flag, name, "the validation column"));
    if let Some((name, role)) = weight.and_then(|name| Some((name, used(name)?))) {
        return Err(invalid_option("weight", name, role));
    }
    if let Some((name, role)) = flag.and_then(|name| Some((name, used_or_weight(name)?))) {
        return Err(invalid_option("validation_column", name, role));
    }
    match group_by.and_then(|name| Some((name, role(name)?))) {
        Some((name, role)) => Err(invalid("group_by", format!("column \"{name}\" is {role}"))),
        None => Ok(()),
    }
}

/// The columns that a call uses otherwise than as label and features.
#[derive(Default)]
pub struct OtherColumns<'a> {
    pub names: Vec<&'a str>,
    /// the time among them that folds go by: parts of it may be features, though not the time itself
    pub time: Option<&'a str>,
}

/// The column that decides about folds is neither label nor feature.
pub fn check_fold_column(folds: Option<&FoldSpec>, label: &str, features: Option<&[String]>) -> Result<()> {
    let Some((folds, name)) = folds.and_then(|folds| Some((folds, folds.column()?))) else { return Ok(()) };
    match used_as(name, label, features) {
        Some(role) => {
            let argument = if matches!(folds.by, FoldsBy::Time(_)) { "folds_by_time" } else { "folds_by" };
            let hint = "Name the feature columns in features, without this one.";
            Err(refused(argument, format!("column \"{name}\" is {role}"), hint))
        }
        None => Ok(()),
    }
}

/// Names of features, each given, none twice, none the label.
pub fn check_features(features: Vec<Option<String>>, label: &str) -> Result<Vec<String>> {
    if features.is_empty() {
        let hint = "Name the feature columns, or leave features out to use all possible columns.";
        return Err(refused("features", "it is an empty array", hint));
    }
    let mut names: Vec<String> = Vec::with_capacity(features.len());
    for name in features {
        let name = name.ok_or_else(|| invalid("features", "it contains a NULL"))?;
        let refuse = |what: &str, hint: &str| Err(refused("features", format!("column \"{name}\" is {what}"), hint));
        if name == label {
            let hint = "A model that sees the label learns nothing: leave the column out, or use another label.";
            return refuse("the label", hint);
        }
        if names.contains(&name) {
            return refuse("named twice", "Name each column once.");
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
    entry::invalid(key, &format!("names column \"{column}\", which is {role}"))
}
