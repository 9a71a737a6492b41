//! Training by an aggregate: the type corgipile.sgd_state, corgipile_sgd_agg() and what goes with it.
//!
//! An epoch is one call of the aggregate, and the next one begins from its result. The state is a plain value and not
//! `internal`: it can be kept in a table, sent to another server, and be the result of several processes.

mod init;
mod rows;
mod state;
mod text;

use errors::{AggregateError, ArgumentError, OrRaise, Result};
use pg::call::function::Call;
use pg::values::new_array::vector_of_reals;
use pg::values::varlena::{Bytes, Value};
use pgrx::prelude::*;
use rows::{Sparse, Vectors};
use state::check_size;
pub use state::{NewState, StateMut};

// ----------------------------------------------------------------------------------------------------------- the type

#[pg_extern(sql = false)]
fn corgipile_sgd_state_in(call: Call<'_>) -> Value<'_> {
    let read = || {
        let state = text::read(call.context(), call.text().unwrap_or_default().to_bytes())?;
        from_outside(state.ok_or_else(|| AggregateError::MalformedState("it is not \"sgd1:\" and base64".into()))?)
    };
    read().or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_out(call: Call<'_>) -> Value<'_> {
    text::write(call.context(), &argument(call)).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_recv(call: Call<'_>) -> Value<'_> {
    let read = || from_outside(Bytes::new(call.context(), call.message().unwrap_or_default())?);
    read().or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_send(call: Call<'_>) -> Value<'_> {
    argument(call).into_value() // a bytea is just that: the bytes
}

/// A state from a client or a file, which is checked.
fn from_outside(mut state: Bytes<'_>) -> Result<Value<'_>> {
    check_size(state.len())?;
    StateMut::of(&mut state)?.check()?;
    Ok(state.into_value())
}

/// Argument 0 of a function that is STRICT, to be read.
fn argument(call: Call<'_>) -> Bytes<'_> {
    call.bytes(0).ok_or(ArgumentError::NullArgument("state").into()).or_raise()
}

// ------------------------------------------------------------------------------------------------------ the aggregate

/// Learns from a row of (state, previous state, label, features).
#[pg_extern(sql = false)]
fn corgipile_sgd_transition(call: Call<'_>) -> Value<'_> {
    let learn = || {
        let mut bytes = state_of(call)?;
        let mut state = StateMut::of(&mut bytes)?;
        call.remembering(|| Vectors::of(call), |rows| rows.learn(&mut state, call))?;
        Ok(bytes.into_value())
    };
    learn().or_raise()
}

/// Learns from a row of (state, previous state, label, indices, values).
#[pg_extern(sql = false)]
fn corgipile_sgd_transition_sparse(call: Call<'_>) -> Value<'_> {
    let learn = || {
        let mut bytes = state_of(call)?;
        let mut state = StateMut::of(&mut bytes)?;
        let (base, dim) = (state.index_base(), state.dim());
        call.remembering(|| Sparse::of(call, base, dim), |rows| rows.learn(&mut state, call))?;
        Ok(bytes.into_value())
    };
    learn().or_raise()
}

/// The aggregate's state; before the first row the previous state, one epoch later.
#[inline(always)]
fn state_of(call: Call<'_>) -> Result<Bytes<'_>> {
    match call.state() {
        Some(state) => Ok(state),
        None => {
            let mut previous = call.bytes(1).ok_or(ArgumentError::NullArgument("state"))?;
            StateMut::of(&mut previous)?.begin_epoch()?;
            Ok(previous)
        }
    }
}

/// Merges the states of two processes.
#[pg_extern(sql = false)]
fn corgipile_sgd_combine(call: Call<'_>) -> Value<'_> {
    let merge = || {
        let mut state = call.state().ok_or(ArgumentError::NullArgument("state"))?;
        let mut other = call.bytes(1).ok_or(ArgumentError::NullArgument("state"))?;
        StateMut::of(&mut state)?.merge(StateMut::of(&mut other)?)?;
        Ok(state.into_value())
    };
    merge().or_raise()
}

/// Ends the epoch. The aggregate's own state stays as it is: other aggregates of the query may share it.
#[pg_extern(sql = false)]
fn corgipile_sgd_final(call: Call<'_>) -> Value<'_> {
    let finish = || {
        let mut state = call.bytes(0).ok_or(ArgumentError::NullArgument("state"))?;
        StateMut::of(&mut state)?.finish_epoch()?;
        Ok(state.into_value())
    };
    finish().or_raise()
}

// ---------------------------------------------------------------------------------------------------- before and after

/// The state before the first epoch.
#[pg_extern(sql = false)]
fn corgipile_sgd_init(call: Call<'_>) -> Value<'_> {
    init::of_call(call).or_raise().into_value()
}

/// The report of the last epoch.
#[pg_extern(sql = false)]
fn corgipile_sgd_report(call: Call<'_>) -> Value<'_> {
    let report = StateMut::of(&mut argument(call)).map(|state| state.report()).or_raise();
    let epoch = report.epoch;
    let known = epoch.epoch > 0;
    call.row(&[
        (epoch.epoch as i32).into(),
        known.then_some(epoch.loss).into(),
        epoch.accuracy.into(),
        known.then_some(epoch.learning_rate).into(),
        (epoch.tuples as i64).into(),
        epoch.r2.into(),
        (report.skipped as i64).into(),
    ])
}

/// The weights, output by output.
#[pg_extern(sql = false)]
fn corgipile_sgd_weights(call: Call<'_>) -> Value<'_> {
    let model = StateMut::of(&mut argument(call)).and_then(|mut state| state.model());
    model.and_then(|model| Ok(vector_of_reals(call.context(), &model.weights)?)).or_raise()
}

/// The intercepts, one per output.
#[pg_extern(sql = false)]
fn corgipile_sgd_intercepts(call: Call<'_>) -> Vec<f32> {
    StateMut::of(&mut argument(call)).and_then(|mut state| state.model()).or_raise().intercepts
}
