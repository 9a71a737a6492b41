//! What a training on another server calls: corgipile.node_training(), a scan that a cursor opens, and
//! corgipile.node_step(), which asks it for one part of its work after the other.

use errors::{ArgumentError, NodeError, OrRaise, Result};
use pg::call::function::Call;
use pg::values::varlena::{Bytes, Value, with_bytes};
use pgrx::prelude::*;
use train::step;

/// Where it is called as a function it has no state that could stay: a cursor's scan has.
#[pg_extern(sql = false)]
fn corgipile_node_training(_call: Call<'_>) {
    Result::<()>::Err(NodeError::OutOfTurn.into()).or_raise();
}

#[pg_extern(sql = false)]
fn corgipile_node_step(call: Call<'_>) -> Value<'_> {
    let request = call.argument(0).ok_or(ArgumentError::NullArgument("request").into());
    let request: Result<Vec<u8>> = request.map(|request| with_bytes(request, allocation::copy));
    request.and_then(step).and_then(|answer| Ok(Bytes::new(call.context(), &answer)?)).or_raise().into_value()
}
