//! What a user should know although nothing is wrong.

use super::report::Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

/// What a user should know although nothing is wrong.
pub enum Notice {
    /// The buffer mixes too few blocks: because blocks are larger than they have to be,
    /// or because a setting cuts the buffer.
    FewBlocks { buffer_blocks: u32, blocks: u32, are_large: bool, is_cut: bool },
    /// Not as many processes as were asked for.
    FewerProcesses { asked: u32, processes: u32, why: String },
    /// An epoch is over, of one of several models if it has a name.
    Epoch { of: Option<String>, epoch: u32, epochs: u32, figures: String },
    /// One of several models has diverged.
    OneDiverged { of: String, epoch: u32 },
    /// The learning rate that the tuples suggest, and how many of the features are standardized, if any may be.
    Chosen { rate: f64, scaled: Option<(usize, usize)> },
    /// These columns of text have more categories than so many, and are hashed.
    Hashed { columns: Vec<String>, buckets: u32, categories: usize },
    /// The worker that was asked for is not to be had.
    NoLoader(String),
    /// NULLs of these features were imputed in so many rows.
    Imputed { rows: u64, of: u64, features: Vec<FilledFeature> },
    /// So many rows are left out because they have NULLs.
    LeftOut { rows: u64, of: u64 },
    /// In so many rows there is something that the model has not seen.
    Unseen { rows: u64, of: u64 },
}

/// A feature with NULLs that were imputed.
pub struct FilledFeature {
    pub name: String,
    /// rows in which it is NULL
    pub nulls: u64,
    /// what stands for them; None of a category of its own
    pub value: Option<f32>,
    /// is it NULL in all rows?
    pub is_empty: bool,
}

impl FilledFeature {
    fn describe(&self) -> String {
        let FilledFeature { name, nulls, value, is_empty } = self;
        match value {
            None => format!("{name} ({nulls}, a category of their own)"),
            Some(_) if *is_empty => format!("{name} (all of them, 0)"),
            Some(value) => format!("{name} ({nulls}, the mean {value})"),
        }
    }
}

/// So many of so many, and what share of them that is.
fn share(rows: u64, of: u64) -> String {
    match 100.0 * rows as f64 / of.max(1) as f64 {
        percent if percent < 0.05 => format!("{rows} of {of} rows (less than 0.1%)"),
        percent => format!("{rows} of {of} rows ({percent:.1}%)"),
    }
}

/// Features that a message names; of more it says how many.
const NAMED: usize = 10;

/// The first of the names, and how many more there are.
fn some(names: &[String]) -> String {
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

impl Notice {
    /// What PostgreSQL is to tell the client, and how urgent it is.
    pub fn into_report(self) -> (ErrorReport, PgLogLevel) {
        let level = if matches!(self, Notice::OneDiverged { .. }) { PgLogLevel::WARNING } else { PgLogLevel::NOTICE };
        let (message, hint) = match self {
            Notice::Epoch { of, epoch, epochs, figures } => {
                let of = of.map_or(String::new(), |of| format!(" of {of}"));
                (format!("epoch {epoch} of {epochs}{of}: {figures}"), None)
            }
            Notice::OneDiverged { of, epoch } => (
                format!("{of} diverged in epoch {epoch} and is not stored"),
                Some("The other models are trained on. Try a smaller learning_rate for this one."),
            ),
            Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut } => (
                format!("the buffer holds only {buffer_blocks} of {blocks} blocks, too few to mix them well"),
                Some(match (are_large, is_cut) {
                    (false, false) => "Use a larger buffer_size; '100%' shuffles a small table fully.",
                    (true, false) => "Use a smaller block_size, or a larger buffer_size.",
                    (false, true) => {
                        "Raise the setting corgipile.max_buffer_memory: it cuts the buffer below buffer_size."
                    }
                    (true, true) => {
                        "Use a smaller block_size, or raise the setting corgipile.max_buffer_memory: it cuts the buffer below \
                         buffer_size."
                    }
                }),
            ),
            Notice::FewerProcesses { asked, processes, why } => (
                format!("the model is trained by {processes} of {asked} processes: {why}"),
                Some("With another number of workers the model differs; corgipile.models says how many there were."),
            ),
            Notice::Chosen { rate, scaled } => {
                let scaled = match scaled {
                    Some((scaled, all)) => format!(", {scaled} of {all} features standardized"),
                    None => String::new(),
                };
                (format!("learning rate {rate:.3e}{scaled}"), None)
            }
            Notice::Imputed { rows, of, features } => {
                let more = features.len().saturating_sub(NAMED);
                let mut named: Vec<String> = features.iter().take(NAMED).map(FilledFeature::describe).collect();
                if more > 0 {
                    named.push(format!("and {more} more features"));
                }
                (
                    format!("NULLs are imputed in {}: {}", share(rows, of), named.join(", ")),
                    Some("The model predicts in the same way. Option nulls can be \"skip\" or \"error\" instead."),
                )
            }
            Notice::LeftOut { rows, of } => (format!("{} are left out because they have NULLs", share(rows, of)), None),
            Notice::Unseen { rows, of } => (
                format!("{} have categories or indices that the model was not trained on", share(rows, of)),
                Some("They count as none of those that it knows; with unseen => 'error' they are an error."),
            ),
            Notice::Hashed { columns, buckets, categories } => (
                format!(
                    "columns of more than {categories} categories are hashed into {buckets} buckets: {}",
                    some(&columns)
                ),
                Some("Option hash can be another number of buckets, or \"off\" for a weight for each category."),
            ),
            Notice::NoLoader(why) => (format!("the loader runs in process, without a worker: {why}"), None),
        };
        let mut report = ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, message, "corgipile");
        if let Some(hint) = hint {
            report = report.set_hint(hint);
        }
        (report, level)
    }
}
