//! The extension as a whole: installed, updated, moved, dropped, documented.

mod backend;
mod documents;
mod upgrade;
