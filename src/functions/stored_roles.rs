//! The type corgipile.stored_role; who may see what is in the table of models, for its policy and for the view; and
//! what logical replication does with the table.

use crate::errors::{OrRaise, Result};
use crate::models::{self, Access, StoredRole, ToPredict};
use pg::call::function::Call;
use pg::call::trigger;
use pg::is_background_worker;
use pg::values::varlena::{Bytes, Value};
use pgrx::datum::TimestampWithTimeZone;
use pgrx::prelude::*;
use std::cell::Cell;
use std::ffi::CString;

#[pg_extern(sql = false)]
fn corgipile_stored_role_in(call: Call<'_>) -> String {
    let text = call.text().unwrap_or_default();
    StoredRole::read(&text.to_string_lossy()).as_stored().to_owned()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_out(call: Call<'_>) -> CString {
    CString::new(role(call).written()).unwrap_or_default()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_recv(call: Call<'_>) -> String {
    let text = String::from_utf8_lossy(call.message().unwrap_or_default());
    StoredRole::read(&text).as_stored().to_owned()
}

#[pg_extern(sql = false)]
fn corgipile_stored_role_send(call: Call<'_>) -> Value {
    let bytes: Result<Bytes> = Bytes::new(role(call).written().as_bytes()).map_err(Into::into);
    bytes.or_raise().into_value() // a bytea is just that: the bytes
}

#[pg_extern(sql = false)]
fn corgipile_shown_role(call: Call<'_>) -> String {
    role(call).shown()
}

fn role(call: Call<'_>) -> StoredRole {
    StoredRole::from_column(call.get(0).unwrap_or_default())
}

#[pg_extern(sql = false)]
fn corgipile_may_see(call: Call<'_>) -> bool {
    let granted: Vec<Option<String>> = call.get(1).unwrap_or_default();
    let granted: Vec<StoredRole> = granted.into_iter().flatten().map(StoredRole::from_column).collect();
    Access::by(&role(call), &granted).is_some()
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
    let row = |model: ToPredict| {
        let ToPredict { id, owner, name, version, deployed, created_at, comment, .. } = model;
        let ToPredict { model, label, label_type, classes, features, feature_kind, .. } = model;
        (
            id,
            owner,
            name,
            version,
            deployed,
            created_at,
            comment,
            model,
            label,
            label_type,
            classes,
            features,
            feature_kind,
        )
    };
    TableIterator::new(models::only_to_predict().into_iter().map(row))
}

/// BEFORE INSERT OR UPDATE OR DELETE FOR EACH ROW of corgipile.stored_models, where a role of replication is set. Of
/// what a subscription brings nothing is done: this server gives the ids and versions of its own models. A restore that
/// sets the role to skip triggers is somebody's session, and loses nothing.
#[pg_extern(sql = false)]
fn corgipile_not_replicated(call: Call<'_>) -> Value {
    thread_local! {
        static TOLD: Cell<bool> = const { Cell::new(false) };
    }
    if !is_background_worker() {
        return trigger::as_it_is(call);
    }
    if !TOLD.replace(true) {
        log!("models of corgipile are not replicated: corgipile_publish() takes them to other servers");
    }
    trigger::nothing(call)
}
