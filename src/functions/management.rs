//! Management of models by their owners: corgipile_deploy(), corgipile_rename(), corgipile_drop(), corgipile_comment(),
//! corgipile_grant(), corgipile_revoke(), corgipile_drop_owned(), corgipile_reassign_owned(). What corgipile_publish()
//! asks of the server that has a model, and of those that get it.

use super::model_functions::selector;
use choices::Choice;
use errors::{ArgumentError, OrRaise, Result};
use model::{self, Privilege, Received};
use options::parse::argument_choice;
use pg::call::function::Call;
use pg::values::jsonb::Jsonb;
use pg::values::varlena::Value;
use pgrx::Uuid;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn corgipile_deploy(call: Call<'_>) -> i64 {
    text(call, 0, "name").and_then(|name| model::deploy(name, call.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_rename(call: Call<'_>) {
    selector(call).and_then(|model| model::rename(model, text(call, 1, "new_name")?)).or_raise();
}

/// The second argument, a version, is there with a name only.
#[pg_extern(sql = false)]
fn corgipile_drop(call: Call<'_>) -> i64 {
    selector(call).and_then(|model| model::drop(model, call.arguments().get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_comment(call: Call<'_>) {
    selector(call).and_then(|model| model::comment(model, call.get(1))).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_grant(call: Call<'_>) {
    selector(call).and_then(|model| model::grant(model, text(call, 1, "role")?, privilege(call)?)).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_revoke(call: Call<'_>) {
    selector(call).and_then(|model| model::revoke(model, text(call, 1, "role")?)).or_raise();
}

fn privilege(call: Call<'_>) -> Result<Privilege> {
    argument_choice("privilege", text(call, 2, "privilege")?)
}

#[pg_extern(sql = false)]
fn corgipile_drop_owned(call: Call<'_>) -> i64 {
    text(call, 0, "role").and_then(model::drop_owned).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_reassign_owned(call: Call<'_>) -> i64 {
    let roles = text(call, 0, "role").and_then(|from| Ok((from, text(call, 1, "new_role")?)));
    roles.and_then(|(from, to)| model::reassign_owned(from, to)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_version_id(call: Call<'_>) -> i64 {
    text(call, 0, "name").and_then(|name| model::version_id(name, call.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_identity(call: Call<'_>) -> Uuid {
    let model: Result<i64> = call.get(0).ok_or(ArgumentError::NullArgument("model_id").into());
    model.and_then(model::identity).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_receive_model(call: Call<'_>) -> Value<'_> {
    let Received { outcome, id, version } = receive(call).or_raise();
    call.row(&[outcome.name().into(), id.into(), version.into()])
}

fn receive(call: Call<'_>) -> Result<Received> {
    let identity = call.get(0).ok_or(ArgumentError::NullArgument("identity"))?;
    model::receive(identity, Jsonb::new(call.argument(1).ok_or(ArgumentError::NullArgument("model"))?))
}

/// Argument `i`, of this name, of a function that is not STRICT.
fn text<'a>(call: Call<'a>, i: usize, name: &'static str) -> Result<&'a str> {
    Ok(call.get(i).ok_or(ArgumentError::NullArgument(name))?)
}
