//! Limits of models and of what they are trained on, which messages name, too.

/// Weights of a model, of all outputs or layers: as many elements as an array of PostgreSQL's may have.
pub const MAX_WEIGHTS: usize = 134_217_727;

/// Models that one call trains side by side.
pub const MAX_MODELS: usize = 100_000;

/// Classes of a label column.
pub const MAX_CLASSES: usize = 10_000;

/// Bytes of a label, and of a category.
pub const MAX_TEXT_BYTES: usize = 8191;

/// Categories of a column.
pub const MAX_CATEGORIES: usize = 1_000_000;

/// Bytes of all categories of a column.
pub const MAX_CATEGORIES_BYTES: usize = 100_000_000;

/// Categories that a column has one-hot, unless the call says otherwise; one with more is hashed. As many as in 26
/// columns are as many as buckets.
pub const ONE_HOT_CATEGORIES: usize = 10_000;

/// The same with networks, which have a weight for each hidden unit, all of which move at each step of Adam's.
pub const ONE_HOT_CATEGORIES_OF_NETWORKS: usize = 1_000;

/// Bytes of all categories of a column that are one-hot, unless the call says otherwise.
pub const ONE_HOT_BYTES: usize = 10_000_000;

/// Buckets of hashed columns, unless the call says otherwise.
pub const BUCKETS: usize = 1 << 18;

/// The same with networks.
pub const BUCKETS_OF_NETWORKS: usize = 1 << 12;

/// Weights of the buckets of all classes, as far as [`MIN_BUCKETS`] allow it.
pub const BUCKET_WEIGHTS: usize = 1 << 22;

/// The least that many classes leave of [`BUCKETS`].
pub const MIN_BUCKETS: usize = 1 << 10;

/// Groups of a call.
pub const MAX_GROUPS: usize = 100_000;

/// Bytes of a group: it becomes part of a model's name.
pub const MAX_GROUP_BYTES: usize = 512;

/// Bytes of the elements of a jsonb array or object, as PostgreSQL stores them.
pub const MAX_JSONB_BYTES: usize = 0x0FFF_FFFF;

/// This many classes are taken for what they are said to be.
pub const FEW_CLASSES: usize = 20;

/// Bytes of a model that is written as a graph of ONNX, which have twice as many digits where a client wants text.
pub const MAX_ONNX_BYTES: usize = 1 << 28;

/// Numbers and categories of a model that is written as an expression in SQL: every statement with the expression reads
/// them again.
pub const MAX_SQL_NUMBERS: usize = 1_000_000;
