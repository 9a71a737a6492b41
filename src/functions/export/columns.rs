//! The columns that a model's expression in SQL refers to, and what it reads from them.
//!
//! Guarantees: a name is quoted whatever it is, and stands in one place of the expression only, where nothing of the
//! expression's own is in scope that could be meant by it.

use errors::{ArgumentError, ModelError, Result};
use model::{Buckets, ColumnKind, FeatureKind, Model};
use pg::catalog::types::{base_type, base_type_of_extension};
use pg::values::array::element_type;
use pg::values::number::NumberType;
use pg::values::part::{Part, TypedPart};
use pg::values::record::is_citext;
use pgrx::pg_sys;
use scan::Source;

/// The columns, and how their values are read: as numbers, texts or arrays, if a type is known, by it.
pub struct Columns {
    /// each once, as they are called where the expression stands
    names: Vec<String>,
    /// of the model's features, in their order
    features: Vec<Read>,
}

/// How a feature is read.
struct Read {
    column: usize,
    /// the column's type, if it is known
    type_oid: Option<pg_sys::Oid>,
    /// which part of it, if it is one
    part: Option<TypedPart>,
}

impl Columns {
    /// Those of a model, with the types that they have in `source`; without one, they are numbers, arrays of numbers,
    /// and whatever can be cast to a text.
    pub fn new(model: &Model, source: Option<&str>) -> Result<Columns> {
        let source = source.map(Source::resolve).transpose()?;
        let mut columns = Columns { names: Vec::new(), features: Vec::new() };
        let has_parts = matches!(model.feature_kind, FeatureKind::Columns(_));
        for feature in &model.features {
            let part = if has_parts { Part::split(feature) } else { None };
            let read = match (&source, part) {
                (None, None) => columns.read(feature, None, None),
                (None, Some((column, part))) => {
                    let of_type = match &part {
                        Part::Date(_) => return Err(type_needed(feature, column)),
                        Part::Key(_) => pg_sys::JSONBOID,
                        Part::Number(_) | Part::TextDate(..) | Part::IsNull => pg_sys::TEXTOID,
                    };
                    columns.read(column, None, part.of_type(of_type))
                }
                (Some(source), part) => columns.typed(source, feature, part)?,
            };
            columns.features.push(read);
        }
        Ok(columns)
    }

    fn typed(&mut self, source: &Source, feature: &str, part: Option<(&str, Part)>) -> Result<Read> {
        let is_there = source.columns().iter().any(|column| column.name == *feature);
        if let Some((name, part)) = part.filter(|_| !is_there) {
            let type_oid = source.type_of(name)?;
            if let Some(part) = part.of_type(base_type(type_oid)) {
                return Ok(self.read(name, Some(type_oid), Some(part)));
            }
        }
        let type_oid = source.type_of(feature)?;
        Ok(self.read(feature, Some(type_oid), None))
    }

    fn read(&mut self, name: &str, type_oid: Option<pg_sys::Oid>, part: Option<TypedPart>) -> Read {
        let known = self.names.iter().position(|known| known == name);
        let column = known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        Read { column, type_oid: type_oid.map(base_type), part }
    }

    /// The only part of the expression that names columns: it calls them c1, c2 and so on.
    pub fn select(&self) -> String {
        let columns = self.names.iter().zip(1..).map(|(name, i)| format!("{} AS c{i}", quoted(name)));
        format!("SELECT {}", columns.collect::<Vec<_>>().join(", "))
    }

    /// The value of the column of feature column `i`, without what is computed of it.
    pub fn value(&self, i: usize) -> String {
        format!("r.c{}", self.features[i].column + 1)
    }

    /// Feature column `i` as a double.
    pub fn number(&self, i: usize) -> String {
        let Read { type_oid, part, .. } = &self.features[i];
        let value = self.value(i);
        match (part, type_oid.and_then(NumberType::from_oid)) {
            (Some(part), _) => format!("({})::pg_catalog.float8", part.sql(&value)),
            (None, Some(number)) => number.sql(&value),
            (None, None) => format!("{value}::pg_catalog.float8"),
        }
    }

    pub fn text(&self, i: usize) -> String {
        let value = self.value(i);
        match &self.features[i].part {
            Some(part) => format!("({})::pg_catalog.text", part.sql(&value)),
            None if self.features[i].type_oid.is_some_and(is_citext) => {
                format!("pg_catalog.lower({value}::pg_catalog.text)")
            }
            None => format!("{value}::pg_catalog.text"),
        }
    }

    /// Feature column `i`, of arrays or other vectors, as an array of doubles.
    pub fn array(&self, i: usize) -> String {
        const ARRAY: &str = "::pg_catalog.float8[]";
        let value = self.value(i);
        let Some(type_oid) = self.features[i].type_oid else { return value + ARRAY };
        if type_oid == pg_sys::BYTEAOID {
            return format!(
                "(SELECT pg_catalog.array_agg(pg_catalog.get_byte({value}, b.b)::pg_catalog.float8 ORDER BY b.b) \
                 FROM pg_catalog.generate_series(0, pg_catalog.length({value}) - 1) AS b(b))"
            );
        }
        if base_type_of_extension(type_oid, c"vector").is_some() {
            return format!("{value}::pg_catalog.float4[]{ARRAY}");
        }
        match element_type(type_oid).map(base_type) {
            Some(pg_sys::BOOLOID) => format!("{value}::pg_catalog.bool[]::pg_catalog.int4[]{ARRAY}"),
            _ => value + ARRAY,
        }
    }
}

/// Are there two columns, of indices and values, or one of sparse vectors?
pub fn is_pair(model: &Model) -> bool {
    model.features.len() == 2
}

/// The kinds of a model's feature columns; none if these are arrays.
pub fn kinds(model: &Model) -> &[ColumnKind] {
    match &model.feature_kind {
        FeatureKind::Columns(kinds) => kinds,
        FeatureKind::Array | FeatureKind::Sparse { .. } => &[],
    }
}

/// Refuses a model of words, whose hashes nothing outside computes.
pub fn refuse_words(model: &Model, format: &'static str) -> Result<()> {
    let is_bag = |(_, kind): &(&String, &ColumnKind)| matches!(kind, ColumnKind::Hashed(Buckets { of: Some(_), .. }));
    match model.features.iter().zip(kinds(model)).find(is_bag) {
        Some((column, _)) => {
            Err(ModelError::WordsInExport { model: model.in_error(), column: column.clone(), format }.into())
        }
        None => Ok(()),
    }
}

/// A column's name, quoted even where this version of SQL does not want it: another one may.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn type_needed(feature: &str, column: &str) -> errors::Error {
    ArgumentError::InvalidArgument {
        argument: "source",
        reason: format!("feature \"{feature}\" may be a part of a date, but the type of its column is unknown"),
        hint: Some(format!(
            "Give a table or a query with column \"{column}\" as source, such as the one that \
             the model was trained on."
        )),
    }
    .into()
}
