//! The rows of the matrix: two ways to ask for the same model.

use super::call::Call;
use super::outcome::{Same, Trained};
use serde_json::{Map, Value, json};

/// Two calls that must come to the same model.
pub struct Invariance {
    pub name: &'static str,
    /// The first call, of a pair of features; None if these contradict it.
    pub base: fn(&Call) -> Option<Call>,
    /// The second one, made of the first; None if the invariance says nothing about it.
    pub changed: fn(&Call) -> Option<Change>,
    /// How alike they must be.
    pub same: Same,
    /// Are the features in another order?
    pub by_name: bool,
}

/// The second way.
pub struct Change {
    /// A call that comes before.
    pub before: Option<Call>,
    pub call: Call,
    /// Which of its models are to be those of the first way.
    pub pick: fn(&[Trained]) -> Vec<Trained>,
}

impl From<Call> for Change {
    fn from(call: Call) -> Self {
        Self { before: None, call, pick: <[Trained]>::to_vec }
    }
}

/// What single precision and another order of sums leave.
const ROUNDING: Same = Same::Within(2e-4);

/// What other last bits of means and rates leave.
pub const NEARLY: Same = Same::Within(2e-5);

pub const INVARIANCES: &[Invariance] = &[
    Invariance {
        name: "weights times a power of 2",
        base: |call| call.with(r#"{"weight": "w"}"#),
        changed: |call| Some(call.clone().set("weight", "w_1024").into()),
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "weights times 1500",
        base: |call| call.with(r#"{"weight": "w"}"#),
        changed: |call| Some(call.clone().set("weight", "w_1500").into()),
        same: ROUNDING,
        by_name: false,
    },
    Invariance {
        name: "equal weights or none",
        base: |call| (!call.has("weight")).then(|| call.clone()),
        changed: |call| Some(call.clone().set("weight", "eighth").into()),
        same: ROUNDING,
        by_name: false,
    },
    Invariance {
        name: "rows of weight 0 or none",
        base: |call| at_once(call)?.with(r#"{"weight": "used"}"#),
        changed: |call| Some(call.on("t", Some("used = 1"))?.without("weight").into()),
        same: ROUNDING,
        by_name: false,
    },
    Invariance {
        name: "weights or repeated rows",
        base: |call| at_once(call)?.with(r#"{"weight": "w"}"#),
        changed: |call| Some(call.on("repeated", None)?.without("weight").into()),
        // scores count rows, whatever they weigh
        same: Same::ButScores(2e-4),
        by_name: false,
    },
    Invariance {
        name: "permuted columns",
        base: |call| Some(call.clone()),
        changed: |call| {
            let mut features = call.features();
            features.reverse();
            let is_one = features.len() == 1 || features == ["v", "k"];
            (!is_one).then(|| call.clone().without("+features").set("features", json!(features)).into())
        },
        same: ROUNDING,
        by_name: true,
    },
    Invariance {
        name: "renamed classes",
        base: |call| Some(call.clone()),
        changed: |call| Some(renamed(call, &[("no", "m"), ("yes", "n")], "renamed")?.into()),
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "classes as numbers",
        base: |call| Some(call.clone()),
        changed: |call| Some(renamed(call, &[("no", "0"), ("yes", "1")], "as_number")?.into()),
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "array or columns",
        base: |call| Some(call.clone()),
        changed: |call| {
            let column = match call.features().join(",").as_str() {
                "a,b,c" => "x",
                "a,b,c,holes" => "x_holes",
                _ => return None,
            };
            Some(call.clone().without("+features").set("features", json!([column])).into())
        },
        same: NEARLY,
        by_name: false,
    },
    Invariance {
        name: "float8 or real",
        base: |call| Some(call.clone()),
        changed: |call| {
            let features: Vec<String> = call
                .features()
                .into_iter()
                .map(|name| if ["a", "b", "c", "holes", "x"].contains(&&*name) { format!("{name}_8") } else { name })
                .collect();
            let is_new = features != call.features() && call.get("source").is_none_or(|source| source != "packed");
            is_new.then(|| call.clone().without("+features").set("features", json!(features)).into())
        },
        same: NEARLY,
        by_name: false,
    },
    Invariance {
        name: "sparse or dense",
        // an iterate of sparse rows is added to the mean less often
        base: |call| call.with(r#"{"standardize": false, "averaging": false}"#),
        changed: |call| {
            let is_dense = call.features() == ["a", "b", "c"];
            is_dense.then(|| call.clone().set("features", json!(["k", "v"])).into())
        },
        same: ROUNDING,
        by_name: false,
    },
    Invariance {
        name: "partitions or one table",
        base: |call| call.with(r#"{"shuffle": "no_shuffle"}"#),
        changed: |call| Some(call.on("parts", None)?.into()),
        same: NEARLY,
        by_name: false,
    },
    Invariance {
        name: "filter or table",
        base: |call| call.with(r#"{"shuffle": "no_shuffle"}"#),
        changed: |call| Some(call.on("more", Some("NOT extra"))?.into()),
        same: NEARLY,
        by_name: false,
    },
    Invariance {
        name: "view or table",
        base: |call| Some(call.clone()),
        changed: |call| Some(call.on("seen", None)?.into()),
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "one group or no groups",
        base: |call| (!call.has("group_by")).then(|| call.clone()),
        changed: |call| Some(call.clone().set("group_by", "twin").into()),
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        // the groups have the same rows, so that what is learned of all rows before the first epoch is the same of each
        name: "group or filter",
        base: |call| {
            let call = call.with(r#"{"shuffle": "no_shuffle", "buffer_size": "100%"}"#)?;
            if call.has("group_by") { None } else { call.on("twins", Some("twin = 'B'")) }
        },
        changed: |call| {
            let pick =
                |models: &[Trained]| models.iter().filter(|m| m.group.as_deref() == Some("B")).cloned().collect();
            Some(Change { before: None, call: call.on("twins", None)?.set("group_by", "twin"), pick })
        },
        same: NEARLY,
        by_name: false,
    },
    Invariance {
        name: "grid or own call",
        base: |call| (!call.has("grid")).then(|| call.clone()),
        changed: |call| {
            let mut own = Map::new();
            let mut rest = call.clone();
            for key in IN_GRIDS {
                if let Some(value) = call.get(key) {
                    own.insert(key.into(), value.clone());
                    rest = rest.without(key);
                }
            }
            own.insert("max_epochs".into(), call.epochs().into());
            let grid = json!([{"l2": 0.3, "max_epochs": 3}, own]);
            let pick = |models: &[Trained]| models.iter().skip(1).step_by(2).cloned().collect();
            Some(Change { before: None, call: rest.set("grid", grid), pick })
        },
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "warm start or longer training",
        base: |call| (!call.has("group_by") && !call.has("grid")).then(|| call.clone()),
        changed: |call| {
            let mut before = call.clone().set("max_epochs", 2);
            if !call.has("batch_size") {
                // that of a network depends on the number of epochs
                before = before.set("planned_epochs", call.epochs());
            }
            let next = Call::next(call).set("warm_start", "$BEFORE$").set("max_epochs", call.epochs() - 2);
            Some(Change { before: Some(before), call: next, pick: <[Trained]>::to_vec })
        },
        same: Same::Bits,
        by_name: false,
    },
    Invariance {
        name: "options said again in a warm start",
        base: |call| (!call.has("group_by") && !call.has("grid")).then(|| call.clone()),
        changed: |call| {
            let before = call.clone().set("max_epochs", 2).set("planned_epochs", call.epochs());
            let next = call.clone().set("warm_start", "$BEFORE$").set("max_epochs", call.epochs() - 2);
            Some(Change { before: Some(before), call: next, pick: <[Trained]>::to_vec })
        },
        same: Same::Bits,
        by_name: false,
    },
];

/// What a point of a grid may say.
const IN_GRIDS: [&str; 14] = [
    "learning_rate",
    "batch_size",
    "hidden_layer_sizes",
    "l1",
    "l2",
    "momentum",
    "mu",
    "optimizer",
    "patience",
    "schedule",
    "tolerance",
    "decay",
    "power",
    "activation",
];

/// All rows in one mini-batch, so that a step is that of the objective, whatever the order. Newton's steps are already.
fn at_once(call: &Call) -> Option<Call> {
    let is_newton = call.get("solver").is_some_and(|solver| solver == "newton")
        || call.get("model").is_some_and(|model| model == "poisson") && call.is_silent_about_steps();
    if is_newton {
        return Some(call.clone().set("max_epochs", 12));
    }
    call.with(r#"{"batch_size": 100000, "learning_rate": 0.2, "shuffle": "no_shuffle"}"#)
}

/// With a label of the same classes under other names, in the same order.
fn renamed(call: &Call, names: &[(&str, &str)], column: &str) -> Option<Call> {
    let label = call.label();
    let has_classes = ["kind", "triple"].contains(&label);
    let is_packed = call.get("source").is_some_and(|source| source == "packed");
    let mut renamed = call.clone().set("label", format!("{label}_{column}"));
    if let Some(Value::Object(weights)) = call.get("class_weight") {
        let name = |old: &str| names.iter().find(|(name, _)| *name == old).expect("a class").1.to_owned();
        let weights: Map<String, Value> = weights.iter().map(|(class, weight)| (name(class), weight.clone())).collect();
        renamed = renamed.set("class_weight", weights);
    }
    (has_classes && !is_packed).then_some(renamed)
}
