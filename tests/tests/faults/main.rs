//! Nothing that happens to a backend, a worker or a table may break the server or leave something behind.
//!
//! Each test has a server of its own, does something nasty at random moments, and looks for leftovers after each. How
//! much is done follows from `CORGIPILE_MOMENTS`, faults of each kind (`make soak`: 200; else few), and what is drawn
//! from `CORGIPILE_SEED`; both are in the report, a line or more per test (`CORGIPILE_REPORT_FILE`).

mod damaged;
mod exhausted;
mod fuzz;
mod kinds;
mod limits;
mod memory;
mod moments;
mod probe;
mod segments;
mod shapes;
mod sharing;
mod statements;
mod traffic;
