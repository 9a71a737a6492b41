//! What the features of a model were like, kept beside it: table and documents. No prediction reads it.

use super::features::{ColumnKind, FeatureKind};
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

/// What is wrong with a profile of features of these shapes.
pub(super) fn check_profile(profile: &Profile, shapes: Option<&[FeatureShape]>) -> std::result::Result<(), String> {
    match profile.check(shapes.ok_or("is there, and of such features none is kept")?) {
        Ok(()) if i64::try_from(profile.rows).is_err() => Err("has more rows than there can be".to_owned()),
        Ok(()) => Ok(()),
        Err((Some(feature), what)) => Err(format!("says of feature {} what {what}", feature + 1)),
        Err((None, what)) => Err(what.to_owned()),
    }
}
