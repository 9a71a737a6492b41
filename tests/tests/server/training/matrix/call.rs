//! A call of `corgipile_train`, as a JSON object of all its arguments.

use serde_json::{Map, Value, json};

/// The arguments of a call; `source` among them names the table, or `packed` or `query`.
#[derive(Debug, Clone)]
pub struct Call {
    arguments: Map<String, Value>,
    /// What contradicts the arguments of no feature: an invariance may change it.
    table: String,
    filter: Option<String>,
    /// Is everything that is not said that of a training before?
    is_next: bool,
}

/// What a call has unless it says otherwise.
const DEFAULTS: [(&str, &str); 5] =
    [("seed", "5"), ("l2", "0"), ("max_epochs", "4"), ("block_size", r#""8kB""#), ("buffer_size", r#""60%""#)];

impl Call {
    /// Without a feature.
    pub fn new() -> Self {
        Self { arguments: Map::new(), table: "t".into(), filter: None, is_next: false }
    }

    /// With these arguments, too; None if they contradict its own.
    pub fn with(&self, arguments: &str) -> Option<Self> {
        let mut call = self.clone();
        let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { panic!("{arguments} is no object") };
        for (key, value) in arguments {
            match call.arguments.get_mut(&key) {
                Some(there) if key == "+features" => {
                    let (Value::Array(there), Value::Array(more)) = (there, value) else { panic!("columns") };
                    more.into_iter().for_each(|column| {
                        if !there.contains(&column) {
                            there.push(column);
                        }
                    });
                }
                Some(there) if *there != value => return None,
                _ => drop(call.arguments.insert(key, value)),
            }
        }
        let names_columns = call.has("features") && call.has("+features");
        (!names_columns).then_some(call)
    }

    /// With this argument, whatever it was.
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.arguments.insert(key.into(), value.into());
        self
    }

    /// Without this argument.
    pub fn without(mut self, key: &str) -> Self {
        self.arguments.remove(key);
        self
    }

    /// Is this argument given?
    pub fn has(&self, key: &str) -> bool {
        self.arguments.contains_key(key)
    }

    /// An argument, if it is given.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.arguments.get(key)
    }

    /// On another table with the same columns; None if the source is compressed.
    pub fn on(&self, table: &str, filter: Option<&str>) -> Option<Self> {
        let is_packed = self.get("source").is_some_and(|source| source == "packed");
        (!is_packed).then(|| Self { table: table.into(), filter: filter.map(Into::into), ..self.clone() })
    }

    /// The label's column.
    pub fn label(&self) -> &str {
        self.get("label").and_then(Value::as_str).unwrap_or_else(|| match self.get("model").and_then(Value::as_str) {
            Some("linear") => "number",
            _ => "kind",
        })
    }

    /// The columns that are features.
    pub fn features(&self) -> Vec<String> {
        let names = |value: &Value| -> Vec<String> {
            value.as_array().expect("an array").iter().map(|v| v.as_str().expect("a name").to_owned()).collect()
        };
        if let Some(features) = self.get("features") {
            return names(features);
        }
        let more = self.get("+features").map(names).unwrap_or_default();
        ["a", "b", "c"].map(String::from).into_iter().chain(more).collect()
    }

    /// How many epochs it has.
    pub fn epochs(&self) -> u64 {
        self.get("max_epochs").and_then(Value::as_u64).unwrap_or(4)
    }

    /// Is nothing said that Newton's method does not know, so that `poisson` is trained by it?
    pub fn is_silent_about_steps(&self) -> bool {
        let of_steps =
            ["solver", "optimizer", "learning_rate", "schedule", "batch_size", "averaging", "bounded_steps", "l1"];
        of_steps.iter().all(|key| !self.has(key))
    }

    /// A call that says nothing but where the rows are: the rest is that of a training before.
    pub fn next(before: &Self) -> Self {
        let kept = |key: &str| ["source", "label", "prefetch", "workers", "cache"].contains(&key);
        let arguments = before.arguments.iter().filter(|(key, _)| kept(key));
        Self {
            arguments: arguments.map(|(key, value)| (key.clone(), value.clone())).collect(),
            is_next: true,
            ..before.clone()
        }
    }

    /// The source in SQL.
    fn source(&self) -> String {
        let Self { table, filter, .. } = self;
        match (self.get("source").and_then(Value::as_str), filter) {
            (Some("packed"), _) => format!("packed_{}", self.label()),
            (_, Some(filter)) => format!("SELECT * FROM {table} WHERE {filter}"),
            // an offset keeps the planner from reading the table itself
            (Some("query"), None) => format!("SELECT * FROM {table} OFFSET 0"),
            (_, None) => table.clone(),
        }
    }

    /// What stands in the parentheses of `corgipile_train`.
    pub fn sql(&self) -> String {
        let mut options = self.arguments.clone();
        options.remove("source");
        options.remove("+features");
        if !self.is_next {
            for (key, value) in DEFAULTS {
                options.entry(key).or_insert_with(|| serde_json::from_str(value).expect("JSON"));
            }
            options.insert("label".into(), self.label().into());
            options.insert("features".into(), json!(self.features()));
        }
        format!("$s${}$s$, options => $o${}$o$", self.source(), Value::Object(options))
    }
}
