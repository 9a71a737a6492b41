//! What a node computes, in words that are the same for whoever computes the same: nodes of other sessions, too.

use super::node::Node;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char, c_void};

/// Settings on which functions depend that are declared immutable: how numbers and bytes become text.
const SETTINGS: [&CStr; 2] = [c"extra_float_digits", c"bytea_output"];

impl Node<'_> {
    /// The node's filter and projection, as text, if what they make of a row depends on nothing but the row: then
    /// whoever has the same text makes the same of it. None if they call a function that is not immutable, refer to
    /// parameters or subplans, look at the row's system columns, or make values of domains, whose constraints may
    /// change.
    ///
    /// A function of PostgreSQL's own is what its number says. Any other is named with its row's version in `pg_proc`,
    /// as another session may have replaced it.
    pub fn pure_expressions(self) -> Option<String> {
        // SAFETY: expressions of a finished plan are walked, printed, and looked up in catalogs; the texts live as long
        // as the memory in which the caller runs.
        unsafe {
            let plan = &(*(*self.0).ss.ps.plan.cast::<pg_sys::CustomScan>()).scan.plan;
            let mut text = String::new();
            for list in [plan.targetlist, plan.qual] {
                let node: *mut pg_sys::Node = list.cast();
                if pg_sys::contain_mutable_functions(node) || is_impure(node, (&raw mut text).cast()) {
                    return None;
                }
                let printed = pg_sys::nodeToString(list.cast_const().cast());
                push_without_places(CStr::from_ptr(printed).to_bytes(), &mut text);
                pg_sys::pfree(printed.cast());
            }
            for setting in SETTINGS {
                let value: *const c_char = pg_sys::GetConfigOption(setting.as_ptr(), true, false);
                if !value.is_null() {
                    text.push_str(&CStr::from_ptr(value).to_string_lossy());
                }
            }
            Some(text)
        }
    }
}

/// Appends the text of a node tree without the places in the query's text, which are no part of what is computed.
fn push_without_places(tree: &[u8], to: &mut String) {
    const PLACE: &str = ":location ";
    for (i, part) in String::from_utf8_lossy(tree).split(PLACE).enumerate() {
        let part = if i == 0 { part } else { part.trim_start_matches(|c: char| c == '-' || c.is_ascii_digit()) };
        to.push_str(part);
    }
}

/// Is there anything in an expression that may be something else for another session? The functions in it that are
/// not PostgreSQL's own are appended to the String behind `text`.
#[pg_guard]
unsafe extern "C-unwind" fn is_impure(node: *mut pg_sys::Node, text: *mut c_void) -> bool {
    // SAFETY: called with expressions of a plan, and by the walkers with their nodes.
    unsafe {
        if node.is_null() {
            return false;
        }
        match (*node).type_ {
            pg_sys::NodeTag::T_Param
            | pg_sys::NodeTag::T_SubPlan
            | pg_sys::NodeTag::T_AlternativeSubPlan
            | pg_sys::NodeTag::T_NextValueExpr
            | pg_sys::NodeTag::T_CoerceToDomain
            | pg_sys::NodeTag::T_CurrentOfExpr => true,
            pg_sys::NodeTag::T_Var if (*node.cast::<pg_sys::Var>()).varattno < 0 => true,
            _ => {
                pg_sys::check_functions_in_node(node, Some(is_lost), text)
                    || pg_sys::expression_tree_walker(node, Some(is_impure), text)
            }
        }
    }
}

/// Appends which version of a function this is, unless it is PostgreSQL's own. True if there is no such function.
#[pg_guard]
unsafe extern "C-unwind" fn is_lost(function: pg_sys::Oid, text: *mut c_void) -> bool {
    if function.to_u32() < pg_sys::FirstNormalObjectId {
        return false;
    }
    // SAFETY: the String of pure_expressions(), which nobody else uses meanwhile; a row of the catalogs' cache, which
    // is looked at before it is let go.
    unsafe {
        let procoid = pg_sys::SysCacheIdentifier::PROCOID as i32;
        let row = pg_sys::SearchSysCache1(procoid, pg_sys::Datum::from(function));
        if row.is_null() {
            return true;
        }
        let (page, line) = pgrx::itemptr::item_pointer_get_both((*row).t_self);
        let made_by = (*(*row).t_data).t_choice.t_heap.t_xmin.into_inner();
        let version = format!("{}@{made_by}({page},{line})", function.to_u32());
        (*text.cast::<String>()).push_str(&version);
        pg_sys::ReleaseSysCache(row);
        false
    }
}
