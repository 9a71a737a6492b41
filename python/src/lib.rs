//! The module `corgipile._native`: sources, plans and readers for Python.
//!
//! It only translates. It guarantees that anyone who waits for rows does not hold the interpreter's lock, and that
//! Ctrl-C works while he waits; and that an error is one of Python's usual classes.

mod arrays;
mod batches;
mod errors;
mod joader;
mod map_style;
mod offline;
mod plan;
mod slots;
mod sources;
mod types;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::arrays::memory;
    #[pymodule_export]
    use crate::errors::SourceError;
    #[pymodule_export]
    use crate::joader::{
        JoaderError, JoaderJob, joader_data_sets, joader_drop, joader_put, joader_serve, joader_status,
    };
    #[pymodule_export]
    use crate::map_style::{Items, items};
    #[pymodule_export]
    use crate::offline::{corgi2, shuffle_once};
    #[pymodule_export]
    use crate::plan::{Plan, Reader};
    /// The package's version.
    #[pymodule_export]
    #[expect(non_upper_case_globals)] // as Python calls it
    const __version__: &str = env!("CARGO_PKG_VERSION");
    /// Numbers of a dense row of LIBSVM, at most.
    #[pymodule_export]
    const MOST_DENSE: usize = ::sources::libsvm::MOST_DENSE;
    #[pymodule_export]
    use crate::slots::{Preparers, Slot, dict_to_slot, slot_to_dict};
    #[pymodule_export]
    use crate::sources::{
        HeldSnapshot, Shuffled, Source, arrow, build_index, csv, has_password, libsvm, parquet, postgres,
        postgres_shuffled, tfrecord, webdataset,
    };
}
