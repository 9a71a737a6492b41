//! The `corgipile.*` settings: each is described once, and its range and default are written once.

use pg::settings::is_set;
use pgrx::guc::{GucContext, GucFlags, GucRegistry, GucSetting};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

struct IntegerSetting {
    name: &'static CStr,
    /// holds the default until somebody sets it
    value: GucSetting<i32>,
    least: i32,
    unit: GucFlags,
    context: fn() -> GucContext,
    about: &'static CStr,
    more: &'static CStr,
}

/// A setting of memory, in kB, whose range is part of its description.
macro_rules! memory_setting {
    ($name:literal, default $default:expr, from $least:literal, $context:ident, $about:literal, $more:literal) => {
        IntegerSetting {
            name: c_str(concat!($name, "\0")),
            value: GucSetting::<i32>::new($default),
            least: $least,
            unit: GucFlags::UNIT_KB,
            context: || GucContext::$context,
            about: c_str(concat!($about, "\0")),
            // i32::MAX, the most that a setting can be
            more: c_str(concat!($more, " Valid range ", $least, "kB..2147483647kB.\0")),
        }
    };
}

const fn c_str(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("texts of settings have no NUL"),
    }
}

static MAX_BUFFER_MEMORY: IntegerSetting = memory_setting!(
    "corgipile.max_buffer_memory",
    default 1024 * 1024,
    from 64,
    Userset,
    "Sets the maximum memory of the buffer in which TupleShuffle mixes tuples.",
    "A larger buffer_size is reduced to this; EXPLAIN shows the actual buffer."
);

static CACHE_MEMORY: IntegerSetting = memory_setting!(
    "corgipile.cache_memory",
    default 256 * 1024,
    from 0,
    Userset,
    "Sets the maximum memory for decoded tuples that a training keeps after its first epoch.",
    "In addition to the memory of the buffer; a table that fits the buffer needs none."
);

macro_rules! memory_limit {
    ($default:expr) => {
        memory_setting!(
            "corgipile.memory_limit",
            default $default,
            from 64,
            Suset,
            "Sets the maximum of corgipile.max_buffer_memory and corgipile.cache_memory.",
            "If a user sets one of them to more, this value is used instead; EXPLAIN shows the actual buffer."
        )
    };
}

static MEMORY_LIMIT: IntegerSetting = memory_limit!(i32::MAX);

/// In place of [`MEMORY_LIMIT`] where the session has a value of it before the library is loaded. If that is an
/// ordinary user's, PostgreSQL refuses it only now, and has forgotten the administrator's, in whose place it was: the
/// default holds, which must not be more.
static REFUSED_MEMORY_LIMIT: IntegerSetting = memory_limit!(64);

/// Is [`REFUSED_MEMORY_LIMIT`] the setting?
static HAS_EARLY_LIMIT: AtomicBool = AtomicBool::new(false);

static SHARED_MODELS_SIZE: IntegerSetting = memory_setting!(
    "corgipile.shared_models_size",
    default 64 * 1024,
    from 0,
    Postmaster,
    "Sets the shared memory in which models are kept for all sessions.",
    "Only with shared_preload_libraries. 0 disables it: each session keeps its own models."
);

static KEEP_VERSIONS: IntegerSetting = IntegerSetting {
    name: c"corgipile.keep_versions",
    value: GucSetting::<i32>::new(50),
    least: 0,
    unit: GucFlags::empty(),
    context: || GucContext::Userset,
    about: c"Sets how many versions of a model are kept when a training stores another.",
    more: c"Older versions are deleted, except the deployed one and those with a comment; of models without a name, \
            those of older trainings of the same source, label and kind. 0 keeps all. Valid range 0..2147483647.",
};

/// Holds the default until somebody sets it.
static SHARE: GucSetting<bool> = GucSetting::<bool>::new(false);

/// Makes the settings known to PostgreSQL; called once per backend. `preloading` says whether that is before the server
/// starts: shared memory is asked for then, or not at all.
pub fn define(preloading: bool) {
    MAX_BUFFER_MEMORY.define();
    CACHE_MEMORY.define();
    KEEP_VERSIONS.define();
    HAS_EARLY_LIMIT.store(!preloading && is_set(MEMORY_LIMIT.name), Ordering::Relaxed);
    memory_limit().define();
    GucRegistry::define_bool_guc(
        c"corgipile.shared_scan",
        c"Sets whether sessions that read the same table read it together.",
        c"Applies to calls of corgipile_train() and corgipile_shuffle() without shared_scan. The order of blocks then \
          depends on the other sessions: the model is not reproducible.",
        &SHARE,
        GucContext::Userset,
        GucFlags::empty(),
    );
    if preloading {
        SHARED_MODELS_SIZE.define();
    }
    // without shared_preload_libraries that one has no effect, but is not misspelt
    if preloading || !is_set(SHARED_MODELS_SIZE.name) {
        pg::settings::reserve(c"corgipile");
    }
}

impl IntegerSetting {
    fn define(&'static self) {
        let IntegerSetting { name, value, least, unit, context, about, more } = self;
        GucRegistry::define_int_guc(name, about, more, value, *least, i32::MAX, context(), *unit);
    }

    fn bytes(&self) -> u64 {
        self.value.get() as u64 * 1024
    }

    /// As much as an administrator lets users ask for.
    fn limited_bytes(&self) -> u64 {
        self.bytes().min(memory_limit().bytes())
    }
}

fn memory_limit() -> &'static IntegerSetting {
    if HAS_EARLY_LIMIT.load(Ordering::Relaxed) { &REFUSED_MEMORY_LIMIT } else { &MEMORY_LIMIT }
}

/// Do sessions that read the same table read it together?
pub fn share() -> bool {
    SHARE.get()
}

/// How many versions of a model are kept; 0 for all.
pub fn keep_versions() -> u32 {
    KEEP_VERSIONS.value.get() as u32
}

pub fn shared_models_size() -> usize {
    SHARED_MODELS_SIZE.bytes() as usize
}

/// Upper bound, in bytes, of the memory for decoded tuples besides the buffer's.
pub fn cache_memory() -> u64 {
    CACHE_MEMORY.limited_bytes()
}

/// The setting that bounds the memory of a tuple buffer, for a message.
pub fn buffer_limit() -> &'static str {
    if memory_limit().bytes() < MAX_BUFFER_MEMORY.bytes() {
        "corgipile.memory_limit (an administrator's)"
    } else {
        "corgipile.max_buffer_memory"
    }
}

/// Upper bound, in bytes, of the memory of one tuple buffer.
pub fn max_buffer_memory() -> u64 {
    MAX_BUFFER_MEMORY.limited_bytes()
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::*;
    use pg::settings::Settings;
    use pg::testing::{failure, one, run};
    use pgrx::prelude::*;

    #[pg_test]
    fn test_settings_are_read_in_bytes_and_keep_to_their_ranges() {
        run("SET LOCAL corgipile.max_buffer_memory = '3MB'");
        run("SET LOCAL corgipile.cache_memory = 0");
        run("SET LOCAL corgipile.shared_scan = on");
        run("SET LOCAL corgipile.keep_versions = 7");
        assert_eq!((max_buffer_memory(), cache_memory(), share(), keep_versions()), (3 << 20, 0, true, 7));
        assert!(failure("SET corgipile.max_buffer_memory = '63kB'").contains("outside the valid range"));
        assert!(failure("SET corgipile.keep_versions = -1").contains("outside the valid range"));
        assert!(failure("SET corgipile.memory_limits = '1MB'").contains("invalid configuration parameter name"));
        run("RESET corgipile.max_buffer_memory");
        assert_eq!(max_buffer_memory(), 1 << 30);
    }

    #[pg_test]
    fn test_a_setting_that_a_server_refuses_stays_as_it_is() {
        let shown = || one::<String>("SHOW default_toast_compression");
        let before = shown();
        let refused = Settings::try_set(c"default_toast_compression", c"a method of a later version");
        assert_eq!(shown(), before, "and nothing was raised");
        refused.restore();
        let other = Settings::try_set(c"default_toast_compression", c"pglz");
        assert_eq!(shown(), "pglz");
        other.restore();
        assert_eq!(shown(), before);
    }
}
