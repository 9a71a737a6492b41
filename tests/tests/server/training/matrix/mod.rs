//! Features two by two against invariances: what must make no difference makes none, whatever else a call asks for.
//!
//! A cell is an invariance (`invariances.rs`) and two features (`features.rs`): two calls that must come to the same
//! model. Their epochs, weights, predictions and metrics are compared (`outcome.rs`). Where an invariance cannot hold,
//! `exceptions.rs` says why, and what holds instead. `make test` tries a part of the cells, in which each feature meets
//! each invariance; `make test-all` tries all of them. `MATRIX=newton` chooses the cells of one feature.

mod call;
mod exceptions;
mod features;
mod invariances;
mod outcome;

use call::Call;
use corgipile_tests::{Database, Failure, Session, sample};
use exceptions::{EXCEPTIONS, Exception, Holds};
use features::{COUNT, Pair, pairs};
use invariances::{Change, INVARIANCES, Invariance};
use outcome::{Outcome, Same, difference, outcome};
use std::collections::HashMap;
use std::env;

/// The rows, and the same rows in other ways.
const TABLES: &str = "
    CREATE TABLE t (
        id int, triple text, kind text, number float8, count int, a real, b real, c real, holes real, x real[], x_holes real[],
        a_8 float8, b_8 float8, c_8 float8, holes_8 float8, x_8 float8[], k int[], v real[], site text, word text, day date,
        w real, w_1024 real, w_1500 float8, eighth real, used int, held boolean, twin text, extra boolean,
        kind_renamed text, triple_renamed text, kind_as_number int, triple_as_number int);
    INSERT INTO t
    SELECT i, (ARRAY['ant', 'bee', 'cat'])[1 + three], (ARRAY['no', 'yes'])[1 + two], 20 + 5 * (a - b + noise),
           floor(exp(1 + 0.5 * a) * (0.5 + uniform(i, 9))), a, b, c, holes, ARRAY[a, b, c], ARRAY[a, b, c, holes],
           a, b, c, holes, ARRAY[a, b, c], '{1,2,3}', ARRAY[a, b, c], (ARRAY['north', 'south'])[1 + south], 'w' || i % 40,
           date '2024-01-01' + (i * 37 % 365)::int, w, 1024 * w, 1500 * w, 0.125, (i % 5 > 0)::int, i % 4 = 1, 'A', false,
           (ARRAY['m', 'n'])[1 + two], (ARRAY['x', 'y', 'z'])[1 + three], two, three
      FROM (SELECT *, (a + 0.5 * b + noise + 0.5 * south > 0.8)::int AS two, width_bucket(a + noise, -0.6, 0.6, 1) AS three,
                   CASE WHEN i % 6 > 0 THEN (a + normal(i, 10))::real END AS holes
              FROM (SELECT i, normal(i, 1)::real AS a, (1 + 2 * normal(i, 2))::real AS b, (i % 2)::real AS c, normal(i, 3) AS noise,
                           (uniform(i, 33) < 0.4)::int AS south, 1 + i % 3 AS w
                      FROM generate_series(1, 300::bigint) AS i) AS r) AS r ORDER BY i;
    CREATE TABLE repeated (LIKE t);
    INSERT INTO repeated SELECT t.* FROM t, generate_series(1, w::int) ORDER BY id;
    CREATE TABLE parts (LIKE t) PARTITION BY RANGE (id);
    CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (70);
    CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (70) TO (230);
    CREATE TABLE part_3 PARTITION OF parts FOR VALUES FROM (230) TO (MAXVALUE);
    INSERT INTO parts SELECT * FROM t ORDER BY id;
    CREATE TABLE more (LIKE t);
    INSERT INTO more SELECT * FROM t ORDER BY id;
    UPDATE more SET extra = true, kind = 'perhaps', triple = 'dog', a = 1e6, b = NULL, w = 0, twin = 'C', site = 'west';
    INSERT INTO more SELECT * FROM t ORDER BY id;
    CREATE VIEW seen AS SELECT * FROM t;
    CREATE TABLE twins (LIKE t);
    INSERT INTO twins
    SELECT (jsonb_populate_record(t, CASE n WHEN 1 THEN '{}' ELSE jsonb_build_object('twin', 'B', 'w', 5 * w) END)).*
      FROM t, generate_series(1, 2) AS n ORDER BY id, n;
    SELECT FROM corgipile_compress('t', 'packed_kind', label => 'kind', features => '{x}', batch_rows => 12, seed => 1);
    SELECT FROM corgipile_compress('t', 'packed_triple', label => 'triple', features => '{x}', batch_rows => 12, seed => 1);
    SELECT FROM corgipile_compress('t', 'packed_number', label => 'number', features => '{x}', batch_rows => 12, seed => 1);
    SELECT FROM corgipile_compress('t', 'packed_count', label => 'count', features => '{x}', batch_rows => 12, seed => 1);
    ANALYZE";

/// Runs a call in a transaction that is rolled back: models do not pile up.
fn tried(db: &mut Session, before: Option<&Call>, call: &Call) -> Outcome {
    db.run("BEGIN");
    let found = outcome(db, before.map(Call::sql).as_deref(), &call.sql());
    db.run("ROLLBACK");
    found
}

/// What a cell was found to be.
enum Cell {
    /// The invariance says nothing about these features, or one refuses the other, in either way of asking.
    Empty,
    Holds,
    Fails(String),
}

/// The rule for a cell, and its place in the list.
fn exception(invariance: &Invariance, names: [&str; 2]) -> Option<(usize, &'static Exception)> {
    EXCEPTIONS.iter().enumerate().find(|(_, exception)| {
        exception.invariances.contains(&invariance.name)
            && exception.features.iter().all(|any| any.iter().any(|name| names.contains(name)))
    })
}

/// Is an error one that tells users what they have asked for, and no fault?
fn is_told(failure: &Failure) -> bool {
    match &*failure.code {
        "22003" => failure.message.contains("diverged"),
        "22000" => failure.message.contains("no rows to validate on"),
        code => ["22023", "0A000", "42703", "2202E"].contains(&code),
    }
}

fn compared(invariance: &Invariance, change: &Change, base: &Outcome, changed: &Outcome, same: Same) -> Cell {
    let (base, changed) = match (base, changed) {
        (Ok(base), Ok(changed)) => (base, (change.pick)(changed)),
        (Err(base), Err(changed)) if base.code == changed.code && is_told(base) => return Cell::Empty,
        // a grid leaves out the points that diverge
        (Err(base), Ok(_)) if base.code == "22003" && is_told(base) => return Cell::Empty,
        (Ok(_), Err(changed)) => return Cell::Fails(format!("the second is refused: {changed:?}")),
        (Err(base), _) => return Cell::Fails(format!("the first is refused: {base:?}, and the second not so")),
    };
    if base.len() != changed.len() || base.is_empty() {
        return Cell::Fails(format!("{} models, not {}", changed.len(), base.len()));
    }
    let difference =
        base.iter().zip(&changed).find_map(|(base, changed)| difference(base, changed, same, invariance.by_name));
    difference.map_or(Cell::Holds, Cell::Fails)
}

/// Tries the cells of an invariance, and panics with those that fail.
fn row(name: &str) {
    let place = INVARIANCES.iter().position(|invariance| invariance.name == name).expect("an invariance");
    let invariance = &INVARIANCES[place];
    let mut db = Database::new();
    db.run(TABLES);
    let mut known: HashMap<String, Outcome> = HashMap::new();
    let mut needed = vec![false; EXCEPTIONS.len()];
    let (mut held, mut empty, mut failed) = (0, 0, Vec::new());
    for (pair, base, change) in chosen(place) {
        let first = known.entry(base.sql()).or_insert_with(|| tried(&mut db, None, &base)).clone();
        let second = match &first {
            // nothing to compare it with, unless the second way is not refused
            Err(_) if change.before.is_some() => continue,
            _ => tried(&mut db, change.before.as_ref(), &change.call),
        };
        let mut cell = compared(invariance, &change, &first, &second, invariance.same);
        if let (Cell::Fails(_), Some((i, exception))) = (&cell, exception(invariance, pair.names)) {
            needed[i] = true;
            cell = match exception.holds {
                Holds::Same(same) => compared(invariance, &change, &first, &second, same),
                Holds::Nothing => Cell::Holds,
                Holds::Refused(code) if second.as_ref().is_err_and(|failure| failure.code == code) => Cell::Holds,
                Holds::Refused(_) => cell,
            };
        }
        match cell {
            Cell::Empty => empty += 1,
            Cell::Holds => held += 1,
            Cell::Fails(why) => failed.push(format!(
                "{} + {}: {why}\n  {}\n{}  {}",
                pair.names[0],
                pair.names[1],
                base.sql(),
                change.before.map_or_else(String::new, |before| format!("  {}\n", before.sql())),
                change.call.sql(),
            )),
        }
    }
    println!("{name}: {held} cells hold, {} fail, {empty} are refused either way", failed.len());
    assert!(failed.is_empty(), "{name}: {} of {} cells fail\n{}", failed.len(), held + failed.len(), failed.join("\n"));
    let is_whole = sample(true, false) && env::var_os("MATRIX").is_none();
    let unneeded = |exception: &Exception, needed: bool| !needed && exception.invariances.contains(&name);
    let rest = EXCEPTIONS.iter().zip(needed).filter(|(exception, needed)| is_whole && unneeded(exception, *needed));
    let rest: Vec<&str> = rest.map(|(exception, _)| exception.because).collect();
    assert!(rest.is_empty(), "{name} needs no exception because: {}", rest.join("; "));
}

/// The cells of an invariance that this run tries: all, or a part that differs from row to row and has each feature.
/// `MATRIX=word` chooses those of a feature whose name has this word.
fn chosen(row: usize) -> Vec<(Pair, Call, Change)> {
    let invariance = &INVARIANCES[row];
    let cell = |pair: Pair| {
        let base = (invariance.base)(&pair.call)?;
        let change = (invariance.changed)(&base)?;
        Some((pair, base, change))
    };
    let mut cells: Vec<_> = pairs().into_iter().filter_map(cell).collect();
    if let Ok(word) = env::var("MATRIX") {
        cells.retain(|(pair, ..)| pair.names.iter().any(|name| name.contains(&word)));
        return cells;
    }
    if sample(false, true) {
        // other partners in each row: two features that no cell has yet, and then one of them
        cells.sort_by_key(|(pair, ..)| (pair.places.iter().sum::<usize>() + 7 * row) % COUNT);
        let mut tried = [false; COUNT];
        let mut is_new = |[i, j]: [usize; 2], both: bool| {
            let is_new = if both { i != j && !tried[i] && !tried[j] } else { !tried[i] || !tried[j] };
            (tried[i], tried[j]) = (tried[i] || is_new, tried[j] || is_new);
            is_new
        };
        let (new, others): (Vec<_>, Vec<_>) = cells.into_iter().partition(|(pair, ..)| is_new(pair.places, true));
        cells = new.into_iter().chain(others.into_iter().filter(|(pair, ..)| is_new(pair.places, false))).collect();
    }
    cells
}

macro_rules! rows {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            row($name);
        })*

        #[test]
        fn each_invariance_has_a_test() {
            let tested = [$($name),*];
            let names: Vec<&str> = INVARIANCES.iter().map(|invariance| invariance.name).collect();
            assert_eq!(names, tested);
        }
    };
}

rows! {
    weights_may_be_multiplied_by_a_power_of_2: "weights times a power of 2",
    weights_may_be_multiplied_by_1500: "weights times 1500",
    equal_weights_are_none: "equal weights or none",
    rows_of_weight_0_are_none: "rows of weight 0 or none",
    a_weight_of_2_is_a_row_twice: "weights or repeated rows",
    columns_may_be_permuted: "permuted columns",
    classes_may_be_renamed: "renamed classes",
    classes_may_be_numbers: "classes as numbers",
    an_array_is_its_columns: "array or columns",
    float8_is_real: "float8 or real",
    sparse_is_dense: "sparse or dense",
    partitions_are_one_table: "partitions or one table",
    a_filter_leaves_a_table: "filter or table",
    a_view_is_its_table: "view or table",
    one_group_is_no_group: "one group or no groups",
    a_group_is_a_filter: "group or filter",
    a_point_of_a_grid_is_its_own_call: "grid or own call",
    a_warm_start_is_a_longer_training: "warm start or longer training",
    a_warm_start_with_the_same_options_goes_on: "options said again in a warm start",
}
