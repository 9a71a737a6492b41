//! Models written into the table as a superuser can, so that their weights are known exactly.

use crate::Session;

/// A model to be stored: SQL expressions for the columns of corgipile.models.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// Its kind.
    pub model: &'a str,
    /// Name of the type of column `label`.
    pub label_type: &'a str,
    /// A text[].
    pub classes: &'a str,
    /// A text[].
    pub features: &'a str,
    /// Its kind of features: array, columns or sparse.
    pub kind: &'a str,
    /// A jsonb.
    pub categories: &'a str,
    /// An integer.
    pub index_base: &'a str,
    /// A JSON object.
    pub options: &'a str,
    /// A real[].
    pub weights: &'a str,
    /// A real[].
    pub intercepts: &'a str,
    /// A float8[].
    pub mean: &'a str,
    /// A float8[].
    pub scale: &'a str,
}

impl Stored<'_> {
    /// Stores it under a name and gives its id.
    pub fn store(self, db: &mut Session, name: &str) -> i64 {
        let Stored { model, label_type, classes, features, kind, categories, index_base, options, .. } = self;
        let Stored { weights, intercepts, mean, scale, .. } = self;
        db.value(&format!(
            "INSERT INTO corgipile.stored_models (name, owner, model, source, label, label_type, classes, features, feature_kind,
                 categories, index_base, hyperparameters, weights, intercepts, feature_mean, feature_scale, skipped,
                 preparation_seconds, history)
             VALUES ('{name}', current_user::regrole::oid::text::corgipile.stored_role, '{model}', 't', 'label', '{label_type}', {classes}, {features},
                 '{kind}', {categories}, {index_base}, '{options}', {weights}, {intercepts}, {mean}, {scale}, 0, 0, '[]')
             RETURNING model_id"
        ))
    }
}

/// Three weights for the elements of the array column x.
pub const DENSE: Stored = Stored {
    model: "logistic",
    label_type: "int",
    classes: "'{-1,1}'",
    features: "'{x}'",
    kind: "array",
    categories: "NULL",
    index_base: "NULL",
    options: "{}",
    weights: "'{0.5,-1.25,2}'",
    intercepts: "'{0.125}'",
    mean: "NULL",
    scale: "NULL",
};

/// The same for sparse columns.
pub const SPARSE: Stored = Stored { features: "'{k,v}'", kind: "sparse", index_base: "1", ..DENSE };

/// Two numbers, and between them a column of the categories low, high and mid, in this order.
pub const MIXED: Stored = Stored {
    features: "'{a,level,b}'",
    kind: "columns",
    categories: "'{\"level\": [\"low\", \"high\", \"mid\"]}'",
    weights: "'{0.5,10,20,40,-3}'",
    intercepts: "'{0.25}'",
    model: "linear",
    classes: "NULL",
    label_type: "float8",
    ..DENSE
};

/// Three classes for the elements of the array column x.
pub const SOFTMAX: Stored = Stored {
    model: "softmax",
    label_type: "text",
    classes: "'{ant,bee,cat}'",
    weights: "'{1,2,3,-1,0.5,2,0,-2,1.5}'",
    intercepts: "'{0.1,0.2,-0.3}'",
    ..DENSE
};
