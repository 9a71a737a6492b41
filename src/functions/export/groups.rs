//! Models of groups as one expression in SQL: a branch for each group.

use super::expression::{self, Answer, fail};
use errors::limits::MAX_SQL_NUMBERS;
use errors::{ModelError, Result};
use model::GroupModels;
use options::rows::UnseenGroup;
use pg::catalog::names::quote_literal;
use std::rc::Rc;
use train::by_group::ModelsByGroup;

/// The expression of models of groups, which the current user may see.
pub fn expression(models: Rc<GroupModels>, answer: Answer, source: Option<&str>) -> Result<String> {
    let by_group = ModelsByGroup::new(models)?;
    let ModelsByGroup { models, members } = &by_group;
    let numbers = members.iter().map(|member| expression::numbers_of(&member.model)).sum();
    if numbers > MAX_SQL_NUMBERS {
        return Err(ModelError::TooLargeForSql { model: by_group.first().in_error(), numbers }.into());
    }
    // nothing of the expression's own is in scope of the column's name
    let column = format!("\"{}\"::pg_catalog.text", models.column.replace('"', "\"\""));
    let mut sql = format!("(CASE {column}");
    let mut otherwise = None;
    for member in members {
        let branch = expression::expression(&member.model, answer, source)?;
        match &member.group {
            Some(group) => sql += &format!("\n WHEN {} THEN {branch}", quote_literal(group)),
            None => otherwise = Some(branch),
        }
    }
    let unseen = || fail_for(answer, &["'no model of group '", &column]);
    let otherwise = match models.unseen {
        UnseenGroup::Null => None,
        UnseenGroup::All => otherwise,
        UnseenGroup::Error => Some(unseen()),
    };
    sql += &otherwise.map_or_else(String::new, |otherwise| format!("\n ELSE {otherwise}"));
    Ok(sql + "\n END)")
}

/// An error when it is evaluated, of the type of the answer.
fn fail_for(answer: Answer, parts: &[&str]) -> String {
    match answer {
        Answer::Value => fail("float8", parts),
        // any string is a text
        Answer::Label => format!("{}::pg_catalog.text", fail("int4", parts)),
        Answer::Probabilities => fail("float8[]", parts),
    }
}
