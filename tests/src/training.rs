//! Training and its results as Rust values.

use crate::Session;
use postgres::Row;

/// A row of `corgipile_train()`.
#[derive(Debug, Clone, PartialEq)]
pub struct Epoch {
    /// The model that all rows of one training belong to.
    pub model_id: i64,
    /// From 1.
    pub epoch: i32,
    /// Mean over the tuples, each measured before its own update.
    pub loss: f64,
    /// Share of the tuples that were right, each measured before its own update; None without classes.
    pub accuracy: Option<f64>,
    /// Of this epoch.
    pub learning_rate: f64,
    /// How many tuples the epoch has trained on.
    pub tuples: i64,
    /// Wall time.
    pub seconds: f64,
    /// 1 - SSE / SST, each tuple measured before its own update; None with classes.
    pub r2: Option<f64>,
}

impl From<&Row> for Epoch {
    fn from(row: &Row) -> Self {
        Self {
            model_id: row.get("model_id"),
            epoch: row.get("epoch"),
            loss: row.get("loss"),
            accuracy: row.get("accuracy"),
            learning_rate: row.get("learning_rate"),
            tuples: row.get("tuples"),
            seconds: row.get("seconds"),
            r2: row.get("r2"),
        }
    }
}

/// The rows of `corgipile_train()`, or of any query with its columns.
pub fn epochs_of(rows: &[Row]) -> Vec<Epoch> {
    rows.iter().map(Epoch::from).collect()
}

/// Arguments of a training, with a buffer that holds a part of the table only:
/// by default it would hold all of a test's.
pub fn in_several_buffers(arguments: &str) -> String {
    let buffer = if arguments.contains("buffer_size") { "" } else { ", buffer_size => '10%'" };
    format!("{arguments}{buffer}")
}

/// What a model has learned.
#[derive(Debug, Clone)]
pub struct Model {
    /// Key of corgipile.models.
    pub id: i64,
    /// One per feature, in the space of the standardized features if they were; for softmax class after class.
    pub weights: Vec<f32>,
    /// The weight of the constant input 1; for softmax that of the first class.
    pub intercept: f32,
    /// All intercepts: one, for softmax one per class.
    pub intercepts: Vec<f32>,
}

impl Model {
    /// All weights, then all intercepts.
    pub fn parameters(&self) -> Vec<f64> {
        self.weights.iter().chain(&self.intercepts).map(|w| f64::from(*w)).collect()
    }

    /// The exact bits of weights and intercepts.
    pub fn bits(&self) -> Vec<u32> {
        self.weights.iter().chain(&self.intercepts).map(|w| w.to_bits()).collect()
    }
}

/// What `corgipile_evaluate()` gives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Share of the tuples that the model predicts right.
    pub accuracy: f64,
    /// Mean loss.
    pub loss: f64,
    /// Rows evaluated.
    pub tuples: f64,
    /// Rows left out because of NULLs.
    pub skipped: f64,
}

impl Session {
    /// `SELECT * FROM corgipile_train(arguments)`.
    pub fn train(&mut self, arguments: &str) -> Vec<Epoch> {
        epochs_of(&self.rows(&format!("SELECT * FROM corgipile_train({arguments})"), &[]))
    }

    /// Trains, and gives what was stored.
    pub fn trained(&mut self, arguments: &str) -> Model {
        let id = self.train(arguments)[0].model_id;
        self.model(id)
    }

    /// What is stored of a model.
    pub fn model(&mut self, id: i64) -> Model {
        let rows = self.rows("SELECT weights, intercepts FROM corgipile.models WHERE model_id = $1", &[&id]);
        assert_eq!(rows.len(), 1, "model {id} is stored");
        let intercepts: Vec<f32> = rows[0].get(1);
        Model { id, weights: rows[0].get(0), intercept: intercepts[0], intercepts }
    }

    /// How many processes have trained a model.
    pub fn processes_of(&mut self, model: i64) -> u32 {
        let by = "SELECT (hyperparameters->>'workers')::int FROM corgipile.models WHERE model_id = ";
        self.value::<i32>(&format!("{by}{model}")) as u32
    }

    /// `corgipile_evaluate(model, source)`.
    pub fn evaluate(&mut self, model: i64, source: &str) -> Evaluation {
        let rows = self.rows("SELECT metric, value FROM corgipile_evaluate($1::bigint, $2)", &[&model, &source]);
        let metric = |name: &str| {
            let row = rows.iter().find(|row| row.get::<_, &str>(0) == name);
            row.unwrap_or_else(|| panic!("evaluate gives no {name}")).get(1)
        };
        Evaluation {
            accuracy: metric("accuracy"),
            loss: metric("loss"),
            tuples: metric("tuples"),
            skipped: metric("skipped"),
        }
    }
}
