//! Arguments of a call that has become a node, and the call of a set-returning function that has not.

use super::custom_scan::{Node, Slot};
use crate::error::{Error, Result};
use pgrx::prelude::*;

/// The evaluated arguments of the function call that a node stands for.
pub struct Arguments {
    values: Vec<(pg_sys::Datum, bool)>,
    types: Vec<pg_sys::Oid>,
}

impl Arguments {
    /// Evaluates the arguments, having checked that the user may execute the function: nobody else does.
    pub fn of_call(node: Node) -> Arguments {
        // SAFETY: the planner has put the FuncExpr into custom_exprs; called from BeginCustomScan.
        unsafe {
            let plan = (*node.0).ss.ps.plan.cast::<pg_sys::CustomScan>();
            let call = pg_sys::list_nth((*plan).custom_exprs, 0).cast::<pg_sys::FuncExpr>();
            let execute = pg_sys::ACL_EXECUTE as pg_sys::AclMode;
            let verdict = pg_sys::pg_proc_aclcheck((*call).funcid, pg_sys::GetUserId(), execute);
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

    /// Argument `i`, None if NULL.
    pub fn get<T: FromDatum>(&self, i: usize) -> Option<T> {
        let (value, null) = self.values[i];
        // SAFETY: the function's declaration says that argument `i` is a T.
        unsafe { T::from_datum(value, null) }
    }

    /// The type of argument `i`, where the declaration is polymorphic.
    pub fn type_of(&self, i: usize) -> pg_sys::Oid {
        self.types[i]
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

    /// Argument `i`, None if NULL.
    pub fn get<T: FromDatum>(self, i: usize) -> Option<T> {
        // SAFETY: the function's declaration says that argument `i` is a T.
        unsafe { pgrx::fcinfo::pg_getarg(self.0, i) }
    }

    /// The type of argument `i`, where the declaration is polymorphic.
    pub fn type_of(self, i: usize) -> pg_sys::Oid {
        // SAFETY: fn_expr is set by the parser or the function manager.
        unsafe { pg_sys::get_fn_expr_argtype((*self.0).flinfo, i as i32) }
    }

    /// Returns rows as the function's result, all at once: what `next` gives, column `columns[i]` of it as column `i`
    /// (None: NULL).
    ///
    /// # Errors
    /// [`Error::NotARowType`] if the caller does not expect rows of as many columns.
    pub fn return_rows(self, columns: &[Option<usize>], mut next: impl FnMut() -> Option<Slot>) -> Result<()> {
        // SAFETY: InitMaterializedSRF checks the context and makes the tuplestore; each row has as many values as the
        // tuplestore's descriptor has attributes, and is copied into it.
        unsafe {
            pg_sys::InitMaterializedSRF(self.0, 0);
            let result = (*self.0).resultinfo.cast::<pg_sys::ReturnSetInfo>();
            if (*(*result).setDesc).natts as usize != columns.len() {
                return Err(Error::NotARowType);
            }
            let mut values = vec![pg_sys::Datum::null(); columns.len()];
            let mut nulls = vec![true; columns.len()];
            while let Some(slot) = next() {
                let row = slot.row();
                for (i, column) in columns.iter().enumerate() {
                    let value = column.and_then(|column| row.get(column));
                    nulls[i] = value.is_none();
                    values[i] = value.unwrap_or(pg_sys::Datum::null());
                }
                let (store, descriptor) = ((*result).setResult, (*result).setDesc);
                pg_sys::tuplestore_putvalues(store, descriptor, values.as_mut_ptr(), nulls.as_mut_ptr());
            }
        }
        Ok(())
    }
}
