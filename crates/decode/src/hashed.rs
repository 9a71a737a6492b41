//! Columns of text whose values become buckets: which ones, and how many buckets there are.

use errors::limits::{
    BUCKET_WEIGHTS, BUCKETS, BUCKETS_OF_NETWORKS, MIN_BUCKETS, ONE_HOT_CATEGORIES, ONE_HOT_CATEGORIES_OF_NETWORKS,
};
use loss::ModelKind;
use options::rows::{Hashing, ToHash};
use pg::executor::query::Column;
use pg::values::record::CategoryType;
use pg::values::typed::TypedDatum;
use tuples::HashedColumn;

#[derive(Clone, Copy)]
pub struct HashedText {
    category: CategoryType,
    column: HashedColumn,
}

impl HashedText {
    /// The column, which is one of categories.
    pub fn new(column: &Column) -> HashedText {
        let category = CategoryType::new(column.type_oid, column.collation);
        let category = category.unwrap_or_else(|| panic!("column {} has no categories", column.name));
        HashedText { category, column: HashedColumn::new(&column.name) }
    }

    /// The bucket of a value, or of NULL.
    #[inline]
    pub fn bucket(self, value: Option<TypedDatum<'_>>, buckets: u32) -> u32 {
        match value {
            Some(value) => self.category.with_text(value, |text| self.column.bucket(Some(text), buckets)),
            None => self.column.bucket(None, buckets),
        }
    }
}

/// Which columns a model of some kind hashes.
#[derive(Clone, Copy)]
pub struct HashRule<'a> {
    pub kind: ModelKind,
    pub hashing: &'a Hashing,
}

impl HashRule<'_> {
    /// Is this column hashed, however many categories it has?
    pub fn names(&self, column: &str) -> bool {
        matches!(&self.hashing.columns, ToHash::These(columns) if columns.iter().any(|name| name == column))
    }

    /// How many categories other columns may have before they are hashed; None if they never are.
    pub fn limit(&self) -> Option<usize> {
        match self.hashing.columns {
            ToHash::Large => Some(one_hot_categories(self.kind)),
            ToHash::Nothing | ToHash::These(_) => None,
        }
    }
}

/// How many categories a column of a model of this kind may have before it is hashed.
pub fn one_hot_categories(kind: ModelKind) -> usize {
    if kind.is_linear() { ONE_HOT_CATEGORIES } else { ONE_HOT_CATEGORIES_OF_NETWORKS }
}

/// How many buckets suit a model of this kind with this many outputs.
pub fn suitable_buckets(kind: ModelKind, outputs: usize) -> u32 {
    let buckets = match kind.is_linear() {
        true => (BUCKET_WEIGHTS / outputs.next_power_of_two()).clamp(MIN_BUCKETS, BUCKETS),
        false => BUCKETS_OF_NETWORKS,
    };
    buckets as u32
}
