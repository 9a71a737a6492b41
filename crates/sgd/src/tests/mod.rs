//! Tests of the trainer against independent computations, and of what it guarantees to the bit.

mod aggregate;
mod averaging;
mod bits;
mod classes;
mod cluster;
mod columns;
mod data_parallel;
mod elsewhere;
mod evaluation;
mod exempt;
mod halting;
mod hand;
mod mini_batches;
mod network;
mod newton;
mod panel;
mod pending_l1;
mod reference;
mod reference_engine;
mod sparse_rows;
mod steps;
mod textbook;
mod theorem;
mod zeros;
