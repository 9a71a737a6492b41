//! Names of models.

use super::call::invalid;
use errors::Result;

pub const MAX_NAME_BYTES: usize = 1024;

/// Checks whether this can be the name of a model.
pub fn check_name(name: &str) -> Result<()> {
    if (1..=MAX_NAME_BYTES).contains(&name.len()) {
        return Ok(());
    }
    let reason = format!("it has {} bytes instead of 1 to {MAX_NAME_BYTES}", name.len());
    Err(invalid("name", reason))
}
