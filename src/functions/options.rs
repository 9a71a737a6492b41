//! corgipile_options(): the arguments of corgipile_train(), and the keys of its argument options.

use errors::OrRaise;
use options::call::model_kind;
use options::table;
use pg::call::function::Call;
use pgrx::prelude::*;

/// Returns a row per argument or option; with a model, of those that apply to it.
#[pg_extern(sql = false)]
fn corgipile_options(call: Call<'_>) {
    let kind = call.arguments().get(0).map(|name| model_kind(Some(name)).or_raise());
    let (arguments, options): (Vec<_>, Vec<_>) = table::entries().partition(|entry| entry.sql_type().is_some());
    let all = arguments.into_iter().chain(options);
    let applies = all.filter(|entry| kind.is_none_or(|kind| entry.models.include(kind)));
    call.return_rows(applies.map(|entry| {
        [
            entry.name.into(),
            entry.type_name().into(),
            entry.default_text(kind).into(),
            entry.range_text().into(),
            entry.applies_to().into(),
            entry.description.into(),
        ]
    }));
}
