//! Arguments of a call that has become a node, and the call of a set-returning function that has not.

use crate::errors::{ArgumentError, Error, Result};
use crate::pg::compat::may_execute;
use crate::pg::executor::custom_scan::Node;
use crate::pg::values::jsonb::Unreadable;
use crate::pg::values::varlena;
use pgrx::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::ffi::CStr;

/// The arguments of a call of one of our functions.
pub struct Arguments {
    values: Vec<(pg_sys::Datum, bool)>,
    types: Vec<pg_sys::Oid>,
}

impl Arguments {
    /// Evaluates the arguments of the call that a node stands for, having checked that the user may execute the function:
    /// nobody else does.
    pub fn of_node(node: Node) -> Arguments {
        // SAFETY: the planner has put the FuncExpr into custom_exprs; called from BeginCustomScan.
        unsafe {
            let plan = (*node.0).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let call = pg_sys::list_nth((*plan).custom_exprs, 0).cast::<pg_sys::FuncExpr>();
            let verdict = may_execute((*call).funcid);
            if verdict != pg_sys::AclResult::ACLCHECK_OK {
                let name = pg_sys::get_func_name((*call).funcid);
                pg_sys::aclcheck_error(verdict, pg_sys::ObjectType::OBJECT_FUNCTION, name);
            }
            let arguments = pgrx::PgList::<pg_sys::Expr>::from_pg((*call).args);
            let evaluate = |expression| {
                let state = pg_sys::ExecInitExpr(expression, node.0.cast());
                let mut null = false;
                let context = (*node.0).ss.ps.ps_ExprContext;
                (pg_sys::ExecEvalExprSwitchContext(state, context, &mut null), null)
            };
            Arguments {
                values: arguments.iter_ptr().map(evaluate).collect(),
                types: arguments.iter_ptr().map(|a| pg_sys::exprType(a.cast())).collect(),
            }
        }
    }

    /// Argument `i`, None if NULL, or if the call has fewer: an older declaration of the function in SQL.
    pub fn get<T: FromDatum>(&self, i: usize) -> Option<T> {
        let &(value, null) = self.values.get(i)?;
        // SAFETY: the function's declaration says that argument `i` is a T.
        unsafe { T::from_datum(value, null) }
    }

    /// Argument `i`, which is jsonb; None as in [`Arguments::get`].
    ///
    /// # Errors
    /// [`Unread`] if it holds a number that JSON has, but not double precision, or is nested too deeply.
    pub fn json(&self, i: usize) -> std::result::Result<Option<Value>, Unread> {
        let Some(&(value, false)) = self.values.get(i) else { return Ok(None) };
        // SAFETY: jsonb_out gives a C string for any jsonb.
        let text = unsafe {
            let text = pg_sys::OidOutputFunctionCall(pg_sys::Oid::from(pg_sys::F_JSONB_OUT), value);
            CStr::from_ptr(text).to_string_lossy()
        };
        serde_json::from_str(&text).map(Some).map_err(|_| Unread::in_text(&text))
    }

    /// The type of argument `i`, where the declaration is polymorphic.
    pub fn type_of(&self, i: usize) -> pg_sys::Oid {
        self.types[i]
    }
}

/// A jsonb that cannot be read.
pub struct Unread {
    /// the key whose value is to blame, if it is an object
    key: Option<String>,
    reason: &'static str,
}

impl Unread {
    fn in_text(text: &str) -> Unread {
        let of_value = |value: &RawValue| match serde_json::from_str::<Value>(value.get()) {
            Err(error) => Some(Unreadable::of(&error).unwrap_or(Unreadable::OutOfRange).reason()),
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

    /// The error about the argument with this name.
    pub fn about(self, argument: &'static str) -> Error {
        match self.key {
            Some(key) if argument == "options" => {
                ArgumentError::InvalidOption { key, reason: self.reason.into() }.into()
            }
            Some(key) => {
                let reason = format!("\"{key}\" {}", self.reason);
                ArgumentError::InvalidArgument { argument, reason, hint: None }.into()
            }
            None => {
                ArgumentError::InvalidArgument { argument, reason: format!("it {}", self.reason), hint: None }.into()
            }
        }
    }
}

/// A call of a C function by PostgreSQL.
#[derive(Clone, Copy)]
pub struct Call(pg_sys::FunctionCallInfo);

impl Call {
    /// The call whose information PostgreSQL has passed, valid until it returns.
    pub fn new(fcinfo: pg_sys::FunctionCallInfo) -> Call {
        Call(fcinfo)
    }

    /// The arguments.
    pub fn arguments(self) -> Arguments {
        // SAFETY: nargs says how many there are; fn_expr, where their types are found, is set by the parser.
        unsafe {
            let n = (*self.0).nargs as usize;
            let given = (*self.0).args.as_slice(n);
            Arguments {
                values: given.iter().map(|a| (a.value, a.isnull)).collect(),
                types: (0..n).map(|i| pg_sys::get_fn_expr_argtype((*self.0).flinfo, i as i32)).collect(),
            }
        }
    }

    /// A row as the function's result, for a function with several OUT parameters: a value, or None for NULL, for each.
    pub fn row(self, values: &[Option<pg_sys::Datum>]) -> varlena::Value {
        let mut datums: Vec<_> = values.iter().map(|value| value.unwrap_or(pg_sys::Datum::null())).collect();
        let mut nulls: Vec<_> = values.iter().map(Option::is_none).collect();
        // SAFETY: the declaration says which columns there are; they are counted before the row is made.
        unsafe {
            let mut descriptor = std::ptr::null_mut();
            let class = pg_sys::get_call_result_type(self.0, std::ptr::null_mut(), &mut descriptor);
            if class != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE || (*descriptor).natts as usize != values.len() {
                error!("the function does not return {} columns", values.len());
            }
            let descriptor = pg_sys::BlessTupleDesc(descriptor);
            let tuple = pg_sys::heap_form_tuple(descriptor, datums.as_mut_ptr(), nulls.as_mut_ptr());
            varlena::Value(pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data))
        }
    }

    /// Returns rows as the function's result, all at once: what `next` gives until it gives None. Each has a value, or
    /// None for NULL, for every column of the result. An older declaration of the function in SQL may have fewer columns: it
    /// gets the first ones.
    ///
    /// # Errors
    /// [`ArgumentError::NotARowType`] if the caller expects rows of more than `columns` columns.
    pub fn return_rows(self, columns: usize, mut next: impl FnMut(&mut [Option<pg_sys::Datum>]) -> bool) -> Result<()> {
        // SAFETY: InitMaterializedSRF checks the context and makes the tuplestore; each row has at least as many values as the
        // tuplestore's descriptor has attributes, and is copied into it.
        unsafe {
            pg_sys::InitMaterializedSRF(self.0, 0);
            let result = (*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            let (store, descriptor) = ((*result).setResult, (*result).setDesc);
            if (*descriptor).natts as usize > columns {
                return Err(ArgumentError::NotARowType.into());
            }
            let mut row = vec![None; columns];
            while next(&mut row) {
                let mut values: Vec<_> = row.iter().map(|value| value.unwrap_or(pg_sys::Datum::null())).collect();
                let mut nulls: Vec<_> = row.iter().map(Option::is_none).collect();
                pg_sys::tuplestore_putvalues(store, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            }
        }
        Ok(())
    }
}
