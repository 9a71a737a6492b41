//! What the features of a model were like, kept beside it: table and documents. No prediction reads it.

use super::features::{ColumnKind, FeatureKind};
use super::table::{Field, Key, ModelTable};
use crate::errors::{ModelError, Result};
use pgrx::JsonB;
use serde_json::Value;
use sgd::profile::{FeatureShape, Profile};

/// What the features of such a model are, so many; None if no profile is kept of them.
pub fn feature_shapes(kind: &FeatureKind, dim: usize) -> Option<Vec<FeatureShape>> {
    let shape = |column: &ColumnKind| match column {
        ColumnKind::Number => FeatureShape::Number,
        ColumnKind::Categories(categories) => {
            FeatureShape::Categories(categories.values().len() + usize::from(categories.null().is_some()))
        }
        ColumnKind::Hashed(_) => FeatureShape::Hashed,
    };
    let features = match kind {
        FeatureKind::Columns(columns) => columns.len(),
        FeatureKind::Array => dim,
        FeatureKind::Sparse { .. } => return None,
    };
    (features <= Profile::MAX_FEATURES).then(|| match kind {
        FeatureKind::Columns(columns) => columns.iter().map(shape).collect(),
        _ => vec![FeatureShape::Number; features],
    })
}

/// The profile in a JSON value, of features of these shapes; or what is wrong with it.
pub(super) fn read_profile(value: Value, shapes: Option<&[FeatureShape]>) -> std::result::Result<Profile, String> {
    let profile: Profile = serde_json::from_value(value).map_err(|_| "is no profile of features".to_owned())?;
    match profile.check(shapes.ok_or("is there, and of such features none is kept")?) {
        Ok(()) if i64::try_from(profile.rows).is_err() => Err("has more rows than there can be".to_owned()),
        Ok(()) => Ok(profile),
        Err((Some(feature), what)) => Err(format!("says of feature {} what {what}", feature + 1)),
        Err((None, what)) => Err(what.to_owned()),
    }
}

/// The profile of a model that the user may use, if one is kept.
///
/// # Errors
/// [`ModelError::CorruptModel`]
pub fn profile(id: i64, kind: &FeatureKind, dim: usize) -> Result<Option<Profile>> {
    let table = ModelTable::open();
    let found = table.find(&Key::Id(id), |row| row.json(c"profile")).unwrap_or(Ok(None));
    table.close();
    let corrupt = |what: String| ModelError::CorruptModel(id, format!("profile {what}"));
    match found {
        Ok(None) => Ok(None),
        Ok(Some(value)) => {
            let shapes = feature_shapes(kind, dim);
            Ok(Some(read_profile(value, shapes.as_deref()).map_err(corrupt)?))
        }
        Err(fault) => Err(corrupt(fault.reason().to_owned()).into()),
    }
}

/// Rows that the training of a model, which is there, has left out because of NULLs.
pub fn rows_left_out(id: i64) -> u64 {
    let table = ModelTable::open();
    let found = table.find(&Key::Id(id), |row| row.get::<i64>(c"skipped")).flatten();
    table.close();
    found.and_then(|rows| u64::try_from(rows).ok()).unwrap_or_default()
}

/// The column of a profile.
pub(super) fn profile_field(profile: &Profile) -> Field {
    Field::new("profile", Some(JsonB(serde_json::to_value(profile).expect("plain values are always JSON"))))
}
