//! What functions of a model have in common. Argument 0 is a model's id, its name or, of some functions, the model as a
//! value: its type says which. Argument 1 of many is the source of the rows.

use errors::{ArgumentError, Result};
use model::table::LookupScope;
use model::{self, Found, Model, ModelSelector};
use pg::call::function::Call;
use pg::values::jsonb::Jsonb;
use pgrx::prelude::*;
use std::rc::Rc;

/// The model, if the current user may see it.
pub fn model(call: Call<'_>) -> Result<Rc<Model>> {
    let model = model_to_predict(call)?;
    if call.type_of(0) == pg_sys::JSONBOID { Ok(model) } else { model::if_seen(model) }
}

/// What [`model_and_source`] gives, of a name that may be that of models of groups.
pub fn found_and_source(call: Call<'_>) -> Result<(Found, String)> {
    let source = call.arguments().source(1)?.ok_or(ArgumentError::NullArgument("source"))?;
    let found = match call.type_of(0) {
        pg_sys::INT8OID => Found::Model(model(call)?),
        _ => match model::found_to_predict(call.get(0).ok_or(ArgumentError::NullArgument("name"))?)? {
            Found::Model(model) => Found::Model(model::if_seen(model)?),
            groups => groups,
        },
    };
    Ok((found, source))
}

/// The model, for predictions, which a role may be let make without seeing it. One that is a constant of the query is
/// not compared with other values again as long as it means the same: a large model has many times as many bytes as a
/// row.
#[inline(always)]
pub fn model_to_predict(call: Call<'_>) -> Result<Rc<Model>> {
    match call.type_of(0) {
        pg_sys::INT8OID => model::id_to_predict(call.get(0).ok_or(ArgumentError::NullArgument("model_id"))?),
        pg_sys::JSONBOID => {
            let model = call.argument(0).ok_or(ArgumentError::NullArgument("model"))?;
            call.made_of_constant(0, LookupScope::now(), || model::inline(Jsonb::new(model)))
        }
        _ => model::name_to_predict(call.get::<&str>(0).ok_or(ArgumentError::NullArgument("name"))?),
    }
}

/// Which models the argument means to a function that changes them.
pub fn selector(call: Call<'_>) -> Result<ModelSelector<'_>> {
    Ok(match call.type_of(0) {
        pg_sys::INT8OID => ModelSelector::Id(call.get(0).ok_or(ArgumentError::NullArgument("model_id"))?),
        _ => ModelSelector::Name(call.get(0).ok_or(ArgumentError::NullArgument("name"))?),
    })
}

/// The model, as [`model`] has it, and the source of the rows: a text, or a relation, whose name it is then.
pub fn model_and_source(call: Call<'_>) -> Result<(Rc<Model>, String)> {
    let source = call.arguments().source(1)?.ok_or(ArgumentError::NullArgument("source"))?;
    Ok((model(call)?, source))
}
