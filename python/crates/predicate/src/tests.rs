//! Conditions against an interpreter that goes row by row, and the errors of those that do not fit.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float32Array, Float64Array,
    Int32Array, Int64Array, LargeStringArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow::datatypes::{Int32Type, Schema};
use proptest::prelude::*;

use crate::{Predicate, PredicateError};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

/// A batch with a column of each kind.
fn rows() -> RecordBatch {
    let moments = vec![Some(0), None, Some(1_709_208_000_000_000), Some(-1)];
    batch(vec![
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ("small", Arc::new(Int32Array::from(vec![Some(5), None, Some(-5), Some(0)]))),
        ("hash", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0), Some(1 << 63)]))),
        ("score", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN), Some(-0.0)]))),
        ("half", Arc::new(Float32Array::from(vec![Some(0.1), None, Some(0.5), Some(1.0)]))),
        (
            "price",
            Arc::new(
                Decimal128Array::from(vec![Some(10), None, Some(25), Some(0)])
                    .with_data_type(arrow::datatypes::DataType::Decimal128(10, 2)),
            ),
        ),
        ("good", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)]))),
        ("Label", Arc::new(StringArray::from(vec![Some("cat"), None, Some("Dog"), Some("it's")]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("cat"), None, Some("dog"), Some("x")]))),
        (
            "word",
            Arc::new([Some("cat"), None, Some("dog"), Some("cat")].into_iter().collect::<DictionaryArray<Int32Type>>()),
        ),
        ("day", Arc::new(Date32Array::from(vec![Some(0), None, Some(19_782), Some(-1)]))),
        ("moment", Arc::new(TimestampMicrosecondArray::from(moments))),
        ("second", Arc::new(TimestampSecondArray::from(vec![Some(0), None, Some(1), Some(2)]).with_timezone("+02:00"))),
        ("bytes", Arc::new(BinaryArray::from_iter([Some(b"a"), None, Some(b"b"), Some(b"c")]))),
        ("order", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
    ])
}

fn parsed(text: &str) -> Result<Predicate, PredicateError> {
    Predicate::parse(text, &rows().schema())
}

/// The ids of the rows that are chosen.
fn chosen(text: &str) -> Vec<i64> {
    let chosen = parsed(text).and_then(|predicate| predicate.chosen(&rows()));
    let chosen = chosen.unwrap_or_else(|error| panic!("{text}: {error}"));
    chosen.iter().zip(1..).filter(|(chosen, _)| *chosen).map(|(_, id)| id).collect()
}

fn error(text: &str) -> String {
    parsed(text).and_then(|predicate| predicate.evaluate(&rows())).expect_err(text).to_string()
}

#[test]
fn rows_are_chosen_as_postgresql_chooses_them() {
    let cases: &[(&str, &[i64])] = &[
        ("id = 2", &[2]),
        ("id <> 2 and id != 3", &[1, 4]),
        ("2 < id", &[3, 4]),
        ("id < 2 OR id >= 4 AND good", &[1, 4]),
        ("NOT id = 2", &[1, 3, 4]),
        ("id<3 and id>-1", &[1, 2]),
        ("id = - -1 or id = +2", &[1, 2]),
        ("id>-1 and not id<-1 and id<>-1 and id>=+1 and id=-(-1)", &[1]),
        ("id%2=0", &[2, 4]),
        ("-7 / 2 = -3 and -7 % 2 = -1", &[1, 2, 3, 4]),
        ("7 / 2 = 3 and 7 / 2.0 = 3.5", &[1, 2, 3, 4]),
        ("id + 2 * id = 9", &[3]),
        ("10 - id - 1 = 6", &[3]),
        ("small IS NULL", &[2]),
        ("small IS NOT NULL", &[1, 3, 4]),
        ("small = NULL", &[]),
        ("(small = 5) IS UNKNOWN", &[2]),
        ("(small = 5) IS NOT TRUE", &[2, 3, 4]),
        ("(small = 5) IS FALSE", &[3, 4]),
        ("(small = 5) IS NOT FALSE", &[1, 2]),
        ("abs(small) = 5", &[1, 3]),
        ("small IN (5, 0)", &[1, 4]),
        ("small NOT IN (5, 0)", &[3]),
        ("small NOT IN (5, NULL)", &[]),
        ("small IN (5.0, 0)", &[1, 4]),
        ("id IN (small, 3)", &[3]),
        ("small BETWEEN -5 AND 0", &[3, 4]),
        ("small NOT BETWEEN -5 AND 0", &[1]),
        ("hash = 18446744073709551615", &[1]),
        ("hash > 9223372036854775807", &[1, 4]),
        ("hash % 10 = 5", &[1]),
        ("hash > -1", &[1, 3, 4]),
        ("hash < id", &[3]),
        ("hash >= 0.5", &[1, 4]),
        ("hash IN (0, 18446744073709551615)", &[1, 3]),
        ("score > 1e308", &[3]),
        ("score = score", &[1, 3, 4]),
        ("score = 0", &[4]),
        ("score < 0", &[]),
        ("half = 0.1", &[]),
        ("half >= 0.5", &[3, 4]),
        ("price = 0.1", &[1]),
        ("price * 4 = 1", &[3]),
        ("good", &[1, 4]),
        ("NOT good", &[3]),
        ("good = TRUE", &[1, 4]),
        ("good <> false", &[1, 4]),
        ("good IS NULL", &[2]),
        ("TRUE", &[1, 2, 3, 4]),
        ("FALSE OR NULL", &[]),
        ("label = 'cat'", &[1]),
        ("\"Label\" = 'it''s'", &[4]),
        ("LABEL > 'Z'", &[1, 4]),
        ("label IN ('cat', 'Dog')", &[1, 3]),
        ("'cat' = label", &[1]),
        ("label = view", &[1]),
        ("view = word", &[1, 3]),
        ("word NOT IN ('cat')", &[3]),
        ("label LIKE '%o%'", &[3]),
        ("label ILIKE 'd_G'", &[3]),
        ("word NOT LIKE 'c%'", &[3]),
        ("view LIKE 'do\\g'", &[3]),
        ("day = '1970-01-01'", &[1]),
        ("day < DATE '2000-01-01'", &[1, 4]),
        ("day IN ('2024-02-29', '1969-12-31')", &[3, 4]),
        ("moment >= '2024-02-29 12:00:00'", &[3]),
        ("moment < '1970-01-01'", &[4]),
        ("moment > '2024-02-29T13:59:59.999999+02:00'", &[3]),
        ("moment >= day", &[1, 3, 4]),
        ("second = '1970-01-01 02:00:01+02:00'", &[3]),
        ("moment < second", &[4]),
        ("bytes IS NOT NULL", &[1, 3, 4]),
        ("\"order\" = 3", &[3]),
        ("NULL", &[]),
        ("NULL IS NULL", &[1, 2, 3, 4]),
        ("small <> 0 AND 10 / small > 1", &[1]),
        ("small = 0 OR 10 / small > 1", &[1, 4]),
        ("-9223372036854775808 % -1 = 0", &[1, 2, 3, 4]),
    ];
    for (text, expected) in cases {
        assert_eq!(chosen(text), *expected, "{text}");
    }
}

#[test]
fn what_does_not_fit_is_told_with_its_place() {
    let cases = [
        ("colour = 3", ", at character 1: there is no column \"colour\"; the columns are: id, small,"),
        ("id = 3 AND\n  colour = 3", ", at character 3 of line 2: there is no column"),
        ("label = \"cat\"", "there is no column \"cat\" (text is put in single quotes)"),
        ("id = 'x'", "the column \"id\" of type Int64 cannot be compared with the text 'x'"),
        ("score = 'NaN'", "cannot be compared with the text 'NaN'"),
        ("id < 3 AND label < 3", "at character 12: the column \"Label\" of type Utf8 cannot be compared with a number"),
        ("good = 1", "the column \"good\" of type Boolean cannot be compared with a number"),
        ("id", "there should be a condition, and there is the column \"id\" of type Int64"),
        ("id AND good", "there should be a condition"),
        ("NOT id", "there should be a condition"),
        ("label + 1 = 2", "there should be a number, and there is the column \"Label\" of type Utf8, which +"),
        ("day > 5", "cannot be compared with a number"),
        ("day > 'yesterday'", "\"yesterday\" is not a date"),
        ("moment > 'noon'", "\"noon\" is not a timestamp"),
        ("second > '2024-01-01 00:00:00.5'", "is more precise than the column"),
        ("bytes = 'a'", "the column \"bytes\" of type Binary cannot be compared"),
        ("id LIKE 'a'", "LIKE is for text"),
        ("label LIKE view", "the pattern of LIKE should be text in single quotes"),
        ("label LIKE 'a\\'", "ends with a backslash"),
        ("sqrt(id) = 1", "there is no function sqrt; there is abs"),
        ("abs(id, 2) = 1", "abs is of one number"),
        ("t.id = 1", "columns have no table in front of them"),
        ("id = 1; DROP TABLE x", "an operator should be where ; is"),
        ("id IN (SELECT 1)", "there are no queries"),
        ("id::text = '1'", "types cannot be changed"),
        ("id ^ 2 = 4", "the operator ^"),
        ("id = 1 2", "an operator should be where 2 is"),
        ("", "it is empty"),
        ("  -- nothing\n", "it is empty"),
        ("id = ", "cannot be parsed"),
        ("(id = 1", "cannot be parsed"),
        ("label = 'cat", "cannot be parsed"),
        ("id = 1e400", "1e400 is not a number"),
        ("1 / 0 = 1", "division by zero"),
        ("1.0 / 0 = 1", "division by zero"),
        ("id % 0 = 1", "division by zero"),
        ("10 / small > 1", "division by zero"),
        ("9223372036854775807 + id > 0", "a number is out of range"),
        ("-(-9223372036854775808) > 0", "a number is out of range"),
        ("-9223372036854775808 / -1 > 0", "a number is out of range"),
        ("hash * 2 > 0", "a number is out of range"),
        ("hash - 1 > 0", "Can't cast value 18446744073709551615"),
        ("score * 1e308 * 1e308 > 0", "a number is out of range"),
    ];
    for (text, expected) in cases {
        let error = error(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_name_that_may_be_two_columns_is_an_error() {
    let column: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let rows = batch(vec![("Label", column.clone()), ("LABEL", column)]);
    let error = Predicate::parse("label = 1", &rows.schema()).unwrap_err().to_string();
    assert!(error.contains("label may be \"Label\" or \"LABEL\""), "{error}");
    assert_eq!(Predicate::parse("LABEL = 1", &rows.schema()).unwrap().columns(), ["LABEL"]);
    assert!(Predicate::parse("\"label\" = 1", &rows.schema()).is_err());
}

#[test]
fn the_columns_are_those_of_the_text_and_other_rows_are_refused() {
    let predicate = parsed("id > 1 AND (label = 'x' OR id < 9)").unwrap();
    assert_eq!(predicate.columns(), ["id", "Label"]);
    let some = rows().project(&[7, 0]).unwrap();
    assert_eq!(predicate.chosen(&some).unwrap().count_set_bits(), 3);
    let error = predicate.evaluate(&rows().project(&[0]).unwrap()).unwrap_err();
    assert_eq!(error, PredicateError::OtherRows("they have no column \"Label\"".into()));
    let other: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let error = predicate.evaluate(&batch(vec![("id", other.clone()), ("Label", other)])).unwrap_err();
    assert!(error.to_string().contains("column \"Label\" is of type Int64 and was of type Utf8"), "{error}");
    assert!(parsed("1 = 1").unwrap().columns().is_empty());
}

#[test]
fn rows_without_columns_are_counted() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    assert_eq!(Predicate::parse("1 < 2", &rows.schema()).unwrap().chosen(&rows).unwrap().count_set_bits(), 3);
    let none = self::rows().slice(0, 0);
    assert_eq!(parsed("id / 0 = 1").unwrap().evaluate(&none).unwrap().len(), 0);
}

#[test]
fn hostile_texts_take_neither_the_stack_nor_much_time() {
    let started = std::time::Instant::now();
    let many = 100_000;
    for text in [
        "(".repeat(many),
        format!("{}id = 1{}", "(".repeat(many), ")".repeat(many)),
        format!("{}id = 1{}", "(".repeat(45), ")".repeat(45)),
        format!("{}id = 1", "(".repeat(45)),
        format!("{}good", "NOT ".repeat(many)),
        format!("id = {}1", "- ".repeat(many)),
        format!("id{} = 1", " + id".repeat(many)),
        format!("id{} = 1", " + id".repeat(400)),
        format!("good{}", " IS TRUE".repeat(many)),
        format!("good{}", " IS TRUE".repeat(400)),
        format!("good{}", " = good".repeat(many)),
        format!("id{} = 1", "::int".repeat(many)),
        format!("id{} = 1", "!".repeat(many)),
        format!("id{} = 1", "[1]".repeat(many)),
        format!("id{} = 1", ".id".repeat(many)),
        format!("{}1{} = 1", "abs(".repeat(many), ")".repeat(many)),
        format!("{}1{} = 1", "abs(".repeat(40), ")".repeat(40)),
        format!("{}1", "CASE WHEN ".repeat(40)),
        format!("{}1", "CAST(".repeat(40)),
        format!("{}1", "INTERVAL ".repeat(40)),
        format!("{}1", "ARRAY[".repeat(40)),
        format!("{}1", "id IN (".repeat(40)),
        format!("{}1", "(SELECT ".repeat(40)),
        format!("{}1", "ROW(".repeat(40)),
        format!("{}1", "EXISTS(".repeat(40)),
        format!("{}1", "a -> (".repeat(40)),
        format!("id = 1{}", " OR id = 1".repeat(many)),
        "x".repeat(5 << 20),
    ] {
        let start: String = text.chars().take(40).collect();
        let parsed = parsed(&text);
        assert!(parsed.is_err() || text.len() < 200, "{start} was parsed");
        let what = parsed.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(what.len() < 1000, "{start}: {what}");
        assert!(started.elapsed().as_secs() < 60, "{start} took too long");
    }
    // and what is long but flat, or reasonably deep, is fine
    assert_eq!(chosen(&format!("{}id = 1{}", "(".repeat(20), ")".repeat(20))), [1]);
    assert_eq!(chosen(&format!("{}id{} = 1", "abs(".repeat(20), ")".repeat(20))), [1]);
    let list: Vec<String> = (0..many).map(|value| value.to_string()).collect();
    assert_eq!(chosen(&format!("id IN ({})", list.join(","))), [1, 2, 3, 4]);
    assert_eq!(chosen(&format!("id = 0{}", " OR id = 1".repeat(300))), [1]);
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
enum Cell {
    Null,
    Whole(i128),
    Real(f64),
    Text(String),
}

/// An expression whose value is a number or text.
#[derive(Debug, Clone)]
enum Value {
    Column(usize),
    Literal(Cell),
    Calculate(char, Box<Value>, Box<Value>),
    Negative(Box<Value>),
    Absolute(Box<Value>),
}

/// An expression that is true, false or unknown.
#[derive(Debug, Clone)]
enum Condition {
    Constant(Option<bool>),
    Column,
    Compare(&'static str, Value, Value),
    Same(Box<Condition>, Box<Condition>),
    Missing(Value, bool),
    Is(Box<Condition>, Option<bool>, bool),
    In(Value, Vec<Cell>, bool),
    Between(Value, Value, Value, bool),
    Like(Value, String, bool, bool),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Not(Box<Condition>),
}

/// A row: small and large whole numbers, numbers without a sign, two kinds of real ones, three texts, a truth.
type Row = (Option<i32>, Option<i64>, Option<u64>, Option<f64>, Option<f32>, Vec<Option<String>>, Option<bool>);

const NAMES: [&str; 8] = ["i", "j", "u", "f", "g", "s", "v", "w"];

fn cell(row: &Row, column: usize) -> Cell {
    let whole = |value: Option<i128>| value.map_or(Cell::Null, Cell::Whole);
    let real = |value: Option<f64>| value.map_or(Cell::Null, Cell::Real);
    match column {
        0 => whole(row.0.map(Into::into)),
        1 => whole(row.1.map(Into::into)),
        2 => whole(row.2.map(Into::into)),
        3 => real(row.3),
        4 => real(row.4.map(Into::into)),
        _ => row.5[column - 5].clone().map_or(Cell::Null, Cell::Text),
    }
}

fn table(rows: &[Row]) -> RecordBatch {
    let text = |column: usize| rows.iter().map(move |row| row.5[column].as_deref());
    batch(vec![
        ("i", Arc::new(rows.iter().map(|row| row.0).collect::<Int32Array>())),
        ("j", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>())),
        ("u", Arc::new(rows.iter().map(|row| row.2).collect::<UInt64Array>())),
        ("f", Arc::new(rows.iter().map(|row| row.3).collect::<Float64Array>())),
        ("g", Arc::new(rows.iter().map(|row| row.4).collect::<Float32Array>())),
        ("s", Arc::new(text(0).collect::<LargeStringArray>())),
        ("v", Arc::new(text(1).collect::<StringViewArray>())),
        ("w", Arc::new(text(2).collect::<DictionaryArray<Int32Type>>())),
        ("b", Arc::new(rows.iter().map(|row| row.6).collect::<BooleanArray>())),
    ])
}

/// That a row makes the expression fail.
#[derive(Debug)]
struct Failed;

impl Cell {
    fn sql(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Whole(value) => value.to_string(),
            Self::Real(value) => format!("{value:?}"),
            Self::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }

    fn real(&self) -> f64 {
        match self {
            Self::Whole(value) => *value as f64,
            Self::Real(value) => *value,
            _ => panic!("{self:?} is not a number"),
        }
    }

    /// As PostgreSQL orders them.
    fn order(&self, other: &Self) -> Option<std::cmp::Ordering> {
        use std::cmp::Ordering;
        match (self, other) {
            (Self::Null, _) | (_, Self::Null) => None,
            (Self::Whole(one), Self::Whole(other)) => Some(one.cmp(other)),
            (Self::Text(one), Self::Text(other)) => Some(one.as_bytes().cmp(other.as_bytes())),
            (one, other) => {
                let (one, other) = (one.real(), other.real());
                Some(match (one.is_nan(), other.is_nan()) {
                    (true, true) => Ordering::Equal,
                    (true, false) => Ordering::Greater,
                    (false, true) => Ordering::Less,
                    _ => one.partial_cmp(&other).unwrap(),
                })
            }
        }
    }
}

fn compare(operator: &str, one: &Cell, other: &Cell) -> Option<bool> {
    let order = one.order(other)?;
    Some(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn in_range(value: Option<i128>) -> Result<Cell, Failed> {
    value.and_then(|value| i64::try_from(value).ok()).map(|value| Cell::Whole(value.into())).ok_or(Failed)
}

impl Value {
    fn sql(&self) -> String {
        match self {
            Self::Column(column) => NAMES[*column].into(),
            Self::Literal(cell) => cell.sql(),
            Self::Calculate(operator, one, other) => format!("({} {operator} {})", one.sql(), other.sql()),
            Self::Negative(value) => format!("(- {})", value.sql()),
            Self::Absolute(value) => format!("abs({})", value.sql()),
        }
    }

    fn of(&self, row: &Row) -> Result<Cell, Failed> {
        Ok(match self {
            Self::Column(column) => cell(row, *column),
            Self::Literal(cell) => cell.clone(),
            Self::Negative(value) => match value.of(row)? {
                Cell::Null => Cell::Null,
                Cell::Whole(value) => in_range(Some(-value))?,
                value => Cell::Real(-value.real()),
            },
            Self::Absolute(value) => match value.of(row)? {
                Cell::Null => Cell::Null,
                Cell::Whole(value) => in_range(Some(value.abs()))?,
                value => Cell::Real(value.real().abs()),
            },
            Self::Calculate(operator, one, other) => match (one.of(row)?, other.of(row)?) {
                (Cell::Null, _) | (_, Cell::Null) => Cell::Null,
                (Cell::Whole(one), Cell::Whole(other)) => in_range(match operator {
                    '+' => one.checked_add(other),
                    '-' => one.checked_sub(other),
                    '*' => one.checked_mul(other),
                    '/' => one.checked_div(other),
                    _ => one.checked_rem(other),
                })?,
                (one, other) => {
                    let (one, other) = (one.real(), other.real());
                    if matches!(operator, '/' | '%') && other == 0.0 && !one.is_nan() {
                        return Err(Failed);
                    }
                    let value = match operator {
                        '+' => one + other,
                        '-' => one - other,
                        '*' => one * other,
                        '/' => one / other,
                        _ => one % other,
                    };
                    if value.is_infinite() && one.is_finite() && other.is_finite() {
                        return Err(Failed);
                    }
                    Cell::Real(value)
                }
            },
        })
    }
}

/// Whether a text is like a pattern, character by character.
fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|skipped| like(&text[skipped..], rest)),
        ['_', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['\\', wanted, rest @ ..] | [wanted, rest @ ..] => text.first() == Some(wanted) && like(&text[1..], rest),
    }
}

impl Condition {
    fn sql(&self) -> String {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Self::Constant(None) => "NULL".into(),
            Self::Constant(Some(truth)) => truth.to_string(),
            Self::Column => "b".into(),
            Self::Compare(operator, one, other) => format!("{} {operator} {}", one.sql(), other.sql()),
            Self::Same(one, other) => format!("({}) = ({})", one.sql(), other.sql()),
            Self::Missing(value, negated) => format!("{} IS {}NULL", value.sql(), not(negated)),
            Self::Is(condition, truth, negated) => {
                let truth = truth.map_or("UNKNOWN".into(), |truth| truth.to_string());
                format!("({}) IS {}{truth}", condition.sql(), not(negated))
            }
            Self::In(value, list, negated) => {
                let list: Vec<String> = list.iter().map(Cell::sql).collect();
                format!("{} {}IN ({})", value.sql(), not(negated), list.join(", "))
            }
            Self::Between(value, low, high, negated) => {
                format!("{} {}BETWEEN {} AND {}", value.sql(), not(negated), low.sql(), high.sql())
            }
            Self::Like(value, pattern, ignore_case, negated) => {
                let (value, pattern) = (value.sql(), Cell::Text(pattern.clone()).sql());
                format!("{value} {}{} {pattern}", not(negated), if *ignore_case { "ILIKE" } else { "LIKE" })
            }
            Self::And(one, other) => format!("({}) AND ({})", one.sql(), other.sql()),
            Self::Or(one, other) => format!("({}) OR ({})", one.sql(), other.sql()),
            Self::Not(condition) => format!("NOT ({})", condition.sql()),
        }
    }

    fn of(&self, row: &Row) -> Result<Option<bool>, Failed> {
        let turned = |truth: Option<bool>, negated: &bool| truth.map(|truth| truth != *negated);
        Ok(match self {
            Self::Constant(truth) => *truth,
            Self::Column => row.6,
            Self::Compare(operator, one, other) => compare(operator, &one.of(row)?, &other.of(row)?),
            Self::Same(one, other) => one.of(row)?.zip(other.of(row)?).map(|(one, other)| one == other),
            Self::Missing(value, negated) => Some((value.of(row)? == Cell::Null) != *negated),
            Self::Is(condition, truth, negated) => Some((condition.of(row)? == *truth) != *negated),
            Self::In(value, list, negated) => {
                let value = value.of(row)?;
                let found: Vec<Option<bool>> = list.iter().map(|item| compare("=", &value, item)).collect();
                let found = if found.contains(&Some(true)) {
                    Some(true)
                } else if found.contains(&None) {
                    None
                } else {
                    Some(false)
                };
                turned(found, negated)
            }
            Self::Between(value, low, high, negated) => {
                let value = value.of(row)?;
                let above = compare(">=", &value, &low.of(row)?);
                if above == Some(false) {
                    return Ok(Some(*negated));
                }
                let below = compare("<=", &value, &high.of(row)?);
                let within = if below == Some(false) { Some(false) } else { above.and(below) };
                turned(within, negated)
            }
            Self::Like(value, pattern, ignore_case, negated) => match value.of(row)? {
                Cell::Text(text) => {
                    let chars = |text: &str| -> Vec<char> {
                        if *ignore_case { text.to_lowercase().chars().collect() } else { text.chars().collect() }
                    };
                    Some(like(&chars(&text), &chars(pattern)) != *negated)
                }
                _ => None,
            },
            Self::And(one, other) => match one.of(row)? {
                Some(false) => Some(false),
                one => match other.of(row)? {
                    Some(false) => Some(false),
                    other => one.and(other),
                },
            },
            Self::Or(one, other) => match one.of(row)? {
                Some(true) => Some(true),
                one => match other.of(row)? {
                    Some(true) => Some(true),
                    other => one.and(other),
                },
            },
            Self::Not(condition) => condition.of(row)?.map(|truth| !truth),
        })
    }
}

fn whole() -> BoxedStrategy<i64> {
    prop_oneof![8 => -4..5_i64, 1 => Just(i64::MAX), 1 => Just(i64::MIN), 1 => any::<i64>()].boxed()
}

fn real() -> BoxedStrategy<f64> {
    let special = prop::sample::select(vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300]);
    prop_oneof![4 => (-8..9_i32).prop_map(|value| f64::from(value) / 2.0), 1 => special].boxed()
}

/// Texts of few letters, so that some are equal and some are like a pattern.
fn letters(most: usize) -> BoxedStrategy<String> {
    let letter = prop::sample::select(vec!['a', 'A', 'b', 'ä', 'Ä', '.', '*', '\n', '\'', '%', '_', '\\']);
    prop::collection::vec(letter, 0..most).prop_map(String::from_iter).boxed()
}

/// A pattern that does not end in a backslash of its own.
fn pattern() -> BoxedStrategy<String> {
    let part =
        prop::sample::select(vec!["a", "A", "b", "ä", ".", "*", "\n", "%", "_", "\\%", "\\_", "\\\\", "\\a", "%"]);
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat()).boxed()
}

fn row() -> BoxedStrategy<Row> {
    fn some<T: Strategy + 'static>(of: T) -> impl Strategy<Value = Option<T::Value>> {
        prop::option::weighted(0.8, of)
    }
    let natural = prop_oneof![4 => 0..5_u64, 1 => Just(u64::MAX), 1 => Just(1 << 63)];
    let texts = prop::collection::vec(some(letters(4)), 3);
    (
        some(-4..5_i32),
        some(whole()),
        some(natural),
        some(real()),
        some((-8..9_i32).prop_map(|value| value as f32 / 4.0)),
        texts,
        some(any::<bool>()),
    )
        .boxed()
}

/// A number as it can be written: not infinite, and not "not a number".
fn literal() -> BoxedStrategy<Cell> {
    let real = real().prop_filter("has digits", |value| value.is_finite()).prop_map(Cell::Real);
    let whole = whole().prop_map(|value| Cell::Whole(value.into()));
    prop_oneof![6 => whole, 3 => real, 1 => Just(Cell::Null)].boxed()
}

fn number() -> BoxedStrategy<Value> {
    let columns = prop::sample::select(vec![0, 1, 3, 4]);
    let leaf = prop_oneof![3 => columns.prop_map(Value::Column), 2 => literal().prop_map(Value::Literal)];
    leaf.prop_recursive(3, 8, 2, |inner| {
        let operator = prop::sample::select(vec!['+', '-', '*', '/', '%']);
        prop_oneof![
            4 => (operator, inner.clone(), inner.clone())
                .prop_map(|(operator, one, other)| Value::Calculate(operator, one.into(), other.into())),
            1 => inner.clone().prop_map(|value| Value::Negative(value.into())),
            1 => inner.prop_map(|value| Value::Absolute(value.into())),
        ]
    })
    .boxed()
}

fn text() -> BoxedStrategy<Value> {
    let column = (5..8_usize).prop_map(Value::Column);
    prop_oneof![3 => column, 1 => letters(4).prop_map(|text| Value::Literal(Cell::Text(text)))].boxed()
}

fn condition() -> BoxedStrategy<Condition> {
    let operator = || prop::sample::select(vec!["=", "<>", "<", "<=", ">", ">="]);
    let texts = prop::collection::vec(prop_oneof![4 => letters(3).prop_map(Cell::Text), 1 => Just(Cell::Null)], 1..4);
    // a number without a sign is compared with any, but not computed with: results depend on whether it has one
    let comparable = prop_oneof![4 => number(), 1 => Just(Value::Column(2))];
    let leaf = prop_oneof![
        1 => prop::option::of(any::<bool>()).prop_map(Condition::Constant),
        1 => Just(Condition::Column),
        4 => (operator(), comparable.clone(), comparable)
            .prop_map(|(operator, one, other)| Condition::Compare(operator, one, other)),
        3 => (operator(), text(), text()).prop_map(|(operator, one, other)| Condition::Compare(operator, one, other)),
        1 => (prop_oneof![number(), text()], any::<bool>()).prop_map(|(value, not)| Condition::Missing(value, not)),
        2 => (number(), prop::collection::vec(literal(), 1..5), any::<bool>())
            .prop_map(|(value, list, not)| Condition::In(value, list, not)),
        1 => (text(), texts, any::<bool>()).prop_map(|(value, list, not)| Condition::In(value, list, not)),
        2 => (number(), number(), number(), any::<bool>())
            .prop_map(|(value, low, high, not)| Condition::Between(value, low, high, not)),
        2 => (text(), pattern(), any::<bool>(), any::<bool>())
            .prop_map(|(value, pattern, ignore, not)| Condition::Like(value, pattern, ignore, not)),
    ];
    leaf.prop_recursive(3, 10, 2, |inner| {
        let pair = || (inner.clone(), inner.clone());
        prop_oneof![
            3 => pair().prop_map(|(one, other)| Condition::And(one.into(), other.into())),
            3 => pair().prop_map(|(one, other)| Condition::Or(one.into(), other.into())),
            2 => inner.clone().prop_map(|condition| Condition::Not(condition.into())),
            1 => pair().prop_map(|(one, other)| Condition::Same(one.into(), other.into())),
            1 => (inner.clone(), prop::option::of(any::<bool>()), any::<bool>())
                .prop_map(|(condition, truth, not)| Condition::Is(condition.into(), truth, not)),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("CORGIPILE_FULL").is_some_and(|full| full == "1") { 3000 } else { 500 }
    ))]

    #[test]
    fn conditions_are_what_an_interpreter_says(condition in condition(), rows in prop::collection::vec(row(), 0..12)) {
        let (batch, text) = (table(&rows), condition.sql());
        let expected: Result<Vec<Option<bool>>, Failed> = rows.iter().map(|row| condition.of(row)).collect();
        let predicate = Predicate::parse(&text, &batch.schema());
        let predicate = predicate.map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
        match (predicate.evaluate(&batch), expected) {
            (Ok(answers), Ok(expected)) => {
                prop_assert_eq!(answers.iter().collect::<Vec<_>>(), expected.clone(), "{}", text);
                let chosen: Vec<bool> = predicate.chosen(&batch).unwrap().iter().collect();
                prop_assert_eq!(chosen, expected.iter().map(|truth| *truth == Some(true)).collect::<Vec<_>>());
                // a part of an array has its bits somewhere in the middle
                if rows.len() > 3 {
                    let answers = predicate.evaluate(&batch.slice(1, rows.len() - 2)).unwrap();
                    prop_assert_eq!(answers.iter().collect::<Vec<_>>(), &expected[1..rows.len() - 1]);
                }
            }
            (Err(PredicateError::Evaluation(_)), Err(Failed)) => {}
            (answers, expected) => {
                return Err(TestCaseError::fail(format!("{text}: {answers:?} instead of {expected:?}")));
            }
        }
    }

    #[test]
    fn any_text_is_a_condition_or_an_error(text in "[ a-zA-Z0-9'\"()<>=!+*/%.,;:$\\[\\]{}?@#&|~^-]{0,40}") {
        let _ = parsed(&text);
    }
}
