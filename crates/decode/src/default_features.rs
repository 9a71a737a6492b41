//! Which columns of a source are features, where the call does not name them all.
//!
//! By default these are the papers' columns, or the only compressed one; else all numbers, booleans, texts, enums and
//! vectors but what identifies rows; or, without anything but vectors, the only column of these; or else keys of JSON,
//! or words. A model is never trained on an id because nothing else was looked for, and whatever is left out, or more
//! than a number, is reported in one notice. What statistics have decided is recorded with the model as names, so that
//! predictions do not depend on them.

use super::column_facts::{
    Certainty, Facts, Identity, Kind, Known, Nothing, facts_of, is_called_code, kind_of, ragged,
};
use super::columns::{of_column, use_of};
use super::compressed_type::is_compressed;
use super::json_keys::keys_of;
use super::sample::Sample;
use super::{FEATURE_TYPES, column};
use choices::Choice as _;
use errors::{ArgumentError, Result, SourceError, some_of};
use facts::{DayOrder, Meaning, Variants, quote_text};
use options::columns::OtherColumns;
use options::date_parts::DateParts;
use pg::catalog::names::quote_identifier;
use pg::catalog::relation::{Uniqueness, has_places};
use pg::catalog::types::{base_type, type_name};
use pg::executor::query::Column;
use pg::values::date_part::{DatePart, TimeType};
use pg::values::jsonb::JsonType;
use pg::values::part::is_null_of_column;
use pg::values::text_part::{date_of_column, numbers_of_column};
use pgrx::pg_sys;
use std::collections::HashSet;

/// Names of the papers' schema: id, features_k, features_v, label.
const PAPERS_VALUES: &str = "features_v";
const PAPERS_INDICES: &str = "features_k";

/// Every column that can be a feature.
const ALL: &str = "*";

/// What features are looked for in.
pub struct Searched<'a> {
    pub columns: &'a [Column],
    /// the text behind FROM
    pub from: &'a str,
    pub relation: Option<pg_sys::Oid>,
    pub label: &'a str,
    /// columns that are used otherwise
    pub others: &'a OtherColumns<'a>,
    pub takes: Takes<'a>,
    /// what a sample of the rows says about them, which is read if need be
    pub sample: &'a dyn Fn() -> Result<Option<&'a Sample>>,
}

impl Searched<'_> {
    /// What the facts of its columns are taken from.
    pub(super) fn known<'b>(&self, sample: Option<&'b Sample>) -> Known<'b> {
        let is_untyped = sample.is_some_and(|sample| sample.is_untyped(self.columns.iter(), self.label));
        Known { sample, relation: self.relation, is_untyped }
    }
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
            None => return named(names, searched),
        },
    };
    let free = listed.free(searched);
    if let Some(names) = of_papers(&free).or_else(|| only_compressed(&free)) {
        return Ok(names);
    }
    let mut choice = Choice::new(free, &listed, searched)?;
    choice.choose()?;
    choice.report();
    Ok(choice.candidates.iter().flat_map(Candidate::features).collect())
}

/// Is it the time that folds go by, of which parts are features?
fn has_own_parts(column: &Column, searched: &Searched) -> bool {
    searched.others.time == Some(&column.name)
        && !matches!(searched.takes, Takes::All(Some(DateParts::Auto)))
        && !parts_of(column, searched.takes).is_empty()
}

/// Are features to be looked for, as this list does not name them all?
pub fn are_open(given: Option<&[String]>, columns: &[Column]) -> bool {
    given.is_none_or(|names| !matches!(Listed::read(names, columns), Ok(None)))
}

/// Does it depend on its values whether a column is a feature?
pub fn depends_on_values(column: &Column) -> bool {
    matches!(kind_of(column.type_oid), Kind::Number { .. } | Kind::Text | Kind::Time)
}

/// The parts of a column that are features in its place; none if it is no date, or none are asked for.
pub(super) fn parts_of(column: &Column, takes: Takes) -> Vec<DatePart> {
    let (Takes::All(Some(parts)), Some(time)) = (takes, TimeType::from_oid(base_type(column.type_oid))) else {
        return Vec::new();
    };
    parts.of_type(time)
}

/// The features that these names are, with the parts of dates and the keys of JSON in place of them, each once.
fn named(names: &[String], searched: &Searched) -> Result<Vec<String>> {
    let mut features: Vec<String> = Vec::new();
    for name in names {
        for feature in parts_or_name(name, searched)? {
            if !features.contains(&feature) {
                features.push(feature);
            }
        }
    }
    Ok(features)
}

/// The parts of the date, or the keys of the JSON, that this column is, or its name.
fn parts_or_name(name: &str, searched: &Searched) -> Result<Vec<String>> {
    let Some(column) = searched.columns.iter().find(|column| column.name == name) else {
        return Ok(vec![name.to_owned()]);
    };
    if searched.takes != Takes::Numbers && JsonType::from_oid(base_type(column.type_oid)).is_some() {
        let keys = keys_of(name, searched.from)?;
        if keys.is_empty() {
            let hint = format!("The first rows have no keys of numbers or texts in column \"{name}\".");
            return Err(SourceError::NoFeatures { hint }.into());
        }
        return Ok(keys);
    }
    let parts = parts_of(column, searched.takes);
    Ok(match parts.is_empty() {
        true => vec![name.to_owned()],
        false => parts.iter().map(|part| part.of_column(name)).collect(),
    })
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

/// The parts of a column of texts that are features in its place; none unless the texts are dates.
fn parts_of_texts(facts: &Facts, takes: Takes) -> (Vec<DatePart>, Option<DayOrder>) {
    let (Takes::All(Some(parts)), Meaning::Dates(dates)) = (takes, &facts.meaning) else { return (Vec::new(), None) };
    let time = if dates.has_hours() { TimeType::Timestamp } else { TimeType::Date };
    let is_part = |part: &DatePart| match part {
        DatePart::Epoch => false,
        DatePart::Day | DatePart::Dow | DatePart::Doy => dates.has_days(),
        _ => true,
    };
    let parts = parts.of_type(time).into_iter().filter(is_part).collect();
    if dates.order.is_some() { (parts, dates.order) } else { (Vec::new(), None) }
}

pub(super) struct Candidate<'a> {
    pub(super) column: &'a Column,
    pub(super) facts: Facts,
    /// features in its place
    pub(super) parts: Vec<DatePart>,
    /// how texts have these parts
    pub(super) order: Option<DayOrder>,
    /// the same of JSON
    pub(super) keys: Vec<String>,
    /// why it is no feature
    pub(super) out: Option<LeftOut>,
    /// is it one whether it is NULL?
    pub(super) is_null: bool,
}

/// Why a column is no feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeftOut {
    Key,
    Identity(Identity),
    NearlyUnique,
    /// it is the same in all rows
    Nothing(Nothing),
    /// texts that are dates
    Dates,
    Time,
    Array,
    /// arrays of different lengths
    Lengths,
    SparseVectors,
    /// words, which are many features
    Words,
    /// an object, whose keys are many features
    Json,
    /// only numbers are asked for
    NoNumber,
    BesideArray,
    Type,
}

impl Candidate<'_> {
    fn features(&self) -> Vec<String> {
        let name = &self.column.name;
        if self.out.is_some() {
            return if self.is_null { vec![is_null_of_column(name)] } else { Vec::new() };
        }
        let part = |part: &DatePart| match self.order {
            Some(order) => date_of_column(order, *part, name),
            None => part.of_column(name),
        };
        match (self.parts.as_slice(), self.facts.style) {
            ([], _) if !self.keys.is_empty() => self.keys.clone(),
            ([], Some(style)) => vec![numbers_of_column(style, name)],
            ([], None) => vec![name.clone()],
            (parts, _) => parts.iter().map(part).collect(),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.facts.kind, Kind::Number { .. })
    }

    fn is_vector(&self) -> bool {
        matches!(self.facts.kind, Kind::Array | Kind::Sparse)
    }

    fn is_category(&self) -> bool {
        matches!(self.facts.kind, Kind::Text | Kind::Enum) && self.parts.is_empty()
    }

    /// Why its type cannot be a feature.
    fn unfit(&self, takes: Takes, takes_all: bool) -> Option<LeftOut> {
        match self.facts.kind {
            Kind::Array | Kind::Sparse if takes == Takes::Numbers => Some(LeftOut::Array),
            Kind::Array => self.facts.is_ragged.then_some(LeftOut::Lengths),
            Kind::Sparse => Some(LeftOut::SparseVectors),
            Kind::Words if !takes_all && takes != Takes::Numbers => Some(LeftOut::Words),
            Kind::Time if self.parts.is_empty() => Some(LeftOut::Time),
            Kind::Json if takes != Takes::Numbers => (!takes_all).then_some(LeftOut::Json),
            Kind::Json | Kind::Bytes | Kind::Other => Some(LeftOut::Type),
            Kind::Text if matches!(self.facts.meaning, Meaning::Dates(_)) && self.parts.is_empty() => {
                Some(LeftOut::Dates)
            }
            Kind::Text | Kind::Enum | Kind::Words if takes == Takes::Numbers => Some(LeftOut::NoNumber),
            _ if takes_all || takes == Takes::Numbers => None,
            _ => self.facts.says_nothing().map(LeftOut::Nothing),
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
            LeftOut::Nothing(Nothing::NoValue) => "no value".to_owned(),
            LeftOut::Nothing(Nothing::Constant) => "always the same value".to_owned(),
            LeftOut::Dates => {
                let what = if let Meaning::Dates(dates) = &self.facts.meaning { dates.name() } else { "dates" };
                format!("{type_name} with {what}: use {}", self.expression().unwrap_or_default())
            }
            LeftOut::Array => format!("{type_name}, an array among other columns"),
            LeftOut::Lengths => format!("{type_name}, arrays of different lengths"),
            LeftOut::SparseVectors => format!("{type_name}: cast it to vector to use it next to other columns"),
            LeftOut::BesideArray => format!("{type_name}, a column in addition to an array"),
            LeftOut::Words => format!("{type_name}: name it in features to use its words"),
            LeftOut::Json => format!("{type_name}: name it in features to use its keys"),
            LeftOut::NoNumber => format!("{type_name}, not a number"),
            LeftOut::Time if TimeType::from_oid(base_type(self.column.type_oid)).is_some() => {
                let is_event = self.facts.distinct.is_some() && !self.facts.has_periods();
                let recurs = if is_event { " that rarely recurs" } else { "" };
                format!("{type_name}{recurs}: use date_parts for its parts")
            }
            LeftOut::Time | LeftOut::Type => match use_of(base_type(self.column.type_oid)) {
                Some(expressions) => format!("{type_name}: use {}", of_column(expressions, &self.column.name)),
                None => type_name,
            },
        }
    }

    /// A date and its parts, for people; None if it is no date.
    fn describe_parts(&self) -> Option<String> {
        Some(format!("{} ({})", self.column.name, self.known_parts()?))
    }

    /// The parts, for people; None if it is no date.
    pub(super) fn known_parts(&self) -> Option<String> {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name()).collect();
        let as_text = self.order.map_or_else(String::new, |order| format!("text, {}: ", order.name()));
        (!names.is_empty()).then(|| format!("{as_text}{}", names.join(", ")))
    }

    /// Numbers that are texts, and what becomes of the other texts, for people; None of others.
    pub(super) fn texts_as_numbers(&self) -> Option<String> {
        let Meaning::Numbers(numbers) = &self.facts.meaning else { return None };
        self.facts.style?;
        let codes = numbers.codes.iter().map(|(code, count)| format!("{} {count} times", quote_text(code)));
        let others = numbers.others.iter().filter(|(other, _)| numbers.codes.iter().all(|(code, _)| code != other));
        let others = others.map(|(other, count)| format!("texts such as {} {count} times", quote_text(other)));
        let missing: Vec<String> = codes.chain(others).collect();
        Some(match missing.is_empty() {
            true => String::new(),
            false => format!("{} taken as NULL", some_of(&missing)),
        })
    }

    /// What its texts are if they are no texts, as an expression.
    pub(super) fn expression(&self) -> Option<String> {
        self.facts.meaning.expression(&quote_identifier(&self.column.name))
    }

    /// The numbers that its texts are, for people; None if they are not.
    pub(super) fn numbers(&self) -> Option<String> {
        let Meaning::Numbers(numbers) = &self.facts.meaning else { return None };
        if self.facts.style.is_some() || numbers.distinct <= 2 {
            return None;
        }
        let codes: Vec<String> = numbers.codes.iter().map(|(code, _)| quote_text(code)).collect();
        let codes = if codes.is_empty() { String::new() } else { format!(" and {}", some_of(&codes)) };
        Some(format!("contains numbers{codes}: use {} if they are amounts", self.expression()?))
    }

    /// A category and what to know of it, for people.
    fn describe_category(&self) -> String {
        let known: Vec<String> = self.categories().into_iter().chain(self.variants()).chain(self.numbers()).collect();
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

    /// Texts that differ only in case and blanks, for people; None without such texts.
    pub(super) fn variants(&self) -> Option<String> {
        let Variants { one, other, distinct } = self.facts.variants.as_ref()?;
        let is_exact = self.facts.distinct.is_some_and(|known| known.certainty == Certainty::Exact);
        let fewer = if is_exact { format!(" for {distinct}") } else { String::new() };
        let expression = without_variants(self.column);
        Some(format!("{} and {} differ in case or blanks: use {expression}{fewer}", quote_text(one), quote_text(other)))
    }

    /// Numbers that are probably codes, for people; None without such values.
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
    /// the text behind FROM
    from: &'a str,
}

impl<'a> Choice<'a> {
    /// The choice among these columns, with what is known of them.
    pub(super) fn new(free: Vec<&'a Column>, listed: &Listed, searched: &Searched<'a>) -> Result<Choice<'a>> {
        let sample = if free.iter().any(|column| depends_on_values(column)) { (searched.sample)()? } else { None };
        let facts = facts_of(&free, searched.known(sample));
        let ragged = match searched.relation.is_some_and(has_places) {
            true => ragged(&free, searched.from)?,
            false => HashSet::new(),
        };
        let takes = searched.takes;
        let candidates = free.into_iter().zip(facts).map(|(column, facts)| {
            let facts = if takes == Takes::Numbers { facts.into_texts() } else { facts };
            let facts = Facts { is_ragged: ragged.contains(column.name.as_str()), ..facts };
            let (of_texts, order) = parts_of_texts(&facts, takes);
            let mut parts = if order.is_some() { of_texts } else { parts_of(column, takes) };
            if !listed.all && takes == Takes::All(Some(&DateParts::Auto)) && !facts.has_periods() {
                parts.clear();
            }
            Candidate { column, facts, parts, order, keys: Vec::new(), out: None, is_null: false }
        });
        let sampled = sample.and_then(Sample::describe);
        Ok(Choice { candidates: candidates.collect(), takes_all: listed.all, takes, sampled, from: searched.from })
    }
}

impl Choice<'_> {
    fn taken(&self) -> impl Iterator<Item = &Candidate<'_>> {
        self.candidates.iter().filter(|candidate| candidate.out.is_none())
    }

    pub(super) fn choose(&mut self) -> Result<()> {
        for candidate in &mut self.candidates {
            let identifies = || candidate.identifies().filter(|_| !self.takes_all);
            candidate.out = identifies().or_else(|| candidate.unfit(self.takes, self.takes_all));
        }
        // sparse vectors are the only feature, or none
        let has_sparse = self.candidates.iter().any(|candidate| candidate.facts.kind == Kind::Sparse);
        let only_numbers = has_sparse || self.takes == Takes::Numbers;
        let counts = |candidate: &Candidate| match only_numbers {
            true => candidate.is_number(),
            false => !candidate.is_vector(),
        };
        // an id next to an array is no reason to take another way than with the array alone
        if !self.taken().any(|candidate| counts(candidate) && candidate.identifies().is_none()) {
            let mut others = [LeftOut::Json, LeftOut::Words].into_iter();
            let other = others.find(|out| self.candidates.iter().any(|candidate| candidate.out == Some(*out)));
            match other.filter(|_| !self.candidates.iter().any(Candidate::is_vector)) {
                Some(other) => self.take_what_is(other),
                None => self.choose_array()?,
            }
        }
        for candidate in self.candidates.iter_mut().filter(|c| c.out.is_none() && c.facts.kind == Kind::Json) {
            candidate.keys = keys_of(&candidate.column.name, self.from)?;
            // an object without keys has nothing to learn from
            candidate.out = candidate.keys.is_empty().then_some(LeftOut::Type);
        }
        if self.taken().next().is_none() {
            // x = 1, 2, 3, ... may be measured: what is unique by its values alone is better than nothing
            self.take_what_is(LeftOut::Identity(Identity::Values));
        }
        if self.taken().next().is_none() {
            self.take_what_is(LeftOut::Nothing(Nothing::Constant));
        }
        for candidate in &mut self.candidates {
            let is_of_texts = matches!(candidate.out, Some(LeftOut::NearlyUnique | LeftOut::Dates));
            candidate.is_null = is_of_texts && self.takes != Takes::Numbers && candidate.facts.is_often_null();
        }
        match self.taken().next() {
            Some(_) => Ok(()),
            None => Err(SourceError::NoFeatures { hint: self.hint() }.into()),
        }
    }

    /// Takes the only array or vector alone, or, without one, the only column of bytes.
    fn choose_array(&mut self) -> Result<()> {
        let has_arrays = self.candidates.iter().any(Candidate::is_vector);
        let is_array = |candidate: &Candidate| match has_arrays {
            true => candidate.is_vector(),
            false => candidate.facts.kind == Kind::Bytes,
        };
        let arrays: Vec<&str> =
            self.candidates.iter().filter(|c| is_array(c)).map(|c| c.column.name.as_str()).collect();
        match arrays.as_slice() {
            [] => Ok(()),
            [_] => {
                for candidate in &mut self.candidates {
                    candidate.out = match candidate.out {
                        _ if is_array(candidate) => None,
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

    /// Takes after all what was left out for this reason.
    fn take_what_is(&mut self, left_out: LeftOut) {
        let those = self.candidates.iter_mut().filter(|candidate| candidate.out == Some(left_out));
        those.for_each(|candidate| candidate.out = None);
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
            by_values |= matches!(
                out,
                LeftOut::Identity(Identity::Values) | LeftOut::NearlyUnique | LeftOut::Dates | LeftOut::Nothing(_)
            );
        }
        let one_hot: Vec<String> =
            self.taken().filter(|candidate| candidate.is_category()).map(Candidate::describe_category).collect();
        let as_numbers: Vec<String> = self.taken().filter_map(as_number).collect();
        let parts: Vec<String> = self.taken().filter_map(Candidate::describe_parts).collect();
        let taken: Vec<&Candidate> = self.taken().collect();
        let named = |is_it: &dyn Fn(&Candidate) -> bool| -> Vec<String> {
            taken.iter().filter(|candidate| is_it(candidate)).map(|candidate| candidate.column.name.clone()).collect()
        };
        let vectors = if taken.len() > 1 { named(&|candidate| candidate.is_vector()) } else { Vec::new() };
        let words = named(&|candidate| candidate.facts.kind == Kind::Words);
        let codes: Vec<String> = self.taken().filter_map(Candidate::describe_codes).collect();
        let texts: Vec<String> = taken
            .iter()
            .filter_map(|candidate| {
                let missing = candidate.texts_as_numbers()?;
                let name = &candidate.column.name;
                Some(if missing.is_empty() { name.clone() } else { format!("{name} ({missing})") })
            })
            .collect();
        let nulls = self.candidates.iter().filter(|candidate| candidate.is_null);
        let nulls: Vec<String> = nulls.map(|candidate| candidate.column.name.clone()).collect();
        let groups = [
            ("left out", self.left_out()),
            ("of these, whether they are NULL is a feature", nulls),
            ("parts", parts),
            ("as numbers, though text", texts),
            ("one-hot", one_hot),
            ("vectors", vectors),
            ("words", words),
            ("as numbers", as_numbers),
            ("probably codes", codes),
        ];
        if !is_special && groups[1..].iter().all(|(_, columns)| columns.is_empty()) {
            return;
        }
        let chosen = match taken.as_slice() {
            [only] if only.is_vector() || only.facts.kind == Kind::Bytes => format!("array {}", only.column.name),
            [only] => format!("column {}", only.column.name),
            several => format!("{} columns", several.len()),
        };
        let told = groups.iter().filter(|(_, columns)| !columns.is_empty());
        let told: String = told.map(|(group, columns)| format!("; {group}: {}", some_of(columns))).collect();
        let depends = by_values || groups[2..].iter().any(|(_, columns)| !columns.is_empty());
        let sampled = self.sampled.iter().filter(|_| depends).map(|sampled| format!("; {sampled}"));
        let sampled: String = sampled.collect();
        let has_expressions = self.candidates.iter().any(|candidate| {
            (candidate.expression().is_some_and(|_| !matches!(candidate.facts.meaning, Meaning::YesNo(_)))
                && candidate.order.is_none()
                && candidate.facts.style.is_none())
                || (candidate.out.is_none() && !candidate.facts.codes.is_empty())
                || (candidate.is_category() && candidate.variants().is_some())
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

/// The texts of a column without differences in case and blanks, as SQL writes it.
pub(super) fn without_variants(column: &Column) -> String {
    format!("lower(trim({}))", quote_identifier(&column.name))
}

/// A number that may be something else, and what, for people.
fn as_number(candidate: &Candidate) -> Option<String> {
    let name = &candidate.column.name;
    if candidate.facts.style.is_some() {
        return None;
    }
    match (candidate.facts.kind, candidate.identifies()) {
        (Kind::Number { .. }, Some(LeftOut::Identity(Identity::Values))) => Some(format!("{name} (unique)")),
        (Kind::Number { is_whole: true }, None) if is_called_code(candidate.column) => {
            Some(format!("{name} (cast it to text if it is a code)"))
        }
        _ => None,
    }
}
