//! Models that are given as values.

use crate::errors::Result;
use crate::models::table::LookupScope;
use crate::models::{self, Model};
use pg::call::function::Call;
use pg::values::jsonb::Jsonb;
use pg::values::typed::TypedDatum;
use std::rc::Rc;

/// The model that argument 0 is. That of a constant is not compared with other values again as long as it means the
/// same: a large model has many times as many bytes as a row.
///
/// # Errors
/// Those of [`models::inline`].
#[inline(always)]
pub fn by_value(model: TypedDatum<'_>, call: Call<'_>) -> Result<Rc<Model>> {
    call.made_of_constant(0, LookupScope::now(), || models::inline(Jsonb::new(model)))
}
