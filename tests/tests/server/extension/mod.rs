//! The extension as a whole: installed, updated, moved, dropped, documented.

mod backend;
mod documents;
mod installation;
mod lifecycle;
mod reference;
mod upgrade;
