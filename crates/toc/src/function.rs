//! Functions of elements by their names.

use std::str::FromStr;

/// A function of a number, computed as the standard library does. Where it is not defined it is NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// Without its sign.
    Abs,
    /// Arctangent.
    Atan,
    /// Cube root.
    Cbrt,
    /// The least integer that is not smaller.
    Ceil,
    /// e to its power.
    Exp,
    /// The greatest integer that is not greater.
    Floor,
    /// Natural logarithm.
    Ln,
    /// The number, or 0 if it is negative.
    Relu,
    /// The nearest integer, of two the even one.
    Round,
    /// -1, 0 or 1.
    Sign,
    /// Square root.
    Sqrt,
    /// Hyperbolic tangent.
    Tanh,
    /// The integer towards 0.
    Trunc,
}

impl Function {
    /// All functions and their names.
    pub const ALL: [(Function, &'static str); 13] = [
        (Function::Abs, "abs"),
        (Function::Atan, "atan"),
        (Function::Cbrt, "cbrt"),
        (Function::Ceil, "ceil"),
        (Function::Exp, "exp"),
        (Function::Floor, "floor"),
        (Function::Ln, "ln"),
        (Function::Relu, "relu"),
        (Function::Round, "round"),
        (Function::Sign, "sign"),
        (Function::Sqrt, "sqrt"),
        (Function::Tanh, "tanh"),
        (Function::Trunc, "trunc"),
    ];

    /// Its value.
    pub fn of(self, x: f64) -> f64 {
        match self {
            Function::Abs => x.abs(),
            Function::Atan => x.atan(),
            Function::Cbrt => x.cbrt(),
            Function::Ceil => x.ceil(),
            Function::Exp => x.exp(),
            Function::Floor => x.floor(),
            Function::Ln => x.ln(),
            Function::Relu if x <= 0.0 => 0.0,
            Function::Relu => x,
            Function::Round => x.round_ties_even(),
            // of a zero and of NaN it is the number itself
            Function::Sign if x > 0.0 => 1.0,
            Function::Sign if x < 0.0 => -1.0,
            Function::Sign => x,
            Function::Sqrt => x.sqrt(),
            Function::Tanh => x.tanh(),
            Function::Trunc => x.trunc(),
        }
    }
}

/// No function has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown function \"{0}\"")]
pub struct UnknownFunction(pub String);

impl FromStr for Function {
    type Err = UnknownFunction;

    fn from_str(name: &str) -> Result<Function, UnknownFunction> {
        let found = Function::ALL.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(function, _)| function).ok_or_else(|| UnknownFunction(name.to_owned()))
    }
}
