//! The type corgipile.stored_role; who may see what is in the table of models, for its policy and for the view; and
//! what logical replication does with the table.

use errors::{OrRaise, Result};
use model::{self, Access, StoredRole};
use pg::call::function::Call;
use pg::call::trigger;
use pg::is_background_worker;
use pg::values::varlena::{Bytes, Value};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::{CStr, CString};

#[pg_extern(sql = false)]
fn corgipile_stored_role_in(call: Call<'_>) -> String {
    StoredRole::read(call.text().unwrap_or_default()).as_stored().to_owned()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_out(call: Call<'_>) -> CString {
    role(call).written()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_recv(call: Call<'_>) -> String {
    let text = CString::new(call.message().unwrap_or_default()).unwrap_or_default();
    StoredRole::read(&text).as_stored().to_owned()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_send(call: Call<'_>) -> Value<'_> {
    as_value(call, &role(call).written())
}

#[pg_extern(sql = false)]
fn corgipile_shown_role(call: Call<'_>) -> Value<'_> {
    as_value(call, &role(call).shown())
}

/// A text or a bytea of these bytes.
fn as_value<'m>(call: Call<'m>, text: &CStr) -> Value<'m> {
    let bytes: Result<Bytes> = Bytes::new(call.context(), text.to_bytes()).map_err(Into::into);
    bytes.or_raise().into_value()
}

fn role(call: Call<'_>) -> StoredRole {
    StoredRole::from_column(call.get(0).unwrap_or_default())
}

#[pg_extern(sql = false)]
fn corgipile_may_see(call: Call<'_>) -> bool {
    Access::by(&role(call), || StoredRole::all_from_column(call.get(1))).is_some()
}

#[pg_extern(sql = false)]
#[expect(clippy::type_complexity, reason = "the columns, which pgrx wants in one type")]
fn corgipile_models_to_predict() -> TableIterator<
    'static,
    (
        name!(model_id, i64),
        name!(owner, String),
        name!(name, Option<String>),
        name!(version, i32),
        name!(deployed, bool),
        name!(created_at, Option<TimestampWithTimeZone>),
        name!(comment, Option<String>),
        name!(model, String),
        name!(label, String),
        name!(label_type, pg_sys::Oid),
        name!(classes, Option<Vec<Option<String>>>),
        name!(features, Vec<Option<String>>),
        name!(feature_kind, String),
    ),
> {
    TableIterator::new(model::only_to_predict(|row| {
        (
            row.get(c"model_id").unwrap_or_default(),
            row.owner().as_stored().to_owned(),
            row.get(c"name"),
            row.get(c"version").unwrap_or_default(),
            row.get(c"deployed").unwrap_or_default(),
            row.get(c"created_at"),
            row.get(c"comment"),
            row.get(c"model").unwrap_or_default(),
            row.get(c"label").unwrap_or_default(),
            row.get(c"label_type").unwrap_or(pg_sys::Oid::INVALID),
            row.get(c"classes"),
            row.get(c"features").unwrap_or_default(),
            row.get(c"feature_kind").unwrap_or_default(),
        )
    }))
}

/// BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW of corgipile.stored_models, where a role of replication is set. Of
/// what a subscription brings nothing is done: this server gives the ids and versions of its own models. A restore that
/// sets the role to skip triggers is somebody's session, and loses nothing.
#[pg_extern(sql = false)]
fn corgipile_not_replicated(call: Call<'_>) -> Value<'_> {
    thread_local! {
        static TOLD: Cell<bool> = const { Cell::new(false) };
    }
    if !is_background_worker() {
        return trigger::as_it_is(call);
    }
    if !TOLD.replace(true) {
        log!("models of corgipile are not replicated: corgipile_publish() copies them to other servers");
    }
    trigger::nothing(call)
}
