//! The planner's support function of our functions.

use super::spread_rows::spread;
use crate::call::function::Call;
use pgrx::pg_sys;

/// The answer to a request of the planner's: a pointer, which is null if the request is not supported. Whatever the
/// request, calling the support function has loaded this library, and with it our planner hook, before the planner
/// looks for hooks in the first statement of a session.
pub fn answer(request: Call<'_>) -> i64 {
    let Some(node) = request.pointer() else { return 0 };
    let node: *mut pg_sys::Node = node.cast();
    // SAFETY: SQL cannot call a function of type internal: it is a request of the planner's.
    unsafe {
        match (*node).type_ {
            pg_sys::NodeTag::T_SupportRequestSimplify => spread(node.cast()).map_or(0, |call| call as i64),
            _ => 0,
        }
    }
}
