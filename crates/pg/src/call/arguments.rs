//! The arguments of a function of ours, whether it is called or has become a node.

use crate::catalog::relation::Relation;
use crate::compat::may_execute;
use crate::encoding;
use crate::errors::{OrRaise, Result};
use crate::executor::node::Node;
use crate::values::jsonb::{Jsonb, Unreadable};
use crate::values::typed::TypedDatum;
use pgrx::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The arguments of a call of one of our functions.
pub struct Arguments<'a> {
    /// with the type of each; None is NULL
    values: Vec<(pg_sys::Oid, Option<TypedDatum<'a>>)>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(values: Vec<(pg_sys::Oid, Option<TypedDatum<'a>>)>) -> Arguments<'a> {
        Arguments { values }
    }

    /// The arguments at these places, and all others.
    pub fn split(mut self, places: std::ops::Range<usize>) -> (Arguments<'a>, Arguments<'a>) {
        let len = self.values.len();
        let own = self.values.drain(places.start.min(len)..places.end.min(len)).collect();
        (Arguments { values: own }, self)
    }

    /// Evaluates the arguments of the call that a node stands for, having checked that the user may execute the
    /// function, and reported the call to other extensions, as PostgreSQL does not. An ERROR if the node stands for
    /// none.
    pub fn of_node(node: Node<'a>) -> Arguments<'a> {
        // SAFETY: the planner has put the FuncExpr into custom_exprs, if the node stands for one. Values live in the
        // node's memory of a tuple, or in the plan; nothing is read before the arguments are.
        unsafe {
            let call = call_of(node);
            let verdict = may_execute((*call).funcid);
            if verdict != pg_sys::AclResult::ACLCHECK_OK {
                let name = pg_sys::get_func_name((*call).funcid);
                pg_sys::aclcheck_error(verdict, pg_sys::ObjectType::OBJECT_FUNCTION, name);
            }
            let hook = pg_sys::object_access_hook;
            if hook.is_some() {
                pg_sys::RunFunctionExecuteHook((*call).funcid);
            }
            let evaluate = |expression: *mut pg_sys::Expr| {
                let type_oid = pg_sys::exprType(expression.cast());
                let state = pg_sys::ExecInitExpr(expression, node.0.cast());
                let mut null = false;
                let context = (*node.0).ss.ps.ps_ExprContext;
                let value = pg_sys::ExecEvalExprSwitchContext(state, context, &mut null);
                (type_oid, (!null).then(|| TypedDatum::new(value, type_oid)))
            };
            let expressions = pgrx::PgList::<pg_sys::Expr>::from_pg((*call).args);
            Arguments { values: expressions.iter_ptr().map(evaluate).collect() }
        }
    }

    /// The arguments of a call that is planned, as far as they are constants; others are as NULL.
    ///
    /// # Safety
    /// The planner's own call.
    pub(crate) unsafe fn constants(call: *mut pg_sys::FuncExpr) -> Arguments<'a> {
        // SAFETY: the caller's promise: the constants stay as long as the planning.
        let value = |expression: *mut pg_sys::Node| unsafe {
            let type_oid = pg_sys::exprType(expression);
            let is_constant = (*expression).type_ == pg_sys::NodeTag::T_Const;
            let constant = is_constant.then(|| &*expression.cast::<pg_sys::Const>());
            let value = constant.filter(|constant| !constant.constisnull);
            (type_oid, value.map(|constant| TypedDatum::new(constant.constvalue, type_oid)))
        };
        // SAFETY: the caller's promise.
        let expressions = unsafe { pgrx::PgList::<pg_sys::Node>::from_pg((*call).args) };
        Arguments { values: expressions.iter_ptr().map(value).collect() }
    }

    /// May the user execute the function that the node stands for? [`Arguments::of_node`] asks the same, and raises
    /// PostgreSQL's own error. An ERROR if it stands for none.
    pub fn may_be_of_node(node: Node<'a>) -> bool {
        // SAFETY: the call is part of the node's plan.
        unsafe { may_execute((*call_of(node)).funcid) == pg_sys::AclResult::ACLCHECK_OK }
    }

    /// Argument `i`, None if NULL, or if the call has fewer: an older declaration of the function in SQL. An ERROR if
    /// it has another type, or is a text that is not UTF-8.
    pub fn get<T: FromDatum + IntoDatum>(&self, i: usize) -> Option<T> {
        self.values.get(i)?.1.and_then(TypedDatum::to_rust)
    }

    /// Argument `i`, which is a source: a text, or a relation of type regclass, whose name it is then.
    ///
    /// # Errors
    /// [`Error::Dropped`](crate::errors::Error::Dropped) if there is no such relation.
    pub fn source(&self, i: usize) -> Result<Option<String>> {
        match self.values.get(i) {
            Some((pg_sys::REGCLASSOID, value)) => {
                value.and_then(TypedDatum::to_rust).map(Relation::name_of_oid).transpose()
            }
            _ => Ok(self.get(i)),
        }
    }

    /// Argument `i`, which is jsonb; None as in [`Arguments::get`]. An ERROR if it has another type, or is not UTF-8.
    ///
    /// # Errors
    /// [`Unread`] if it holds a number that JSON has, but not double precision, or is nested too deeply.
    pub fn json(&self, i: usize) -> std::result::Result<Option<Value>, Unread> {
        let Some(&(_, Some(value))) = self.values.get(i) else { return Ok(None) };
        Jsonb::new(value).with_c_text(|text| {
            let text = encoding::text(text.to_bytes()).or_raise();
            serde_json::from_str(text).map(Some).map_err(|_| Unread::in_text(text))
        })
    }

    /// The type of argument `i`, where the declaration is polymorphic.
    pub fn type_of(&self, i: usize) -> pg_sys::Oid {
        self.values[i].0
    }
}

/// The call that the node stands for. An ERROR if it stands for none.
fn call_of(node: Node<'_>) -> *mut pg_sys::FuncExpr {
    // SAFETY: the planner has put the FuncExpr into custom_exprs, if the node stands for one.
    unsafe {
        let plan = (*node.0).ss.ps.plan.cast::<pg_sys::CustomScan>();
        if pg_sys::list_length((*plan).custom_exprs) != 1 {
            error!("the node stands for no function");
        }
        pg_sys::list_nth((*plan).custom_exprs, 0).cast()
    }
}

/// A jsonb that cannot be read.
pub struct Unread {
    /// the key whose value is to blame, if it is an object
    pub key: Option<String>,
    /// what is wrong with it
    pub reason: &'static str,
}

impl Unread {
    fn in_text(text: &str) -> Unread {
        let of_value = |value: &RawValue| match serde_json::from_str::<Value>(value.get()) {
            Err(error) => Some(Unreadable::from_error(&error).unwrap_or(Unreadable::OutOfRange).reason()),
            Ok(_) => None,
        };
        let values: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
        let to_blame = values.into_iter().find_map(|(key, value)| Some((key, of_value(value)?)));
        match to_blame {
            Some((key, reason)) => Unread { key: Some(key), reason },
            None => {
                let whole = serde_json::from_str::<&RawValue>(text).ok().and_then(of_value);
                Unread { key: None, reason: whole.unwrap_or("cannot be read") }
            }
        }
    }
}
