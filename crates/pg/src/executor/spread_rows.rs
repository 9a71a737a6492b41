//! Calls that are given a row: the planner gives them the row's columns instead.
//!
//! A row as one value is expensive: the executor copies each row of a table into a new tuple, fetches what is stored
//! out of line, and the function takes the tuple apart again. So the planner's support function puts the names of the
//! columns, as an array of text, in place of the row, and the columns behind all arguments. The function stays the
//! same, and so do the privileges that it needs. It sees from the number of its arguments that the row was spread
//! ([`SpreadRow`](crate::call::spread_row::SpreadRow)).
//!
//! Where this might change what a query means, or where another server might get the call, it stays as it is.

use super::seeks::with_inheritors;
use crate::call::spread_row::{ROW, declared_arguments};
use crate::compat::{self, attributes, is_of_returning};
use pgrx::{PgList, pg_sys};
use std::ffi::c_char;

/// Names of columns, and their expressions.
type Columns = (Vec<*const c_char>, *mut pg_sys::List);

/// The call with the columns of its row; None if it is not given one, or if it stays as it is.
///
/// # Safety
/// The request is the planner's.
pub(super) unsafe fn spread(request: *mut pg_sys::SupportRequestSimplify) -> Option<*mut pg_sys::FuncExpr> {
    // SAFETY: the planner's structures are valid; what is made lies in its memory context.
    unsafe {
        let (root, call) = ((*request).root, (*request).fcall);
        let given = pg_sys::list_length((*call).args) as usize;
        if root.is_null() || (*call).funcretset || given <= ROW || declared_arguments((*call).funcid) != Some(given) {
            return None;
        }
        let query = (*root).parse;
        let row = pg_sys::list_nth((*call).args, ROW as i32).cast::<pg_sys::Node>();
        let (names, columns) = match (*row).type_ {
            pg_sys::NodeTag::T_Var if !has_outer_join((*query).jointree.cast()) => {
                let var = row.cast::<pg_sys::Var>();
                if (*var).varattno != 0 || (*var).varlevelsup != 0 || is_of_returning(var) {
                    return None;
                }
                let entry = pg_sys::list_nth((*query).rtable, (*var).varno - 1).cast::<pg_sys::RangeTblEntry>();
                columns_of_entry(var, entry)?
            }
            pg_sys::NodeTag::T_RowExpr => columns_of_row(root, row.cast())?,
            _ => return None,
        };
        let fits = given + names.len() <= pg_sys::FUNC_MAX_ARGS as usize;
        if names.is_empty() || !fits || groups_by_rows(query) || has_foreign_table(query) {
            return None;
        }
        let arguments = pg_sys::list_copy((*call).args);
        (*pg_sys::list_nth_cell(arguments, ROW as i32)).ptr_value = names_constant(&names).cast();
        let spread = pg_sys::copyObjectImpl(call.cast()).cast::<pg_sys::FuncExpr>();
        (*spread).args = pg_sys::list_concat(arguments, columns);
        Some(spread)
    }
}

/// The columns of a whole-row variable of this entry.
///
/// # Safety
/// Both are of one query.
unsafe fn columns_of_entry(var: *mut pg_sys::Var, entry: *mut pg_sys::RangeTblEntry) -> Option<Columns> {
    // SAFETY: a relation's row type is that of its columns, that of a view that of its query's; what expandRTE gives
    // are lists of strings and variables.
    unsafe {
        let (kind, row_type) = ((*entry).rtekind, (*var).vartype);
        let is_query = matches!(kind, pg_sys::RTEKind::RTE_SUBQUERY | pg_sys::RTEKind::RTE_CTE);
        if is_query && row_type == pg_sys::RECORDOID {
            let (names, variables) = compat::columns_of_entry(entry, (*var).varno);
            return Some((texts(names), variables));
        }
        let relation = pg_sys::get_typ_typrelid(row_type);
        let is_view = kind == pg_sys::RTEKind::RTE_SUBQUERY
            && relation != pg_sys::Oid::INVALID
            && pg_sys::get_rel_relkind(relation) as u8 == pg_sys::RELKIND_VIEW;
        if !is_view && (kind != pg_sys::RTEKind::RTE_RELATION || relation != (*entry).relid) {
            return None;
        }
        let columns = live_columns(row_type);
        let mut variables = std::ptr::null_mut();
        for (number, column) in &columns {
            let (type_oid, modifier, collation) = (column.atttypid, column.atttypmod, column.attcollation);
            let variable = pg_sys::makeVar((*var).varno, *number, type_oid, modifier, collation, 0);
            variables = pg_sys::lappend(variables, variable.cast());
        }
        Some((names_of(&columns), variables))
    }
}

/// The columns of a row that is put together of expressions, as that of a subquery that the planner has pulled up.
///
/// # Safety
/// The row is one of the query that is planned.
unsafe fn columns_of_row(root: *mut pg_sys::PlannerInfo, row: *mut pg_sys::RowExpr) -> Option<Columns> {
    // SAFETY: a row has as many expressions as names, or as its type has columns, dropped ones too; both are compared.
    unsafe {
        let values = PgList::<pg_sys::Node>::from_pg((*row).args);
        if (*row).row_typeid == pg_sys::RECORDOID {
            let names = texts((*row).colnames);
            return (names.len() == values.len()).then(|| (names, pg_sys::list_copy((*row).args)));
        }
        let relation = pg_sys::get_typ_typrelid((*row).row_typeid);
        let columns = live_columns((*row).row_typeid);
        let mut expressions = std::ptr::null_mut();
        for (number, _) in &columns {
            expressions = pg_sys::lappend(expressions, values.get_ptr(*number as usize - 1)?.cast());
        }
        // a cached plan with these names in it has to go when the type changes
        (*(*root).glob).relationOids = pg_sys::lappend_oid((*(*root).glob).relationOids, relation);
        Some((names_of(&columns), expressions))
    }
}

/// The columns of a row type that were not dropped, with their numbers.
///
/// # Safety
/// In a transaction.
unsafe fn live_columns(row_type: pg_sys::Oid) -> Vec<(pg_sys::AttrNumber, pg_sys::FormData_pg_attribute)> {
    // SAFETY: a catalog lookup, whose result is copied.
    unsafe {
        let descriptor = pg_sys::lookup_rowtype_tupdesc_copy(row_type, -1);
        let numbered = (1..).zip(attributes(descriptor));
        numbered.filter(|(_, column)| !column.attisdropped).map(|(number, column)| (number, *column)).collect()
    }
}

/// The names of columns, as they are in the server's encoding.
fn names_of(columns: &[(pg_sys::AttrNumber, pg_sys::FormData_pg_attribute)]) -> Vec<*const c_char> {
    // SAFETY: a name is a C string.
    let copy = |name: &pg_sys::NameData| unsafe { pg_sys::pstrdup(name.data.as_ptr()).cast_const() };
    columns.iter().map(|(_, column)| copy(&column.attname)).collect()
}

/// The strings of a list.
///
/// # Safety
/// It is one of nodes of type String.
unsafe fn texts(list: *mut pg_sys::List) -> Vec<*const c_char> {
    // SAFETY: the caller's promise.
    unsafe { PgList::<pg_sys::String>::from_pg(list).iter_ptr().map(|node| (*node).sval.cast_const()).collect() }
}

/// A constant with these names.
///
/// # Safety
/// They are C strings.
unsafe fn names_constant(names: &[*const c_char]) -> *mut pg_sys::Const {
    // SAFETY: the caller's promise; a text has variable length and is aligned as an integer.
    unsafe {
        let text = |name: &*const c_char| pg_sys::Datum::from(pg_sys::cstring_to_text(*name));
        let mut texts: Vec<pg_sys::Datum> = names.iter().map(text).collect();
        let align = pg_sys::TYPALIGN_INT as c_char;
        let array = pg_sys::construct_array(texts.as_mut_ptr(), texts.len() as i32, pg_sys::TEXTOID, -1, false, align);
        let collation = pg_sys::DEFAULT_COLLATION_OID;
        pg_sys::makeConst(pg_sys::TEXTARRAYOID, -1, collation, -1, array.into(), false, false)
    }
}

/// Is there an outer join? A row of its nullable side that was not found is NULL as a whole, which is another thing
/// than a row of NULLs.
///
/// # Safety
/// NULL, or a node of a join tree.
unsafe fn has_outer_join(node: *mut pg_sys::Node) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_FromExpr => {
                let from = PgList::<pg_sys::Node>::from_pg((*node.cast::<pg_sys::FromExpr>()).fromlist);
                from.iter_ptr().any(|item| has_outer_join(item))
            }
            pg_sys::NodeTag::T_JoinExpr => {
                let join = node.cast::<pg_sys::JoinExpr>();
                use pg_sys::JoinType::{JOIN_ANTI, JOIN_INNER, JOIN_SEMI};
                // those of IN, EXISTS and NOT EXISTS make no row NULL
                ![JOIN_INNER, JOIN_SEMI, JOIN_ANTI].contains(&(*join).jointype)
                    || has_outer_join((*join).larg)
                    || has_outer_join((*join).rarg)
            }
            _ => false,
        }
    }
}

/// Does the query group by a row as a value, or by several sets of columns, where some are NULL? The columns of such a
/// row are not grouped by.
///
/// # Safety
/// A query that is planned.
unsafe fn groups_by_rows(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise: what is grouped by is in the target list.
    unsafe {
        let is_row = |clause: *mut pg_sys::SortGroupClause| {
            let expression = pg_sys::get_sortgroupclause_expr(clause, (*query).targetList);
            (*expression).type_ == pg_sys::NodeTag::T_RowExpr
                || (*expression).type_ == pg_sys::NodeTag::T_Var && (*expression.cast::<pg_sys::Var>()).varattno == 0
        };
        !(*query).groupingSets.is_null()
            || PgList::<pg_sys::SortGroupClause>::from_pg((*query).groupClause).iter_ptr().any(is_row)
    }
}

/// Does the query read a foreign table, or one with foreign partitions? Its server might be sent the call, whose
/// arguments no parser accepts.
///
/// # Safety
/// A query that is planned.
unsafe fn has_foreign_table(query: *mut pg_sys::Query) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let is_foreign = |table| pg_sys::get_rel_relkind(table) as u8 == pg_sys::RELKIND_FOREIGN_TABLE;
        let no_lock = pg_sys::NoLock as pg_sys::LOCKMODE;
        PgList::<pg_sys::RangeTblEntry>::from_pg((*query).rtable).iter_ptr().any(|entry| {
            (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
                && with_inheritors((*entry).relid, no_lock).into_iter().any(is_foreign)
        })
    }
}
