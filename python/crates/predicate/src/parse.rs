//! From text to a condition whose types are known.
//!
//! sqlparser makes a tree of the text and limits how deep parentheses and signs may be nested. What it leaves open is
//! limited here: chains of operators, which it makes as deep a tree of as they are long, and which take stack when
//! that tree is given back.

use std::collections::HashSet;

use arrow::array::timezone::Tz;
use arrow::compute::kernels::cast_utils::{Parser as _, string_to_datetime};
use arrow::datatypes::{DataType, Date32Type, Schema};
use sqlparser::ast::{
    BinaryOperator, DataType as SqlType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    InTarget, Spanned, TypedString, UnaryOperator, Value as SqlValue, ValueWithSpan,
};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::PredicateError;
use crate::tree::{Comparison, Literal, Operand, Operation, Set, Truth, Value, Values};
use crate::types::{Kind, parts};

/// How long a text may be: lists of values may be long.
const MAX_BYTES: usize = 4 << 20;

/// How many operators and keywords it may have, hence how deep a tree becomes.
const MAX_OPERATORS: usize = 1000;

/// How deep parentheses, signs and functions may be nested. The library's own limit is 50, for which the 2 MiB of a
/// thread's stack are not enough without optimization.
const MAX_PARENTHESES: usize = 25;

/// How deep conditions may be nested, chains of AND and OR aside.
const MAX_DEPTH: usize = 64;

/// How many columns an error names.
const MAX_NAMES: usize = 30;

/// The condition, and the names and types of its columns.
pub(crate) fn condition(text: &str, schema: &Schema) -> Result<(Truth, Vec<(String, DataType)>), PredicateError> {
    if text.len() > MAX_BYTES {
        return Err(PredicateError::Syntax(format!("it is longer than {MAX_BYTES} bytes")));
    }
    let dialect = PostgreSqlDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| PredicateError::Syntax(error.to_string()))?;
    if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::EOF)) {
        return Err(PredicateError::Syntax("it is empty".into()));
    }
    if tokens.iter().filter(|token| deepens(&token.token)).count() > MAX_OPERATORS {
        let advice = "choose values by IN with a list of them";
        return Err(PredicateError::Syntax(format!("it has more than {MAX_OPERATORS} operators; {advice}")));
    }
    let tokens = tokens.into_iter().flat_map(separate_signs).collect();
    let mut parser = Parser::new(&dialect).with_recursion_limit(MAX_PARENTHESES).with_tokens_with_locations(tokens);
    let syntax = |error: sqlparser::parser::ParserError| {
        PredicateError::Syntax(match error {
            sqlparser::parser::ParserError::ParserError(what)
            | sqlparser::parser::ParserError::TokenizerError(what) => what,
            sqlparser::parser::ParserError::RecursionLimitExceeded => "it is nested too deeply".into(),
        })
    };
    let tree = parser.parse_expr().map_err(syntax)?;
    let next = parser.peek_token();
    if next.token != Token::EOF {
        return Err(invalid(next.span.start, format!("an operator should be where {} is", next.token)));
    }
    let mut typing = Typing { schema, columns: Vec::new() };
    let condition = typing.truth(&tree, 0)?;
    Ok((condition, typing.columns))
}

/// Takes signs off an operator: PostgreSQL reads `x<-1` as `x < -1`, and the library as an operator `<-`.
fn separate_signs(token: TokenWithSpan) -> Vec<TokenWithSpan> {
    let Token::CustomBinaryOperator(all) = &token.token else { return vec![token] };
    let operator = match all.trim_end_matches(['-', '+']) {
        "<" => Token::Lt,
        "<=" => Token::LtEq,
        "<>" | "!=" => Token::Neq,
        ">" => Token::Gt,
        ">=" => Token::GtEq,
        "=" => Token::Eq,
        _ => return vec![token],
    };
    let signs = all.chars().filter(|c| matches!(c, '-' | '+'));
    let signs = signs.map(|sign| if sign == '-' { Token::Minus } else { Token::Plus });
    [operator].into_iter().chain(signs).map(|part| TokenWithSpan { token: part, span: token.span }).collect()
}

/// Whether a token may make the tree deeper without the parser's noticing.
fn deepens(token: &Token) -> bool {
    use Token::*;
    match token {
        Word(word) => word.quote_style.is_none() && word.keyword != sqlparser::keywords::Keyword::NoKeyword,
        Number(..) | SingleQuotedString(_) | Comma | Whitespace(_) | LParen | RParen | EOF => false,
        _ => true,
    }
}

fn invalid(place: Location, what: impl Into<String>) -> PredicateError {
    PredicateError::Invalid { line: place.line, character: place.column, what: what.into() }
}

/// Where an expression begins. Unlike `Spanned::span`, it does not recurse into chains.
fn place(mut of: &Expr) -> Location {
    loop {
        of = match of {
            Expr::BinaryOp { left, .. } => left,
            Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => inner,
            Expr::IsNull(inner) | Expr::IsNotNull(inner) | Expr::IsUnknown(inner) | Expr::IsNotUnknown(inner) => inner,
            Expr::IsTrue(inner) | Expr::IsNotTrue(inner) | Expr::IsFalse(inner) | Expr::IsNotFalse(inner) => inner,
            Expr::In { expr, .. } | Expr::Between { expr, .. } => expr,
            Expr::Like { expr, .. } | Expr::ILike { expr, .. } | Expr::Cast { expr, .. } => expr,
            Expr::Function(function) => return function.name.span().start,
            Expr::Identifier(name) => return name.span.start,
            Expr::CompoundIdentifier(names) => return names.first().map_or(Location::empty(), |name| name.span.start),
            Expr::Value(value) => return value.span.start,
            Expr::TypedString(TypedString { value, .. }) => return value.span.start,
            _ => return Location::empty(),
        };
    }
}

/// What an expression turned out to be.
enum Typed {
    Truth(Truth),
    Value(Value, Kind),
    /// Text in quotes: a date if it is compared with one.
    Text(String),
    Null,
    /// A column of which nothing can be said but whether it is there.
    Other(usize),
}

struct Typing<'a> {
    schema: &'a Schema,
    columns: Vec<(String, DataType)>,
}

impl Typing<'_> {
    /// An expression that is true or false.
    fn truth(&mut self, of: &Expr, depth: usize) -> Result<Truth, PredicateError> {
        match self.typed(of, depth)? {
            Typed::Truth(truth) => Ok(truth),
            Typed::Null => Ok(Truth::Constant(None)),
            other => {
                let name = self.name(&other);
                Err(invalid(place(of), format!("there should be a condition, and there is {name}")))
            }
        }
    }

    fn typed(&mut self, of: &Expr, depth: usize) -> Result<Typed, PredicateError> {
        if depth > MAX_DEPTH {
            return Err(invalid(place(of), format!("it is nested deeper than {MAX_DEPTH} times")));
        }
        let depth = depth + 1;
        let truth = |truth: Truth, negated: bool| Typed::Truth(if negated { Truth::Not(truth.into()) } else { truth });
        Ok(match of {
            Expr::Nested(inner) => return self.typed(inner, depth),
            Expr::Identifier(name) => return self.column(name),
            Expr::Value(value) => return literal(value),
            Expr::TypedString(text) => return typed_string(text),
            Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
                Typed::Truth(self.chain(op, left, right, depth)?)
            }
            Expr::BinaryOp { left, op, right } => match (comparison(op), operation(op)) {
                (Some(comparison), _) => Typed::Truth(self.compare(comparison, left, right, depth)?),
                (_, Some(operation)) => return self.calculate(operation, left, right, op, depth),
                _ => return Err(unknown_operator(op, right)),
            },
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => truth(self.truth(expr, depth)?, true),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => return self.negative(expr, depth),
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => {
                let (value, kind) = self.number(expr, depth)?;
                Typed::Value(value, kind)
            }
            Expr::IsNull(expr) => truth(self.missing(expr, depth)?, false),
            Expr::IsNotNull(expr) => truth(self.missing(expr, depth)?, true),
            Expr::IsUnknown(expr) => truth(unknown(self.truth(expr, depth)?), false),
            Expr::IsNotUnknown(expr) => truth(unknown(self.truth(expr, depth)?), true),
            Expr::IsTrue(expr) => truth(Truth::Is(self.truth(expr, depth)?.into(), true), false),
            Expr::IsNotTrue(expr) => truth(Truth::Is(self.truth(expr, depth)?.into(), true), true),
            Expr::IsFalse(expr) => truth(Truth::Is(self.truth(expr, depth)?.into(), false), false),
            Expr::IsNotFalse(expr) => truth(Truth::Is(self.truth(expr, depth)?.into(), false), true),
            Expr::In { expr, target: InTarget::List(list), negated, .. } => {
                truth(self.one_of(expr, list, depth)?, *negated)
            }
            Expr::Between { expr, negated, low, high } => {
                let low = self.compare(Comparison::GreaterOrEqual, expr, low, depth)?;
                let high = self.compare(Comparison::LessOrEqual, expr, high, depth)?;
                truth(Truth::And(vec![low, high]), *negated)
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char: None } => {
                truth(self.like(expr, pattern, false, depth)?, *negated)
            }
            Expr::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                truth(self.like(expr, pattern, true, depth)?, *negated)
            }
            Expr::Function(function) => return self.function(function, depth),
            other => return Err(unsupported(other)),
        })
    }

    fn column(&mut self, name: &Ident) -> Result<Typed, PredicateError> {
        let fields = self.schema.fields();
        let exact = fields.iter().find(|field| *field.name() == name.value);
        let alike = |field: &&std::sync::Arc<arrow::datatypes::Field>| {
            name.quote_style.is_none() && field.name().to_lowercase() == name.value.to_lowercase()
        };
        let field = match exact {
            Some(field) => field,
            None => {
                let mut alike = fields.iter().filter(alike);
                match (alike.next(), alike.next()) {
                    (Some(field), None) => field,
                    (Some(one), Some(other)) => {
                        let (one, other) = (one.name(), other.name());
                        let what = format!("{name} may be {one:?} or {other:?}; put the one that is meant in quotes");
                        return Err(invalid(name.span.start, what));
                    }
                    _ => return Err(self.no_column(name)),
                }
            }
        };
        let known = self.columns.iter().position(|(known, _)| known == field.name());
        let column = known.unwrap_or_else(|| {
            self.columns.push((field.name().clone(), field.data_type().clone()));
            self.columns.len() - 1
        });
        Ok(match Kind::of(field.data_type()) {
            Some(Kind::Truth) => Typed::Truth(Truth::Column(column)),
            Some(kind) => Typed::Value(Value::Column(column, kind), kind),
            None => Typed::Other(column),
        })
    }

    fn no_column(&self, name: &Ident) -> PredicateError {
        let fields = self.schema.fields();
        let mut names: Vec<String> = fields.iter().take(MAX_NAMES).map(|field| field.name().clone()).collect();
        if fields.len() > MAX_NAMES {
            names.push(format!("and {} more", fields.len() - MAX_NAMES));
        }
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let hint = if name.quote_style == Some('"') { " (text is put in single quotes)" } else { "" };
        invalid(name.span.start, format!("there is no column {:?}{hint}; the columns are: {names}", name.value))
    }

    /// Conditions with AND or OR between them, of which there may be many.
    fn chain(&mut self, op: &BinaryOperator, left: &Expr, right: &Expr, depth: usize) -> Result<Truth, PredicateError> {
        let (mut parts, mut left) = (vec![right], left);
        while let Expr::BinaryOp { left: first, op: same, right } = left {
            if same != op {
                break;
            }
            parts.push(right);
            left = first;
        }
        parts.push(left);
        let parts = parts.into_iter().rev().map(|part| self.truth(part, depth)).collect::<Result<_, _>>()?;
        Ok(if *op == BinaryOperator::And { Truth::And(parts) } else { Truth::Or(parts) })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Expr,
        right: &Expr,
        depth: usize,
    ) -> Result<Truth, PredicateError> {
        let (first, second) = (self.typed(left, depth)?, self.typed(right, depth)?);
        self.comparison(comparison, (left, first), (right, second))
    }

    fn comparison(
        &self,
        comparison: Comparison,
        left: (&Expr, Typed),
        right: (&Expr, Typed),
    ) -> Result<Truth, PredicateError> {
        Ok(match self.alike(left, right)? {
            None => Truth::Constant(None),
            Some((left, right, kind)) => Truth::Compare(comparison, left.into(), right.into(), kind),
        })
    }

    /// Two values as such of one kind; None if nothing is known of either of them.
    fn alike(
        &self,
        left: (&Expr, Typed),
        right: (&Expr, Typed),
    ) -> Result<Option<(Value, Value, Kind)>, PredicateError> {
        let of = place(left.0);
        let mismatch = |left: &Typed, right: &Typed| {
            let (left, right) = (self.name(left), self.name(right));
            invalid(of, format!("{left} cannot be compared with {right}"))
        };
        let missing = |kind| Value::Literal(Literal::Missing(kind));
        Ok(Some(match (left.1, right.1) {
            (Typed::Null, Typed::Null) => return Ok(None),
            (Typed::Text(one), Typed::Text(other)) => (text(one), text(other), Kind::Text),
            (Typed::Text(one), Typed::Null) => (text(one), missing(Kind::Text), Kind::Text),
            (Typed::Null, Typed::Text(other)) => (missing(Kind::Text), text(other), Kind::Text),
            (Typed::Text(one), Typed::Value(other, kind)) if !kind.is_number() => {
                (self.quoted(left.0, one, kind)?, other, kind)
            }
            (Typed::Value(one, kind), Typed::Text(other)) if !kind.is_number() => {
                (one, self.quoted(right.0, other, kind)?, kind)
            }
            (Typed::Null, Typed::Value(other, kind)) => (missing(kind), other, kind),
            (Typed::Value(one, kind), Typed::Null) => (one, missing(kind), kind),
            (Typed::Truth(one), Typed::Truth(other)) => {
                (Value::Truth(one.into()), Value::Truth(other.into()), Kind::Truth)
            }
            (Typed::Truth(one), Typed::Null) => (Value::Truth(one.into()), missing(Kind::Truth), Kind::Truth),
            (Typed::Null, Typed::Truth(other)) => (missing(Kind::Truth), Value::Truth(other.into()), Kind::Truth),
            (Typed::Value(one, kind), Typed::Value(other, same)) if kind == same => (one, other, kind),
            (Typed::Value(one, of_one), Typed::Value(other, of_other)) => {
                let (one, other, of_one, of_other) = naturals(one, other, of_one, of_other);
                match common(of_one, of_other) {
                    Some(kind) => (convert(one, of_one, kind), convert(other, of_other, kind), kind),
                    None => return Err(mismatch(&Typed::Value(one, of_one), &Typed::Value(other, of_other))),
                }
            }
            (left, right) => return Err(mismatch(&left, &right)),
        }))
    }

    /// Text in quotes where a value of some kind is wanted.
    fn quoted(&self, of: &Expr, text: String, kind: Kind) -> Result<Value, PredicateError> {
        let literal = match kind {
            Kind::Text => Literal::Text(text),
            Kind::Day => match Date32Type::parse(&text) {
                Some(day) => Literal::Whole(day.into()),
                None => return Err(invalid(place(of), format!("{text:?} is not a date, such as '2024-02-29'"))),
            },
            Kind::Moment(unit) => Literal::Whole(moment(of, &text, parts(unit))?),
            _ => return Err(invalid(place(of), format!("{} is not text", kind.name()))),
        };
        Ok(Value::Literal(literal))
    }

    fn number(&mut self, of: &Expr, depth: usize) -> Result<(Value, Kind), PredicateError> {
        match self.typed(of, depth)? {
            Typed::Value(value, kind) if kind.is_number() => Ok((value, kind)),
            Typed::Null => Ok((Value::Literal(Literal::Missing(Kind::Whole)), Kind::Whole)),
            other => {
                let name = self.name(&other);
                Err(invalid(place(of), format!("there should be a number, and there is {name}")))
            }
        }
    }

    fn calculate(
        &mut self,
        operation: Operation,
        left: &Expr,
        right: &Expr,
        op: &BinaryOperator,
        depth: usize,
    ) -> Result<Typed, PredicateError> {
        let told = |error: PredicateError| match error {
            PredicateError::Invalid { line, character, what } if what.starts_with("there should be a number") => {
                PredicateError::Invalid { line, character, what: format!("{what}, which {op} does not work with") }
            }
            error => error,
        };
        let (one, of_one) = self.number(left, depth).map_err(told)?;
        let (other, of_other) = self.number(right, depth).map_err(told)?;
        let (one, other, of_one, of_other) = naturals(one, other, of_one, of_other);
        let kind = match (of_one, of_other) {
            (Kind::Real, _) | (_, Kind::Real) => Kind::Real,
            // A difference may be negative.
            (Kind::Natural, Kind::Natural) if operation != Operation::Subtract => Kind::Natural,
            _ => Kind::Whole,
        };
        let (one, other) = (convert(one, of_one, kind), convert(other, of_other, kind));
        Ok(Typed::Value(Value::Calculate(operation, one.into(), other.into(), kind), kind))
    }

    fn negative(&mut self, of: &Expr, depth: usize) -> Result<Typed, PredicateError> {
        // The least number is a literal that has no positive counterpart .
        if let Expr::Value(ValueWithSpan { value: SqlValue::Number(digits, false), .. }) = of
            && let Some(kind) = number(&format!("-{digits}"))
        {
            return Ok(kind);
        }
        let (value, kind) = self.number(of, depth)?;
        let to = if kind == Kind::Natural { Kind::Whole } else { kind };
        Ok(Typed::Value(Value::Negative(convert(value, kind, to).into(), to), to))
    }

    fn missing(&mut self, of: &Expr, depth: usize) -> Result<Truth, PredicateError> {
        Ok(match self.typed(of, depth)? {
            Typed::Null => Truth::Constant(Some(true)),
            Typed::Text(_) => Truth::Constant(Some(false)),
            Typed::Other(column) | Typed::Value(Value::Column(column, _), _) => {
                Truth::Missing(Operand::Column(column).into())
            }
            Typed::Value(value, _) => Truth::Missing(Operand::Value(value).into()),
            Typed::Truth(truth) => unknown(truth),
        })
    }

    fn one_of(&mut self, of: &Expr, list: &[Expr], depth: usize) -> Result<Truth, PredicateError> {
        let value = self.typed(of, depth)?;
        if let Typed::Value(value, kind) = value
            && let Some(set) = self.set(kind, list, depth)?
        {
            return Ok(Truth::In(value.into(), set));
        }
        let equal = |item: &Expr| self.compare(Comparison::Equal, of, item, depth);
        Ok(Truth::Or(list.iter().map(equal).collect::<Result<_, _>>()?))
    }

    /// A list of literals of which one can look up whether they have a value of this kind.
    fn set(&mut self, kind: Kind, list: &[Expr], depth: usize) -> Result<Option<Set>, PredicateError> {
        let (mut whole, mut texts, mut with_null) = (HashSet::new(), HashSet::new(), false);
        for item in list {
            let literal = match (self.typed(item, depth)?, kind) {
                (Typed::Null, _) => {
                    with_null = true;
                    continue;
                }
                (Typed::Text(text), Kind::Text | Kind::Day | Kind::Moment(_)) => self.quoted(item, text, kind)?,
                (Typed::Value(value, of), _) if of == kind => value,
                _ => return Ok(None),
            };
            match literal {
                Value::Literal(Literal::Whole(value)) => whole.insert(value),
                Value::Literal(Literal::Text(text)) => texts.insert(text),
                _ => return Ok(None),
            };
        }
        let values = match kind {
            Kind::Text => Values::Texts(texts),
            Kind::Whole | Kind::Day | Kind::Moment(_) => Values::Whole(whole),
            _ => return Ok(None),
        };
        Ok(Some(Set { values, with_null }))
    }

    fn like(&mut self, of: &Expr, pattern: &Expr, ignore_case: bool, depth: usize) -> Result<Truth, PredicateError> {
        let value = match self.typed(of, depth)? {
            Typed::Value(value, Kind::Text) => value,
            Typed::Text(value) => text(value),
            Typed::Null => Value::Literal(Literal::Missing(Kind::Text)),
            other => {
                let name = self.name(&other);
                return Err(invalid(place(of), format!("LIKE is for text, and there is {name}")));
            }
        };
        let pattern_of = match self.typed(pattern, depth)? {
            Typed::Text(pattern) => pattern,
            Typed::Null => return Ok(Truth::Constant(None)),
            _ => return Err(invalid(place(pattern), "the pattern of LIKE should be text in single quotes")),
        };
        let backslashes = pattern_of.len() - pattern_of.trim_end_matches('\\').len();
        if backslashes % 2 == 1 {
            let what = "the pattern of LIKE ends with a backslash, which should be followed by what it is to protect";
            return Err(invalid(place(pattern), what));
        }
        Ok(Truth::Like { value: value.into(), pattern: pattern_of, ignore_case })
    }

    fn function(&mut self, function: &Function, depth: usize) -> Result<Typed, PredicateError> {
        let name = function.name.to_string();
        let at = function.name.span().start;
        let plain = function.over.is_none() && function.filter.is_none() && function.within_group.is_empty();
        if !plain || !name.eq_ignore_ascii_case("abs") {
            return Err(invalid(at, format!("there is no function {name}; there is abs")));
        }
        let FunctionArguments::List(arguments) = &function.args else {
            return Err(invalid(at, "abs is of one number"));
        };
        let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = &arguments.args[..] else {
            return Err(invalid(at, "abs is of one number"));
        };
        let (value, kind) = self.number(of, depth)?;
        Ok(Typed::Value(Value::Absolute(value.into(), kind), kind))
    }

    /// How users call what is there.
    fn name(&self, typed: &Typed) -> String {
        let of = |column: &usize| {
            let (name, of) = &self.columns[*column];
            format!("the column {name:?} of type {of}")
        };
        match typed {
            Typed::Truth(Truth::Column(column)) | Typed::Value(Value::Column(column, _), _) | Typed::Other(column) => {
                of(column)
            }
            Typed::Truth(_) => Kind::Truth.name().into(),
            Typed::Value(_, kind) => kind.name().into(),
            Typed::Text(text) => format!("the text '{text}'"),
            Typed::Null => "NULL".into(),
        }
    }
}

fn unknown(truth: Truth) -> Truth {
    Truth::Missing(Operand::Truth(truth).into())
}

fn text(of: String) -> Value {
    Value::Literal(Literal::Text(of))
}

fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::Unequal,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn operation(op: &BinaryOperator) -> Option<Operation> {
    Some(match op {
        BinaryOperator::Plus => Operation::Add,
        BinaryOperator::Minus => Operation::Subtract,
        BinaryOperator::Multiply => Operation::Multiply,
        BinaryOperator::Divide => Operation::Divide,
        BinaryOperator::Modulo => Operation::Remainder,
        _ => return None,
    })
}

fn unknown_operator(op: &BinaryOperator, right: &Expr) -> PredicateError {
    let known = "there are = <> < <= > >=, + - * / %, AND, OR, NOT, IN, BETWEEN, LIKE, ILIKE and IS";
    invalid(place(right), format!("the operator {op} in front of it is not known; {known}"))
}

fn unsupported(of: &Expr) -> PredicateError {
    let what = match of {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::In { .. } | Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            "there are no queries within it"
        }
        Expr::Cast { .. } => "types cannot be changed in it",
        Expr::Like { .. } | Expr::ILike { .. } => "LIKE has neither ANY nor ESCAPE here",
        Expr::CompoundIdentifier(_) => "columns have no table in front of them; put a name with a point in quotes",
        Expr::Value(_) => "literals are numbers, text in single quotes, TRUE, FALSE and NULL",
        _ => "it has something that is not known here",
    };
    invalid(place(of), what)
}

/// The kind that both can be had as.
fn common(one: Kind, other: Kind) -> Option<Kind> {
    match (one, other) {
        _ if one == other => Some(one),
        (Kind::Real, _) | (_, Kind::Real) if one.is_number() && other.is_number() => Some(Kind::Real),
        _ if one.is_number() && other.is_number() => Some(Kind::Wide),
        (Kind::Day, Kind::Moment(unit)) | (Kind::Moment(unit), Kind::Day) => Some(Kind::Moment(unit)),
        (Kind::Moment(one), Kind::Moment(other)) => {
            Some(Kind::Moment(if parts(one) > parts(other) { one } else { other }))
        }
        _ => None,
    }
}

fn convert(value: Value, from: Kind, to: Kind) -> Value {
    match value {
        _ if from == to => value,
        Value::Literal(Literal::Missing(_)) => Value::Literal(Literal::Missing(to)),
        value => Value::Convert(value.into(), from, to),
    }
}

/// Literals that are not negative have no sign next to a number without one.
fn naturals(one: Value, other: Value, of_one: Kind, of_other: Kind) -> (Value, Value, Kind, Kind) {
    let natural = |value: &Value| match value {
        Value::Literal(Literal::Whole(value)) => u64::try_from(*value).ok(),
        _ => None,
    };
    match (of_one, of_other, natural(&one), natural(&other)) {
        (Kind::Whole, Kind::Natural, Some(value), _) => {
            (Value::Literal(Literal::Natural(value)), other, Kind::Natural, of_other)
        }
        (Kind::Natural, Kind::Whole, _, Some(value)) => {
            (one, Value::Literal(Literal::Natural(value)), of_one, Kind::Natural)
        }
        _ => (one, other, of_one, of_other),
    }
}

fn literal(of: &ValueWithSpan) -> Result<Typed, PredicateError> {
    match &of.value {
        SqlValue::Number(digits, false) => {
            number(digits).ok_or_else(|| invalid(of.span.start, format!("{digits} is not a number")))
        }
        SqlValue::SingleQuotedString(text) | SqlValue::EscapedStringLiteral(text) => Ok(Typed::Text(text.clone())),
        SqlValue::Boolean(truth) => Ok(Typed::Truth(Truth::Constant(Some(*truth)))),
        SqlValue::Null => Ok(Typed::Null),
        other => {
            let known = "literals are numbers, text in single quotes, TRUE, FALSE and NULL";
            Err(invalid(of.span.start, format!("{other} is not known here; {known}")))
        }
    }
}

/// A number by its digits: a whole one of 64 bits if it is one.
fn number(digits: &str) -> Option<Typed> {
    if let Ok(value) = digits.parse() {
        return Some(Typed::Value(Value::Literal(Literal::Whole(value)), Kind::Whole));
    }
    if let Ok(value) = digits.parse() {
        return Some(Typed::Value(Value::Literal(Literal::Natural(value)), Kind::Natural));
    }
    let value = digits.parse().ok().filter(|value: &f64| value.is_finite())?;
    Some(Typed::Value(Value::Literal(Literal::Real(value)), Kind::Real))
}

/// `DATE '2024-02-29'` and `TIMESTAMP '2024-02-29 12:00'`.
fn typed_string(of: &TypedString) -> Result<Typed, PredicateError> {
    let known = matches!(of.data_type, SqlType::Date | SqlType::Timestamp(..));
    match &of.value.value {
        SqlValue::SingleQuotedString(text) if known => Ok(Typed::Text(text.clone())),
        _ => Err(invalid(of.value.span.start, "only DATE and TIMESTAMP may be in front of a text")),
    }
}

/// A moment in UTC, as a number of such parts of a second.
fn moment(of: &Expr, text: &str, parts: i64) -> Result<i64, PredicateError> {
    let failed = |what: String| invalid(place(of), what);
    let utc: Tz = "+00:00".parse().map_err(|_| failed("there is no UTC".into()))?;
    let moment = string_to_datetime(&utc, text.trim());
    let moment = moment.map_err(|_| failed(format!("{text:?} is not a timestamp, such as '2024-02-29 12:30:00'")))?;
    let nanoseconds = i64::from(moment.timestamp_subsec_nanos());
    let each = 1_000_000_000 / parts;
    if nanoseconds % each != 0 {
        return Err(failed(format!("{text:?} is more precise than the column that it is compared with")));
    }
    let whole = moment.timestamp().checked_mul(parts).and_then(|whole| whole.checked_add(nanoseconds / each));
    whole.ok_or_else(|| failed(format!("{text:?} is further away than the column can say")))
}
