//! Plans as `EXPLAIN (FORMAT JSON)` gives them.

use crate::Session;
use serde_json::Value;

/// The first node of this custom scan, wherever in the plan it is.
pub fn find_node<'a>(plan: &'a Value, name: &str) -> Option<&'a Value> {
    if plan.get("Custom Plan Provider").and_then(Value::as_str) == Some(name) {
        return Some(plan);
    }
    match plan {
        Value::Object(fields) => fields.values().find_map(|value| find_node(value, name)),
        Value::Array(items) => items.iter().find_map(|value| find_node(value, name)),
        _ => None,
    }
}

/// As [`find_node`], of a plan that has the node.
pub fn node<'a>(plan: &'a Value, name: &str) -> &'a Value {
    find_node(plan, name).unwrap_or_else(|| panic!("no {name} in {plan:#}"))
}

/// A number among a node's properties.
pub fn number(node: &Value, property: &str) -> f64 {
    node[property].as_f64().unwrap_or_else(|| panic!("no number {property} in {node:#}"))
}

impl Session {
    /// The plan of a statement, with options of EXPLAIN such as `ANALYZE`.
    pub fn plan(&mut self, options: &str, sql: &str) -> Value {
        let comma = if options.is_empty() { "" } else { ", " };
        self.value(&format!("EXPLAIN (FORMAT JSON{comma}{options}) {sql}"))
    }
}
