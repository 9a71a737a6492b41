//! Limits of models and of what they are trained on, which messages name, too.

/// Weights of a model, of all outputs or layers: as many elements as an array of PostgreSQL's may have.
pub const MAX_WEIGHTS: usize = 134_217_727;

/// Models that one call trains side by side.
pub const MAX_MODELS: usize = 10_000;

/// Classes of a label column.
pub const MAX_CLASSES: usize = 10_000;

/// Bytes of a label, and of a category.
pub const MAX_TEXT_BYTES: usize = 8191;

/// Categories of a column.
pub const MAX_CATEGORIES: usize = 1_000_000;

/// Bytes of all categories of a column.
pub const MAX_CATEGORIES_BYTES: usize = 100_000_000;

/// Groups of a call.
pub const MAX_GROUPS: usize = 10_000;

/// Bytes of a group: it becomes part of a model's name.
pub const MAX_GROUP_BYTES: usize = 512;

/// Bytes of the elements of a jsonb array or object, as PostgreSQL stores them.
pub const MAX_JSONB_BYTES: usize = 0x0FFF_FFFF;

/// So many classes are taken for what they are said to be.
pub const FEW_CLASSES: usize = 20;
