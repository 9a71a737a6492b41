//! What a trigger's function gets to know.

use super::function::Call;
use crate::compat::attributes;
use crate::values::varlena::Value;
use pgrx::prelude::*;
use std::ffi::{CStr, c_int};

/// What PostgreSQL says of the row whose trigger calls. An error if no trigger for rows does.
fn data(call: Call<'_>) -> *mut pg_sys::TriggerData {
    // SAFETY: the context is NULL or a node.
    unsafe {
        let trigger = (*call.info()).context.cast::<pg_sys::TriggerData>();
        if trigger.is_null() || (*trigger).type_ != pg_sys::NodeTag::T_TriggerData || (*trigger).tg_trigtuple.is_null()
        {
            ereport!(
                ERROR,
                PgSqlErrorCode::ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED,
                "the function is a trigger for each row of corgipile.stored_models"
            );
        }
        trigger
    }
}

/// What the function of a trigger that comes before gives, to have the row written, changed or deleted as it is.
pub fn as_it_is(call: Call<'_>) -> Value<'_> {
    let trigger = data(call);
    // SAFETY: the data of a trigger; the new row is there if the row is changed.
    unsafe {
        let new = (*trigger).tg_newtuple;
        call.context().value(|| pg_sys::Datum::from(if new.is_null() { (*trigger).tg_trigtuple } else { new }))
    }
}

/// What the function of a trigger that comes before gives, to have nothing happen to the row.
pub fn nothing(call: Call<'_>) -> Value<'_> {
    data(call);
    call.context().value(pg_sys::Datum::null)
}

/// The bigint in a column of the row that was changed or deleted. An error if no trigger for rows calls.
pub fn old_key(call: Call<'_>, column: &CStr) -> i64 {
    let trigger = data(call);
    // SAFETY: the data of a trigger has the table, and with FOR EACH ROW its row.
    unsafe {
        let relation = (*trigger).tg_relation;
        let attribute = pg_sys::get_attnum((*relation).rd_id, column.as_ptr());
        if attribute <= 0 || attributes((*relation).rd_att)[attribute as usize - 1].atttypid != pg_sys::INT8OID {
            error!("the table has no bigint column {}", column.to_string_lossy());
        }
        let mut null = false;
        let value =
            pg_sys::heap_getattr((*trigger).tg_trigtuple, c_int::from(attribute), (*relation).rd_att, &mut null);
        i64::from_datum(value, null).unwrap_or_default()
    }
}
