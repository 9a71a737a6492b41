//! Management of models by their owners: corgipile_deploy(), corgipile_rename(), corgipile_drop(), corgipile_comment(),
//! corgipile_grant(), corgipile_revoke(), corgipile_drop_owned(), corgipile_reassign_owned(). What corgipile_publish()
//! asks of the server that has a model, and of those that get it.

use crate::errors::{ArgumentError, OrRaise, Result};
use crate::models::{self, ModelSelector, Privilege, Received};
use crate::options::parse::argument_choice;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::values::jsonb::Jsonb;
use pg::values::varlena::Value;
use pgrx::Uuid;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn corgipile_deploy(call: Call<'_>) -> i64 {
    let arguments = call.arguments();
    name(&arguments).and_then(|name| models::deploy(&name, arguments.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_rename(call: Call<'_>) {
    both(call, ["model_id", "new_name"])
        .and_then(|(model, new_name): (i64, String)| models::rename(ModelSelector::Id(model), &new_name))
        .or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_rename_by_name(call: Call<'_>) {
    both(call, ["name", "new_name"])
        .and_then(|(model, new_name): (String, String)| models::rename(ModelSelector::Name(&model), &new_name))
        .or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_drop(model: i64) -> i64 {
    models::drop(ModelSelector::Id(model), None).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_drop_by_name(call: Call<'_>) -> i64 {
    let arguments = call.arguments();
    name(&arguments).and_then(|name| models::drop(ModelSelector::Name(&name), arguments.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_comment(call: Call<'_>) {
    let arguments = call.arguments();
    let model = arguments.get(0).ok_or(ArgumentError::NullArgument("model_id").into());
    let text: Option<String> = arguments.get(1);
    model.and_then(|model| models::comment(ModelSelector::Id(model), text.as_deref())).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_comment_by_name(call: Call<'_>) {
    let arguments = call.arguments();
    let text: Option<String> = arguments.get(1);
    name(&arguments).and_then(|name| models::comment(ModelSelector::Name(&name), text.as_deref())).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_grant(call: Call<'_>) {
    both(call, ["model_id", "role"])
        .and_then(|(model, role): (i64, String)| models::grant(ModelSelector::Id(model), &role, privilege(call)?))
        .or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_grant_by_name(call: Call<'_>) {
    both(call, ["name", "role"])
        .and_then(|(model, role): (String, String)| models::grant(ModelSelector::Name(&model), &role, privilege(call)?))
        .or_raise();
}

fn privilege(call: Call<'_>) -> Result<Privilege> {
    let word: String = call.arguments().get(2).ok_or(ArgumentError::NullArgument("privilege"))?;
    argument_choice("privilege", &word)
}

#[pg_extern(sql = false)]
fn corgipile_drop_owned(call: Call<'_>) -> i64 {
    let role: Result<String> = call.arguments().get(0).ok_or(ArgumentError::NullArgument("role").into());
    role.and_then(|role| models::drop_owned(&role)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_reassign_owned(call: Call<'_>) -> i64 {
    both(call, ["role", "new_role"])
        .and_then(|(from, to): (String, String)| models::reassign_owned(&from, &to))
        .or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_revoke(call: Call<'_>) {
    both(call, ["model_id", "role"])
        .and_then(|(model, role): (i64, String)| models::revoke(ModelSelector::Id(model), &role))
        .or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_revoke_by_name(call: Call<'_>) {
    both(call, ["name", "role"])
        .and_then(|(model, role): (String, String)| models::revoke(ModelSelector::Name(&model), &role))
        .or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_version_id(call: Call<'_>) -> i64 {
    let arguments = call.arguments();
    name(&arguments).and_then(|name| models::version_id(&name, arguments.get(1))).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_identity(call: Call<'_>) -> Uuid {
    let model: Result<i64> = call.arguments().get(0).ok_or(ArgumentError::NullArgument("model_id").into());
    model.and_then(models::identity).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_receive_model(call: Call<'_>) -> Value {
    let Received { outcome, id, version } = receive(call).or_raise();
    call.row(&[outcome.name().into(), id.into(), version.into()])
}

fn receive(call: Call<'_>) -> Result<Received> {
    let identity = call.get(0).ok_or(ArgumentError::NullArgument("identity"))?;
    models::receive(identity, Jsonb::new(call.argument(1).ok_or(ArgumentError::NullArgument("model"))?))
}

/// Both arguments, with these names, of a function that is not STRICT.
fn both<A: FromDatum + IntoDatum, B: FromDatum + IntoDatum>(
    call: Call<'_>,
    names: [&'static str; 2],
) -> Result<(A, B)> {
    let arguments = call.arguments();
    let first = arguments.get(0).ok_or(ArgumentError::NullArgument(names[0]))?;
    Ok((first, arguments.get(1).ok_or(ArgumentError::NullArgument(names[1]))?))
}

/// Argument 0 of a function that is not STRICT.
fn name(arguments: &Arguments) -> Result<String> {
    arguments.get(0).ok_or(ArgumentError::NullArgument("name").into())
}
