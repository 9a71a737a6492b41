//! Which columns of a source are features, where the call does not name them all.
//!
//! By default these are the papers' columns, or the only compressed one; else all numbers, booleans, texts and enums
//! but what identifies rows; or, without numbers, the only column of vectors. A model is never trained on an id because
//! nothing else was looked for, and whatever is left out, or more than a number, is reported in one notice. What
//! statistics have decided is recorded with the model as names, so that predictions do not depend on them.

use super::column_facts::{Certainty, Facts, Identity, Kind, facts_of, kind_of};
use super::compressed_type::is_compressed;
use super::sample::Sample;
use super::{FEATURE_TYPES, column};
use choices::Choice as _;
use errors::{ArgumentError, Result, SourceError, some_of};
use facts::{Meaning, quote_text};
use options::columns::OtherColumns;
use options::date_parts::DateParts;
use pg::catalog::names::quote_identifier;
use pg::catalog::relation::Uniqueness;
use pg::catalog::types::{base_type, type_name};
use pg::executor::query::Column;
use pg::values::date_part::{DatePart, TimeType};
use pgrx::pg_sys;

/// Names of the papers' schema: id, features_k, features_v, label.
const PAPERS_VALUES: &str = "features_v";
const PAPERS_INDICES: &str = "features_k";

/// Every column that can be a feature.
const ALL: &str = "*";

/// What features are looked for in.
pub struct Searched<'a> {
    pub columns: &'a [Column],
    pub relation: Option<pg_sys::Oid>,
    pub label: &'a str,
    /// columns that are used otherwise
    pub others: &'a OtherColumns<'a>,
    pub takes: Takes<'a>,
    /// what a sample of the rows says about them, which is read if need be
    pub sample: &'a dyn Fn() -> Result<Option<&'a Sample>>,
}

/// Which columns may be features.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes<'a> {
    /// and in place of dates these parts, if any
    All(Option<&'a DateParts>),
    /// numbers and booleans
    Numbers,
}

/// The features that the call names, or those of the source if it names none, or says which not.
pub fn features(given: Option<&[String]>, searched: &Searched) -> Result<Vec<String>> {
    let listed = match given {
        None => Listed::default(),
        Some(names) => match Listed::read(names, searched.columns)? {
            Some(listed) => listed,
            None => return Ok(named(names, searched)),
        },
    };
    let free = listed.free(searched);
    if let Some(names) = of_papers(&free).or_else(|| only_compressed(&free)) {
        return Ok(names);
    }
    let mut choice = Choice::new(free, &listed, searched)?;
    choice.choose()?;
    choice.report();
    Ok(choice.taken().flat_map(Candidate::features).collect())
}

/// Is it the time that folds go by, of which parts are features?
fn has_own_parts(column: &Column, searched: &Searched) -> bool {
    searched.others.time == Some(&column.name) && !parts_of(column, searched.takes).is_empty()
}

/// Are features to be looked for, as this list does not name them all?
pub fn are_open(given: Option<&[String]>, columns: &[Column]) -> bool {
    given.is_none_or(|names| !matches!(Listed::read(names, columns), Ok(None)))
}

/// Does it depend on its values whether a column is a feature?
pub fn depends_on_values(column: &Column) -> bool {
    matches!(kind_of(column.type_oid), Kind::Number { .. } | Kind::Text)
}

/// The parts of a column that are features in its place; none if it is no date, or none are asked for.
pub(super) fn parts_of(column: &Column, takes: Takes) -> Vec<DatePart> {
    let (Takes::All(Some(parts)), Some(time)) = (takes, TimeType::from_oid(base_type(column.type_oid))) else {
        return Vec::new();
    };
    parts.of_type(time)
}

/// The features that these names are, with the parts of dates in place of them, each once.
fn named(names: &[String], searched: &Searched) -> Vec<String> {
    let mut features: Vec<String> = Vec::new();
    for feature in names.iter().flat_map(|name| parts_or_name(name, searched)) {
        if !features.contains(&feature) {
            features.push(feature);
        }
    }
    features
}

/// The parts of the date that this column is, or its name.
fn parts_or_name(name: &str, searched: &Searched) -> Vec<String> {
    let column = searched.columns.iter().find(|column| column.name == name);
    match column.map(|column| parts_of(column, searched.takes)) {
        Some(parts) if !parts.is_empty() => parts.iter().map(|part| part.of_column(name)).collect(),
        _ => vec![name.to_owned()],
    }
}

/// A list of features that does not name them all.
#[derive(Default)]
pub(super) struct Listed<'a> {
    /// every column that can be one
    all: bool,
    /// but these
    pub(super) excluded: Vec<&'a str>,
}

impl<'a> Listed<'a> {
    /// The columns that may be features.
    pub(super) fn free<'b>(&self, searched: &Searched<'b>) -> Vec<&'b Column> {
        let is_free = |column: &&Column| {
            let name = column.name.as_str();
            let is_used = searched.others.names.contains(&name) && !has_own_parts(column, searched);
            name != searched.label && !is_used && !self.excluded.contains(&name)
        };
        searched.columns.iter().filter(is_free).collect()
    }

    /// None of a list of names. A column that is called so is meant by its name.
    pub(super) fn read(given: &'a [String], columns: &[Column]) -> Result<Option<Listed<'a>>> {
        let is_name = |item: &&String| {
            let is_sign = *item == ALL || item.starts_with('-');
            !is_sign || columns.iter().any(|column| column.name == **item)
        };
        let (names, signs): (Vec<&String>, Vec<&String>) = given.iter().partition(is_name);
        if signs.is_empty() {
            return Ok(None);
        }
        if let Some(name) = names.first() {
            return Err(ArgumentError::InvalidArgument {
                argument: "features",
                reason: format!("\"{name}\" cannot be combined with \"{}\"", signs[0]),
                hint: Some(
                    "Name all features; or use '{*,-id}' for all columns except id, or '{-id}' for \
                     the default columns except id."
                        .into(),
                ),
            }
            .into());
        }
        let excluded: Vec<&str> = signs.iter().filter_map(|sign| sign.strip_prefix('-')).collect();
        for name in &excluded {
            column(columns, name)?;
        }
        Ok(Some(Listed { all: signs.iter().any(|sign| *sign == ALL), excluded }))
    }
}

/// Columns features_k and features_v, or the latter alone.
pub(super) fn of_papers(free: &[&Column]) -> Option<Vec<String>> {
    let has = |name: &str| free.iter().any(|column| column.name == name);
    let names = [PAPERS_INDICES, PAPERS_VALUES].into_iter().filter(|name| has(name)).map(str::to_owned);
    has(PAPERS_VALUES).then(|| names.collect())
}

pub(super) fn only_compressed(free: &[&Column]) -> Option<Vec<String>> {
    let mut compressed = free.iter().filter(|column| is_compressed(base_type(column.type_oid)));
    match (compressed.next(), compressed.next()) {
        (Some(only), None) => Some(vec![only.name.clone()]),
        _ => None,
    }
}

pub(super) struct Candidate<'a> {
    pub(super) column: &'a Column,
    pub(super) facts: Facts,
    /// features in its place
    pub(super) parts: Vec<DatePart>,
    /// why it is no feature
    pub(super) out: Option<LeftOut>,
}

/// Why a column is no feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    Key,
    Identity(Identity),
    NearlyUnique,
    /// texts that are dates
    Dates,
    Time,
    Array,
    /// only numbers are asked for
    NoNumber,
    BesideArray,
    Type,
}

impl Candidate<'_> {
    fn features(&self) -> Vec<String> {
        let name = &self.column.name;
        match self.parts.as_slice() {
            [] => vec![name.clone()],
            parts => parts.iter().map(|part| part.of_column(name)).collect(),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.facts.kind, Kind::Number { .. })
    }

    fn is_category(&self) -> bool {
        matches!(self.facts.kind, Kind::Text | Kind::Enum)
    }

    /// Why its type cannot be a feature.
    fn unfit(&self, takes: Takes) -> Option<LeftOut> {
        match self.facts.kind {
            Kind::Array => Some(LeftOut::Array),
            Kind::Time => self.parts.is_empty().then_some(LeftOut::Time),
            Kind::Bytes | Kind::Other => Some(LeftOut::Type),
            Kind::Text if matches!(self.facts.meaning, Meaning::Dates(_)) => Some(LeftOut::Dates),
            Kind::Text | Kind::Enum if takes == Takes::Numbers => Some(LeftOut::NoNumber),
            _ => None,
        }
    }

    /// Why it is no feature although it could be.
    fn identifies(&self) -> Option<LeftOut> {
        if self.column.is_key {
            return Some(LeftOut::Key);
        }
        // dates may be unique, and are still dates
        let is_unique = self.facts.are_nearly_unique() && !matches!(self.facts.meaning, Meaning::Dates(_));
        self.facts.identity.map(LeftOut::Identity).or(is_unique.then_some(LeftOut::NearlyUnique))
    }

    /// The column and why it is left out, for people.
    fn describe(&self, out: LeftOut) -> String {
        format!("{} ({})", self.column.name, self.why(out))
    }

    /// Why it is left out, for people.
    pub(super) fn why(&self, out: LeftOut) -> String {
        let type_name = type_name(self.column.type_oid);
        match out {
            LeftOut::Key => "primary key".to_owned(),
            LeftOut::Identity(Identity::Name) => "identifies rows, by its name".to_owned(),
            LeftOut::Identity(Identity::Catalog(Uniqueness::Identity)) => "identifies rows: identity column".to_owned(),
            LeftOut::Identity(Identity::Catalog(Uniqueness::Index)) => "identifies rows: unique index".to_owned(),
            LeftOut::Identity(Identity::Values) => "identifies rows: unique".to_owned(),
            LeftOut::NearlyUnique => match self.numbers() {
                Some(numbers) => format!("{type_name}, nearly unique, {numbers}"),
                None => format!("{type_name}, nearly unique"),
            },
            LeftOut::Dates => format!("{type_name} with dates: use {}", self.expression().unwrap_or_default()),
            LeftOut::Array => format!("{type_name}, an array among other columns"),
            LeftOut::BesideArray => format!("{type_name}, a column in addition to an array"),
            LeftOut::NoNumber => format!("{type_name}, not a number"),
            LeftOut::Time if TimeType::from_oid(base_type(self.column.type_oid)).is_some() => {
                format!("{type_name}: use date_parts for its parts")
            }
            LeftOut::Time | LeftOut::Type => type_name,
        }
    }

    /// A date and its parts, for people; None if it is no date.
    fn describe_parts(&self) -> Option<String> {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name()).collect();
        (!names.is_empty()).then(|| format!("{} ({})", self.column.name, names.join(", ")))
    }

    /// What its texts are if they are no texts, as an expression.
    pub(super) fn expression(&self) -> Option<String> {
        self.facts.meaning.expression(&quote_identifier(&self.column.name))
    }

    /// The numbers that its texts are, for people; None if they are not.
    pub(super) fn numbers(&self) -> Option<String> {
        let Meaning::Numbers(numbers) = &self.facts.meaning else { return None };
        let codes: Vec<String> = numbers.codes.iter().map(|(code, _)| quote_text(code)).collect();
        let codes = if codes.is_empty() { String::new() } else { format!(" and {}", some_of(&codes)) };
        Some(format!("contains numbers{codes}: use {} if they are amounts", self.expression()?))
    }

    /// A category and what to know of it, for people.
    fn describe_category(&self) -> String {
        let known: Vec<String> = self.categories().into_iter().chain(self.numbers()).collect();
        match known.is_empty() {
            true => self.column.name.clone(),
            false => format!("{} ({})", self.column.name, known.join(", ")),
        }
    }

    /// How many categories there are, for people, and whether they recur; None if that is not known.
    pub(super) fn categories(&self) -> Option<String> {
        let known = self.facts.distinct.filter(|_| self.facts.kind == Kind::Text)?;
        let about = match known.certainty {
            Certainty::Exact => "",
            Certainty::Estimated => "about ",
            Certainty::Guessed => return None,
        };
        let count = match known.distinct.round() {
            1.0 => "1 category".to_owned(),
            count => format!("{about}{count} categories"),
        };
        Some(match self.facts.hardly_recurs() {
            true => format!("{count} in {about}{:.0} rows: most do not recur", known.rows),
            false => count,
        })
    }

    /// Numbers that are probably codes, for people; None if there are none.
    fn describe_codes(&self) -> Option<String> {
        let values: Vec<String> = self.facts.codes.iter().map(|code| code.value.to_string()).collect();
        Some(format!("{} ({}: use {})", self.column.name, values.join(", "), self.facts.without_codes(self.column)?))
    }
}

pub(super) struct Choice<'a> {
    pub(super) candidates: Vec<Candidate<'a>>,
    /// also what identifies rows
    takes_all: bool,
    takes: Takes<'a>,
    /// how the rows were drawn that the facts depend on; None if they are all rows
    sampled: Option<String>,
}

impl<'a> Choice<'a> {
    /// The choice among these columns, with what is known of them.
    pub(super) fn new(free: Vec<&'a Column>, listed: &Listed, searched: &Searched<'a>) -> Result<Choice<'a>> {
        let sample = if free.iter().any(|column| depends_on_values(column)) { (searched.sample)()? } else { None };
        let facts = facts_of(&free, sample, searched.relation);
        let takes = searched.takes;
        let candidates = free.into_iter().zip(facts).map(|(column, facts)| {
            let parts = parts_of(column, takes);
            Candidate { column, facts, parts, out: None }
        });
        let sampled = sample.and_then(Sample::describe);
        Ok(Choice { candidates: candidates.collect(), takes_all: listed.all, takes, sampled })
    }
}

impl Choice<'_> {
    fn taken(&self) -> impl Iterator<Item = &Candidate<'_>> {
        self.candidates.iter().filter(|candidate| candidate.out.is_none())
    }

    pub(super) fn choose(&mut self) -> Result<()> {
        for candidate in &mut self.candidates {
            let identifies = || candidate.identifies().filter(|_| !self.takes_all);
            candidate.out = identifies().or_else(|| candidate.unfit(self.takes));
        }
        // an id next to an array is no reason to leave the array out
        if !self.taken().any(|candidate| candidate.is_number() && candidate.identifies().is_none()) {
            self.choose_array()?;
        }
        if self.taken().next().is_none() {
            self.take_unique_numbers();
        }
        match self.taken().next() {
            Some(_) => Ok(()),
            None => Err(SourceError::NoFeatures { hint: self.hint() }.into()),
        }
    }

    /// Takes the only array or vector alone, or, without one, the only column of bytes.
    fn choose_array(&mut self) -> Result<()> {
        let has_arrays = self.candidates.iter().any(|candidate| candidate.facts.kind == Kind::Array);
        let wanted = if has_arrays { Kind::Array } else { Kind::Bytes };
        let is_array = |candidate: &Candidate| candidate.facts.kind == wanted;
        let arrays: Vec<&str> =
            self.candidates.iter().filter(|c| is_array(c)).map(|c| c.column.name.as_str()).collect();
        match arrays.as_slice() {
            [] => Ok(()),
            [_] => {
                for candidate in &mut self.candidates {
                    candidate.out = match candidate.out {
                        _ if candidate.facts.kind == wanted => None,
                        None => Some(candidate.identifies().unwrap_or(LeftOut::BesideArray)),
                        out => out,
                    };
                }
                Ok(())
            }
            several => {
                let hint = format!("Name one of the array columns {} in features.", several.join(", "));
                Err(SourceError::NoFeatures { hint }.into())
            }
        }
    }

    /// Numbers that are unique by their values alone are better than nothing: x = 1, 2, 3, ... may be measured.
    fn take_unique_numbers(&mut self) {
        for candidate in &mut self.candidates {
            if candidate.out == Some(LeftOut::Identity(Identity::Values)) {
                candidate.out = None;
            }
        }
    }

    fn left_out(&self) -> Vec<String> {
        self.candidates.iter().filter_map(|candidate| Some(candidate.describe(candidate.out?))).collect()
    }

    /// What to do if there are no features.
    fn hint(&self) -> String {
        match self.left_out() {
            left_out if left_out.is_empty() => FEATURE_TYPES.into(),
            left_out => format!("These columns are left out: {}. {FEATURE_TYPES}", left_out.join(", ")),
        }
    }

    /// Reports what was done beyond taking all numbers but the primary key.
    fn report(&self) {
        let is_only_key = |out: &LeftOut| *out == LeftOut::Key;
        let keys = self.candidates.iter().filter(|candidate| candidate.column.is_key).count();
        let left_out = self.candidates.iter().filter_map(|candidate| candidate.out);
        let mut by_values = false;
        let mut is_special = false;
        for out in left_out {
            is_special |= !(is_only_key(&out) && keys == 1);
            by_values |= matches!(out, LeftOut::Identity(Identity::Values) | LeftOut::NearlyUnique | LeftOut::Dates);
        }
        let one_hot: Vec<String> =
            self.taken().filter(|candidate| candidate.is_category()).map(Candidate::describe_category).collect();
        let as_numbers: Vec<String> = self.taken().filter_map(as_number).collect();
        let parts: Vec<String> = self.taken().filter_map(Candidate::describe_parts).collect();
        let codes: Vec<String> = self.taken().filter_map(Candidate::describe_codes).collect();
        let groups = [
            ("left out", self.left_out()),
            ("parts", parts),
            ("one-hot", one_hot),
            ("as numbers", as_numbers),
            ("probably codes", codes),
        ];
        if !is_special && groups[1..].iter().all(|(_, columns)| columns.is_empty()) {
            return;
        }
        let taken: Vec<&Candidate> = self.taken().collect();
        let chosen = match taken.as_slice() {
            [only] if matches!(only.facts.kind, Kind::Array | Kind::Bytes) => format!("array {}", only.column.name),
            [only] => format!("column {}", only.column.name),
            several => format!("{} columns", several.len()),
        };
        let told = groups.iter().filter(|(_, columns)| !columns.is_empty());
        let told: String = told.map(|(group, columns)| format!("; {group}: {}", some_of(columns))).collect();
        let depends = by_values || groups[2..].iter().any(|(_, columns)| !columns.is_empty());
        let sampled = self.sampled.iter().filter(|_| depends).map(|sampled| format!("; {sampled}"));
        let sampled: String = sampled.collect();
        let has_expressions = self.candidates.iter().any(|candidate| {
            candidate.expression().is_some_and(|_| !matches!(candidate.facts.meaning, Meaning::YesNo(_)))
                || (candidate.out.is_none() && !candidate.facts.codes.is_empty())
        });
        let hint = match has_expressions {
            true => WITH_EXPRESSIONS,
            false => "To change this, name the features; '{*,-id}' uses every possible column except id.",
        };
        pg::notice(format!("features: {chosen}{told}{sampled}"), hint);
    }
}

/// What to do about columns that are not what they should be.
const WITH_EXPRESSIONS: &str = "To use an expression, give a query as source, such as 'SELECT expression AS name, ... FROM t', \
     or name the features; corgipile_columns() describes every column.";

/// A number that may be something else, and what, for people.
fn as_number(candidate: &Candidate) -> Option<String> {
    let name = &candidate.column.name;
    match (candidate.facts.kind, candidate.identifies()) {
        (Kind::Number { .. }, Some(LeftOut::Identity(Identity::Values))) => Some(format!("{name} (unique)")),
        (Kind::Number { is_whole: true }, None) if name.to_lowercase().ends_with("_id") => {
            Some(format!("{name} (cast it to text if it is a code)"))
        }
        _ => None,
    }
}
