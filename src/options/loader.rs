//! Argument `loader`: where the buffers of a training are filled.

use crate::errors::{ArgumentError, Result};

/// Argument `loader`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Loader {
    #[default]
    Auto,
    Worker,
    InProcess,
}

impl Loader {
    const ALL: [(&'static str, Loader); 3] =
        [("auto", Loader::Auto), ("worker", Loader::Worker), ("in_process", Loader::InProcess)];

    /// The loader with this name.
    ///
    /// # Errors
    /// [`ArgumentError::Unknown`]
    pub fn parse(name: String) -> Result<Loader> {
        let found = Loader::ALL.iter().find(|(known, _)| *known == name).map(|(_, loader)| *loader);
        found.ok_or_else(|| {
            let known = Loader::ALL.map(|(known, _)| known).join(", ");
            ArgumentError::Unknown { what: "loaders", given: name, known }.into()
        })
    }
}
