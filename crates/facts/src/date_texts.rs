//! Texts that are dates, times of a day, or both.

use super::sql::{is_code, without};
use super::written::DayOrder;

/// Which of day and month comes first in a date such as 05/04/2013, where nothing else says so: what DateStyle says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DateOrder {
    /// day, month, year
    Dmy,
    /// month, day, year; also where DateStyle begins with the year
    Mdy,
}

/// How the texts of a column are dates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateTexts {
    /// the type that suits them: date, time, timestamp, timestamptz or interval
    pub type_name: &'static str,
    /// the format for to_date() and to_timestamp(); None if a cast reads them, whatever DateStyle is
    pub format: Option<String>,
    /// what stands for a missing value
    pub codes: Vec<String>,
    /// the order in which all of them read as dates, if there is one
    pub order: Option<DayOrder>,
}

/// Other texts that are taken for codes, at most.
const NEW_CODES: usize = 3;
/// The share of dates in rows without known codes.
const MOST: f64 = 0.9;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

impl DateTexts {
    /// None unless most of these different texts, with their counts, are dates of one kind.
    pub(crate) fn of(texts: &[(&str, u64)], order: DateOrder) -> Option<DateTexts> {
        let (mut shapes, mut codes, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut orders = match order {
            DateOrder::Dmy => vec![DayOrder::Ymd, DayOrder::Dmy, DayOrder::Mdy],
            DateOrder::Mdy => vec![DayOrder::Ymd, DayOrder::Mdy, DayOrder::Dmy],
        };
        let known = || texts.iter().map(|(text, _)| *text).filter(|text| !is_code(text));
        if known().count() > 1 && known().all(is_duration) {
            let codes = texts.iter().map(|(text, _)| *text).filter(|text| is_code(text)).map(str::to_owned).collect();
            return Some(DateTexts { type_name: "interval", format: None, codes, order: None });
        }
        let (mut dates, mut rest) = (0, 0);
        for (text, count) in texts {
            match Shape::read(text.trim()) {
                _ if is_code(text) => codes.push((*text).to_owned()),
                Some(shape) => {
                    dates += count;
                    shapes.push(shape);
                    orders.retain(|order| order.read(text).is_some());
                }
                None => {
                    rest += count;
                    others.push((*text).to_owned());
                }
            }
        }
        if shapes.len() < 2 || others.len() > NEW_CODES || (dates as f64) < MOST * (dates + rest) as f64 {
            return None;
        }
        codes.append(&mut others);
        codes.sort();
        let (type_name, format) = Shape::unite(shapes)?.describe(order);
        Some(DateTexts { type_name, format, codes, order: orders.first().copied() })
    }

    /// Have they a time of day?
    pub fn has_hours(&self) -> bool {
        self.type_name.starts_with("timestamp")
    }

    /// Have they a day of the month?
    pub fn has_days(&self) -> bool {
        !self.format.as_ref().is_some_and(|format| format.starts_with("YYYY"))
    }

    /// What they are called.
    pub fn name(&self) -> &'static str {
        match self.type_name {
            "time" => "times",
            "interval" => "durations",
            _ => "dates",
        }
    }

    /// The dates of a column, which is given as SQL writes it, or the seconds that times of a day and durations have.
    pub fn expression(&self, column: &str) -> String {
        let texts = without(column, &self.codes);
        match &self.format {
            None if ["time", "interval"].contains(&self.type_name) => {
                format!("extract(epoch FROM {texts}::{})::float8", self.type_name)
            }
            None => format!("{texts}::{}", self.type_name),
            Some(format) if self.type_name == "date" => format!("to_date({texts}, '{format}')"),
            Some(format) => format!("to_timestamp({texts}, '{format}')::{}", self.type_name),
        }
    }
}

/// How a date is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    /// the year first, or the month by its name: PostgreSQL reads it
    Clear,
    /// 2013-01
    Month(char),
    /// two numbers, one of them the month, and the year
    Numbers { separator: char, long_year: bool, may_be_dmy: bool, may_be_mdy: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Time {
    seconds: bool,
    /// AM or PM
    halves: bool,
    zone: bool,
}

/// How a text is a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    day: Option<Day>,
    time: Option<Time>,
}

impl Shape {
    fn read(text: &str) -> Option<Shape> {
        if let Some(time) = Time::read(text) {
            return (!time.zone).then_some(Shape { day: None, time: Some(time) });
        }
        if let Some(day) = Day::read(text) {
            return Some(Shape { day: Some(day), time: None });
        }
        // the time begins at the last blank or T before the first colon
        let colon = text.find(':')?;
        let at = text[..colon].rfind(['T', ' '])?;
        let (day, time) = (Day::read(text[..at].trim_end_matches(','))?, Time::read(&text[at + 1..])?);
        (!matches!(day, Day::Month(_))).then_some(Shape { day: Some(day), time: Some(time) })
    }

    /// What suits all of these; None if nothing does.
    fn unite(shapes: Vec<Shape>) -> Option<Shape> {
        shapes.into_iter().map(Some).reduce(|one, other| {
            let (one, other) = (one?, other?);
            let day = match (one.day, other.day) {
                (Some(one), Some(other)) => Some(one.and(other)?),
                (None, None) => None,
                _ => return None,
            };
            let time = match (one.time, other.time) {
                (Some(one), Some(other)) => Some(Time {
                    seconds: one.seconds || other.seconds,
                    halves: one.halves || other.halves,
                    zone: one.zone || other.zone,
                }),
                (one, other) => one.or(other),
            };
            Some(Shape { day, time })
        })?
    }

    /// The type, and the format if a cast does not do.
    fn describe(self, order: DateOrder) -> (&'static str, Option<String>) {
        let type_name = match (self.day, self.time) {
            (None, _) => "time",
            (_, None) => "date",
            (_, Some(time)) if time.zone => "timestamptz",
            _ => "timestamp",
        };
        let day = match self.day {
            None | Some(Day::Clear) => return (type_name, None),
            Some(Day::Month(separator)) => return (type_name, Some(format!("YYYY{separator}MM"))),
            Some(Day::Numbers { separator, long_year, may_be_dmy, may_be_mdy }) => {
                let year = if long_year { "YYYY" } else { "YY" };
                let is_dmy = may_be_dmy && !(may_be_mdy && order == DateOrder::Mdy);
                let (first, second) = if is_dmy { ("DD", "MM") } else { ("MM", "DD") };
                format!("{first}{separator}{second}{separator}{year}")
            }
        };
        let time = self.time.map(|time| {
            let (hours, half) = if time.halves { ("HH12", " AM") } else { ("HH24", "") };
            let seconds = if time.seconds { ":SS" } else { "" };
            format!(" {hours}:MI{seconds}{half}")
        });
        (type_name, Some(format!("{day}{}", time.unwrap_or_default())))
    }
}

impl Day {
    fn read(text: &str) -> Option<Day> {
        if text.len() > 40 {
            return None;
        }
        if text.chars().any(|c| c.is_ascii_alphabetic()) {
            return Day::read_named(text);
        }
        let separator = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| "-/.".contains(*c))?;
        let parts: Option<Vec<(usize, u32)>> =
            text.split(separator).map(|part| Some((part.len(), digits(part)?))).collect();
        let (is_month, is_day) = (|month| (1..=12).contains(&month), |day| (1..=31).contains(&day));
        match parts?.as_slice() {
            [(4, year), (2, month)] if separator != '.' && is_year(*year) && is_month(*month) => {
                Some(Day::Month(separator))
            }
            [(4, year), (1 | 2, month), (1 | 2, day)] => {
                (is_year(*year) && is_month(*month) && is_day(*day)).then_some(Day::Clear)
            }
            [(1 | 2, first), (1 | 2, second), (length @ (2 | 4), year)] => {
                let long_year = *length == 4;
                let may_be_dmy = is_day(*first) && is_month(*second);
                let may_be_mdy = is_month(*first) && is_day(*second);
                let is_date = (may_be_dmy || may_be_mdy) && (!long_year || is_year(*year));
                is_date.then_some(Day::Numbers { separator, long_year, may_be_dmy, may_be_mdy })
            }
            _ => None,
        }
    }

    /// A day, the name of a month and a year, in this order or with the month first.
    fn read_named(text: &str) -> Option<Day> {
        let words: Vec<&str> = text.split([' ', '-', ',', '.', '/']).filter(|word| !word.is_empty()).collect();
        let words = match words.as_slice() {
            [weekday, rest @ ..] if rest.len() == 3 && is_weekday(weekday) => rest,
            all => all,
        };
        let [first, second, year] = words else { return None };
        let day = match (is_month_name(first), is_month_name(second)) {
            (true, false) => digits(second)?,
            (false, true) => digits(first)?,
            _ => return None,
        };
        let has_year = matches!((year.len(), digits(year)?), (2, _) | (4, 1000..=2999));
        ((1..=31).contains(&day) && has_year).then_some(Day::Clear)
    }

    fn and(self, other: Day) -> Option<Day> {
        match (self, other) {
            (
                Day::Numbers { separator, long_year, may_be_dmy: dmy, may_be_mdy: mdy },
                Day::Numbers { separator: other_separator, long_year: other_long, may_be_dmy, may_be_mdy },
            ) if separator == other_separator && long_year == other_long => {
                let (may_be_dmy, may_be_mdy) = (dmy && may_be_dmy, mdy && may_be_mdy);
                (may_be_dmy || may_be_mdy).then_some(Day::Numbers { separator, long_year, may_be_dmy, may_be_mdy })
            }
            (one, other) => (one == other).then_some(one),
        }
    }
}

impl Time {
    fn read(text: &str) -> Option<Time> {
        let (text, halves) = match text.len().checked_sub(2).filter(|at| text.is_char_boundary(*at)) {
            Some(at) if text[at..].eq_ignore_ascii_case("am") || text[at..].eq_ignore_ascii_case("pm") => {
                (text[..at].trim_end(), true)
            }
            _ => (text, false),
        };
        let zone_at = text.find(['Z', 'z', '+', '-', 'U', 'G']);
        let (clock, zone) = text.split_at(zone_at.unwrap_or(text.len()));
        let parts: Vec<&str> = clock.trim_end().split(':').collect();
        let seconds = match parts.as_slice() {
            [_, _] => false,
            [_, _, seconds] => {
                let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
                let is_fraction = fraction.chars().all(|c| c.is_ascii_digit());
                if !is_fraction || whole.len() != 2 || digits(whole)? > 60 {
                    return None;
                }
                true
            }
            _ => return None,
        };
        let has_hour = (1..=2).contains(&parts[0].len()) && digits(parts[0])? <= 24;
        let has_minute = parts[1].len() == 2 && digits(parts[1])? <= 59;
        (has_hour && has_minute && is_zone(zone)).then_some(Time { seconds, halves, zone: zone_at.is_some() })
    }
}

/// Nothing, Z, UTC, GMT, or an offset in hours and perhaps minutes.
fn is_zone(text: &str) -> bool {
    match text {
        "" | "Z" | "z" | "UTC" | "GMT" => true,
        offset => {
            let digits: String = offset[1..].chars().filter(|c| *c != ':').collect();
            offset.starts_with(['+', '-'])
                && [2, 4].contains(&digits.len())
                && digits.chars().all(|c| c.is_ascii_digit())
        }
    }
}

/// Is it a number of days with hours, minutes and seconds, as in `0 days 00:36:35`?
fn is_duration(text: &str) -> bool {
    let Some((days, clock)) = text.trim().rsplit_once(' ') else { return false };
    let Some((count, "day" | "days")) = days.trim_end_matches(',').split_once(' ') else { return false };
    let clock = clock.trim_start_matches(['+', '-']);
    digits(count.trim_start_matches('-')).is_some() && Time::read(clock).is_some_and(|time| !time.zone && !time.halves)
}

fn digits(text: &str) -> Option<u32> {
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_digit()) { None } else { text.parse().ok() }
}

fn is_year(year: u32) -> bool {
    (1000..3000).contains(&year)
}

/// A month's name, or its first letters.
fn is_month_name(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    word == "sept" || MONTHS.iter().any(|month| *month == word || *word == month[..3])
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let word = word.to_ascii_lowercase();
    DAYS.iter().any(|day| *day == word || *word == day[..3])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression_by(texts: &[&str], order: DateOrder) -> String {
        let texts: Vec<(&str, u64)> = texts.iter().map(|text| (*text, 10)).collect();
        DateTexts::of(&texts, order).map(|found| found.expression("a")).unwrap_or_default()
    }

    fn expression(texts: &[&str]) -> String {
        expression_by(texts, DateOrder::Mdy)
    }

    #[test]
    fn what_postgresql_reads_under_any_datestyle_needs_a_cast() {
        assert_eq!(expression(&["2013-01-05", "2013-12-31"]), "a::date");
        assert_eq!(expression(&["2013/1/5", "2013/12/31"]), "a::date");
        assert_eq!(expression(&["Jan 5, 2013", "December 31, 2013"]), "a::date");
        assert_eq!(expression(&["05-Jan-2013", "31-Dec-13"]), "a::date");
        assert_eq!(expression(&["Sat, 5 Jan 2013", "Sun, 6 Jan 2013"]), "a::date");
        assert_eq!(expression(&["05:17", "23:59:30"]), "extract(epoch FROM a::time)::float8");
        assert_eq!(expression(&["5:17 AM", "11:59 pm"]), "extract(epoch FROM a::time)::float8");
        assert_eq!(
            expression(&["0 days 00:36:35", "1 day, 2:00:00.5", "NaT", ""]),
            "extract(epoch FROM CASE WHEN a NOT IN ('NaT', '') THEN a END::interval)::float8"
        );
        assert_eq!(expression(&["2013-01-05 05:17:00", "2013-01-05T05:17:00.25"]), "a::timestamp");
        assert_eq!(expression(&["2013-01-05T05:17:00Z", "2013-01-05 05:17:00+02:00"]), "a::timestamptz");
        assert_eq!(expression(&["2013-01-05", "2013-01-05 05:17"]), "a::timestamp");
    }

    #[test]
    fn a_day_beyond_12_says_what_comes_first_and_else_datestyle() {
        assert_eq!(expression(&["25.12.2013", "1.2.2013"]), "to_date(a, 'DD.MM.YYYY')");
        assert_eq!(expression(&["12/25/2013", "1/2/2013"]), "to_date(a, 'MM/DD/YYYY')");
        assert_eq!(expression_by(&["12/25/13", "1/2/13"], DateOrder::Dmy), "to_date(a, 'MM/DD/YY')");
        assert_eq!(expression_by(&["05/04/2013", "01/02/2013"], DateOrder::Dmy), "to_date(a, 'DD/MM/YYYY')");
        assert_eq!(expression_by(&["05/04/2013", "01/02/2013"], DateOrder::Mdy), "to_date(a, 'MM/DD/YYYY')");
        assert_eq!(expression(&["25/12/2013", "12/25/2013"]), "", "neither suits both");
        assert_eq!(expression(&["2013-01", "2013-12"]), "to_date(a, 'YYYY-MM')");
        assert_eq!(
            expression(&["25/12/2013 05:17", "1/2/2013 23:00"]),
            "to_timestamp(a, 'DD/MM/YYYY HH24:MI')::timestamp"
        );
        assert_eq!(
            expression(&["12/25/2013 5:17:30 PM", "1/2/2013 11:00:00 AM"]),
            "to_timestamp(a, 'MM/DD/YYYY HH12:MI:SS AM')::timestamp"
        );
    }

    #[test]
    fn codes_become_null() {
        assert_eq!(expression(&["2013-01-05", "2013-01-06", "?"]), "NULLIF(a, '?')::date");
        let mut texts: Vec<String> = (10..29).map(|day| format!("2013-01-{day}")).collect();
        texts.push("never".to_owned());
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        assert_eq!(expression(&texts), "NULLIF(a, 'never')::date");
    }

    #[test]
    fn other_texts_are_no_dates() {
        for texts in [
            &["Bern", "Chur"][..],
            &["1", "2"],
            &["2013", "2014"],
            &["2013-13-05", "2013-00-05"],
            &["2013-2014", "2014-2015"],
            &["75:30", "12:75"],
            &["1.2", "1.3"],
            &["10.1.200.1", "10.1.200.2"],
            &["May", "June"],
            &["2013-01-05", "05:17"],
            &["2013-01-05", "yesterday"],
            &["Mayor 5, 2013", "Sunday 6, 2013"],
            &["2013-01-05"],
            &["é:30", "12:é0"],
            &["2 days", "3 days"],
            &["days 1:00:00", "x days 1:00:00"],
            &["日本-01-05", "日本"],
        ] {
            assert_eq!(expression(texts), "", "{texts:?}");
        }
    }
}
