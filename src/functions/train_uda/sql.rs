//! The queries of a training by aggregate, as text.
//!
//! Every name is quoted or qualified, operators too, so that neither the user's names nor the user's search_path change
//! what is asked. The search_path itself stays, because the source may be a query of the user's.

use pg::catalog::names::{quote_identifier, quote_literal};
use pg::catalog::types::{base_type, qualified_type_name};
use pg::executor::query::Column;
use pg::values::number::NumberType;

pub struct Reading<'a> {
    /// the text behind FROM
    pub from: String,
    pub label: &'a Column,
    pub features: Features<'a>,
}

pub enum Features<'a> {
    /// arrays, or vectors of another type
    Vectors(&'a Column),
    Columns(Vec<&'a Column>),
    /// indices and values
    Sparse(&'a Column, &'a Column),
}

/// How labels become numbers.
pub enum Coding {
    Number,
    /// the first of two classes becomes -1, the second 1
    Signs([String; 2]),
    /// the classes are counted from 0
    Places(Vec<String>),
}

impl Coding {
    /// For these classes in ascending order; `signs` if there are to be two.
    pub fn of(classes: &[String], signs: bool, label: &Column) -> Coding {
        let is_number =
            NumberType::from_oid(base_type(label.type_oid)).is_some_and(|number| number != NumberType::Bool);
        let codes: Vec<String> =
            if signs { vec!["-1".into(), "1".into()] } else { (0..classes.len()).map(|c| c.to_string()).collect() };
        match classes {
            classes if is_number && classes == codes => Coding::Number,
            [first, second] if signs => Coding::Signs([first.clone(), second.clone()]),
            classes => Coding::Places(classes.to_vec()),
        }
    }
}

impl Features<'_> {
    pub fn columns(&self) -> Vec<&Column> {
        match self {
            Features::Vectors(column) => vec![column],
            Features::Columns(columns) => columns.clone(),
            Features::Sparse(indices, values) => vec![indices, values],
        }
    }

    /// The last arguments of the aggregate.
    fn arguments(&self) -> String {
        match self {
            Features::Columns(columns) => {
                format!("ARRAY[{}]", columns.iter().map(|c| number(c)).collect::<Vec<_>>().join(", "))
            }
            _ => self.columns().iter().map(|c| quote_identifier(&c.name)).collect::<Vec<_>>().join(", "),
        }
    }
}

/// A column of numbers as a double.
fn number(column: &Column) -> String {
    let name = quote_identifier(&column.name);
    match NumberType::from_oid(base_type(column.type_oid)) {
        Some(NumberType::Bool) => format!("{name}::pg_catalog.int4::pg_catalog.float8"),
        _ => format!("{name}::pg_catalog.float8"),
    }
}

impl Reading<'_> {
    /// An epoch: $1 is the state before it, the result the state after it. `aggregate` is qualified.
    pub fn epoch(&self, aggregate: &str, coding: &Coding) -> String {
        let (label, its_type) = (self.plain_label(), qualified_type_name(base_type(self.label.type_oid)));
        let literal = |class: &String| quote_literal(class);
        // A label that was not there when the classes were looked for becomes NaN, which is not one.
        let label = match coding {
            Coding::Number => number(self.label),
            Coding::Signs(classes) => format!(
                "CASE WHEN {label} OPERATOR(pg_catalog.=) {}::{its_type} THEN '-1'::pg_catalog.float8 \
                 WHEN {label} OPERATOR(pg_catalog.=) {}::{its_type} THEN '1'::pg_catalog.float8 \
                 WHEN {label} IS NOT NULL THEN 'NaN'::pg_catalog.float8 END",
                literal(&classes[0]),
                literal(&classes[1])
            ),
            Coding::Places(classes) => format!(
                "CASE WHEN {label} IS NOT NULL THEN COALESCE((pg_catalog.array_position(\
                 ARRAY[{}]::{its_type}[], {label}) OPERATOR(pg_catalog.-) 1)::pg_catalog.float8, 'NaN'::pg_catalog.float8) END",
                classes.iter().map(literal).collect::<Vec<_>>().join(", ")
            ),
        };
        format!("SELECT {aggregate}($1, {label}, {}) FROM {}", self.features.arguments(), self.from)
    }

    /// The largest index of sparse features, NULL without rows.
    pub fn largest_index(&self) -> String {
        let columns = self.features.columns();
        format!(
            "SELECT pg_catalog.max((SELECT pg_catalog.max(i) FROM pg_catalog.unnest({}) AS i))::pg_catalog.int8 \
             FROM {} WHERE {}",
            quote_identifier(&columns[0].name),
            self.from,
            self.without_nulls()
        )
    }

    /// Makes table `copy` of what is read, its rows in random order: a function of seed and original order. The
    /// session's own random() is not affected.
    pub fn shuffled_copy(&self, copy: &str, seed: i64) -> String {
        let row = "pg_catalog.row_number() OVER ()";
        format!(
            "CREATE TEMPORARY TABLE {copy} AS SELECT {} FROM {} \
             ORDER BY pg_catalog.hashint8extended({row}, '{seed}'::pg_catalog.int8), {row}",
            self.names().join(", "),
            self.from
        )
    }

    /// The label, which may be of a domain, as a value of the type behind it.
    fn plain_label(&self) -> String {
        let name = quote_identifier(&self.label.name);
        let base = base_type(self.label.type_oid);
        if base == self.label.type_oid { name } else { format!("{name}::{}", qualified_type_name(base)) }
    }

    fn names(&self) -> Vec<String> {
        let columns = self.features.columns();
        std::iter::once(self.label).chain(columns).map(|c| quote_identifier(&c.name)).collect()
    }

    fn without_nulls(&self) -> String {
        self.names().iter().map(|name| format!("{name} IS NOT NULL")).collect::<Vec<_>>().join(" AND ")
    }
}
