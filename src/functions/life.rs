//! What owners do to their models: corgipile_deploy(), corgipile_rename(), corgipile_drop(), corgipile_comment(),
//! corgipile_grant(), corgipile_revoke().

use crate::error::{Error, OrRaise, Result};
use crate::models::{self, Which};
use crate::pg::arguments::{Arguments, Call};
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn corgipile_deploy(fcinfo: pg_sys::FunctionCallInfo) -> i64 {
    let arguments = Call::new(fcinfo).arguments();
    name(&arguments).and_then(|name| models::deploy(&name, arguments.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_rename(model: i64, new_name: &str) {
    models::rename(Which::Id(model), new_name).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_rename_by_name(name: &str, new_name: &str) {
    models::rename(Which::Name(name), new_name).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drop(model: i64) -> i64 {
    models::drop(Which::Id(model), None).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_drop_by_name(fcinfo: pg_sys::FunctionCallInfo) -> i64 {
    let arguments = Call::new(fcinfo).arguments();
    name(&arguments).and_then(|name| models::drop(Which::Name(&name), arguments.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_comment(fcinfo: pg_sys::FunctionCallInfo) {
    let arguments = Call::new(fcinfo).arguments();
    let model = arguments.get(0).ok_or(Error::NullArgument("model_id"));
    let text: Option<String> = arguments.get(1);
    model.and_then(|model| models::comment(Which::Id(model), text.as_deref())).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_comment_by_name(fcinfo: pg_sys::FunctionCallInfo) {
    let arguments = Call::new(fcinfo).arguments();
    let text: Option<String> = arguments.get(1);
    name(&arguments).and_then(|name| models::comment(Which::Name(&name), text.as_deref())).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_grant(model: i64, role: &str) {
    models::grant(Which::Id(model), role).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_grant_by_name(name: &str, role: &str) {
    models::grant(Which::Name(name), role).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_revoke(model: i64, role: &str) {
    models::revoke(Which::Id(model), role).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_revoke_by_name(name: &str, role: &str) {
    models::revoke(Which::Name(name), role).or_raise();
}

/// Argument 0 of a function that is not STRICT.
fn name(arguments: &Arguments) -> Result<String> {
    arguments.get(0).ok_or(Error::NullArgument("name"))
}
