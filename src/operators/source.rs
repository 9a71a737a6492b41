//! The source of a training, a table or a query, and its columns.

use super::decoder::{Decoder, DecoderSpec, FEATURE_TYPES, column, is_category, is_vector};
use super::plan::shuffled;
use crate::errors::{Result, SourceError};
use crate::options::shuffling::Shuffling;
use crate::pg::catalog::names::quote_identifier;
use crate::pg::catalog::relation::{Relation, bytes, estimated_rows};
use crate::pg::catalog::types::{base_type, is_compressed};
use crate::pg::executor::query::{Column, Planned, Query, only_select};
use crate::pg::values::number::NumberType;
use pgrx::pg_sys;

/// A source of rows, with its columns.
pub struct Source {
    /// the text behind FROM
    from: String,
    columns: Vec<Column>,
    /// None of a query
    relation: Option<pg_sys::Oid>,
}

/// Names of the papers' schema: id, features_k, features_v, label.
const PAPERS_VALUES: &str = "features_v";
const PAPERS_INDICES: &str = "features_k";

impl Source {
    /// Reads `source`: a query if it begins like one, else the name of a relation, as regclass reads it.
    ///
    /// # Errors
    /// [`SourceError::NotOneSelect`], [`SourceError::NotReadOnly`]; PostgreSQL's own.
    pub fn resolve(source: &str) -> Result<Source> {
        let (from, relation) = if looks_like_query(source) {
            // The line ends because the query may end in a comment.
            (format!("({}\n) AS source", only_select(source)?), None)
        } else {
            let relation = Relation::lookup(source)?;
            (relation.name().to_owned(), Some(relation))
        };
        let relation = relation.map(|relation| relation.oid());
        let source = Source { from, columns: Vec::new(), relation };
        Ok(Source { columns: source.read("*")?.columns(), ..source })
    }

    /// A plan for all rows and columns of a relation, shuffled.
    ///
    /// # Errors
    /// As [`Source::resolve`].
    pub fn plan_relation(relation: &Relation, shuffling: &Shuffling) -> Result<Planned> {
        let query = Query::analyze(&format!("SELECT * FROM {}", relation.name()))?;
        if !query.reads(relation.oid()) {
            return Err(SourceError::SourceChanged.into());
        }
        Ok(shuffled(query, shuffling))
    }

    /// The features if the user has named none. These are columns features_k and features_v, or the latter alone; else
    /// all numbers but the label, the columns that are used otherwise, and the primary key;
    /// else the only column of arrays or vectors, or, if there is none, of bytes.
    ///
    /// # Errors
    /// [`SourceError::NoFeatures`]
    pub fn default_features(&self, label: &str, others: &[&str]) -> Result<Vec<String>> {
        let is_free = |name: &str| name != label && !others.contains(&name);
        let has = |name: &str| is_free(name) && self.columns.iter().any(|c| c.name == name);
        if has(PAPERS_VALUES) {
            let names = if has(PAPERS_INDICES) { &[PAPERS_INDICES, PAPERS_VALUES][..] } else { &[PAPERS_VALUES] };
            return Ok(names.iter().map(|name| (*name).to_owned()).collect());
        }
        let free = || self.columns.iter().filter(|c| is_free(&c.name));
        let compressed = |c: &&Column| is_compressed(base_type(c.type_oid));
        let compressed: Vec<String> = free().filter(compressed).map(|c| c.name.clone()).collect();
        if compressed.len() == 1 {
            return Ok(compressed);
        }
        let numbers: Vec<String> = free()
            .filter(|c| !c.is_key && NumberType::from_oid(base_type(c.type_oid)).is_some())
            .map(|c| c.name.clone())
            .collect();
        if !numbers.is_empty() {
            return Ok(numbers);
        }
        let vectors: Vec<&Column> = free().filter(|column| is_vector(column)).collect();
        let is_bytes = |column: &Column| base_type(column.type_oid) == pg_sys::BYTEAOID;
        let only_bytes = vectors.iter().all(|column| is_bytes(column));
        let arrays = vectors.into_iter().filter(|column| only_bytes || !is_bytes(column));
        let arrays: Vec<String> = arrays.map(|column| column.name.clone()).collect();
        match arrays.len() {
            1 => Ok(arrays),
            0 if free().any(|c| is_category(base_type(c.type_oid))) => Err(SourceError::NoFeatures {
                hint: "Columns of text and enums are features if they are named.".into(),
            }
            .into()),
            0 => Err(SourceError::NoFeatures { hint: FEATURE_TYPES.into() }.into()),
            _ => {
                let arrays = arrays.join(", ");
                Err(SourceError::NoFeatures { hint: format!("Name one of the array columns {arrays} in features.") }
                    .into())
            }
        }
    }

    /// Plans the read of the columns that `spec` wants, shuffled.
    ///
    /// # Errors
    /// PostgreSQL's own.
    pub fn plan(&self, spec: &DecoderSpec, shuffling: &Shuffling) -> Result<Planned> {
        let columns: Vec<String> = spec.columns().map(quote_identifier).collect();
        Ok(shuffled(self.read(&columns.join(", "))?, shuffling))
    }

    /// The query that reads these columns, as SQL writes them.
    ///
    /// # Errors
    /// PostgreSQL's own; [`SourceError::SourceChanged`] if the relation's name means another one by now:
    /// its schema is not locked.
    pub fn read(&self, columns: &str) -> Result<Query> {
        let query = Query::analyze(&format!("SELECT {columns} FROM {}", self.from))?;
        match self.relation {
            Some(relation) if !query.reads(relation) => Err(SourceError::SourceChanged.into()),
            _ => Ok(query),
        }
    }

    /// A decoder of the rows of [`Source::plan`].
    ///
    /// # Errors
    /// As [`DecoderSpec::decoder`].
    pub fn decoder(&self, spec: &DecoderSpec) -> Result<Decoder> {
        spec.decoder(&self.columns)
    }

    /// The table, view or the like that was named, and not a query.
    pub fn relation(&self) -> Option<pg_sys::Oid> {
        self.relation
    }

    /// Size of a table without what is stored out of line; None of a query or a partitioned table.
    pub fn bytes(&self) -> Option<u64> {
        self.relation.and_then(bytes)
    }

    /// Rows of a table, as far as PostgreSQL has counted them; None of a query, or if it has not.
    pub fn estimated_rows(&self) -> Option<f64> {
        self.relation.and_then(estimated_rows)
    }

    /// All columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The text behind FROM in a query that reads the source.
    pub fn from(&self) -> &str {
        &self.from
    }

    /// The column with this name.
    ///
    /// # Errors
    /// [`SourceError::UndefinedColumn`], [`SourceError::AmbiguousColumn`]
    pub fn column(&self, name: &str) -> Result<&Column> {
        column(&self.columns, name)
    }

    /// The type of a column, as it was declared.
    ///
    /// # Errors
    /// [`SourceError::UndefinedColumn`], [`SourceError::AmbiguousColumn`]
    pub fn type_of(&self, name: &str) -> Result<pg_sys::Oid> {
        column(&self.columns, name).map(|column| column.type_oid)
    }
}

/// Is the text a query? A table may be called "values", but then nothing follows.
fn looks_like_query(source: &str) -> bool {
    let start = skip_blanks(source);
    let word: &str = &start[..start.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(start.len())];
    let rest = &start[word.len()..];
    let keyword = ["select", "with", "values", "table"].iter().any(|k| word.eq_ignore_ascii_case(k));
    let separated = rest.starts_with(|c: char| c.is_ascii_whitespace() || "(*-/'\"+".contains(c));
    start.starts_with('(') || (keyword && separated && !skip_blanks(rest).is_empty())
}

/// The text without the white space and the comments that it begins with.
fn skip_blanks(text: &str) -> &str {
    let text = text.trim_start();
    let rest = if text.starts_with("--") {
        text.find('\n').map_or("", |end| &text[end..])
    } else if text.starts_with("/*") {
        after_comment(text)
    } else {
        return text;
    };
    skip_blanks(rest)
}

/// What follows the comment that the text begins with; comments nest.
fn after_comment(text: &str) -> &str {
    let mut depth = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['/', '*']) {
        rest = &rest[at..];
        depth += i32::from(rest.starts_with("/*")) - i32::from(rest.starts_with("*/"));
        let delimiter = rest.starts_with("/*") || rest.starts_with("*/");
        rest = &rest[if delimiter { 2 } else { 1 }..];
        if depth == 0 {
            return rest;
        }
    }
    ""
}
