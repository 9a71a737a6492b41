//! The option `date_parts`: which parts of dates and times are features.

use super::as_written::as_written;
use choices::Choice;
use pg::values::date_part::{DatePart, TimeType};
use serde_json::{Value, json};

as_written!(DateParts);

/// Which parts of dates and times are features.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DateParts {
    /// those that are usual, of dates that recur, but for the time that folds go by
    #[default]
    Auto,
    None,
    /// those that are usual for the type of the column
    Usual,
    These(Vec<DatePart>),
}

impl DateParts {
    /// What the option may be.
    pub const WHAT: &'static str =
        "true, false, \"auto\", or an array of \"year\", \"month\", \"day\", \"dow\", \"hour\", \"doy\" and \"epoch\"";

    /// The option as it is written; None for what it cannot be.
    pub fn read(value: &Value) -> Option<DateParts> {
        match value {
            Value::String(auto) if auto == "auto" => Some(DateParts::Auto),
            Value::Bool(true) => Some(DateParts::Usual),
            Value::Bool(false) => Some(DateParts::None),
            Value::Array(names) if !names.is_empty() => {
                let parts: Option<Vec<DatePart>> = names.iter().map(|name| DatePart::named(name.as_str()?)).collect();
                let parts = parts?;
                let is_there_twice = |i: usize| parts[..i].contains(&parts[i]);
                let is_list = !(0..parts.len()).any(is_there_twice);
                is_list.then_some(DateParts::These(parts))
            }
            _ => None,
        }
    }

    /// The option as it is recorded.
    pub fn to_json(&self) -> Value {
        match self {
            DateParts::Auto => json!("auto"),
            DateParts::None => json!(false),
            DateParts::Usual => json!(true),
            DateParts::These(parts) => parts.iter().map(|part| part.name()).collect(),
        }
    }

    /// The parts of a column of this type.
    pub fn of_type(&self, time: TimeType) -> Vec<DatePart> {
        let parts = match self {
            DateParts::None => &[],
            DateParts::Auto | DateParts::Usual => time.usual_parts(),
            DateParts::These(parts) => parts,
        };
        parts.iter().copied().filter(|part| time.has(*part)).collect()
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use pg::testing::{one, run, value};
    use pg::values::part::Part;
    use pgrx::prelude::*;
    use std::ffi::CStr;

    #[pg_test]
    fn test_texts_say_here_what_they_say_in_postgresql() {
        let numbers = [
            "12",
            " -2.5 ",
            "+.5",
            "7.",
            ".",
            "3e4",
            "1E-2",
            "1e400",
            "$1,234.50",
            "-$7",
            "$ -7",
            "- 7",
            "-$-5",
            "12 %",
            "%5",
            "1 234 567 €",
            "1\u{a0}234",
            "1'234",
            "1,23",
            "46,47",
            "1234,567",
            "1.234,50 €",
            "7,25",
            "007",
            "\t5\n",
            "",
            "-",
            "NA",
            "inf",
            "NaN",
            "12 kg",
            "<5",
            "1 2",
            "1e",
            "5 e3",
            "0x10",
            "(1,234.5)",
            "($5)",
            "$(5)",
            "(5 %)",
            "(-5)",
            "((5))",
            "( 5)",
            "(5",
            "(.5)",
            "(1.234,5 €)",
            "1.2.3",
            "1,234,567.8",
            "12,34,567",
            "1,2345",
            "５",
        ];
        let dates = [
            "2013-01-05",
            " 2013/1/5 ",
            "2013.12.31",
            "2013-01-05 00:59",
            "2013-01-05T23:10:11.123Z",
            "2013-01-05 7:10 -05",
            "2013-02-31",
            "2000-02-30",
            "1900-02-29",
            "2013-13-05",
            "2013-00-05",
            "0999-01-01",
            "9999-12-31",
            "2013-01-05 24:00",
            "05/01/2013",
            "31.12.1999",
            "5 January 2013",
            "05-JAN-2013",
            "5 Foo 2013",
            "12/31/1999",
            "Dec 31, 1999",
            "Sept 5 2013",
            "May-5-2013",
            "30 Feb 2012",
            "Feb 30, 2012",
            "05/01/13",
            "1/5/69",
            "31-Dec-70 12:30 am",
            "05/01/2013 12:30:59 PM",
            "01/05/2013 1:30 p.m.",
            "5.1.2013, 23:59 UTC",
            "2013-01-05 7:10 AM",
            "2013-01-05T00:00:00.123456789Z",
            "13/13/2013",
            "1/213",
            "1/0513",
            "5Jan13",
            "5 Jan13",
            "2013-01",
            "2013/1 5:00",
            "2013-011",
            "NA",
            "",
            "2013",
            "2013-01-05x",
        ];
        let parts = ["year", "month", "day", "dow", "hour", "doy"];
        let orders = ["ymd", "dmy", "mdy"];
        let of_dates = orders.iter().flat_map(|order| parts.iter().map(move |part| format!("v::{order}.{part}")));
        let of_numbers = ["v::number".to_owned(), "v::decimal_comma".to_owned(), "v IS NULL".to_owned()];
        run("SET LOCAL DateStyle = 'SQL, DMY'");
        run("SET LOCAL IntervalStyle = 'sql_standard'");
        for feature in of_numbers.into_iter().chain(of_dates) {
            let (_, part) = Part::split(&feature).unwrap();
            let part = part.of_type(pg_sys::TEXTOID).unwrap();
            for text in numbers.iter().chain(&dates) {
                let sql = format!("SELECT ({})::text FROM (SELECT {} AS v) AS s", part.sql("v"), quoted(text));
                let ours = part.of(Some(value(text, "text"))).map(|ours| match part.is_category() {
                    // SAFETY: a value of type unknown is a C string.
                    true => unsafe { CStr::from_ptr(ours.datum_of_type(pg_sys::UNKNOWNOID).cast_mut_ptr()) }
                        .to_string_lossy()
                        .into_owned(),
                    false => one::<String>(&format!("SELECT '{}'::float8::text", ours.to_rust::<f64>().unwrap())),
                });
                assert_eq!(ours, pgrx::Spi::get_one::<String>(&sql).unwrap(), "{feature} of {text:?}");
            }
        }
    }

    fn quoted(text: &str) -> String {
        format!("'{}'::text", text.replace('\'', "''"))
    }

    #[pg_test]
    fn test_parts_of_dates_are_those_that_postgresql_extracts() {
        let dates =
            ["2000-02-29", "1999-12-31", "0001-01-01", "0044-03-15 BC", "4713-01-01 BC", "294276-12-31", "infinity"];
        let times =
            ["2000-02-29 23:59:59.999999", "1970-01-01 00:00:00", "0044-03-15 06:30:00 BC", "294276-12-31 12:00:00"];
        let zoned = times.map(|time| time.replacen(":00", ":00+09", 1)); // of another day in UTC
        let of = |name, texts: &[&str]| texts.iter().map(move |text| (name, (*text).to_owned())).collect::<Vec<_>>();
        let zoned = zoned.iter().map(String::as_str).chain(["-infinity"]).collect::<Vec<_>>();
        let all = [of("date", &dates), of("timestamp", &times), of("timestamptz", &zoned)].concat();
        run("SET LOCAL TimeZone = 'America/New_York'");
        for (name, text) in all {
            let value = value(&text, name);
            let time = TimeType::from_oid(value.type_oid()).unwrap();
            for part in DatePart::ALL.iter().map(|(_, part)| *part).filter(|part| time.has(*part)) {
                let sql = format!("SELECT ({}) FROM (SELECT '{text}'::{name} AS v) AS s", part.sql("v", time));
                let ours = part.of_value(time, value);
                if part.is_category() {
                    // SAFETY: a value of type unknown is a C string.
                    let ours = unsafe { CStr::from_ptr(ours.datum_of_type(pg_sys::UNKNOWNOID).cast_mut_ptr()) };
                    assert_eq!(ours.to_str().unwrap(), one::<String>(&sql), "{} of {name} {text}", part.name());
                } else {
                    assert_eq!(ours.to_rust::<f64>().unwrap(), one::<f64>(&sql), "{} of {name} {text}", part.name());
                }
            }
        }
    }
}
