//! corgipile_shuffle_order(): the order in which a strategy gives the tuples of a table, which need not exist.

use errors::{ArgumentError, Error, OrRaise, PgError, Result};
use options::call;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::check_for_interrupts;
use pgrx::prelude::*;
use shuffle::{Geometry, TupleOrder};

/// The largest table: its order is held in memory, some bytes per tuple.
const MAX_TUPLES: i64 = 100_000_000;

/// Returns (position from 1, tuple from 0) for each tuple that SGD sees in one epoch.
#[pg_extern(sql = false)]
fn corgipile_shuffle_order(call: Call<'_>) {
    let mut order = order(&call.arguments()).or_raise();
    let tuples = std::iter::from_fn(|| {
        check_for_interrupts();
        order.next_tuple().map_err(out_of_memory).or_raise()
    });
    call.return_rows((1_i64..).zip(tuples).map(|(position, tuple)| [position.into(), i64::from(tuple).into()]));
}

fn order(arguments: &Arguments) -> Result<TupleOrder<fn()>> {
    let strategy = arguments.get::<String>(0).ok_or(ArgumentError::NullArgument("shuffle"))?;
    let tuples = within("tuples", arguments.get(1), 0..=MAX_TUPLES)?;
    let tuples_per_block = within("tuples_per_block", arguments.get::<i32>(2).map(i64::from), 1..=i32::MAX.into())?;
    let buffer_tuples = within("buffer_tuples", arguments.get(3), 1..=i64::MAX)?;
    let seed = arguments.get(4).ok_or(ArgumentError::NullArgument("seed"))?;
    let epoch = within("epoch", arguments.get::<i32>(5).map(i64::from), 1..=i32::MAX.into())?;
    let strategy = call::strategy(strategy)?;
    let clamped = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    let geometry = Geometry::of_tuples(clamped(tuples), clamped(tuples_per_block), clamped(buffer_tuples));
    TupleOrder::new(strategy, seed, epoch.cast_unsigned(), geometry, check_for_interrupts as fn())
        .map_err(out_of_memory)
}

fn within(argument: &'static str, given: Option<i64>, range: std::ops::RangeInclusive<i64>) -> Result<i64> {
    let number = given.ok_or(ArgumentError::NullArgument(argument))?;
    if range.contains(&number) {
        return Ok(number);
    }
    let reason = match number < *range.start() {
        true => format!("{number} is not at least {}", range.start()),
        false => format!("{number} is more than {}", range.end()),
    };
    Err(ArgumentError::InvalidArgument { argument, reason, hint: None }.into())
}

fn out_of_memory(error: shuffle::OutOfMemory) -> Error {
    PgError::OutOfMemory(error.tuples as usize * size_of::<u64>()).into()
}
