//! What a sample says about a column of texts.

use super::date_texts::{DateOrder, DateTexts};
use super::distinct::Distinct;
use super::number_texts::NumberTexts;
use super::sql::{is_code, without};

/// A sample of a column of texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Texts {
    /// how many there are
    pub counts: Distinct,
    /// what they are
    pub meaning: Meaning,
    /// the most frequent one, or the first by its letters
    pub example: Option<String>,
    /// texts that differ only in case or in blanks around them: two of them, and how many more of the different ones
    /// would be none of their own
    pub variants: Option<Variants>,
}

/// Categories that are probably one, such as `Red` and `red `.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants {
    /// the most frequent of the first that differ so
    pub one: String,
    /// another one
    pub other: String,
    /// different texts if case and blanks did not count
    pub distinct: u64,
}

/// What the texts of a column are.
#[derive(Debug, Clone, PartialEq)]
pub enum Meaning {
    /// texts
    Plain,
    /// numbers, but for codes
    Numbers(NumberTexts),
    /// dates or times
    Dates(DateTexts),
    /// two words that are yes and no, but for these codes
    YesNo(Vec<String>),
}

/// Words for yes and no that PostgreSQL reads as boolean.
const YES_NO: [[&str; 2]; 5] = [["y", "n"], ["yes", "no"], ["t", "f"], ["true", "false"], ["on", "off"]];

impl Texts {
    /// Of these texts, without NULLs.
    pub fn of(mut texts: Vec<String>, order: DateOrder) -> Texts {
        texts.sort_unstable();
        let runs: Vec<(&str, u64)> =
            texts.chunk_by(|a, b| a == b).map(|run| (run[0].as_str(), run.len() as u64)).collect();
        let most = runs.iter().filter(|(text, _)| !is_code(text)).rev().max_by_key(|(_, count)| *count);
        Texts {
            counts: Distinct::of_runs(runs.iter().map(|(_, count)| *count)),
            meaning: Meaning::of(&runs, order),
            variants: Variants::of(&runs),
            example: most.or(runs.first()).map(|(text, _)| (*text).to_owned()),
        }
    }
}

impl Variants {
    /// Of these different texts with their counts. What rarely recurs is no category.
    fn of(texts: &[(&str, u64)]) -> Option<Variants> {
        let rows: u64 = texts.iter().map(|(_, count)| count).sum();
        if 2 * texts.len() as u64 > rows {
            return None;
        }
        let mut folded: Vec<(String, &str, u64)> =
            texts.iter().map(|(text, count)| (text.trim().to_lowercase(), *text, *count)).collect();
        folded.sort_by(|a, b| a.0.cmp(&b.0).then(b.2.cmp(&a.2)));
        let same = || folded.chunk_by(|a, b| a.0 == b.0);
        let first = same().filter(|group| group.len() > 1).max_by_key(|group| group[1].2)?;
        Some(Variants { one: first[0].1.to_owned(), other: first[1].1.to_owned(), distinct: same().count() as u64 })
    }
}

impl Meaning {
    fn of(texts: &[(&str, u64)], order: DateOrder) -> Meaning {
        if let Some(codes) = yes_no(texts) {
            return Meaning::YesNo(codes);
        }
        let numbers = || NumberTexts::of(texts).map(Meaning::Numbers);
        let dates = || DateTexts::of(texts, order).map(Meaning::Dates);
        numbers().or_else(dates).unwrap_or(Meaning::Plain)
    }

    /// What these texts are, as an expression on their column, which is given as SQL writes it; None if they are texts.
    pub fn expression(&self, column: &str) -> Option<String> {
        match self {
            Meaning::Plain => None,
            Meaning::Numbers(numbers) => Some(numbers.expression(column)),
            Meaning::Dates(dates) => Some(dates.expression(column)),
            Meaning::YesNo(codes) => Some(format!("{}::boolean", without(column, codes))),
        }
    }
}

/// The codes among these texts if the others are two words for yes and no.
fn yes_no(texts: &[(&str, u64)]) -> Option<Vec<String>> {
    let (codes, words): (Vec<&str>, Vec<&str>) = texts.iter().map(|(text, _)| *text).partition(|text| is_code(text));
    let words: Vec<String> = words.iter().map(|word| word.trim().to_ascii_lowercase()).collect();
    let [one, other] = words.as_slice() else { return None };
    let is_pair = YES_NO.iter().any(|[yes, no]| (one == yes && other == no) || (one == no && other == yes));
    is_pair.then(|| codes.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Texts {
        Texts::of(texts.iter().map(|text| (*text).to_owned()).collect(), DateOrder::Mdy)
    }

    #[test]
    fn texts_are_counted_with_the_most_frequent_as_example() {
        let texts = of(&["b", "a", "b", "?", "?", "?"]);
        assert_eq!(texts.counts, Distinct { values: 6, distinct: 3, singles: 1, ..Distinct::default() });
        assert_eq!(texts.example.as_deref(), Some("b"));
        assert_eq!(of(&["b", "a"]).example.as_deref(), Some("a"));
        assert_eq!(of(&["?", "?"]).example.as_deref(), Some("?"));
        assert_eq!(of(&[]).example, None);
    }

    #[test]
    fn texts_that_differ_in_case_or_blanks_are_variants() {
        let variants =
            of(&["Red", "Red", "red ", "red ", "blue", "blue", "Blue", "blue", "green", "green"]).variants.unwrap();
        assert_eq!((variants.one.as_str(), variants.other.as_str(), variants.distinct), ("Red", "red ", 3));
        assert_eq!(of(&["Red", "Red", "blue", "blue"]).variants, None);
        assert_eq!(of(&["Red", "red"]).variants, None, "they do not recur");
        assert_eq!(of(&[]).variants, None);
    }

    #[test]
    fn what_texts_are_is_an_expression() {
        let expression = |texts: &[&str]| of(texts).meaning.expression("a");
        assert_eq!(expression(&["Bern", "Chur"]), None);
        assert_eq!(expression(&["1", "2", "?"]).as_deref(), Some("NULLIF(a, '?')::float8"));
        assert_eq!(expression(&["2013-01-05", "2013-01-06"]).as_deref(), Some("a::date"));
        assert_eq!(expression(&["Y", "N", "N"]).as_deref(), Some("a::boolean"));
        assert_eq!(expression(&["yes", "No", ""]).as_deref(), Some("NULLIF(a, '')::boolean"));
        assert_eq!(expression(&["Y", "Y"]), None);
        assert_eq!(expression(&["y", "Y", "n"]), None, "three words");
        assert_eq!(expression(&[]), None);
    }
}
