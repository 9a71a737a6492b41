//! Models as values: corgipile_export() and corgipile_import().

use crate::errors::{ArgumentError, OrRaise, Result};
use crate::models;
use crate::pg::values::jsonb::{self, Jsonb};
use crate::pg::values::typed::TypedDatum;
use crate::pg::values::varlena::Value;
use pgrx::prelude::*;

#[pg_extern(sql = false)]
fn corgipile_export(model: i64) -> Value {
    models::by_id(model).and_then(|model| models::export(&model)).map(jsonb::from_text).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_export_by_name(model: &str) -> Value {
    models::by_name(model).and_then(|model| models::export(&model)).map(jsonb::from_text).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_import(model: Option<TypedDatum<'_>>, name: Option<&str>) -> i64 {
    import(model, name).or_raise()
}

fn import(model: Option<TypedDatum<'_>>, name: Option<&str>) -> Result<i64> {
    let model = model.ok_or(ArgumentError::NullArgument("model"))?;
    models::import(Jsonb::new(model), name)
}
