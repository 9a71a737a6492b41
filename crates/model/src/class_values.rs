//! Classes as numbers.

use pg::catalog::types::existing_base_type;
use pg::values::number::NumberType;
use pgrx::pg_sys;

/// The classes as numbers, if the label's type has numbers.
pub fn as_numbers(label_type: pg_sys::Oid, classes: &[String]) -> Option<Vec<f64>> {
    let number = |class: &String| match class.as_str() {
        "t" => Some(1.0),
        "f" => Some(0.0),
        class => class.parse().ok(),
    };
    NumberType::from_oid(existing_base_type(label_type)?)?;
    classes.iter().map(number).collect()
}
