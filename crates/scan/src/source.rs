//! The source of a training, a table or a query, and its columns.

use super::plan::shuffled;
use decode::compressed_type::is_compressed;
use decode::default_features::{self, Searched, Takes};
use decode::sample::{Sample, Sampled};
use decode::{Decoder, DecoderSpec, column};
use errors::limits::FEW_CLASSES;
use errors::{PgError, Result};
use options::columns::OtherColumns;
use options::shuffling::Shuffling;
use pg::call::spi::{Connection, Sees};
use pg::catalog::names::quote_identifier;
use pg::catalog::relation::{Relation, bytes, estimated_rows, has_places, may_read_places};
use pg::catalog::types::base_type;
use pg::executor::query::{Column, Planned, Query, only_select};
use pg::executor::remote_rows::in_distributed_transaction;
use pg::values::number::NumberType;
use pg::values::part::{Part, TypedPart};
use pg::values::sparse::is_index_array;
use pg::values::vector::VectorReader;
use pg::with_scans_from_the_start;
use pgrx::pg_sys;
use std::cell::OnceCell;
use std::collections::HashSet;

/// A source of rows, with its columns.
pub struct Source {
    /// the text behind FROM
    from: String,
    /// with those that are parts of others, once they are asked for
    columns: Vec<Column>,
    /// parts and their expressions
    parts: Vec<(String, String)>,
    /// None of a query
    relation: Option<pg_sys::Oid>,
    /// what some rows say about the columns, once it is asked for
    sample: OnceCell<Option<Sample>>,
    /// may the transaction have written to tables that are on several servers, before anything was read of the source?
    pub in_distributed_transaction: bool,
}

impl Source {
    /// Reads `source`: a query if it begins like one, else the name of a relation, as regclass reads it.
    pub fn resolve(source: &str) -> Result<Source> {
        let (from, relation) = if looks_like_query(source) {
            // The line ends because the query may end in a comment.
            (format!("({}\n) AS source", only_select(source)?), None)
        } else {
            let relation = Relation::lookup(source)?;
            (relation.name().to_owned(), Some(relation))
        };
        let relation = relation.map(|relation| relation.oid());
        let (columns, parts, sample) = (Vec::new(), Vec::new(), OnceCell::new());
        let in_distributed_transaction = in_distributed_transaction();
        let source = Source { from, columns, parts, relation, sample, in_distributed_transaction };
        Ok(Source { columns: source.read("*")?.columns(), ..source })
    }

    /// A plan for all rows and columns of a relation, shuffled.
    pub fn plan_relation(relation: &Relation, shuffling: &Shuffling) -> Result<Planned> {
        let query = Query::analyze(&format!("SELECT * FROM {}", relation.name()))?;
        if !query.reads(relation.oid()) {
            return Err(PgError::SourceChanged.into());
        }
        Ok(shuffled(query, shuffling))
    }

    /// The features that a call with this label names, or those that the source has; `others` are columns that it uses
    /// otherwise.
    pub fn features(
        &mut self,
        given: Option<&[String]>,
        label: &str,
        others: &OtherColumns,
        takes: Takes,
    ) -> Result<Vec<String>> {
        let (columns, relation) = (&self.columns, self.relation);
        let sample = || self.sample_with(label, false, given);
        let searched = Searched { columns, from: &self.from, relation, label, others, takes, sample: &sample };
        let features = default_features::features(given, &searched)?;
        self.add_parts(&features);
        let is_index = |name: &String| self.type_of(name).is_ok_and(is_index_array);
        let are_pair = features.len() == 2 && features.iter().any(is_index);
        if takes != Takes::Numbers && features.len() > 1 && !are_pair {
            self.find_lengths(&features)?;
        }
        Ok(features)
    }

    /// What a sample of the rows says about the label and, if features are to be looked for, about the columns that may
    /// be features. The rows are read once, on the first call, and [`Source::features`] uses what they say; None if
    /// reading would take long.
    pub fn sample(&self, label: &str, features: Option<&[String]>) -> Result<Option<&Sample>> {
        self.sample_with(label, true, features)
    }

    fn sample_with(&self, label: &str, with_label: bool, features: Option<&[String]>) -> Result<Option<&Sample>> {
        if self.sample.get().is_none() {
            let looks = default_features::are_open(features, &self.columns);
            let is_wanted = |column: &Column| match column.name == label {
                true => with_label,
                false => looks && default_features::depends_on_values(column),
            };
            let wanted: Vec<&Column> = self.own_columns().filter(|column| is_wanted(column)).collect();
            let sample = Sample::read(self.sampled(), &wanted, false)?;
            return Ok(self.sample.get_or_init(|| sample).as_ref());
        }
        Ok(self.sample.get().and_then(Option::as_ref))
    }

    fn sampled(&self) -> Sampled<'_> {
        Sampled { columns: &self.columns, from: &self.from }
    }

    /// A sample of all columns but parts of dates, however long it takes.
    pub fn sample_all(&self) -> Result<Option<Sample>> {
        Sample::read(self.sampled(), &self.own_columns().collect::<Vec<_>>(), true)
    }

    /// The columns that a query can name: no parts of dates, and none that shares its name with another.
    fn own_columns(&self) -> impl Iterator<Item = &Column> {
        let is_part = |column: &Column| self.parts.iter().any(|(part, _)| *part == column.name);
        let is_only = |column: &Column| self.columns.iter().filter(|other| other.name == column.name).count() == 1;
        self.columns.iter().filter(move |column| is_only(column) && !is_part(column))
    }

    /// Looks how long the vectors of columns are that may be NULL in the first rows: of a NULL each number is imputed.
    fn find_lengths(&mut self, features: &[String]) -> Result<()> {
        for column in self.columns.iter_mut().filter(|column| column.may_be_null && features.contains(&column.name)) {
            let Some(reader) = VectorReader::new(column.type_oid) else { continue };
            let name = quote_identifier(&column.name);
            let sql = format!("SELECT {name} FROM {} WHERE {name} IS NOT NULL LIMIT 1", self.from);
            let connection = Connection::open();
            let rows = with_scans_from_the_start(|| connection.run(&sql, Sees::Statement))?;
            let length = (rows.len() > 0).then(|| rows.value(0, 0)).flatten();
            column.length = length.and_then(|vector| reader.len(vector).ok()).filter(|length| *length > 0);
            drop(rows);
            connection.close();
        }
        Ok(())
    }

    /// Adds to the columns what is called like a part of one, such as of a date or of JSON, unless a column is called
    /// so.
    pub fn add_parts(&mut self, features: &[String]) {
        for feature in features {
            let is_there = self.columns.iter().any(|column| column.name == *feature);
            let Some((name, part)) = Part::split(feature).filter(|_| !is_there) else { continue };
            let Some(column) = self.columns.iter().find(|column| column.name == name) else { continue };
            let Some(part) = part.of_type(base_type(column.type_oid)) else { continue };
            let may_be_null = part != TypedPart::IsNull && (column.may_be_null || part.may_be_missing());
            let collation = if part.is_category() { pg_sys::DEFAULT_COLLATION_OID } else { pg_sys::Oid::INVALID };
            let part_column = Column {
                name: feature.clone(),
                type_oid: part.type_oid(),
                collation,
                is_key: false,
                origin: None,
                may_be_null,
                length: None,
            };
            self.parts.push((feature.clone(), part.sql(&quote_identifier(name))));
            self.columns.push(part_column);
        }
    }

    /// What a query on the source selects to get a column.
    fn expression(&self, name: &str) -> String {
        match self.parts.iter().find(|(part, _)| part == name) {
            Some((_, expression)) => format!("{expression} AS {}", quote_identifier(name)),
            None => quote_identifier(name),
        }
    }

    /// The same rows with these columns only, and with a label that is 0: for what is asked of features alone.
    pub fn with_label(&self, label: &str, columns: &[&str]) -> Result<Source> {
        columns.iter().try_for_each(|name| column(&self.columns, name).map(|_| ()))?;
        let quoted: Vec<String> = columns.iter().map(|name| quote_identifier(name)).collect();
        let (label, columns) = (quote_identifier(label), quoted.join(", "));
        Source::resolve(&format!("SELECT 0::pg_catalog.float8 AS {label}, {columns} FROM {}", self.from))
    }

    /// Plans the read of the columns that `spec` wants, shuffled.
    pub fn plan(&self, spec: &DecoderSpec, shuffling: &Shuffling) -> Result<Planned> {
        let columns: Vec<String> = spec.columns().map(|name| self.expression(name)).collect();
        Ok(shuffled(self.read(&columns.join(", "))?, shuffling))
    }

    /// The query that reads these columns, as SQL writes them.
    pub fn read(&self, columns: &str) -> Result<Query> {
        let query = Query::analyze(&format!("SELECT {columns} FROM {}", self.from))?;
        match self.relation {
            Some(relation) if !query.reads(relation) => Err(PgError::SourceChanged.into()),
            _ => Ok(query),
        }
    }

    /// Do the first values of a column look like measurements, and not like classes? They are of type real, float8 or
    /// numeric, and neither whole nor few. False also if there is no such column.
    pub fn has_continuous(&self, name: &str) -> Result<bool> {
        const LOOK_AT: usize = 1_000;
        let Ok(column) = self.column(name) else { return Ok(false) };
        let number = match NumberType::from_oid(base_type(column.type_oid)) {
            Some(number) if number.has_fractions() => number,
            _ => return Ok(false),
        };
        let connection = Connection::open();
        let sql = format!("SELECT {} FROM {} LIMIT {LOOK_AT}", quote_identifier(name), self.from);
        let rows = with_scans_from_the_start(|| connection.run(&sql, Sees::Statement))?;
        let values = (0..rows.len()).filter_map(|row| rows.value(row, 0)).map(|value| number.read(value));
        let (mut distinct, mut has_fraction) = (HashSet::new(), false);
        for value in values.filter(|value| value.is_finite()) {
            has_fraction |= value.fract() != 0.0;
            distinct.insert(value.to_bits());
        }
        drop(rows);
        connection.close();
        Ok(has_fraction && distinct.len() > FEW_CLASSES)
    }

    /// A decoder of the rows of [`Source::plan`].
    pub fn decoder(&self, spec: &DecoderSpec) -> Result<Decoder> {
        spec.decoder(&self.columns)
    }

    /// The table, view or the like that was named, and not a query.
    pub fn relation(&self) -> Option<pg_sys::Oid> {
        self.relation
    }

    /// Is the only feature of these a compressed mini-batch?
    pub fn is_compressed(&self, features: &[String]) -> bool {
        match features {
            [only] => self.type_of(only).is_ok_and(|declared| is_compressed(base_type(declared))),
            _ => false,
        }
    }

    /// The relation that was named, if it is read by way of a copy, whose rows do not say where they stood.
    pub fn relation_of_copy(&self, shuffling: &Shuffling) -> Option<u32> {
        let tells_places = |relation: &pg_sys::Oid| has_places(*relation) && may_read_places(*relation);
        self.relation.filter(|_| shuffling.strategy.sorts()).filter(tells_places).map(|relation| relation.to_u32())
    }

    /// Size of a table without what is stored out of line; None of a query or a partitioned table.
    pub fn bytes(&self) -> Option<u64> {
        self.relation.and_then(bytes)
    }

    /// Rows of a table, as far as PostgreSQL has counted them; None of a query, or if it has not.
    pub fn estimated_rows(&self) -> Option<f64> {
        self.relation.and_then(estimated_rows)
    }

    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The text behind FROM in a query that reads the source.
    pub fn from(&self) -> &str {
        &self.from
    }

    pub fn column(&self, name: &str) -> Result<&Column> {
        column(&self.columns, name)
    }

    /// The type of a column, as it was declared.
    pub fn type_of(&self, name: &str) -> Result<pg_sys::Oid> {
        column(&self.columns, name).map(|column| column.type_oid)
    }
}

/// Is the text a query? A table may be called "values", but then nothing follows.
pub fn looks_like_query(source: &str) -> bool {
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
