//! Rows: read from pages, TOAST and temporary files, kept in buffers, sorted.

mod attribute;
pub mod fixed_layout;
pub mod heap;
pub mod number_sort;
pub mod page;
pub mod place;
pub mod prefetch;
pub mod row;
pub mod slot;
pub mod sorter;
pub mod spool;
pub mod temp_file;
pub mod toast;
pub mod tuple_buffer;
