//! Models as values: corgipile_export() and corgipile_import().

mod columns;
mod expression;
mod graph;
mod groups;

use super::model_functions::model;
use choices::choice;
use errors::{ArgumentError, OrRaise, Result};
use expression::Answer;
use model::{self, Found, Model};
use options::parse::argument_choice;
use pg::call::function::Call;
use pg::values::jsonb::{self, Jsonb};
use pg::values::varlena::{Bytes, Value};
use pgrx::prelude::*;
use std::rc::Rc;

choice! {
    /// What a model is exported as.
    Format {
        /// the document that corgipile_import() takes
        Json = "json",
        /// an expression that needs no extension
        Sql = "sql",
        /// a graph, which is no text: a function of its own gives it
        Onnx = "onnx",
    }
}

#[pg_extern(sql = false)]
fn corgipile_export(call: Call<'_>) -> Value<'_> {
    model(call).and_then(|model| model::export(&model)).map(|text| jsonb::from_text(call.context(), text)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_export_as(call: Call<'_>) -> Option<String> {
    (!call.is_null(0)).then(|| export_as(call)).transpose().or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_export_onnx(call: Call<'_>) -> Value<'_> {
    model(call).and_then(|model| export_onnx(call, &model)).or_raise()
}

/// A model as a graph of ONNX: a bytea is just that, its bytes.
fn export_onnx<'m>(call: Call<'m>, model: &Rc<Model>) -> Result<Value<'m>> {
    Ok(Bytes::new(call.context(), &graph::graph(model)?)?.into_value())
}

/// A model as a text of this format.
fn export_as(call: Call<'_>) -> Result<String> {
    let (format, answer, source): (Option<&str>, Option<&str>, Option<&str>) = (call.get(1), call.get(2), call.get(3));
    let format: Format = argument_choice("format", format.ok_or(ArgumentError::NullArgument("format"))?)?;
    let wanted: Option<Answer> = answer.map(|answer| argument_choice("prediction", answer)).transpose()?;
    if let (pg_sys::TEXTOID, Format::Sql) = (call.type_of(0), format)
        && let Found::Groups(models) = model::found_to_predict(call.get(0).ok_or(ArgumentError::NullArgument("name"))?)?
    {
        return groups::expression(models, wanted.unwrap_or_default(), source);
    }
    let model = &model(call)?;
    match format {
        Format::Sql => expression::expression(model, wanted.unwrap_or_default(), source),
        Format::Onnx => Err(ArgumentError::InvalidArgument {
            argument: "format",
            reason: "onnx is not a text format, but this function returns text".to_owned(),
            hint: Some("Use corgipile_export_onnx(model), which returns bytea.".to_owned()),
        }
        .into()),
        Format::Json => match [("prediction", answer), ("source", source)].iter().find(|(_, given)| given.is_some()) {
            Some((argument, _)) => Err(ArgumentError::InvalidArgument {
                argument,
                reason: "it applies only to format sql".to_owned(),
                hint: Some("Leave it out: the other formats contain the whole model.".to_owned()),
            }
            .into()),
            None => model::export(model),
        },
    }
}

#[pg_extern(sql = false)]
fn corgipile_import(call: Call<'_>) -> i64 {
    import(call).or_raise()
}

fn import(call: Call<'_>) -> Result<i64> {
    let model = call.argument(0).ok_or(ArgumentError::NullArgument("model"))?;
    let name: Option<String> = call.get(1);
    model::import(Jsonb::new(model), name.as_deref())
}
