//! What is trained on: a table, or a query, and the columns of it that matter.

use super::block_shuffle::BlockShuffle;
use super::decoder::Features;
use super::tuple_shuffle::TupleShuffle;
use super::{Decoder, Labels, Nulls, Shuffling};
use crate::error::{Error, Result};
use crate::pg::array::ArrayReader;
use crate::pg::number::NumberType;
use crate::pg::query::{Column, Planned, Query, only_select};
use crate::pg::relation::{Relation, base_type, is_enum, quote_identifier, type_name};
use pgrx::pg_sys;

/// A source of rows, with its columns.
pub struct Source {
    /// what stands behind FROM
    from: String,
    columns: Vec<Column>,
}

const LABEL_TYPES: &str = "A label is an integer, a number, a boolean, text or an enum.";
const FEATURE_TYPES: &str = "Features are one array of numbers, or any number of numeric or boolean columns.";

/// Names of the papers' schema: id, features_k, features_v, label.
const PAPERS_VALUES: &str = "features_v";
const PAPERS_INDICES: &str = "features_k";

impl Source {
    /// Finds out what `source` is: a query if it begins like one, else the name of a relation, as regclass reads it.
    ///
    /// # Errors
    /// [`Error::NotOneSelect`], [`Error::NotReadOnly`]; PostgreSQL's own.
    pub fn resolve(source: &str) -> Result<Source> {
        let (from, relation) = if looks_like_query(source) {
            // The line ends because the query may end in a comment.
            (format!("({}\n) AS source", only_select(source)?), None)
        } else {
            let relation = Relation::lookup(source)?;
            (relation.name().to_owned(), Some(relation))
        };
        let query = Query::analyze(&format!("SELECT * FROM {from}"))?;
        if relation.as_ref().is_some_and(|relation| !query.reads(relation.oid())) {
            return Err(Error::SourceChanged);
        }
        Ok(Source { from, columns: query.columns() })
    }

    /// A plan for all rows and columns of a relation, shuffled.
    ///
    /// # Errors
    /// As [`Source::resolve`].
    pub fn plan_relation(relation: &Relation, shuffling: &Shuffling) -> Result<Planned> {
        let query = Query::analyze(&format!("SELECT * FROM {}", relation.name()))?;
        if !query.reads(relation.oid()) {
            return Err(Error::SourceChanged);
        }
        Ok(query.plan::<TupleShuffle, BlockShuffle>(&shuffling.to_json()))
    }

    /// The features if the user has named none: column features_v; else all numbers but the label and the primary key;
    /// else the one array of numbers.
    ///
    /// # Errors
    /// [`Error::NoFeatures`], [`Error::SparseFeatures`]
    pub fn default_features(&self, label: &str) -> Result<Vec<String>> {
        let has = |name: &str| self.columns.iter().any(|c| c.name == name);
        if has(PAPERS_VALUES) && label != PAPERS_VALUES {
            return if has(PAPERS_INDICES) { Err(Error::SparseFeatures) } else { Ok(vec![PAPERS_VALUES.into()]) };
        }
        let others = || self.columns.iter().filter(|c| c.name != label);
        let numbers: Vec<String> = others()
            .filter(|c| !c.is_key && NumberType::of(base_type(c.type_oid)).is_some())
            .map(|c| c.name.clone())
            .collect();
        if !numbers.is_empty() {
            return Ok(numbers);
        }
        let arrays: Vec<String> =
            others().filter(|c| ArrayReader::of(base_type(c.type_oid)).is_some()).map(|c| c.name.clone()).collect();
        match arrays.len() {
            1 => Ok(arrays),
            0 => Err(Error::NoFeatures { hint: FEATURE_TYPES.into() }),
            _ => {
                let arrays = arrays.join(", ");
                Err(Error::NoFeatures { hint: format!("Name one of the array columns {arrays} in features.") })
            }
        }
    }

    /// Plans the read of label and features, shuffled.
    ///
    /// # Errors
    /// [`Error::UndefinedColumn`], [`Error::AmbiguousColumn`]; PostgreSQL's own.
    pub fn plan(&self, label: &str, features: &[String], shuffling: &Shuffling) -> Result<Planned> {
        let columns: Vec<String> =
            std::iter::once(label).chain(features.iter().map(String::as_str)).map(quote_identifier).collect();
        let query = Query::analyze(&format!("SELECT {} FROM {}", columns.join(", "), self.from))?;
        Ok(query.plan::<TupleShuffle, BlockShuffle>(&shuffling.to_json()))
    }

    /// The label's type.
    ///
    /// # Errors
    /// As [`Source::labels`].
    pub fn label_type(&self, label: &str) -> Result<pg_sys::Oid> {
        self.label_column(label).map(|column| column.type_oid)
    }

    /// Labels to be found in column `label`, or, if they are given, to be recognised.
    ///
    /// # Errors
    /// [`Error::UndefinedColumn`], [`Error::AmbiguousColumn`], [`Error::ColumnType`]
    pub fn labels(&self, label: &str, classes: Option<&[String; 2]>) -> Result<Labels> {
        let column = self.label_column(label)?;
        Ok(match classes {
            Some(classes) => Labels::known(label, column.type_oid, column.collation, classes),
            None => Labels::discover(label, column.type_oid, column.collation),
        })
    }

    /// A decoder of the rows of [`Source::plan`].
    ///
    /// # Errors
    /// As [`Source::labels`], for the features.
    pub fn decoder(&self, labels: Labels, features: &[String], nulls: Nulls, dim: Option<usize>) -> Result<Decoder> {
        let columns = features.iter().map(|name| self.column(name)).collect::<Result<Vec<_>>>()?;
        let kind = match columns.as_slice() {
            [only] if ArrayReader::of(base_type(only.type_oid)).is_some() => {
                ArrayReader::of(base_type(only.type_oid)).map(Features::Array)
            }
            columns => columns
                .iter()
                .map(|c| NumberType::of(base_type(c.type_oid)))
                .collect::<Option<_>>()
                .map(Features::Columns),
        };
        match kind {
            Some(kind) => Ok(Decoder::new(labels, kind, features.to_vec(), nulls, dim)),
            None => Err(columns
                .iter()
                .find(|c| NumberType::of(base_type(c.type_oid)).is_none())
                .map(|c| column_type("feature", c, FEATURE_TYPES))
                .unwrap_or(Error::NoFeatures { hint: FEATURE_TYPES.into() })),
        }
    }

    fn label_column(&self, label: &str) -> Result<&Column> {
        let column = self.column(label)?;
        let base = base_type(column.type_oid);
        let text = [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID];
        if NumberType::of(base).is_some() || text.contains(&base) || is_enum(base) {
            Ok(column)
        } else {
            Err(column_type("label", column, LABEL_TYPES))
        }
    }

    fn column(&self, name: &str) -> Result<&Column> {
        let mut found = self.columns.iter().filter(|c| c.name == name);
        match (found.next(), found.next()) {
            (Some(column), None) => Ok(column),
            (Some(_), Some(_)) => Err(Error::AmbiguousColumn(name.to_owned())),
            (None, _) => Err(Error::UndefinedColumn {
                column: name.to_owned(),
                columns: self.columns.iter().map(|c| c.name.clone()).collect(),
            }),
        }
    }
}

fn column_type(role: &'static str, column: &Column, hint: &'static str) -> Error {
    Error::ColumnType { role, column: column.name.clone(), type_name: type_name(column.type_oid), hint }
}

/// Does the text begin as a query does, and go on? A table may be called "values", but then nothing follows.
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
