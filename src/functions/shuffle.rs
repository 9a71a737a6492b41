//! corgipile_shuffle() where it is called as a function: in the select list, in ROWS FROM, WITH ORDINALITY.

use crate::errors::OrRaise;
use crate::operators::shuffle_scan::{ShuffleArguments, Shuffled};
use crate::pg::call::arguments::Call;
use crate::pg::executor::custom_scan::Flags;
use crate::pg::executor::query::Running;
use pgrx::prelude::*;

/// Returns the rows of a table in shuffled order.
#[pg_extern(sql = false)]
fn corgipile_shuffle(fcinfo: pg_sys::FunctionCallInfo) {
    let call = Call::new(fcinfo);
    let arguments = ShuffleArguments::of_call(&call.arguments());
    let rows = Shuffled::open(arguments, Running::active_snapshot(), 0, Flags::NONE).or_raise();
    let columns = rows.columns();
    call.return_rows(columns.len(), |result| {
        let Some(row) = rows.row().map(|slot| slot.row()) else { return false };
        for (value, column) in result.iter_mut().zip(columns) {
            *value = column.and_then(|column| row.get(column));
        }
        true
    })
    .or_raise();
    rows.finish();
}
