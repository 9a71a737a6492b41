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
    /// The worker that was asked for is not to be had.
    NoLoader(String),
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
            Notice::NoLoader(why) => (format!("the loader runs in process, without a worker: {why}"), None),
        };
        let mut report = ErrorReport::new(Code::ERRCODE_SUCCESSFUL_COMPLETION, message, "corgipile");
        if let Some(hint) = hint {
            report = report.set_hint(hint);
        }
        (report, level)
    }
}
