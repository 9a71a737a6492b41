//! The module `corgipile_joader._native`: what `corgipile_loader` has, and JOADER's server and jobs.

use pyo3::prelude::*;

#[pymodule]
mod _native {
    /// The version of the distribution.
    #[pymodule_export]
    #[expect(non_upper_case_globals)] // as Python calls it
    const __version__: &str = env!("CARGO_PKG_VERSION");
    /// Numbers of a dense row of LIBSVM, at most.
    #[pymodule_export]
    const MOST_DENSE: usize = native::MOST_DENSE;
    #[pymodule_export]
    use native::{
        HeldSnapshot, Items, Plan, Reader, Shuffled, Source, SourceError, arrow, build_index, corgi2, csv,
        has_password, items, libsvm, memory, parquet, postgres, postgres_shuffled, shuffle_once, tfrecord, webdataset,
    };
    #[pymodule_export]
    use native::{
        JoaderError, JoaderJob, Preparers, Slot, dict_to_slot, joader_data_sets, joader_drop, joader_put, joader_serve,
        joader_status, slot_to_dict,
    };
}
