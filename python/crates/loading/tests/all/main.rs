//! Orders, and copies in other orders; one program, which is linked once.

mod offline;
mod orders;
