//! Numbers and dates that texts say, as features: `price::number` and `sold::mdy.month`.
//!
//! The name of a feature says how its column is read: `::number` and `::decimal_comma` for numbers, `::ymd`, `::dmy`
//! and `::mdy` for dates by the order of year, month and day, with a part behind it. A text that says nothing of the
//! kind is NULL. In training PostgreSQL reads it, in the query that reads the source; in prediction it is read here.

use super::date_part::{DatePart, number};
use super::record::{CategoryType, is_citext};
use super::typed::TypedDatum;
use crate::catalog::names::quote_literal;
use facts::{DayOrder, NumberStyle};
use pgrx::pg_sys;

/// The names of the styles of numbers.
const STYLES: [(&str, NumberStyle); 2] = [("::number", NumberStyle::Point), ("::decimal_comma", NumberStyle::Comma)];

/// Is it a type of texts? For a domain, give its base type.
pub(super) fn is_text(base: pg_sys::Oid) -> bool {
    [pg_sys::TEXTOID, pg_sys::VARCHAROID, pg_sys::BPCHAROID, pg_sys::UNKNOWNOID].contains(&base) || is_citext(base)
}

/// What the feature is called that is the numbers of a column of texts.
pub fn numbers_of_column(style: NumberStyle, column: &str) -> String {
    let name = STYLES.iter().find(|(_, known)| *known == style).map_or("", |(name, _)| name);
    format!("{column}{name}")
}

/// What the feature is called that is a part of the dates of a column of texts.
pub fn date_of_column(order: DayOrder, part: DatePart, column: &str) -> String {
    part.of_column(&format!("{column}::{}", order.name()))
}

/// Column and style, if a feature is called like numbers of texts.
pub(super) fn split_number(feature: &str) -> Option<(&str, NumberStyle)> {
    let split = |(name, style): &(&str, NumberStyle)| Some((feature.strip_suffix(name)?, *style));
    STYLES.iter().find_map(split).filter(|(column, _)| !column.is_empty())
}

/// Column, order and part, if a feature is called like a part of dates of texts.
pub(super) fn split_date(feature: &str) -> Option<(&str, DayOrder, DatePart)> {
    let (dated, part) = DatePart::split(feature).filter(|(_, part)| *part != DatePart::Epoch)?;
    let (column, order) = dated.rsplit_once("::")?;
    let (_, order) = DayOrder::ALL.iter().find(|(name, _)| *name == order)?;
    (!column.is_empty()).then_some((column, *order, part))
}

/// The numbers of a column of texts, which is written as SQL writes it.
pub(super) fn number_sql(column: &str, style: NumberStyle) -> String {
    let (removed, kept) = style.translated();
    format!(
        "CASE WHEN ({column})::pg_catalog.text OPERATOR(pg_catalog.~) {} \
         THEN pg_catalog.translate(({column})::pg_catalog.text, {}, '{kept}')::pg_catalog.float8 END",
        quote_literal(&style.pattern()),
        quote_literal(&removed),
    )
}

/// A part of the dates of a column of texts, which is written as SQL writes it.
pub(super) fn date_sql(column: &str, order: DayOrder, part: DatePart) -> String {
    let found = format!("(pg_catalog.regexp_match(({column})::pg_catalog.text, {}))", quote_literal(&order.pattern()));
    let [year, month, day] = order.groups().map(|group| format!("{found}[{group}]"));
    let (year, day) = match order {
        DayOrder::Ymd => {
            let day = format!("(CASE WHEN {year} IS NOT NULL THEN COALESCE({day}, '1') END)");
            (year, day)
        }
        // 69 is 2069, and 70 is 1970
        _ => {
            let century = format!(
                "CASE WHEN pg_catalog.length({year}) OPERATOR(pg_catalog.=) 4 THEN '' \
                 WHEN {year} OPERATOR(pg_catalog.<) '70' THEN '20' ELSE '19' END"
            );
            (format!("({century} OPERATOR(pg_catalog.||) {year})"), day)
        }
    };
    let two_digits = |number: &str| format!("pg_catalog.lpad({number}, 2, '0')");
    let month = match order {
        DayOrder::Ymd => month,
        // a number, or the place of its letters
        _ => format!(
            "CASE WHEN {month} OPERATOR(pg_catalog.~) '^[0-9]' THEN {month} ELSE ((pg_catalog.strpos('{}', \
             pg_catalog.lower(pg_catalog.\"left\"({month}, 3))) OPERATOR(pg_catalog.+) 2) OPERATOR(pg_catalog./) \
             3)::pg_catalog.text END",
            DayOrder::months()
        ),
    };
    let date = format!(
        "(({year} OPERATOR(pg_catalog.||) '-' OPERATOR(pg_catalog.||) {} OPERATOR(pg_catalog.||) '-01')::pg_catalog.date \
         OPERATOR(pg_catalog.+) ({day}::pg_catalog.int4 OPERATOR(pg_catalog.-) 1))",
        two_digits(&month)
    );
    match part {
        DatePart::Year => format!("{year}::pg_catalog.float8"),
        DatePart::Month => two_digits(&month),
        DatePart::Day => format!("{day}::pg_catalog.float8"),
        DatePart::Hour => {
            let hour = format!("COALESCE({found}[4], '0')");
            let of_12 = |more: &str| {
                let hour = format!("({hour}::pg_catalog.int4 OPERATOR(pg_catalog.%) 12 OPERATOR(pg_catalog.+) {more})");
                two_digits(&format!("{hour}::pg_catalog.text"))
            };
            format!(
                "CASE WHEN {year} IS NULL THEN NULL ELSE CASE pg_catalog.lower({found}[5]) WHEN 'a' THEN {} \
                 WHEN 'p' THEN {} ELSE {} END END",
                of_12("0"),
                of_12("12"),
                two_digits(&hour)
            )
        }
        DatePart::Dow => format!("pg_catalog.date_part('dow', {date})::pg_catalog.int4::pg_catalog.text"),
        DatePart::Doy | DatePart::Epoch => format!("pg_catalog.date_part('doy', {date})"),
    }
}

/// The number that a text says.
pub(super) fn number_of_value(style: NumberStyle, value: TypedDatum<'_>) -> Option<TypedDatum<'static>> {
    with_text(value, |text| style.read(text)).map(number)
}

/// The part of the date that a text says.
pub(super) fn date_of_value(order: DayOrder, part: DatePart, value: TypedDatum<'_>) -> Option<TypedDatum<'static>> {
    let date = with_text(value, |text| order.read(text))?;
    Some(match part {
        DatePart::Year => number(date.year as f64),
        DatePart::Day => number(date.day as f64),
        DatePart::Month => part.category(date.month),
        DatePart::Hour => part.category(date.hour),
        // 31 February is 3 March, as in SQL
        part => part.of_day(date.year, date.month, date.day),
    })
}

fn with_text<R>(value: TypedDatum<'_>, f: impl FnOnce(&str) -> Option<R>) -> Option<R> {
    let texts = CategoryType::new(value.type_oid(), pg_sys::Oid::INVALID)?;
    texts.with_text(value, |text| f(std::str::from_utf8(text).ok()?))
}
