//! Parts of dates and times: what EXTRACT gives, as numbers and as categories.
//!
//! A part of column `created` is a feature called `created.month`. In training PostgreSQL computes it, in the query
//! that reads the source; in prediction it is computed here, and has to be the same. Times with a time zone are taken
//! in UTC, whatever the session's zone is: a model must not depend on who asks.

use super::typed::TypedDatum;
use choices::{Choice, choice};
use pgrx::pg_sys;
use std::ffi::CStr;

choice! {
    /// A part of a date or time, by the name that EXTRACT has for it.
    DatePart {
        /// as EXTRACT gives it, and so the others
        Year = "year",
        /// from 1
        Month = "month",
        /// of the month, from 1
        Day = "day",
        /// day of the week, from 0, a Sunday
        Dow = "dow",
        /// of the day, from 0
        Hour = "hour",
        /// day of the year, from 1
        Doy = "doy",
        /// seconds since 1970
        Epoch = "epoch",
    }
}

/// A type that has parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeType {
    /// type date
    Date,
    /// type timestamp
    Timestamp,
    /// with a time zone
    TimestampTz,
}

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;
/// Days from 1970-01-01, where Unix counts from, to 2000-01-01, where PostgreSQL does.
const UNIX_TO_POSTGRES_DAYS: i64 = 10_957;

impl TimeType {
    /// The type with this OID; for a domain, give its base type.
    pub fn from_oid(oid: pg_sys::Oid) -> Option<TimeType> {
        match oid {
            pg_sys::DATEOID => Some(TimeType::Date),
            pg_sys::TIMESTAMPOID => Some(TimeType::Timestamp),
            pg_sys::TIMESTAMPTZOID => Some(TimeType::TimestampTz),
            _ => None,
        }
    }

    /// The parts that are taken if none are named: the rest again every year, week or day, and the year.
    pub fn usual_parts(self) -> &'static [DatePart] {
        static PARTS: [DatePart; 4] = [DatePart::Year, DatePart::Month, DatePart::Dow, DatePart::Hour];
        if self == TimeType::Date { &PARTS[..3] } else { &PARTS }
    }

    /// Has it this part? A date has no hour.
    pub fn has(self, part: DatePart) -> bool {
        self != TimeType::Date || part != DatePart::Hour
    }

    /// Microseconds since 2000-01-01; an infinity as Err.
    pub fn microseconds(self, value: TypedDatum<'_>) -> Result<i64, f64> {
        let (value, least, most) = match self {
            TimeType::Date => (i64::from(value.bits() as i32), i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (value.bits() as i64, i64::MIN, i64::MAX),
        };
        match value {
            value if value == least => Err(f64::NEG_INFINITY),
            value if value == most => Err(f64::INFINITY),
            // no timestamp is as late as some dates are: training refuses these
            days if self == TimeType::Date => Ok(days.saturating_mul(MICROSECONDS_PER_DAY)),
            microseconds => Ok(microseconds),
        }
    }
}

impl DatePart {
    /// Is each value a category? Parts that go round in a few steps are: December stands next to January, and no
    /// straight line fits a week.
    pub fn is_category(self) -> bool {
        matches!(self, DatePart::Month | DatePart::Dow | DatePart::Hour)
    }

    /// The type of the feature.
    pub fn type_oid(self) -> pg_sys::Oid {
        if self.is_category() { pg_sys::TEXTOID } else { pg_sys::FLOAT8OID }
    }

    /// What the feature is called that is this part of a column.
    pub fn of_column(self, column: &str) -> String {
        format!("{column}.{}", self.name())
    }

    /// Column and part, if a feature is called like one.
    pub fn split(feature: &str) -> Option<(&str, DatePart)> {
        let (column, part) = feature.rsplit_once('.')?;
        Some((column, DatePart::named(part)?))
    }

    /// The expression of a column of this type, which is written as SQL writes it. An infinity is a category of its
    /// own, and no finite number.
    pub fn sql(self, column: &str, time: TimeType) -> String {
        let at = match time {
            TimeType::TimestampTz => format!("pg_catalog.timezone('UTC', {column})"),
            TimeType::Date => format!("{column}::pg_catalog.timestamp"),
            TimeType::Timestamp => column.to_owned(),
        };
        let part = format!("pg_catalog.date_part('{}', {at})", self.name());
        match self {
            // these are NULL of an infinity
            DatePart::Day | DatePart::Doy => {
                format!("CASE WHEN pg_catalog.isfinite({at}) THEN {part} ELSE pg_catalog.date_part('epoch', {at}) END")
            }
            DatePart::Year | DatePart::Epoch => part,
            DatePart::Dow => format!(
                "CASE WHEN pg_catalog.isfinite({at}) THEN {part}::pg_catalog.int4::pg_catalog.text \
                 ELSE ({at})::pg_catalog.text END"
            ),
            DatePart::Month | DatePart::Hour => format!(
                "CASE WHEN pg_catalog.isfinite({at}) \
                 THEN pg_catalog.lpad({part}::pg_catalog.int4::pg_catalog.text, 2, '0') \
                 ELSE ({at})::pg_catalog.text END"
            ),
        }
    }

    /// The part of a value of this type: a number of type float8, or a text without a type, as a literal has none.
    #[inline]
    pub fn of_value(self, time: TimeType, value: TypedDatum<'_>) -> TypedDatum<'static> {
        let part = time.microseconds(value).map(|microseconds| self.of_microseconds(microseconds));
        if !self.is_category() {
            return number(part.unwrap_or_else(|infinity| infinity));
        }
        match part {
            Ok(part) => self.category(part as i64),
            Err(infinity) if infinity > 0.0 => literal(c"infinity"),
            Err(_) => literal(c"-infinity"),
        }
    }

    /// The category of a part of a finite date.
    pub(super) fn category(self, part: i64) -> TypedDatum<'static> {
        literal(if self == DatePart::Dow { ONE_DIGIT[part as usize] } else { TWO_DIGITS[part as usize] })
    }

    /// The part of a day, which counts from the first of its month, and may be in the next one.
    pub(super) fn of_day(self, year: i64, month: i64, day: i64) -> TypedDatum<'static> {
        let days = first_of(year, month) + day - 1;
        let part = self.of_microseconds((days - UNIX_TO_POSTGRES_DAYS) * MICROSECONDS_PER_DAY);
        if self.is_category() { self.category(part as i64) } else { number(part) }
    }

    /// The part of a point in time, in microseconds since 2000-01-01.
    fn of_microseconds(self, microseconds: i64) -> f64 {
        let day = microseconds.div_euclid(MICROSECONDS_PER_DAY);
        let (year, month, day_of_month) = civil(day + UNIX_TO_POSTGRES_DAYS);
        let number = match self {
            // there is no year 0
            DatePart::Year => year - i64::from(year <= 0),
            DatePart::Month => month,
            DatePart::Day => day_of_month,
            // 2000-01-01 was a Saturday, 6
            DatePart::Dow => (day + 6).rem_euclid(7),
            DatePart::Hour => microseconds.rem_euclid(MICROSECONDS_PER_DAY) / 3_600_000_000,
            DatePart::Doy => day + UNIX_TO_POSTGRES_DAYS - first_of_january(year) + 1,
            DatePart::Epoch => {
                let since_1970 = i128::from(microseconds) + i128::from(UNIX_TO_POSTGRES_DAYS * MICROSECONDS_PER_DAY);
                return since_1970 as f64 / 1e6;
            }
        };
        number as f64
    }
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar. Years are counted from March on, so that a
/// leap day is the last of its year; 400 of them have the same days each time.
fn civil(days: i64) -> (i64, i64, i64) {
    let since_0 = days + 719_468; // from 0000-03-01
    let (era, day_of_era) = (since_0.div_euclid(146_097), since_0.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// A number of type float8.
pub(super) fn number(number: f64) -> TypedDatum<'static> {
    // SAFETY: a float8 is its bits.
    unsafe { TypedDatum::new(pg_sys::Datum::from(number.to_bits()), pg_sys::FLOAT8OID) }
}

/// A text without a type, as a literal has none.
fn literal(text: &'static CStr) -> TypedDatum<'static> {
    // SAFETY: a value of type unknown is a C string, and this one stays.
    unsafe { TypedDatum::new(pg_sys::Datum::from(text.as_ptr()), pg_sys::UNKNOWNOID) }
}

/// The first day of a month, in days since 1970-01-01.
fn first_of(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    first_of_january(year) + BEFORE[month as usize - 1] + i64::from(is_leap && month > 2)
}

/// The first day of a year, in days since 1970-01-01.
fn first_of_january(year: i64) -> i64 {
    let before = year - 1;
    365 * before + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_162
}

const ONE_DIGIT: [&CStr; 7] = [c"0", c"1", c"2", c"3", c"4", c"5", c"6"];
const TWO_DIGITS: [&CStr; 24] = [
    c"00", c"01", c"02", c"03", c"04", c"05", c"06", c"07", c"08", c"09", c"10", c"11", c"12", c"13", c"14", c"15",
    c"16", c"17", c"18", c"19", c"20", c"21", c"22", c"23",
];
