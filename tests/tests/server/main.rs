//! corgipile as its users meet it: through a real server. A folder per domain, a file per theme.

mod aggregate;
mod compression;
mod errors;
mod extension;
mod loading;
mod models;
mod operations;
mod prediction;
mod security;
mod shuffling;
mod sources;
mod training;
