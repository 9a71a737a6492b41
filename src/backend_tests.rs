//! Tests of what only code inside a backend can see: errors that unwind, memory contexts, snapshots, raw tuples.
//!
//! tests/ finds them in the library by their names and calls each in a database of its own.
#![allow(unsafe_code)]

use crate::operators::{Buffers, DecoderSpec, Source};
use crate::options::rows::Nulls;
use crate::options::shuffling::Shuffling;
use pg::executor::custom_scan::Flags;
use pg::executor::query::Running;
use pg::snapshot::Snapshot;
use pgrx::prelude::*;
use sgd::ModelKind;
use shuffle::Strategy;
use std::panic::AssertUnwindSafe;
use tuples::{Batch, TupleSource};

/// Runs a statement that fails, and returns its message.
fn failure(sql: &str) -> String {
    let message = in_subtransaction(|| Spi::run(sql).map(|()| String::new()).unwrap_or_default());
    assert!(!message.is_empty(), "{sql} did not fail");
    message
}

/// Runs something in a subtransaction that is rolled back, and gives its result, or the message of an error.
fn in_subtransaction(f: impl FnOnce() -> String) -> String {
    let attempt = || {
        // SAFETY: a subtransaction around the statement, as every procedural language has for its exception blocks.
        unsafe {
            let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
            pg_sys::BeginInternalSubTransaction(std::ptr::null());
            pg_sys::MemoryContextSwitchTo(context);
            let message = PgTryBuilder::new(AssertUnwindSafe(f))
                .catch_others(|cause| match cause {
                    pg_sys::panic::CaughtError::PostgresError(report)
                    | pg_sys::panic::CaughtError::ErrorReport(report) => report.message().to_owned(),
                    pg_sys::panic::CaughtError::RustPanic { ereport, .. } => {
                        format!("panic: {}", ereport.message())
                    }
                })
                .execute();
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
            pg_sys::MemoryContextSwitchTo(context);
            pg_sys::CurrentResourceOwner = owner;
            message
        }
    };
    attempt()
}

fn run(sql: &str) {
    Spi::run(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
}

/// Opens columns label and x of a source under a snapshot.
fn open(source: &str, strategy: Strategy, snapshot: pg_sys::Snapshot) -> Buffers {
    open_features(source, &["x"], strategy, snapshot)
}

/// Opens column label and these features of a source under a snapshot.
fn open_features(source: &str, features: &[&str], strategy: Strategy, snapshot: pg_sys::Snapshot) -> Buffers {
    let shuffling = Shuffling { strategy, seed: 1, first_epoch: 1, ..Shuffling::none() };
    let source = Source::resolve(source).unwrap();
    let features: Vec<String> = features.iter().map(|feature| (*feature).to_owned()).collect();
    let spec = DecoderSpec { nulls: Nulls::Skip, ..DecoderSpec::new(ModelKind::Logistic, "label", &features) };
    let decoder = source.decoder(&spec).unwrap();
    let planned = source.plan(&spec, &shuffling).unwrap();
    // SAFETY: the caller has registered it, and releases it when the buffers are finished.
    let snapshot = unsafe { Snapshot::new(snapshot) };
    Buffers::new(Running::start(planned, snapshot, 0, Flags::NONE), decoder)
}

/// All tuples of an epoch, sorted: the bits of the features, and which class it is.
fn epoch(buffers: &mut Buffers) -> Vec<Vec<u32>> {
    let mut batch = Batch::new(0);
    let mut tuples = Vec::new();
    while buffers.next_batch(&mut batch).unwrap() {
        for i in 0..batch.len() {
            let features = batch.features(i).iter().map(|v| v.to_bits());
            tuples.push(features.chain([u32::from(batch.label(i) > 0.0)]).collect::<Vec<_>>());
        }
    }
    // which class is +1 depends on which row came first
    if buffers.decoder.labels().classes().unwrap().swapped {
        tuples.iter_mut().filter_map(|tuple| tuple.last_mut()).for_each(|class| *class = 1 - *class);
    }
    tuples.sort_unstable();
    tuples
}

#[pg_test]
fn test_an_error_leaves_no_context_callback_behind() {
    // SAFETY: reads PostgreSQL's stack of error callbacks.
    let stack = || unsafe { pg_sys::error_context_stack };
    let before = stack();
    for sql in [
        "SELECT corgipile_train('SELECT * FROM nowhere')",
        "SELECT * FROM corgipile_train('SELECT 1 FROM')",
        "SELECT * FROM corgipile_train('SELECT 1 AS label, nofunction(1) AS x')",
    ] {
        assert!(!failure(sql).starts_with("panic"), "{sql}");
        assert_eq!(stack(), before, "{sql}");
    }
}

#[pg_test]
fn test_errors_in_mid_epoch_unwind_and_the_next_training_works() {
    run("CREATE TABLE t AS SELECT i % 2 AS label, ARRAY[i, 1]::real[] AS x FROM generate_series(1, 5000) i");
    run("UPDATE t SET x = '{NaN, 1}' WHERE x[1] = 4000");
    for _ in 0..20 {
        assert!(failure("SELECT * FROM corgipile_train('t')").contains("feature x[1] is NaN"));
        assert!(failure("SELECT corgipile_train('SELECT * FROM t ORDER BY x')").contains("feature x[1] is NaN"));
    }
    run("DELETE FROM t WHERE x[1] = 'NaN'");
    run("SELECT * FROM corgipile_train('t', max_epochs => 2, learning_rate => 0.00001)");
}

#[pg_test]
fn test_training_and_predicting_over_and_over_keep_no_memory() {
    run("CREATE TABLE t AS SELECT i % 2 AS label, ARRAY[i % 7, 1]::real[] AS x FROM generate_series(1, 2000) i");
    run("CREATE TABLE u AS SELECT i % 2 AS label, i % 3 AS class, ARRAY[i % 7 + 1] AS k, ARRAY[i % 5] AS v, 'c' || i % 4 AS c
         FROM generate_series(1, 2000) i");
    // SAFETY: adds up the sizes of all memory contexts.
    let allocated = || unsafe { pg_sys::MemoryContextMemAllocated(pg_sys::TopMemoryContext, true) };
    let work = || {
        run("SELECT * FROM corgipile_train('t', max_epochs => 2, name => 'm')");
        run("SELECT sum(corgipile_predict('m', x)) FROM t");
        run("SELECT count(*) FROM corgipile_shuffle(NULL::t)");
        run(
            "SELECT * FROM corgipile_train('u', 'softmax', 'class', '{k,v}', max_epochs => 2, shuffle => 'mrs', name => 's')",
        );
        run("SELECT sum(corgipile_predict('s', k, v)) FROM u");
        run("SELECT * FROM corgipile_train('u', 'linear', 'class', '{c,label}', max_epochs => 2, shuffle => 'epoch_shuffle',
                                           name => 'c')");
        run("SELECT sum(corgipile_predict('c', u)) FROM u");
        run("SELECT * FROM corgipile_train_uda('t', max_epochs => 2)");
        run("DELETE FROM corgipile.models");
    };
    (0..5).for_each(|_| work());
    let before = allocated();
    (0..40).for_each(|_| work());
    let kept = allocated().saturating_sub(before);
    // a buffer that was kept each time would be 40 times 280 kB
    assert!(kept < 2 << 20, "{kept} bytes kept");
}

#[pg_test]
fn test_every_epoch_sees_the_rows_of_its_snapshot() {
    run("CREATE TABLE t AS SELECT i % 2 AS label, ARRAY[i] AS x FROM generate_series(1, 3000) i");
    for (source, strategy) in
        [("t", Strategy::CorgiPile), ("t", Strategy::NoShuffle), ("SELECT * FROM t ORDER BY x", Strategy::CorgiPile)]
    {
        // SAFETY: a registered snapshot, released below.
        let snapshot = unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) };
        let mut buffers = open(source, strategy, snapshot);
        let first = epoch(&mut buffers);
        assert_eq!(first.len(), 3000, "{source}");
        run("INSERT INTO t SELECT i % 2, ARRAY[i] FROM generate_series(3001, 4000) i");
        run("UPDATE t SET label = 1 - label WHERE x[1] <= 500");
        run("DELETE FROM t WHERE x[1] BETWEEN 501 AND 1000");
        for _ in 0..2 {
            buffers.next_epoch().unwrap();
            assert!(epoch(&mut buffers) == first, "{source}: an epoch saw other rows");
        }
        buffers.finish();
        // SAFETY: registered above.
        unsafe { pg_sys::UnregisterSnapshot(snapshot) };
        run("TRUNCATE t");
        run("INSERT INTO t SELECT i % 2, ARRAY[i] FROM generate_series(1, 3000) i");
    }
}

#[pg_test]
fn test_raw_tuples_are_decoded_as_the_executor_deforms_them() {
    // Every kind of row that the fast path must recognise: NULLs before and behind the wanted columns, short and long
    // varlena headers, compressed and external arrays, dropped columns, rows older than a column.
    run("CREATE TABLE t (a text, gone int, n numeric, label smallint, c \"char\", x real[], behind text)");
    run("INSERT INTO t SELECT CASE i % 4 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE repeat('a', i) END, i,
             CASE WHEN i % 3 > 0 THEN i / 7.0 END, CASE WHEN i % 50 > 0 THEN i % 2 END, 'c',
             CASE WHEN i % 40 > 0 THEN ARRAY[i, i % 5, 1.5] END, CASE WHEN i % 2 = 0 THEN 'b' END
           FROM generate_series(1, 300) i");
    run("ALTER TABLE t DROP gone");
    run("ALTER TABLE t ADD late int DEFAULT 7");
    run("INSERT INTO t SELECT 'x', 1, i % 2, 'd', ARRAY[i, 2, 3], NULL, i FROM generate_series(1, 300) i");
    // the commonest shapes, with a row now and then that is not of its table's shape
    run("CREATE TABLE plain AS SELECT i AS id, i % 2 AS label,
             ARRAY(SELECT i * j % 17 FROM generate_series(1, 28) j)::real[] AS x FROM generate_series(1, 500) i");
    run("UPDATE plain SET id = NULL WHERE id % 41 = 0");
    run("ALTER TABLE plain ADD behind text");
    run("UPDATE plain SET behind = 'b' WHERE id % 3 = 0");
    run("CREATE TABLE short AS SELECT ARRAY[i, i % 3]::real[] AS x, (i % 2)::smallint AS label
           FROM generate_series(1, 500) i");
    run("UPDATE short SET x = array_fill(x[1], ARRAY[2], ARRAY[5]) WHERE label = 0");
    run("CREATE TABLE wide (label bool, x real[])");
    run("INSERT INTO wide SELECT i % 2 = 0, (SELECT array_agg(i * j % 100) FROM generate_series(1, 4000) j)
           FROM generate_series(1, 40) i");
    run("ALTER TABLE wide ALTER x SET STORAGE external");
    run("INSERT INTO wide SELECT i % 2 = 0, (SELECT array_agg(i * j % 10) FROM generate_series(1, 4000) j)
           FROM generate_series(1, 40) i");
    // SAFETY: a registered snapshot, released below. (The active one is older than the tables.)
    let snapshot = unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) };
    for (table, rows) in [("t", 600 - 6 - 7 + 1), ("plain", 500), ("short", 500), ("wide", 80)] {
        // A qual keeps BlockShuffle from reading raw, and volatile functions keep it from reading the table itself.
        let mut raw = open(table, Strategy::CorgiPile, snapshot);
        let mut slots =
            open(&format!("SELECT * FROM {table} WHERE length(x::text) >= 0"), Strategy::CorgiPile, snapshot);
        let mut spool = open(&format!("SELECT * FROM {table} WHERE random() < 2"), Strategy::CorgiPile, snapshot);
        let expected = epoch(&mut slots);
        assert_eq!(expected.len(), rows, "{table}");
        assert!(epoch(&mut raw) == expected, "{table}: raw tuples differ");
        assert!(epoch(&mut spool) == expected, "{table}: spooled tuples differ");
        [raw, slots, spool].into_iter().for_each(Buffers::finish);
    }
    // SAFETY: registered above.
    unsafe { pg_sys::UnregisterSnapshot(snapshot) };
}

/// Tables of numbers of every type, in columns and arrays.
fn make_tables_of_numbers() {
    // columns back to back and with others in between, at the table's beginning and behind a text, NULLs here and there
    run(
        "CREATE TABLE fixed (a real, b real, label smallint, c float8, d float8, skipped int, e int, f int, g smallint,
             h bigint, i bool, j real)",
    );
    run(
        "INSERT INTO fixed SELECT sin(n), cos(n) * 1e30, n % 2, sin(n) / 3, exp(n / 10.0), n, n * 1000003, -n, n - 200,
             n * 9007199254740993, n % 3 = 0, CASE WHEN n % 9 > 0 THEN n / 7.0 END FROM generate_series(1, 400) n",
    );
    run("UPDATE fixed SET d = NULL WHERE e % 17 = 0");
    run("UPDATE fixed SET skipped = NULL WHERE e % 13 = 0");
    run("CREATE TABLE behind AS SELECT repeat('x', e % 200) AS before, fixed.* FROM fixed");
    run("ALTER TABLE fixed ADD later real DEFAULT 3");
    run("CREATE TABLE numbers AS SELECT n % 2 AS label, k, ARRAY[k, -k, trunc(k), n] AS x
           FROM (SELECT n, round((sin(n) * 10 ^ (n % 40 - 19))::numeric, n % 50 - 20) AS k
                   FROM generate_series(1, 600) n) AS numbers");
    run("INSERT INTO numbers SELECT n % 2, k, ARRAY[k, 0, 1, 2] FROM
             unnest('{0, 0.00, 1, 10000, 100000000, 0.0001, 0.00010001, 9007199254740991, 9007199254740993, -1.5,
                      12345678901234567890, 0.1234567890123456789, 1e30, 1e-30, 99999999999999999999,
                      340282346638528859811704183484516925440}'::numeric[])
             WITH ORDINALITY AS k(k, n)");
    run("CREATE TABLE arrays AS SELECT label, ARRAY[c, d, c * d, e, f]::float8[] AS doubles,
             ARRAY[e, f, g, 7] AS integers, ARRAY[h, e, f] AS longs,
             ARRAY[g, 1, 2, 3, 4, 5, 6, 7, 8]::smallint[] AS shorts, ARRAY[i, true, false] AS bools
           FROM fixed WHERE d IS NOT NULL");
}

#[pg_test]
fn test_numbers_of_every_type_are_those_that_postgresql_casts_to_double_precision() {
    make_tables_of_numbers();
    let columns = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let cast = |column: &str| match column {
        "i" => format!("{column}::int::float8 AS {column}"),
        _ => format!("{column}::float8 AS {column}"),
    };
    let casts = columns.map(cast).join(", ");
    // SAFETY: a registered snapshot, released below.
    let snapshot = unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) };
    let decoded = |source: &str, features: &[&str]| {
        let mut buffers = open_features(source, features, Strategy::CorgiPile, snapshot);
        let tuples = epoch(&mut buffers);
        buffers.finish();
        tuples
    };
    for table in ["fixed", "behind"] {
        let expected = decoded(&format!("SELECT label, {casts} FROM {table}"), &columns);
        assert!((300..400).contains(&expected.len()));
        assert!(decoded(table, &columns) == expected, "{table}");
        assert!(
            decoded(&format!("SELECT * FROM {table} WHERE random() < 2"), &columns) == expected,
            "{table}, spooled"
        );
    }
    let arrays = ["doubles", "integers", "longs", "shorts"].map(|x| (x, format!("{x}::float8[]")));
    for (x, cast) in arrays.into_iter().chain([("bools", "bools::int[]::float8[]".to_owned())]) {
        let expected = decoded(&format!("SELECT label, {cast} AS {x} FROM arrays"), &[x]);
        assert!(!expected.is_empty() && decoded("arrays", &[x]) == expected, "{x}");
    }
    for (x, cast) in [("k", "k::float8"), ("x", "x::float8[]")] {
        let expected = decoded(&format!("SELECT label, {cast} AS {x} FROM numbers"), &[x]);
        assert_eq!(expected.len(), 616);
        assert!(decoded("numbers", &[x]) == expected, "numeric {x}");
    }
    // SAFETY: registered above.
    unsafe { pg_sys::UnregisterSnapshot(snapshot) };
}

#[pg_test]
fn test_rows_leave_no_memory_behind_while_the_query_runs() {
    // Each row that is left out for a NULL in its array is looked at in a detoasted copy.
    run("CREATE TABLE t AS SELECT i % 2 AS label, CASE WHEN i % 3 > 0 THEN ARRAY[i, NULL] ELSE ARRAY[i, 1] END AS x
           FROM generate_series(1, 30000) i");
    // SAFETY: a registered snapshot, released below.
    let snapshot = unsafe { pg_sys::RegisterSnapshot(pg_sys::GetLatestSnapshot()) };
    // SAFETY: adds up the sizes of all memory contexts.
    let allocated = || unsafe { pg_sys::MemoryContextMemAllocated(pg_sys::TopMemoryContext, true) };
    for source in ["t", "SELECT * FROM t WHERE length(x::text) >= 0", "SELECT * FROM t ORDER BY x"] {
        let mut buffers = open(source, Strategy::CorgiPile, snapshot);
        assert_eq!(epoch(&mut buffers).len(), 10_000, "{source}");
        let before = allocated();
        for _ in 0..3 {
            buffers.next_epoch().unwrap();
            epoch(&mut buffers);
        }
        let kept = allocated().saturating_sub(before);
        assert!(kept < 1 << 20, "{source}: {kept} bytes kept");
        buffers.finish();
    }
    // SAFETY: registered above.
    unsafe { pg_sys::UnregisterSnapshot(snapshot) };
}

/// Raises an error that takes more memory on its way than the reserve has. Called with malloc failing, by
/// `tests/tests/faults/memory.rs`.
#[pg_extern]
fn greedy_error() {
    struct Greedy;

    impl Drop for Greedy {
        fn drop(&mut self) {
            let much: Vec<Vec<u8>> = (0..100).map(|i| vec![i; 1 << 20]).collect();
            std::hint::black_box(much);
        }
    }

    let _greedy = Greedy;
    error!("an error");
}

/// Allocates as Rust's collections do, which cannot handle failure. Called with malloc failing, by
/// `tests/tests/faults/memory.rs`.
#[pg_extern]
fn infallible_allocation(bytes: i32) {
    std::hint::black_box(vec![1_u8; bytes as usize]);
    pg::check_for_interrupts();
}

/// A memory context one of whose allocations fails, as if malloc() had given nothing.
#[cfg(feature = "pg15")]
mod failing {
    use pgrx::pg_sys;
    use std::cell::Cell;

    thread_local! {
        static BEFORE: Cell<Option<u32>> = const { Cell::new(None) };
        static METHODS: Cell<*const pg_sys::MemoryContextMethods> = const { Cell::new(std::ptr::null()) };
    }

    unsafe extern "C-unwind" fn alloc(context: pg_sys::MemoryContext, size: pg_sys::Size) -> *mut std::ffi::c_void {
        match BEFORE.get() {
            Some(0) => {
                BEFORE.set(None);
                std::ptr::null_mut()
            }
            before => {
                BEFORE.set(before.map(|before| before - 1));
                // SAFETY: the context's own function, with its own arguments.
                unsafe { (*METHODS.get()).alloc.expect("every kind of context has it")(context, size) }
            }
        }
    }

    /// Runs `f`, while the allocation in the context after so many others fails; says whether there were so many.
    pub fn run(context: pg_sys::MemoryContext, before: u32, f: impl FnOnce()) -> bool {
        // SAFETY: the context has other methods for a while, the same but for one.
        unsafe {
            METHODS.set((*context).methods);
            let mut methods = *(*context).methods;
            methods.alloc = Some(alloc);
            let methods = Box::new(methods);
            (*context).methods = &*methods;
            BEFORE.set(Some(before));
            f();
            (*context).methods = METHODS.get();
        }
        BEFORE.take().is_none()
    }
}

/// The session's segment is half made, locks are held, or the segment is there that the context points to: wherever an
/// allocation fails, the next attempt works.
#[cfg(feature = "pg15")]
#[pg_test]
fn test_no_failing_allocation_keeps_workers_from_being_launched_later() {
    use pg::process::parallel::{Launch, Workers};
    let rehearse = || {
        Snapshot::with_active(|snapshot| {
            let data: &[&[u8]] = &[b"data"];
            let launch =
                Launch { kind: c"loader", workers: 2, data, plan: None, gathers: true, queue: 1 << 14, snapshot };
            Workers::rehearse(&launch).err().map(String::from).unwrap_or_default()
        })
    };
    // SAFETY: contexts that live as long as the transaction.
    let contexts = unsafe { [("session", pg_sys::TopMemoryContext), ("transaction", pg_sys::TopTransactionContext)] };
    for (name, context) in contexts {
        let mut failed = 0;
        let mut caught = 0;
        loop {
            let mut message = String::new();
            let failing = in_subtransaction(|| {
                let fired = failing::run(context, failed, || message = in_subtransaction(rehearse));
                if fired { "yes".to_owned() } else { String::new() }
            });
            // SAFETY: plain variables.
            assert_eq!(unsafe { pg_sys::InterruptHoldoffCount }, 0, "after allocation {failed} of the {name}");
            if failing.is_empty() {
                assert_eq!(message, "", "without a failure");
                break;
            }
            caught += u32::from(message.starts_with("no shared memory: out of memory"));
            failed += 1;
        }
        assert!(caught > 2, "{caught} of {failed} allocations of the {name} were made within the attempt");
    }
    assert_eq!(in_subtransaction(rehearse), "");
}

#[pg_test]
fn test_workers_of_another_build_are_not_listened_to() {
    use pg::process::parallel::{Launch, Workers};
    let launched_by = |build| {
        Snapshot::with_active(|snapshot| {
            let data: &[&[u8]] = &[b"data"];
            let launch =
                Launch { kind: c"loader", workers: 1, data, plan: None, gathers: false, queue: 1 << 14, snapshot };
            let workers = Workers::launch_by(build, &launch).expect("a process is free");
            assert!(workers.receive(0).is_none(), "it has ended");
            String::new()
        })
    };
    let message = "a worker process has loaded another build of corgipile than this session";
    assert_eq!(in_subtransaction(|| launched_by(c"0123456789abcdef")), message);
    assert_ne!(in_subtransaction(|| launched_by(pg::process::library::build())), message, "it has read the data");
}

#[pg_test]
fn test_the_reserve_of_memory_gives_again_what_came_back_in_any_order() {
    use pg::memory::granules::Granules;
    let mut granules = Granules::<2>::FREE;
    let mut places: Vec<usize> = std::iter::from_fn(|| granules.take(4, 100)).collect();
    assert_eq!(places, (0..25).map(|i| 4 * i).collect::<Vec<_>>(), "all below the end, and none twice");
    assert_eq!(granules.take(1, 100), None);
    assert_eq!(granules.take(28, 128), Some(100), "what is kept for errors");
    // one piece stays: the others come back, the oldest first
    let kept = places.remove(7);
    places.into_iter().for_each(|place| granules.give_back(place, 4));
    assert_eq!(granules.take(kept, 100), Some(0), "all before the piece that stays");
    assert_eq!(granules.take(100 - kept - 4, 100), Some(kept + 4), "and all behind it");
}

#[pg_test]
fn test_a_setting_that_a_server_refuses_stays_as_it_is() {
    use pg::settings::Settings;
    let shown = || Spi::get_one::<String>("SHOW default_toast_compression").unwrap().unwrap();
    let before = shown();
    let refused = Settings::try_set(c"default_toast_compression", c"a method of a later version");
    assert_eq!(shown(), before, "and nothing was raised");
    refused.restore();
    let other = Settings::try_set(c"default_toast_compression", c"pglz");
    assert_eq!(shown(), "pglz");
    other.restore();
    assert_eq!(shown(), before);
}

#[pg_test]
fn test_forged_headers_are_as_visible_as_postgresql_says() {
    pg::tuples::heap::visibility_fuzzer::compare();
}
