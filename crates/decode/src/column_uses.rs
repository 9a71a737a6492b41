//! What a training makes of each column of its source, and why: what its notice says, column by column.

use super::column_facts::{Facts, Kind, facts_of_column, is_called_code};
use super::default_features::{
    Candidate, Choice, Listed, Searched, of_papers, only_compressed, parts_of, without_variants,
};
use super::hashed::HashRule;
use choices::choice;
use errors::{Result, some_of};
use pg::catalog::names::quote_identifier;
use pg::catalog::types::base_type;
use pg::executor::query::Column;
use pg::values::jsonb::JsonType;
use pg::values::part::Part;
use pgrx::pg_sys;

choice! {
    /// What a column is in a training.
    Role {
        Label = "label",
        Number = "number",
        Category = "category",
        /// a text that is hashed
        Hashed = "hashed",
        DateParts = "date parts",
        /// an array, a vector or bytes
        Vector = "vector",
        /// lexemes, or an array of texts
        Words = "words",
        /// an object of JSON
        Keys = "keys",
        /// what another argument names, such as a weight
        Other = "other argument",
        LeftOut = "left out",
    }
}

/// A column in a training.
pub struct ColumnUse<'a> {
    pub column: &'a Column,
    pub facts: Facts,
    pub role: Role,
    /// why it is that, or what to know of it
    pub why: Option<String>,
    /// what it would better be, as an expression of SQL
    pub expression: Option<String>,
}

/// What becomes of each column of the source, if these features are given. Nothing is reported, and it is no error if
/// no column is a feature.
pub fn column_uses<'a>(
    given: Option<&[String]>,
    searched: &Searched<'a>,
    rule: HashRule,
) -> Result<Vec<ColumnUse<'a>>> {
    let listed = match given {
        None => Some(Listed::default()),
        Some(names) => Listed::read(names, searched.columns)?,
    };
    let Some(listed) = listed else {
        let names = given.unwrap_or_default();
        return named_uses(names, "not in features", searched, rule);
    };
    let free = listed.free(searched);
    if let Some(names) = of_papers(&free).or_else(|| only_compressed(&free)) {
        return named_uses(&names, "next to the column of features", searched, rule);
    }
    let mut choice = Choice::new(free, &listed, searched)?;
    // a training without features is an error that says why each column is left out, as the candidates do
    let _ = choice.choose();
    let mut candidates: Vec<Option<Candidate>> = choice.candidates.into_iter().map(Some).collect();
    let mut use_of = |column: &'a Column| {
        let is_it = |candidate: &&mut Option<Candidate>| {
            candidate.as_ref().is_some_and(|candidate| std::ptr::eq(candidate.column, column))
        };
        match candidates.iter_mut().find(is_it).and_then(Option::take) {
            Some(candidate) => Ok(use_of_candidate(candidate, rule)),
            None => other_use(column, "features say so", searched),
        }
    };
    searched.columns.iter().map(&mut use_of).collect()
}

/// The uses if these are the features.
fn named_uses<'a>(
    names: &[String],
    why_not: &str,
    searched: &Searched<'a>,
    rule: HashRule,
) -> Result<Vec<ColumnUse<'a>>> {
    let sample = (searched.sample)()?;
    let use_of = |column: &'a Column| {
        // a part is named as the column and itself
        let is_part = |name: &&String| Part::split(name).is_some_and(|(of, _)| of == column.name);
        let named: Vec<&String> = names.iter().filter(is_part).collect();
        let parts_named: Vec<Part> = named.iter().filter_map(|name| Some(Part::split(name)?.1)).collect();
        let is_named = names.contains(&column.name);
        if column.name == searched.label || !is_named && named.is_empty() {
            return other_use(column, why_not, searched);
        }
        let (mut dates, mut order, mut style, mut is_null) = (Vec::new(), None, None, false);
        for part in &parts_named {
            match part {
                Part::Date(part) => dates.push(*part),
                Part::TextDate(of, part) => {
                    dates.push(*part);
                    order = Some(*of);
                }
                Part::Number(of) => style = Some(*of),
                Part::IsNull => is_null = true,
                Part::Key(_) => {}
            }
        }
        let keys: Vec<String> =
            named.iter().filter(|name| is_key_of(name, column)).map(|name| (*name).clone()).collect();
        let parts = if is_named { parts_of(column, searched.takes) } else { dates };
        let facts = facts_of_column(column, searched.known(sample)).into_texts();
        let is_number = style.is_some() || (is_null && !is_named && named.len() == 1);
        let kind = if is_number { Kind::Number { is_whole: false } } else { facts.kind };
        let facts = Facts { kind, style, ..facts };
        Ok(use_of_candidate(Candidate { column, facts, parts, order, keys, out: None, is_null }, rule))
    };
    searched.columns.iter().map(use_of).collect()
}

/// Is this the name of a key of the column's objects?
fn is_key_of(name: &str, column: &Column) -> bool {
    let is_json = JsonType::from_oid(base_type(column.type_oid)).is_some();
    is_json && Part::split(name).is_some_and(|(of, _)| of == column.name)
}

/// The use of a column that is no feature: it is the label, or used otherwise, or left out for this reason.
fn other_use<'a>(column: &'a Column, why: &str, searched: &Searched<'a>) -> Result<ColumnUse<'a>> {
    let facts = facts_of_column(column, searched.known((searched.sample)()?));
    let (role, why) = match column.name.as_str() {
        name if name == searched.label => (Role::Label, None),
        name if searched.others.names.contains(&name) => (Role::Other, None),
        _ => (Role::LeftOut, Some(why.to_owned())),
    };
    let expression = if role == Role::Label { better(column, &facts) } else { None };
    Ok(ColumnUse { column, facts, role, why, expression })
}

fn use_of_candidate<'a>(candidate: Candidate<'a>, rule: HashRule) -> ColumnUse<'a> {
    let role = match (candidate.out, candidate.facts.kind) {
        (Some(_), _) => Role::LeftOut,
        (None, _) if !candidate.parts.is_empty() => Role::DateParts,
        (None, Kind::Number { .. } | Kind::Boolean) => Role::Number,
        (None, Kind::Text | Kind::Enum) if is_hashed(&candidate, rule) => Role::Hashed,
        (None, Kind::Text | Kind::Enum) => Role::Category,
        (None, Kind::Time) => Role::DateParts,
        (None, Kind::Array | Kind::Sparse | Kind::Bytes | Kind::Other) => Role::Vector,
        (None, Kind::Words) => Role::Words,
        (None, Kind::Json) => Role::Keys,
    };
    let why = match candidate.out {
        Some(out) if candidate.is_null => Some(format!("{}; {WHETHER_NULL}", candidate.why(out))),
        Some(out) => Some(candidate.why(out)),
        None => what_to_know(&candidate),
    };
    let is_taken = candidate.out.is_none() && (candidate.facts.style.is_some() || !candidate.parts.is_empty());
    let expression =
        if is_taken && candidate.facts.codes.is_empty() { None } else { better(candidate.column, &candidate.facts) };
    ColumnUse { column: candidate.column, role, why, expression, facts: candidate.facts }
}

/// What a column is that is a feature only by whether it is NULL.
const WHETHER_NULL: &str = "whether it is NULL is a feature";

/// Does its training hash it, as far as is known?
fn is_hashed(candidate: &Candidate, rule: HashRule) -> bool {
    let is_large = |limit| candidate.facts.distinct.is_some_and(|known| known.distinct > limit as f64);
    rule.names(&candidate.column.name) || rule.limit().is_some_and(is_large)
}

/// What to know of a column that is a feature; None if there is nothing.
fn what_to_know(candidate: &Candidate) -> Option<String> {
    let Candidate { column, facts, keys, is_null, .. } = candidate;
    let codes: Vec<String> = facts.codes.iter().map(|code| code.value.to_string()).collect();
    let known = [
        candidate.known_parts(),
        candidate
            .texts_as_numbers()
            .map(|missing| format!("text as numbers{}{missing}", if missing.is_empty() { "" } else { ": " })),
        is_null.then(|| WHETHER_NULL.to_owned()),
        (!keys.is_empty()).then(|| some_of(keys)),
        facts.is_constant().then(|| "always the same value".to_owned()),
        candidate.categories().filter(|_| facts.hardly_recurs() && candidate.parts.is_empty()),
        candidate.variants().filter(|_| candidate.parts.is_empty() && facts.style.is_none()),
        candidate.numbers(),
        (!codes.is_empty()).then(|| format!("probably codes: {}", codes.join(", "))),
        is_code_of_others(column, facts).then(|| "cast it to text if it is a code".to_owned()),
    ];
    let known: Vec<String> = known.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join("; "))
}

/// Is it a number that may identify rows of another table?
fn is_code_of_others(column: &Column, facts: &Facts) -> bool {
    facts.kind == Kind::Number { is_whole: true } && is_called_code(column)
}

/// What a column would better be, as an expression of SQL; None if it is fine as it is, or nothing is known.
fn better(column: &Column, facts: &Facts) -> Option<String> {
    let name = quote_identifier(&column.name);
    let of_type = || match (facts.kind, base_type(column.type_oid)) {
        (Kind::Time, pg_sys::INTERVALOID) => Some(format!("extract(epoch FROM {name})::float8")),
        (Kind::Time, pg_sys::TIMEOID | pg_sys::TIMETZOID) => Some(format!("extract(hour FROM {name})::float8")),
        (Kind::Time, _) => Some(format!("extract(month FROM {name})::float8")),
        (Kind::Number { .. }, _) if is_code_of_others(column, facts) && facts.identity.is_none() => {
            Some(format!("{name}::text"))
        }
        _ => None,
    };
    let without_case = || facts.variants.as_ref().map(|_| without_variants(column));
    facts.without_codes(column).or_else(|| facts.meaning.expression(&name)).or_else(without_case).or_else(of_type)
}
