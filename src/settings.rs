//! The `corgipile.*` settings.

use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};

static MAX_BUFFER_MEMORY_KB: GucSetting<i32> = GucSetting::<i32>::new(1024 * 1024);
static CACHE_MEMORY_KB: GucSetting<i32> = GucSetting::<i32>::new(256 * 1024);

static SHARED_MODELS_KB: GucSetting<i32> = GucSetting::<i32>::new(64 * 1024);

/// Makes the settings known to PostgreSQL; called once per backend. Is the library being preloaded?
pub fn define(preloading: bool) {
    GucRegistry::define_int_guc(
        c"corgipile.max_buffer_memory",
        c"Sets the maximum memory of the buffer in which TupleShuffle mixes tuples.",
        c"A buffer_size that asks for more is cut to this; EXPLAIN shows the buffer really used. \
          Valid range 64kB..2147483647kB.",
        &MAX_BUFFER_MEMORY_KB,
        64,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_KB,
    );
    GucRegistry::define_int_guc(
        c"corgipile.cache_memory",
        c"Sets the maximum memory for decoded tuples that a training keeps from its first epoch for the others.",
        c"Beside the memory of the buffer; a table that fits the buffer needs none. Valid range 0kB..2147483647kB.",
        &CACHE_MEMORY_KB,
        0,
        i32::MAX,
        GucContext::Userset,
        GucFlags::UNIT_KB,
    );
    // Shared memory is asked for when the server starts, or not at all.
    if preloading {
        GucRegistry::define_int_guc(
            c"corgipile.shared_models_size",
            c"Sets the shared memory in which models are kept for all sessions.",
            c"0: none; each session keeps its own. Valid range 0kB..2147483647kB.",
            &SHARED_MODELS_KB,
            0,
            i32::MAX,
            GucContext::Postmaster,
            GucFlags::UNIT_KB,
        );
    }
}

/// Shared memory for models, in bytes.
pub fn shared_models_size() -> usize {
    SHARED_MODELS_KB.get() as usize * 1024
}

/// Upper bound, in bytes, of the memory for decoded tuples beside the buffer's.
pub fn cache_memory() -> u64 {
    CACHE_MEMORY_KB.get() as u64 * 1024
}

/// Upper bound, in bytes, of the memory of one tuple buffer.
pub fn max_buffer_memory() -> u64 {
    MAX_BUFFER_MEMORY_KB.get() as u64 * 1024
}
