//! Conditions after their types were found.

use std::collections::HashSet;

use crate::types::Kind;

/// What is true, false or unknown.
#[derive(Debug, Clone)]
pub(crate) enum Truth {
    Constant(Option<bool>),
    /// A column of truth values.
    Column(usize),
    /// Values of one kind.
    Compare(Comparison, Box<Value>, Box<Value>, Kind),
    /// Whether a value is missing.
    Missing(Box<Operand>),
    /// Whether it is this, and not the other nor unknown.
    Is(Box<Truth>, bool),
    In(Box<Value>, Set),
    Like {
        value: Box<Value>,
        pattern: String,
        ignore_case: bool,
    },
    And(Vec<Truth>),
    Or(Vec<Truth>),
    Not(Box<Truth>),
}

/// What may be missing.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    /// A column of any type.
    Column(usize),
    Value(Value),
    Truth(Truth),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A list of values. If one of them is missing, it is unknown whether what is not in the list is the missing one.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    pub(crate) values: Values,
    pub(crate) with_null: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// Whole numbers, days or moments.
    Whole(HashSet<i64>),
    Texts(HashSet<String>),
}

/// What is computed for each row.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Column(usize, Kind),
    Literal(Literal),
    /// Of one kind, as another one.
    Convert(Box<Value>, Kind, Kind),
    /// Numbers of one kind.
    Calculate(Operation, Box<Value>, Box<Value>, Kind),
    Negative(Box<Value>, Kind),
    Absolute(Box<Value>, Kind),
    Truth(Box<Truth>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    /// Whole numbers, days and moments.
    Whole(i64),
    Natural(u64),
    Real(f64),
    Text(String),
    Missing(Kind),
}

impl Truth {
    /// Whether there are rows for which it is an error.
    pub(crate) fn can_fail(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Column(_) => false,
            Self::Compare(_, left, right, _) => left.can_fail() || right.can_fail(),
            Self::Missing(operand) => match operand.as_ref() {
                Operand::Column(_) => false,
                Operand::Value(value) => value.can_fail(),
                Operand::Truth(truth) => truth.can_fail(),
            },
            Self::In(value, _) | Self::Like { value, .. } => value.can_fail(),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::can_fail),
            Self::Not(truth) | Self::Is(truth, _) => truth.can_fail(),
        }
    }
}

impl Value {
    fn can_fail(&self) -> bool {
        match self {
            Self::Column(..) | Self::Literal(_) => false,
            Self::Calculate(..) => true,
            Self::Negative(value, kind) | Self::Absolute(value, kind) => *kind != Kind::Real || value.can_fail(),
            Self::Convert(value, _, to) => !matches!(to, Kind::Real | Kind::Wide) || value.can_fail(),
            Self::Truth(truth) => truth.can_fail(),
        }
    }
}
