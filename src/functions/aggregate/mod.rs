//! Training by an aggregate: the type corgipile.sgd_state, corgipile_sgd_agg() and what goes with it.
//!
//! An epoch is one call of the aggregate, and the next one begins from its result. The state is a plain value and not
//! `internal`: it can be kept in a table, sent to another server, and be the result of several processes.

mod init;
mod rows;
mod state;
mod text;

use crate::errors::{AggregateError, ArgumentError, OrRaise, Result};
use crate::pg::call::aggregate::RowCall;
use crate::pg::call::arguments::Call;
use crate::pg::values::varlena::{Bytes, Value};
use pgrx::prelude::*;
use rows::{Dense, Sparse};
pub use state::{NewState, StateMut};
use std::ffi::CString;

// ----------------------------------------------------------------------------------------------------------- the type

#[pg_extern(sql = false)]
fn corgipile_sgd_state_in(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let text = RowCall::new(fcinfo).text().unwrap_or_default();
    let bytes = text::read(text.to_bytes())
        .ok_or_else(|| AggregateError::MalformedState("it is not \"sgd1:\" and base64".into()).into());
    bytes.and_then(from_outside).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_out(fcinfo: pg_sys::FunctionCallInfo) -> CString {
    CString::new(text::write(&argument(fcinfo))).unwrap_or_default()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_recv(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    from_outside(RowCall::new(fcinfo).message().unwrap_or_default().to_vec()).or_raise()
}

#[pg_extern(sql = false)]
fn corgipile_sgd_state_send(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    Bytes::new(&argument(fcinfo)).or_raise().into_value() // a bytea is just that: the bytes
}

/// A state of bytes from a client or a file, which are checked.
fn from_outside(bytes: Vec<u8>) -> Result<Value> {
    let mut state = Bytes::new(&bytes)?;
    StateMut::of(&mut state)?.check()?;
    Ok(state.into_value())
}

/// Argument 0 of a function that is STRICT, to be read.
fn argument(fcinfo: pg_sys::FunctionCallInfo) -> Bytes {
    RowCall::new(fcinfo).bytes(0).ok_or(ArgumentError::NullArgument("state").into()).or_raise()
}

// ------------------------------------------------------------------------------------------------------ the aggregate

/// Learns from a row of (state, previous state, label, features).
#[pg_extern(sql = false)]
fn corgipile_sgd_transition(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let call = RowCall::new(fcinfo);
    let learn = || {
        let mut bytes = state_of(call)?;
        let mut state = StateMut::of(&mut bytes)?;
        call.remembering(|| Dense::of(call), |rows| rows.learn(&mut state, call))?;
        Ok(bytes.into_value())
    };
    learn().or_raise()
}

/// Learns from a row of (state, previous state, label, indices, values).
#[pg_extern(sql = false)]
fn corgipile_sgd_transition_sparse(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let call = RowCall::new(fcinfo);
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
fn state_of(call: RowCall) -> Result<Bytes> {
    match call.state() {
        Some(state) => Ok(state),
        None => {
            let mut previous = call.copied_bytes(1).ok_or(ArgumentError::NullArgument("state"))?;
            StateMut::of(&mut previous)?.begin_epoch()?;
            Ok(previous)
        }
    }
}

/// Merges the states of two processes.
#[pg_extern(sql = false)]
fn corgipile_sgd_combine(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let call = RowCall::new(fcinfo);
    let merge = || {
        let mut state = call.state().ok_or(ArgumentError::NullArgument("state"))?;
        let mut other = call.copied_bytes(1).ok_or(ArgumentError::NullArgument("state"))?;
        StateMut::of(&mut state)?.merge(StateMut::of(&mut other)?)?;
        Ok(state.into_value())
    };
    merge().or_raise()
}

/// Ends the epoch. The aggregate's own state stays as it is: other aggregates of the query may share it.
#[pg_extern(sql = false)]
fn corgipile_sgd_final(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let finish = || {
        let mut state = RowCall::new(fcinfo).copied_bytes(0).ok_or(ArgumentError::NullArgument("state"))?;
        StateMut::of(&mut state)?.finish_epoch()?;
        Ok(state.into_value())
    };
    finish().or_raise()
}

// ---------------------------------------------------------------------------------------------------- before and after

/// The state before the first epoch.
#[pg_extern(sql = false)]
fn corgipile_sgd_init(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let make = || Bytes::new(&init::of_call(&Call::new(fcinfo).arguments())?).map(Bytes::into_value);
    make().or_raise()
}

/// The report of the last epoch.
#[pg_extern(sql = false)]
fn corgipile_sgd_report(fcinfo: pg_sys::FunctionCallInfo) -> Value {
    let report = StateMut::of(&mut argument(fcinfo)).map(|state| state.report()).or_raise();
    let epoch = report.epoch;
    let known = epoch.epoch > 0;
    Call::new(fcinfo).row(&[
        (epoch.epoch as i32).into_datum(),
        known.then_some(epoch.loss).into_datum(),
        epoch.accuracy.into_datum(),
        known.then_some(epoch.learning_rate).into_datum(),
        (epoch.tuples as i64).into_datum(),
        epoch.r2.into_datum(),
        (report.skipped as i64).into_datum(),
    ])
}

/// The weights, output by output.
#[pg_extern(sql = false)]
fn corgipile_sgd_weights(fcinfo: pg_sys::FunctionCallInfo) -> Vec<f32> {
    StateMut::of(&mut argument(fcinfo)).and_then(|mut state| state.model()).or_raise().weights
}

/// The intercepts, one per output.
#[pg_extern(sql = false)]
fn corgipile_sgd_intercepts(fcinfo: pg_sys::FunctionCallInfo) -> Vec<f32> {
    StateMut::of(&mut argument(fcinfo)).and_then(|mut state| state.model()).or_raise().intercepts
}
