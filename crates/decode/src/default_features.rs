//! Which columns of a source are features, where the call does not name them all.
//!
//! By default these are the papers' columns, or the only compressed one; else all numbers, booleans, texts, enums and
//! vectors but what identifies rows; or, without anything but vectors, the only column of these; or else keys of JSON, or words. A model is never trained on an id because
//! nothing else was looked for, and whatever is left out, or more than a number, is reported in one notice. What
//! statistics have decided is recorded with the model as names, so that predictions do not depend on them.

use super::column_facts::{Facts, Identity, Kind, facts_of};
use super::columns::{of_column, use_of};
use super::compressed_type::is_compressed;
use super::json_keys::keys_of;
use super::{FEATURE_TYPES, column};
use choices::Choice as _;
use errors::{ArgumentError, Result, SourceError, some_of};
use options::columns::OtherColumns;
use options::date_parts::DateParts;
use pg::catalog::relation::Uniqueness;
use pg::catalog::types::{base_type, type_name};
use pg::executor::query::Column;
use pg::values::date_part::{DatePart, TimeType};
use pg::values::jsonb::JsonType;
use pgrx::pg_sys;

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
    let is_free = |column: &&Column| {
        let name = column.name.as_str();
        let is_used = searched.others.names.contains(&name) && !has_own_parts(column, searched);
        name != searched.label && !is_used && !listed.excluded.contains(&name)
    };
    let free: Vec<&Column> = searched.columns.iter().filter(is_free).collect();
    if let Some(names) = of_papers(&free).or_else(|| only_compressed(&free)) {
        return Ok(names);
    }
    let facts = facts_of(&free, searched.from, searched.relation)?;
    let takes = searched.takes;
    let candidates = free.into_iter().zip(facts).map(|(column, facts)| {
        let parts = parts_of(column, takes);
        Candidate { column, facts, parts, keys: Vec::new(), out: None }
    });
    let candidates = candidates.collect();
    let mut choice = Choice { candidates, takes_all: listed.all, takes };
    choice.choose(searched.from)?;
    choice.report();
    Ok(choice.taken().flat_map(Candidate::features).collect())
}

/// Is it the time that folds go by, of which parts are features?
fn has_own_parts(column: &Column, searched: &Searched) -> bool {
    searched.others.time == Some(&column.name) && !parts_of(column, searched.takes).is_empty()
}

/// The parts of a column that are features in its place; none if it is no date, or none are asked for.
fn parts_of(column: &Column, takes: Takes) -> Vec<DatePart> {
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
struct Listed<'a> {
    /// every column that can be one
    all: bool,
    /// but these
    excluded: Vec<&'a str>,
}

impl<'a> Listed<'a> {
    /// None of a list of names. A column that is called so is meant by its name.
    fn read(given: &'a [String], columns: &[Column]) -> Result<Option<Listed<'a>>> {
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
fn of_papers(free: &[&Column]) -> Option<Vec<String>> {
    let has = |name: &str| free.iter().any(|column| column.name == name);
    let names = [PAPERS_INDICES, PAPERS_VALUES].into_iter().filter(|name| has(name)).map(str::to_owned);
    has(PAPERS_VALUES).then(|| names.collect())
}

fn only_compressed(free: &[&Column]) -> Option<Vec<String>> {
    let mut compressed = free.iter().filter(|column| is_compressed(base_type(column.type_oid)));
    match (compressed.next(), compressed.next()) {
        (Some(only), None) => Some(vec![only.name.clone()]),
        _ => None,
    }
}

struct Candidate<'a> {
    column: &'a Column,
    facts: Facts,
    /// features in its place
    parts: Vec<DatePart>,
    /// the same of JSON
    keys: Vec<String>,
    /// why it is no feature
    out: Option<LeftOut>,
}

/// Why a column is no feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Key,
    Identity(Identity),
    NearlyUnique,
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
        match self.parts.as_slice() {
            [] if !self.keys.is_empty() => self.keys.clone(),
            [] => vec![name.clone()],
            parts => parts.iter().map(|part| part.of_column(name)).collect(),
        }
    }

    fn is_number(&self) -> bool {
        matches!(self.facts.kind, Kind::Number { .. })
    }

    fn is_vector(&self) -> bool {
        matches!(self.facts.kind, Kind::Array | Kind::Sparse)
    }

    fn is_category(&self) -> bool {
        matches!(self.facts.kind, Kind::Text | Kind::Enum)
    }

    /// Why its type cannot be a feature.
    fn unfit(&self, takes: Takes, takes_all: bool) -> Option<LeftOut> {
        match self.facts.kind {
            Kind::Array | Kind::Sparse if takes == Takes::Numbers => Some(LeftOut::Array),
            Kind::Array => self.facts.is_ragged.then_some(LeftOut::Lengths),
            Kind::Sparse => Some(LeftOut::SparseVectors),
            Kind::Words if !takes_all && takes != Takes::Numbers => Some(LeftOut::Words),
            Kind::Time => self.parts.is_empty().then_some(LeftOut::Time),
            Kind::Json if takes != Takes::Numbers => (!takes_all).then_some(LeftOut::Json),
            Kind::Json | Kind::Bytes | Kind::Other => Some(LeftOut::Type),
            Kind::Text | Kind::Enum | Kind::Words if takes == Takes::Numbers => Some(LeftOut::NoNumber),
            _ => None,
        }
    }

    /// Why it is no feature although it could be.
    fn identifies(&self) -> Option<LeftOut> {
        if self.column.is_key {
            return Some(LeftOut::Key);
        }
        let nearly_unique = self.facts.texts.is_some_and(|texts| texts.are_nearly_unique);
        self.facts.identity.map(LeftOut::Identity).or(nearly_unique.then_some(LeftOut::NearlyUnique))
    }

    /// The column and why it is left out, for people.
    fn describe(&self, out: LeftOut) -> String {
        let (name, type_name) = (&self.column.name, type_name(self.column.type_oid));
        let why = match out {
            LeftOut::Key => "primary key".to_owned(),
            LeftOut::Identity(Identity::Name) => "identifies rows, by its name".to_owned(),
            LeftOut::Identity(Identity::Catalog(Uniqueness::Identity)) => "identifies rows: identity column".to_owned(),
            LeftOut::Identity(Identity::Catalog(Uniqueness::Index)) => "identifies rows: unique index".to_owned(),
            LeftOut::Identity(Identity::Statistics) => "identifies rows: unique, by ANALYZE".to_owned(),
            LeftOut::NearlyUnique => format!("{type_name}, nearly unique"),
            LeftOut::Array => format!("{type_name}, an array among other columns"),
            LeftOut::Lengths => format!("{type_name}, arrays of different lengths"),
            LeftOut::SparseVectors => format!("{type_name}: cast it to vector to use it next to other columns"),
            LeftOut::BesideArray => format!("{type_name}, a column in addition to an array"),
            LeftOut::Words => format!("{type_name}: name it in features to use its words"),
            LeftOut::Json => format!("{type_name}: name it in features to use its keys"),
            LeftOut::NoNumber => format!("{type_name}, not a number"),
            LeftOut::Time if TimeType::from_oid(base_type(self.column.type_oid)).is_some() => {
                format!("{type_name}: use date_parts for its parts")
            }
            LeftOut::Time | LeftOut::Type => match use_of(base_type(self.column.type_oid)) {
                Some(expressions) => format!("{type_name}: use {}", of_column(expressions, name)),
                None => type_name,
            },
        };
        format!("{name} ({why})")
    }

    /// A date and its parts, for people; None if it is no date.
    fn describe_parts(&self) -> Option<String> {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name()).collect();
        (!names.is_empty()).then(|| format!("{} ({})", self.column.name, names.join(", ")))
    }

    /// A category and what to know of it, for people.
    fn describe_category(&self) -> String {
        let texts = self.facts.texts;
        let categories = texts.and_then(|texts| texts.categories).map(|count| match count {
            1 => "1 category".to_owned(),
            count => format!("about {count} categories"),
        });
        let numbers = texts.filter(|texts| texts.are_numbers);
        let numbers = numbers.map(|_| "contains numbers: cast it to a number if it is one".to_owned());
        let known: Vec<String> = categories.into_iter().chain(numbers).collect();
        match known.is_empty() {
            true => self.column.name.clone(),
            false => format!("{} ({})", self.column.name, known.join(", ")),
        }
    }
}

struct Choice<'a> {
    candidates: Vec<Candidate<'a>>,
    /// also what identifies rows
    takes_all: bool,
    takes: Takes<'a>,
}

impl Choice<'_> {
    fn taken(&self) -> impl Iterator<Item = &Candidate<'_>> {
        self.candidates.iter().filter(|candidate| candidate.out.is_none())
    }

    fn choose(&mut self, from: &str) -> Result<()> {
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
            candidate.keys = keys_of(&candidate.column.name, from)?;
            // an object without keys has nothing to learn from
            candidate.out = candidate.keys.is_empty().then_some(LeftOut::Type);
        }
        if self.taken().next().is_none() {
            // x = 1, 2, 3, ... may be measured: what is unique by ANALYZE alone is better than nothing
            self.take_what_is(LeftOut::Identity(Identity::Statistics));
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
        let is_special = left_out.into_iter().any(|out| !(is_only_key(&out) && keys == 1));
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
        let nothing = [&one_hot, &as_numbers, &parts, &vectors, &words].iter().all(|group| group.is_empty());
        if !is_special && nothing {
            return;
        }
        let chosen = match taken.as_slice() {
            [only] if only.is_vector() || only.facts.kind == Kind::Bytes => format!("array {}", only.column.name),
            [only] => format!("column {}", only.column.name),
            several => format!("{} columns", several.len()),
        };
        let groups = [
            ("left out", self.left_out()),
            ("parts", parts),
            ("one-hot", one_hot),
            ("vectors", vectors),
            ("words", words),
            ("as numbers", as_numbers),
        ];
        let told = groups.iter().filter(|(_, columns)| !columns.is_empty());
        let told: String = told.map(|(group, columns)| format!("; {group}: {}", some_of(columns))).collect();
        pg::notice(
            format!("features: {chosen}{told}"),
            "To change this, name the features; '{*,-id}' uses every possible column except id.",
        );
    }
}

/// A number that may be something else, and what, for people.
fn as_number(candidate: &Candidate) -> Option<String> {
    let name = &candidate.column.name;
    match (candidate.facts.kind, candidate.identifies()) {
        (Kind::Number { .. }, Some(LeftOut::Identity(Identity::Statistics))) => {
            Some(format!("{name} (unique, by ANALYZE)"))
        }
        (Kind::Number { is_whole: true }, None) if name.to_lowercase().ends_with("_id") => {
            Some(format!("{name} (cast it to text if it is a code)"))
        }
        _ => None,
    }
}
