//! Texts that are numbers: with codes for missing values, currencies, per cent, thousands and decimal commas.

use super::numbers::Numbers;
use super::sql::{is_code, quote_text, without};
use super::written::NumberStyle;

/// How the texts of a column are numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberTexts {
    /// is the decimal sign a comma?
    pub decimal_comma: bool,
    /// what has to go before the text is a number: signs of currencies, %, separators of thousands
    pub removed: String,
    /// what stands in front of each number or behind it, as in `USD 5` and `5 kg`
    pub unit: String,
    /// what stands for a missing value, with the rows of the sample that have it
    pub codes: Vec<(String, u64)>,
    /// other texts that are no numbers, of which there are several: one of them, and the rows of the sample
    pub others: Option<(String, u64)>,
    /// different numbers
    pub distinct: u64,
    /// the numbers
    pub numbers: Numbers,
    /// is any of them written as no code is: with a decimal sign, an exponent, or blanks in front?
    pub are_written_out: bool,
    /// do all of them read so, as a feature that is a number?
    pub reads: bool,
}

/// Signs of currencies that a number may begin or end with.
const CURRENCIES: [char; 7] = ['$', '€', '£', '¥', '₹', '₽', '₩'];
/// Separators of thousands next to point and comma: spaces of several widths, and apostrophes.
const SEPARATORS: [char; 5] = [' ', '\u{a0}', '\u{202f}', '\'', '’'];
/// Texts that are taken for codes although they are not known as such, at most; and different numbers that this needs.
const NEW_CODES: usize = 3;
const NUMBERS_FOR_NEW_CODES: u64 = 10;
/// The share of the rows that new codes leave to numbers.
const NUMBERS_NEXT_TO_NEW_CODES: f64 = 0.3;
/// The share of numbers in rows without codes from which on other texts are exceptions.
const MOST: f64 = 0.9;

/// The share of different numbers with a decimal comma from which on it is one.
const COMMAS: f64 = 0.1;

/// How a number is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Point,
    Comma,
}

impl NumberTexts {
    /// None unless most of these different texts, with their counts, are numbers, all of the same unit if they have
    /// one.
    pub(crate) fn of(texts: &[(&str, u64)]) -> Option<NumberTexts> {
        NumberTexts::without_unit(texts).or_else(|| NumberTexts::with_unit(texts))
    }

    /// A text of any number is no feature that is a number: its unit is one of this column.
    fn with_unit<'a>(texts: &[(&'a str, u64)]) -> Option<NumberTexts> {
        let unit = unit_of(texts.iter().map(|(text, _)| *text).find(|text| !is_code(text))?)?;
        let number = |text: &'a str| text.strip_prefix(unit).or_else(|| text.strip_suffix(unit));
        let strip = |(text, count): &(&'a str, u64)| match number(text) {
            Some(number) => Some((number, *count)),
            None => is_code(text).then_some((*text, *count)),
        };
        let numbers: Vec<(&str, u64)> = texts.iter().map(strip).collect::<Option<_>>()?;
        let found = NumberTexts::without_unit(&numbers).filter(|found| found.others.is_none())?;
        Some(NumberTexts { unit: unit.to_owned(), reads: false, ..found })
    }

    fn without_unit(texts: &[(&str, u64)]) -> Option<NumberTexts> {
        let count = |style| texts.iter().filter(|(text, _)| read(text, style).is_some()).count();
        let (points, commas) = (count(Style::Point), count(Style::Comma));
        // 17,23 in a few places is a list of numbers, as 6,11,17 is
        if texts.iter().any(|(text, _)| is_list(text)) {
            return None;
        }
        let has_commas = commas > points + 1 && (commas - points) as f64 >= COMMAS * commas as f64;
        let style = if has_commas { Style::Comma } else { Style::Point };
        let (mut found, mut others) = (NumberTexts::new(style), Vec::new());
        let (mut numbers, mut values) = (0, Vec::new());
        for (text, count) in texts {
            match read(text, style) {
                _ if is_code(text) => found.codes.push(((*text).to_owned(), *count)),
                // 08001 is no number but a code of its own
                Some(number) if number.has_leading_zero => return None,
                Some(number) => {
                    numbers += count;
                    values.extend(std::iter::repeat_n(number.value, *count as usize));
                    found.remove(&number.removed);
                    found.are_written_out |= number.has_fraction || text.starts_with(' ');
                    found.reads &= found.style().read(text).is_some();
                }
                None => others.push(((*text).to_owned(), *count)),
            }
        }
        found.numbers = Numbers::of(values);
        found.distinct = found.numbers.counts.distinct;
        let other_rows: u64 = others.iter().map(|(_, count)| count).sum();
        let all = (numbers + other_rows) as f64;
        let are_codes = others.len() <= NEW_CODES
            && found.distinct >= NUMBERS_FOR_NEW_CODES
            && numbers as f64 >= NUMBERS_NEXT_TO_NEW_CODES * all;
        if are_codes {
            found.codes.append(&mut others);
        } else if (numbers as f64) < MOST * all {
            return None;
        }
        found.others = others.first().map(|(text, _)| (text.clone(), other_rows));
        found.codes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        (found.distinct > 1).then_some(found)
    }

    fn new(style: Style) -> NumberTexts {
        NumberTexts {
            decimal_comma: style == Style::Comma,
            removed: String::new(),
            unit: String::new(),
            codes: Vec::new(),
            others: None,
            distinct: 0,
            numbers: Numbers::of(Vec::new()),
            are_written_out: false,
            reads: true,
        }
    }

    /// How the numbers are written.
    pub fn style(&self) -> NumberStyle {
        if self.decimal_comma { NumberStyle::Comma } else { NumberStyle::Point }
    }

    /// Are they numbers, and not names that have digits? Then something keeps them from being of a type of numbers:
    /// codes, signs, or what else is no number. A column of integers alone was made text on purpose, unless
    /// `is_untyped`, where the columns of a file have been given no types. Two values and a code say as much
    /// as categories.
    pub fn are_amounts(&self, is_untyped: bool) -> bool {
        let is_kept = !self.codes.is_empty() || self.others.is_some() || !self.removed.is_empty();
        self.reads && self.distinct > 2 && (is_kept || self.are_written_out || is_untyped)
    }

    fn remove(&mut self, removed: &str) {
        for sign in removed.chars() {
            if !self.removed.contains(sign) {
                self.removed.push(sign);
            }
        }
    }

    /// The numbers of a column, which is given as SQL writes it.
    pub fn expression(&self, column: &str) -> String {
        let codes: Vec<String> = self.codes.iter().map(|(text, _)| text.clone()).collect();
        // translate() removes the signs that have no counterpart
        let (mut from, mut to) = (String::new(), String::new());
        if self.removed.contains('(') {
            from.push('(');
            to.push('-');
        }
        if self.decimal_comma {
            from.push(',');
            to.push('.');
        }
        from.extend(self.removed.chars().filter(|sign| *sign != '('));
        let without_unit = |texts: String| match self.unit.as_str() {
            "" => texts,
            unit => format!("replace({texts}, {}, '')", quote_text(unit)),
        };
        let cleaned = |texts: String| match (without_unit(texts), from.as_str()) {
            (texts, "") => texts,
            (texts, ",") if self.decimal_comma => format!("replace({texts}, ',', '.')"),
            (texts, from) => format!("translate({texts}, {}, '{to}')", quote_text(from)),
        };
        if self.others.is_none() {
            return format!("{}::float8", cleaned(without(column, &codes)));
        }
        let number = cleaned(column.to_owned());
        format!("CASE WHEN {number} ~ '^\\s*[-+]?[0-9]*[.]?[0-9]+\\s*$' THEN {number}::float8 END")
    }
}

/// The unit of a number: a currency's three capitals in front of it with a blank, or letters behind it.
fn unit_of(text: &str) -> Option<&str> {
    const LONGEST: usize = 8;
    let at = text.find(|c: char| c.is_ascii_digit())?;
    let is_currency = at == 4 && text.as_bytes()[3] == b' ' && text[..3].bytes().all(|c| c.is_ascii_uppercase());
    if is_currency {
        return Some(&text[..at]);
    }
    let behind = &text[text.rfind(|c: char| c.is_ascii_digit())? + 1..];
    let is_unit = |c: char| c.is_alphabetic() || c == ' ' || c == '/' || c == '.';
    let has_letters = behind.chars().any(char::is_alphabetic) && behind.chars().all(is_unit);
    (has_letters && behind.chars().count() <= LONGEST).then_some(behind)
}

/// Is it a list of numbers with commas between them, and no number in any style?
fn is_list(text: &str) -> bool {
    let items = || text.trim().split([',', ';']).map(str::trim);
    let are_numbers = || items().all(|item| !item.is_empty() && item.chars().all(|c| c.is_ascii_digit()));
    items().count() > 1 && are_numbers() && read(text, Style::Point).is_none() && read(text, Style::Comma).is_none()
}

/// A number that was read.
struct Number {
    value: f64,
    removed: String,
    has_leading_zero: bool,
    has_fraction: bool,
}

/// Reads a text as a number of this style.
fn read(text: &str, style: Style) -> Option<Number> {
    let (decimal, thousand) = match style {
        Style::Point => ('.', ','),
        Style::Comma => (',', '.'),
    };
    let (core, mut removed) = strip(text)?;
    let (sign, unsigned) = match core.strip_prefix(['+', '-']) {
        Some(rest) => (&core[..1], rest),
        None => ("", core.as_str()),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let (whole, fraction) = mantissa.split_once(decimal).unwrap_or((mantissa, ""));
    let is_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let mut digits = whole.to_owned();
    if !is_digits(whole) {
        let separator = whole.chars().find(|c| !c.is_ascii_digit())?;
        let groups: Vec<&str> = whole.split(separator).collect();
        let is_separator = separator == thousand || SEPARATORS.contains(&separator);
        let are_groups = (1..=3).contains(&groups[0].len()) && groups[1..].iter().all(|group| group.len() == 3);
        if !is_separator || !are_groups || !groups.iter().all(|group| is_digits(group)) {
            return None;
        }
        digits = groups.concat();
        removed.push(separator);
    }
    if (digits.is_empty() && fraction.is_empty()) || !is_digits(fraction) {
        return None;
    }
    let value: f64 = format!("{sign}{digits}.{fraction}{exponent}").parse().ok()?;
    let has_leading_zero = digits.len() > 1 && digits.starts_with('0');
    let has_fraction = mantissa.contains(decimal) || !exponent.is_empty();
    value.is_finite().then_some(Number { value, removed, has_leading_zero, has_fraction })
}

/// The text without signs of currencies and %, which are given, too.
fn strip(text: &str) -> Option<(String, String)> {
    let mut removed = String::new();
    let text = text.trim();
    let of_accounting = text.strip_prefix(CURRENCIES).unwrap_or(text).strip_prefix('(').map(|_| {
        removed.push_str("()");
        text.replacen('(', "", 1)
    });
    if of_accounting.is_some() && !text.ends_with(')') {
        return None;
    }
    let (sign, mut rest) = match (&of_accounting, text.strip_prefix(['+', '-'])) {
        (Some(number), _) => ("-", &number[..number.len() - 1]),
        (None, Some(rest)) => (&text[..1], rest),
        (None, None) => ("", text),
    };
    let is_unit = |c: char| CURRENCIES.contains(&c) || c == '%';
    if let Some(unit) = rest.chars().next().filter(|c| CURRENCIES.contains(c)) {
        removed.push(unit);
        rest = &rest[unit.len_utf8()..];
    } else if let Some(unit) = rest.chars().next_back().filter(|c| is_unit(*c)) {
        removed.push(unit);
        rest = &rest[..rest.len() - unit.len_utf8()];
    }
    let core = rest.trim();
    if core.len() < rest.len() && !removed.is_empty() {
        removed.extend(rest.chars().find(|c| c.is_whitespace()));
    }
    let starts_well =
        core.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == ',' || (sign.is_empty() && c == '-'));
    starts_well.then(|| (format!("{sign}{core}"), removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Option<NumberTexts> {
        NumberTexts::of(&texts.iter().map(|text| (*text, 2)).collect::<Vec<_>>())
    }

    fn expression(texts: &[&str]) -> String {
        of(texts).map(|found| found.expression("a")).unwrap_or_default()
    }

    #[test]
    fn plain_numbers_need_a_cast() {
        assert_eq!(expression(&["1", "-2.5", " 3e4 ", ".5", "+7"]), "a::float8");
        assert_eq!(of(&["1", "-2.5", "1.0"]).unwrap().distinct, 2);
    }

    #[test]
    fn codes_become_null() {
        assert_eq!(expression(&["1", "2", "?"]), "NULLIF(a, '?')::float8");
        assert_eq!(expression(&["1", "2", "NA", ""]), "CASE WHEN a NOT IN ('', 'NA') THEN a END::float8");
        let codes = of(&["1", "2", "NaN", "N/A"]).unwrap().codes;
        assert_eq!(codes, [("N/A".to_owned(), 2), ("NaN".to_owned(), 2)]);
    }

    #[test]
    fn a_few_other_texts_among_many_numbers_are_codes_and_more_are_exceptions() {
        let many: Vec<String> = (0..100).map(|i| i.to_string()).collect();
        let mut texts: Vec<&str> = many.iter().map(String::as_str).collect();
        texts.push("PrivacySuppressed");
        assert_eq!(expression(&texts), "NULLIF(a, 'PrivacySuppressed')::float8");
        texts.extend(["12 kg", "about 5", "more"]);
        let found = of(&texts).unwrap();
        assert_eq!(found.others, Some(("PrivacySuppressed".to_owned(), 8)));
        assert_eq!(found.expression("a"), "CASE WHEN a ~ '^\\s*[-+]?[0-9]*[.]?[0-9]+\\s*$' THEN a::float8 END");
        texts.extend(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]);
        assert_eq!(of(&texts), None);
    }

    #[test]
    fn currencies_per_cent_thousands_and_decimal_commas_are_removed() {
        assert_eq!(expression(&["$1,234.50", "$5", "-$7"]), "translate(a, '$,', '')::float8");
        assert_eq!(expression(&["12%", "7.5 %"]), "translate(a, '% ', '')::float8");
        assert_eq!(expression(&["1,5", "22,75", "3"]), "replace(a, ',', '.')::float8");
        assert_eq!(expression(&["1.234,50 €", "7,25 €"]), "translate(a, ',€ .', '.')::float8");
        assert_eq!(expression(&["1,234", "12,345,678", "7"]), "translate(a, ',', '')::float8");
        assert_eq!(expression(&["1 234", "12 345 678", "7"]), "translate(a, ' ', '')::float8");
        assert_eq!(expression(&["1'234", "7"]), "translate(a, '''', '')::float8");
        assert_eq!(expression(&["$1,234", "$7", "N/A"]), "translate(NULLIF(a, 'N/A'), '$,', '')::float8");
        assert_eq!(expression(&["1,234", "(5)", "7"]), "translate(a, '(,)', '-')::float8");
        assert_eq!(expression(&["1,5 €", "(2,5 €)", "$(7)"]), "translate(a, '(,€ )$', '-.')::float8");
        assert_eq!(of(&["(5)", "(6)", "4"]).unwrap().numbers.min, -6.0);
    }

    #[test]
    fn units_are_removed_from_numbers_that_all_have_them() {
        assert_eq!(
            expression(&["USD 1,234", "USD 5", "USD 7", "NA"]),
            "translate(replace(NULLIF(a, 'NA'), 'USD ', ''), ',', '')::float8"
        );
        assert_eq!(expression(&["5 kg", "7.5 kg", "60 kg"]), "replace(a, ' kg', '')::float8");
        assert!(!of(&["5 kg", "7.5 kg", "60 kg"]).unwrap().are_amounts(true), "no feature has a unit");
        for texts in [&["5 kg", "7 lb"][..], &["A1", "A2"], &["Group 1", "Group 2"], &["5 kilograms", "6 kilograms"]] {
            assert_eq!(of(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn lists_of_numbers_are_no_decimal_commas() {
        let many: Vec<String> = (0..60).map(|i| i.to_string()).collect();
        let with = |lists: &[&'static str]| {
            let texts: Vec<&str> = many.iter().map(String::as_str).chain(lists.iter().copied()).collect();
            of(&texts)
        };
        let few = with(&["17,23", "6,17"]).unwrap();
        assert_eq!((few.codes.len(), few.decimal_comma), (2, false));
        assert_eq!(with(&["17,23", "6,17", "6,11,17,23"]), None);
        // one of a few ids
        assert!(!of(&["46", "47", "48", "46,47"]).is_some_and(|found| found.decimal_comma));
    }

    #[test]
    fn amounts_are_numbers_that_something_made_text() {
        let are_amounts = |texts: &[&str]| of(texts).unwrap().are_amounts(false);
        assert!(are_amounts(&["1", "2", "3", "NA"]));
        assert!(are_amounts(&["1.5", "2", "3"]));
        assert!(are_amounts(&["1.0", "2", "3"]), "no code has decimals");
        assert!(are_amounts(&[" 1", " 2", " 3"]), "what stood behind a separator and a blank");
        assert!(are_amounts(&["$1", "$2", "$3"]));
        assert!(are_amounts(&["1,234", "2", "3"]));
        assert!(are_amounts(&["1,5", "2,5", "3"]));
        assert!(!are_amounts(&["1", "2", "3"]), "a column of integers that someone made text");
        assert!(of(&["1", "2", "3"]).unwrap().are_amounts(true), "no column has been given a type");
        assert!(!of(&["0", "1"]).unwrap().are_amounts(true), "as good as categories");
        assert!(!are_amounts(&["0", "1", "NA"]), "as good as categories");
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for texts in [
            &["Bern", "Chur"][..],
            &["1", "a"],
            &["08001", "12345"],
            &["1.2.3", "1.2.4"],
            &["2013-01-05", "2013-01-06"],
            &["12:30", "13:30"],
            &["1e400", "2e400"],
            &["7", "7"],
            &["?", "NA"],
            &["1,23,4", "12,3,4"],
            &["0x10", "0x11"],
            &["--5", "- "],
            &["$", "€"],
        ] {
            assert_eq!(of(texts), None, "{texts:?}");
        }
        assert_eq!(NumberTexts::of(&[]), None);
    }
}
