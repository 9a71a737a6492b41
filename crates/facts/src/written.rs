//! Numbers and dates that texts say, as features read them: the same in training, where PostgreSQL reads them by the
//! regular expressions here, and in predictions, where these functions do.
//!
//! A text says the same whatever the column, the session and the other texts are. What says nothing is NULL.

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberStyle {
    /// 1,234.5
    Point,
    /// 1.234,5
    Comma,
}

/// In which order a text has year, month and day. A month may be a name, unless the year comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayOrder {
    /// 2013-01-05, or 2013-01 for the first day of a month
    Ymd,
    /// 05/01/2013 or 5 January 2013
    Dmy,
    /// 01/05/2013 or January 5, 2013
    Mdy,
}

/// A date as it is written, with the hour, which is 0 without a time. A time zone is not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenDate {
    /// of four digits
    pub year: i64,
    /// from 1
    pub month: i64,
    /// from 1 to 31 in any month
    pub day: i64,
    /// from 0
    pub hour: i64,
}

/// Signs of currencies that a number may begin or end with.
const CURRENCIES: &str = "$€£¥₹₽₩";
/// Spaces within a number: separators of thousands next to point, comma and apostrophes.
const SPACES: [char; 3] = [' ', '\u{a0}', '\u{202f}'];
const APOSTROPHES: [char; 2] = ['\'', '’'];
/// What may stand around a number or date.
const BLANKS: [char; 6] = [' ', '\u{a0}', '\u{202f}', '\t', '\n', '\r'];
/// Digits before or behind the decimal sign at most: no cast is out of range.
const MOST_DIGITS: usize = 40;
/// The letters that tell the names of months apart.
const MONTHS: &str = "janfebmaraprmayjunjulaugsepoctnovdec";

impl NumberStyle {
    fn signs(self) -> (char, char) {
        match self {
            NumberStyle::Point => ('.', ','),
            NumberStyle::Comma => (',', '.'),
        }
    }

    /// The regular expression that a text matches if it says a number.
    pub fn pattern(self) -> String {
        let (decimal, thousand) = self.signs();
        let (spaces, blanks): (String, String) = (SPACES.iter().collect(), BLANKS.iter().collect());
        let apostrophes: String = APOSTROPHES.iter().collect();
        let digits = format!("[0-9]{{1,{MOST_DIGITS}}}");
        let number = format!(
            "(?:(?:[0-9]{{1,3}}(?:[{thousand}{spaces}{apostrophes}][0-9]{{3}}){{1,12}}|{digits})\
             (?:[{decimal}][0-9]{{0,{MOST_DIGITS}}})?|[{decimal}]{digits})(?:[eE][-+]?[0-9]{{1,2}})?"
        );
        let unit = format!("(?:[{spaces}]*[{CURRENCIES}%])?");
        format!(
            "^[{blanks}]*(?:(?:[-+]?[{CURRENCIES}]?[{spaces}]*|[{CURRENCIES}][{spaces}]*[-+]?){number}{unit}\
             |[{CURRENCIES}]?[(][{CURRENCIES}]?{number}{unit}[)])[{blanks}]*$"
        )
    }

    /// What translate() makes of a text that says a number so that it can be cast: the signs, and those that stand for
    /// the first of them, in place of which the others have none.
    pub fn translated(self) -> (String, &'static str) {
        let (_, thousand) = self.signs();
        let rest = APOSTROPHES.iter().chain(&BLANKS);
        let removed: String = [thousand, '%', ')'].iter().chain(rest).copied().chain(CURRENCIES.chars()).collect();
        match self {
            NumberStyle::Point => (format!("({removed}"), "-"),
            NumberStyle::Comma => (format!("(,{removed}"), "-."),
        }
    }

    /// The number that a text says, if it says one.
    pub fn read(self, text: &str) -> Option<f64> {
        let (decimal, thousand) = self.signs();
        let is_currency = |c: char| CURRENCIES.contains(c);
        let is_separator = |c: char| c == thousand || SPACES.contains(&c) || APOSTROPHES.contains(&c);
        let text = text.trim_matches(BLANKS);
        // (5) is -5 in accounting
        if let Some(inner) = text.strip_prefix(is_currency).unwrap_or(text).strip_prefix('(') {
            let number = inner.strip_suffix(')')?;
            let digits = number.strip_prefix(is_currency).unwrap_or(number);
            let is_number =
                digits.starts_with(|c: char| c.is_ascii_digit() || c == decimal) && !digits.ends_with(BLANKS);
            return if is_number { Some(-self.read(digits)?) } else { None };
        }
        let (mut is_negative, unsigned) = sign(text);
        let mut rest = unsigned;
        if let Some(behind) = rest.strip_prefix(is_currency) {
            rest = behind.trim_start_matches(SPACES);
            if unsigned.len() == text.len() {
                (is_negative, rest) = sign(rest);
            }
        } else {
            rest = rest.trim_start_matches(SPACES);
        }
        let (whole, behind) = digits(rest);
        let mut number = whole.to_owned();
        rest = behind;
        let mut groups = 0;
        while (1..=3).contains(&whole.len())
            && groups < 12
            && let Some(behind) = rest.strip_prefix(is_separator)
            && let (group, _) = digits(behind)
            && group.len() >= 3
        {
            number.push_str(&group[..3]);
            rest = &behind[3..];
            groups += 1;
        }
        if let Some(behind) = rest.strip_prefix(decimal) {
            let (fraction, behind) = digits(behind);
            if fraction.len() > MOST_DIGITS || (number.is_empty() && fraction.is_empty()) {
                return None;
            }
            number.push('.');
            number.push_str(fraction);
            rest = behind;
        }
        if number.is_empty() || whole.len() > MOST_DIGITS {
            return None;
        }
        if let Some(behind) = rest.strip_prefix(['e', 'E']) {
            let (is_small, behind) = sign(behind);
            let (exponent, behind) = digits(behind);
            if !(1..=2).contains(&exponent.len()) {
                return None;
            }
            number.push_str(if is_small { "e-" } else { "e" });
            number.push_str(exponent);
            rest = behind;
        }
        rest = rest.trim_start_matches(SPACES);
        rest = rest.strip_prefix(|c| is_currency(c) || c == '%').unwrap_or(rest);
        let value: f64 = rest.is_empty().then(|| number.parse().ok())??;
        Some(if is_negative { -value } else { value })
    }
}

/// Is it a negative sign, and what follows it?
fn sign(text: &str) -> (bool, &str) {
    (text.starts_with('-'), text.strip_prefix(['-', '+']).unwrap_or(text))
}

/// The digits that a text begins with, and the rest.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

impl DayOrder {
    /// The name of the order, and what stands in it.
    pub const ALL: [(&'static str, DayOrder); 3] =
        [("ymd", DayOrder::Ymd), ("dmy", DayOrder::Dmy), ("mdy", DayOrder::Mdy)];

    /// The name of the order.
    pub fn name(self) -> &'static str {
        match self {
            DayOrder::Ymd => "ymd",
            DayOrder::Dmy => "dmy",
            DayOrder::Mdy => "mdy",
        }
    }

    /// The regular expression that a text matches if it says a date.
    pub fn pattern(self) -> String {
        const YEAR: &str = "[1-9][0-9]{3}";
        const DAY: &str = "(0?[1-9]|[12][0-9]|3[01])(?![0-9])";
        const NUMBER: &str = "(?:0?[1-9]|1[0-2])(?![0-9])";
        let named: Vec<&str> = (0..12).map(|month| &MONTHS[3 * month..3 * month + 3]).collect();
        let named = format!("{NUMBER}|(?:{})[a-z]{{0,7}}", named.join("|"));
        let day = match self {
            DayOrder::Ymd => format!("({YEAR})[-/.]({NUMBER})(?:[-/.]{DAY})?"),
            DayOrder::Dmy => format!("{DAY}[-/. ]({named})[-/.,]? ?({YEAR}|[0-9]{{2}})"),
            DayOrder::Mdy => format!("({named})[-/. ]{DAY}[-/.,]? ?({YEAR}|[0-9]{{2}})"),
        };
        format!(
            "(?i)^[ \t\n\r]*{day}(?:,?[ t]([01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-9.]{{1,12}})? ?\
             (?:([ap])m|z|utc|gmt|[-+][0-9:]{{2,6}})?)?[ \t\n\r]*$"
        )
    }

    /// Which groups of the regular expression have year, month and day; the fourth has the hour, and the fifth an a or
    /// a p if it is one of 12.
    pub fn groups(self) -> [usize; 3] {
        match self {
            DayOrder::Ymd => [1, 2, 3],
            DayOrder::Dmy => [3, 2, 1],
            DayOrder::Mdy => [3, 1, 2],
        }
    }

    /// The letters of all months, three of each.
    pub fn months() -> &'static str {
        MONTHS
    }

    /// The date that a text says, if it says one.
    pub fn read(self, text: &str) -> Option<WrittenDate> {
        const AROUND: [char; 4] = [' ', '\t', '\n', '\r'];
        let text = text.trim_matches(AROUND);
        let (first, rest) = match self {
            DayOrder::Ymd => field(text, 4, 4)?,
            DayOrder::Dmy => field(text, 1, 2)?,
            DayOrder::Mdy => month(text)?,
        };
        let rest = rest.strip_prefix(|c| "-/.".contains(c) || (c == ' ' && self != DayOrder::Ymd))?;
        let (second, rest) = match self {
            DayOrder::Ymd | DayOrder::Mdy => field(rest, 1, 2)?,
            DayOrder::Dmy => month(rest)?,
        };
        let (third, rest) = match self {
            // a month
            DayOrder::Ymd if !rest.starts_with(['-', '/', '.']) => (1, rest),
            DayOrder::Ymd => field(&rest[1..], 1, 2)?,
            _ => {
                let rest = rest.strip_prefix(['-', '/', '.', ',']).unwrap_or(rest);
                year(rest.strip_prefix(' ').unwrap_or(rest))?
            }
        };
        let (year, month, day) = match self {
            DayOrder::Ymd => (first, second, third),
            DayOrder::Dmy => (third, second, first),
            DayOrder::Mdy => (third, first, second),
        };
        let hour = match rest.strip_prefix(',').unwrap_or(rest).strip_prefix([' ', 't', 'T']) {
            None => rest.is_empty().then_some(0)?,
            Some(time) => hour(time)?,
        };
        let is_date = year >= 1000 && (1..=12).contains(&month) && (1..=31).contains(&day);
        is_date.then_some(WrittenDate { year, month, day, hour })
    }
}

/// The number of at least and at most this many digits that a text begins with, and the rest.
fn field(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let (number, rest) = digits(text);
    (least..=most).contains(&number.len()).then(|| Some((number.parse().ok()?, rest)))?
}

/// The year that a text begins with, and the rest. One of two digits is between 1970 and 2069, as PostgreSQL reads it.
fn year(text: &str) -> Option<(i64, &str)> {
    field(text, 4, 4).or_else(|| {
        let (year, rest) = field(text, 2, 2)?;
        Some((year + if year < 70 { 2000 } else { 1900 }, rest))
    })
}

/// The month that a text begins with, as a number or a name, and the rest.
fn month(text: &str) -> Option<(i64, &str)> {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    if letters == 0 {
        return field(text, 1, 2);
    }
    let (name, rest) = text.split_at(letters);
    let begin = name.get(..3)?.to_ascii_lowercase();
    let month = (0..12).find(|month| MONTHS[3 * month..3 * month + 3] == begin)?;
    (letters <= 10).then_some((month as i64 + 1, rest))
}

/// The hour of a time of day.
fn hour(text: &str) -> Option<i64> {
    let (hour, rest) = field(text, 1, 2)?;
    let (minute, rest) = field(rest.strip_prefix(':')?, 2, 2)?;
    let mut rest = rest;
    if let Some(seconds) = rest.strip_prefix(':') {
        let end = seconds.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(seconds.len());
        rest = (1..=12).contains(&end).then(|| &seconds[end..])?;
    }
    let rest = rest.strip_prefix(' ').unwrap_or(rest).to_ascii_lowercase();
    let zone = rest.strip_prefix(['-', '+']);
    let is_zone = |zone: &str| (2..=6).contains(&zone.len()) && zone.chars().all(|c| c.is_ascii_digit() || c == ':');
    let hour_of_day = match rest.as_str() {
        "" | "z" | "utc" | "gmt" => hour,
        // 12:30 am is half an hour after midnight
        "am" => hour % 12,
        "pm" => hour % 12 + 12,
        _ => zone.is_some_and(is_zone).then_some(hour)?,
    };
    (hour < 24 && minute < 60).then_some(hour_of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_units_and_thousands() {
        let of = |text: &str| NumberStyle::Point.read(text);
        for (text, number) in [
            ("12", 12.0),
            (" -2.5 ", -2.5),
            ("+.5", 0.5),
            ("7.", 7.0),
            ("3e4", 3e4),
            ("1E-2", 0.01),
            ("$1,234.50", 1234.5),
            ("-$7", -7.0),
            ("$ -7", -7.0),
            ("- 7", -7.0),
            ("12 %", 12.0),
            ("1 234 567 €", 1_234_567.0),
            ("1'234", 1234.0),
            ("007", 7.0),
            ("\t5\n", 5.0),
            ("(1,234.5)", -1234.5),
            ("($5)", -5.0),
            ("$(5)", -5.0),
            ("(5 %)", -5.0),
            ("(.5)", -0.5),
        ] {
            assert_eq!(of(text), Some(number), "{text:?}");
        }
        let too_long = "1".repeat(41);
        for text in [
            "",
            "-",
            "$",
            ".",
            "NA",
            "nan",
            "inf",
            "1,23",
            "46,47",
            "1234,567",
            "12 kg",
            "<5",
            "--5",
            "-$-5",
            "1 2",
            "1e400",
            "1e",
            "5 e3",
            "0x10",
            "1.2.3",
            "$€5",
            "%5",
            "(5",
            "5)",
            "((5))",
            "(-5)",
            "-(5)",
            "( 5)",
            "()",
            "(NA)",
            too_long.as_str(),
        ] {
            assert_eq!(of(text), None, "{text:?}");
        }
        let of = |text: &str| NumberStyle::Comma.read(text);
        assert_eq!([of("1.234,50 €"), of("7,25"), of("3"), of("1,5e2")], [1234.5, 7.25, 3.0, 150.0].map(Some));
        assert_eq!([of("(1.234,50)"), of("(,5)")], [-1234.5, -0.5].map(Some));
        assert_eq!([of("7.25"), of("1,234.5"), of("?")], [None; 3]);
    }

    #[test]
    fn dates_are_read_in_their_order() {
        let date = |year, month, day, hour| Some(WrittenDate { year, month, day, hour });
        let of = |order: DayOrder, text: &str| order.read(text);
        for text in ["2013-01-05", " 2013/1/5 ", "2013.01.05", "2013-01-05 00:59", "2013-01-05T00:00:00.000Z"] {
            assert_eq!(of(DayOrder::Ymd, text), date(2013, 1, 5, 0), "{text:?}");
        }
        assert_eq!(of(DayOrder::Ymd, "2013-01-05 23:10:11+05:30"), date(2013, 1, 5, 23));
        assert_eq!(of(DayOrder::Ymd, "2013-01"), date(2013, 1, 1, 0));
        assert_eq!(of(DayOrder::Ymd, "2013-02-31 7:10 -05"), date(2013, 2, 31, 7));
        for text in ["05/01/2013", "5.1.2013", "5 January 2013", "05-JAN-2013", "5 Jan, 2013"] {
            assert_eq!(of(DayOrder::Dmy, text), date(2013, 1, 5, 0), "{text:?}");
        }
        for text in ["01/05/2013", "January 5, 2013", "Jan 5 2013", "jan-5-2013"] {
            assert_eq!(of(DayOrder::Mdy, text), date(2013, 1, 5, 0), "{text:?}");
        }
        for (text, hour) in
            [("12:30 AM", 0), ("1:30:05 am", 1), ("12:00PM", 12), ("11:59 pm", 23), ("13:00 UTC", 13), ("7:00 GMT", 7)]
        {
            assert_eq!(of(DayOrder::Mdy, &format!("01/05/2013 {text}")), date(2013, 1, 5, hour), "{text:?}");
            assert_eq!(of(DayOrder::Dmy, &format!("5.1.13, {text}")), date(2013, 1, 5, hour), "{text:?}");
        }
        assert_eq!(of(DayOrder::Dmy, "05-Jan-69"), date(2069, 1, 5, 0));
        assert_eq!(of(DayOrder::Mdy, "1/5/70"), date(1970, 1, 5, 0));
        for (order, text) in [
            (DayOrder::Ymd, "2013-13-05"),
            (DayOrder::Ymd, "2013-01-32"),
            (DayOrder::Ymd, "2013-00-01"),
            (DayOrder::Ymd, "0000-01-01"),
            (DayOrder::Ymd, "2013 01 05"),
            (DayOrder::Ymd, "2013-Jan-05"),
            (DayOrder::Ymd, "2013-01-"),
            (DayOrder::Ymd, "2013"),
            (DayOrder::Dmy, "1/213"),
            (DayOrder::Mdy, "1/0513"),
            (DayOrder::Ymd, "2013-01-05 24:00"),
            (DayOrder::Ymd, "2013-01-05 10:00 XM"),
            (DayOrder::Ymd, "13-01-05"),
            (DayOrder::Ymd, "2013-01-05x"),
            (DayOrder::Dmy, "01/13/2013"),
            (DayOrder::Dmy, "05/01/3"),
            (DayOrder::Dmy, "05/01/013"),
            (DayOrder::Dmy, "5 Foo 2013"),
            (DayOrder::Dmy, "NA"),
            (DayOrder::Mdy, "13/01/2013"),
            (DayOrder::Mdy, ""),
        ] {
            assert_eq!(of(order, text), None, "{text:?}");
        }
    }
}
