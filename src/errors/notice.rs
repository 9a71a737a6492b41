//! What a user should know although nothing is wrong.

use super::nodes::Errand;
use pg::errors::Code;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::PgLogLevel;

/// What a user should know although nothing is wrong.
pub enum Notice {
    /// The buffer mixes too few blocks: because blocks are larger than they have to be,
    /// or because a setting cuts the buffer.
    FewBlocks { buffer_blocks: u32, blocks: u32, are_large: bool, is_cut: bool },
    /// Not as many processes as were asked for.
    FewerProcesses { asked: u32, processes: u32, why: String },
    /// A search has not as many processes as were asked for.
    SmallerSearch { asked: u32, processes: u32, why: String },
    /// An epoch is over, of one of several models if it has a name.
    Epoch { of: Option<String>, epoch: u32, epochs: u32, figures: String },
    /// One of several models has diverged.
    OneDiverged { of: String, epoch: u32 },
    /// These points of a search, of so many, have diverged on a fold.
    PointsDiverged { points: Vec<String>, of: usize },
    /// Labels of so many folds are all the same.
    UndefinedR2 { folds: usize, of: usize },
    /// The models of a search on all folds are too many, or too large, to be trained at once.
    FoldsInTurns { folds: u32, at_once: u32 },
    /// The epochs, if they were left open, and the learning rate that the tuples suggest, or None if they suggest
    /// Newton's method, and how many of the features are standardized, if any may be.
    Chosen { epochs: Option<u32>, rate: Option<f64>, scaled: Option<(usize, usize)> },
    /// The values of these columns span decades, and are taken by their logarithms.
    Transformed { columns: Vec<String> },
    /// These columns of text have more categories than so many, and are hashed.
    Hashed { columns: Vec<String>, buckets: u32, categories: usize },
    /// A network learns to predict this label as a number, because its values are neither whole nor few.
    Regression { label: String },
    /// The model is worse than the best that always says the same.
    WorseThanConstant(Figure),
    /// No row was learned from of these classes of the label: those that they have are held out.
    HeldOutClasses { column: String, classes: Vec<String> },
    /// Blocks have this size, and not what was asked for, because the memory of the buffer holds no larger ones.
    BlockCut { asked: String, most: String },
    /// So many of all models are worse than the best that always says the same.
    SomeWorseThanConstant { models: usize, all: usize },
    /// The rows are not trained on, evaluated on or measured where they are, although the call says so.
    NoNodes(Errand, String),
    /// Models of single steps on several servers are not to be averaged: mini-batches of this size are learned from.
    NodesNeedBatches { batch_size: u32 },
    /// Models of servers are averaged after each buffer.
    NodesAverage,
    /// Several processes, or servers, learn from compressed mini-batches, of which so many make a step.
    StepsOfSeveral { mini_batches: usize },
    /// So many of all models, of classes or not, have not come to their optimum; were the classes of one of them told
    /// apart without a fault?
    NotConverged { models: usize, all: usize, of_classes: bool, separated: bool },
    /// A weight of the model is so many standard errors from that of the least loss.
    NotOptimum { feature: String, distance: f64 },
    /// Nothing was said of what the weights of rows are.
    Precisions,
    /// The least loss is where the weights of these features are infinite.
    AtInfinity { features: Vec<String> },
    /// These features are combinations of others, or nearly; the condition number is at least this.
    Collinear { features: Vec<String>, condition: f64 },
    /// The sample of the rows before the first epoch did not contain this.
    MissingInSample { what: String },
    /// Only so many rows, of blocks drawn at random, were looked at.
    Sampled { rows: u64 },
    /// The worker that was asked for is not to be had.
    NoLoader(String),
    /// The features that were chosen, and what to know of columns: those that are left out, with the reason; dates and
    /// their parts; those with a feature for each category; numbers that may be something else.
    Features {
        chosen: String,
        left_out: Vec<String>,
        parts: Vec<String>,
        one_hot: Vec<String>,
        as_numbers: Vec<String>,
    },
    /// The targets of a linear regression are only two numbers.
    TwoTargets { column: String, values: [f32; 2] },
    /// NULLs of these features were imputed in so many rows.
    Imputed { rows: u64, of: u64, features: Vec<FilledFeature> },
    /// So many rows are left out because they have NULLs.
    LeftOut { rows: u64, of: u64 },
    /// These models were deleted, because newer ones have replaced them.
    Replaced { models: Vec<String> },
    /// Numbers of these columns lie so far from 0 that little of what distinguishes them is left in single precision.
    Coarse { columns: Vec<String> },
    /// So many values of features, of so many rows, are cut off at so many deviations.
    Clipped { deviations: f32, values: u64, rows: u64 },
    /// The source is not read together with other sessions, although the call says so.
    NotShared(String),
    /// The training that goes on has read its source together with other sessions.
    WasShared { model_id: i64 },
    /// Rows are held out by their place in the table, for a model that may have learned from rows that have moved.
    HeldOutByPlace { model_id: i64 },
    /// Rows are held out of the training of a model that has learned from all rows so far.
    HeldOutAfterwards { model_id: i64 },
    /// The seed is given, but rows come as a scan of another extension gives them.
    OrderNotFixed,
    /// The model was trained on the rows that it is calibrated with.
    CalibratedOnTraining { model: String },
    /// This part of the rows is held out to fit probabilities, as nobody has said which.
    HeldOutForProbabilities { fraction: f64 },
    /// As few rows are held out, probabilities of so many models are fitted to decisions for all rows, each by a model
    /// that has not learned from the row.
    CrossFitted { models: usize, all: usize },
    /// Of a class, or of all others, no more rows than this were held out, or are there at all, in so many of all
    /// models: probabilities hardly rest on anything.
    FewForProbabilities { rows: u64, all_rows: bool, models: usize, all: usize },
    /// Decisions of so many of all models do not tell a class from the others, whose probability is its share.
    ConstantProbabilities { models: usize, all: usize },
    /// So few rows that the usual coverage needs everything.
    FewToCalibrate { rows: u64, coverage: f64 },
    /// In so many rows there is something that the model has not seen.
    Unseen { rows: u64, of: u64 },
}

/// What a model is judged by.
pub enum Figure {
    /// its loss, and that of the best constant
    Loss {
        model: f64,
        constant: f64,
    },
    R2(f64),
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

/// The first of these columns, and how many more there are.
fn some_of(columns: &[String]) -> String {
    match columns.len().saturating_sub(NAMED) {
        0 => columns.join(", "),
        more => format!("{}, and {more} more", columns[..NAMED].join(", ")),
    }
}

impl From<Notice> for (ErrorReport, PgLogLevel) {
    /// What PostgreSQL is to tell the client, and how urgent it is.
    fn from(notice: Notice) -> (ErrorReport, PgLogLevel) {
        let level = match notice {
            Notice::Coarse { .. }
            | Notice::CalibratedOnTraining { .. }
            | Notice::OneDiverged { .. }
            | Notice::NotConverged { .. }
            | Notice::PointsDiverged { .. }
            | Notice::WorseThanConstant(_)
            | Notice::HeldOutClasses { .. }
            | Notice::SomeWorseThanConstant { .. } => PgLogLevel::WARNING,
            _ => PgLogLevel::NOTICE,
        };
        let (message, hint) = match notice {
            Notice::Epoch { of, epoch, epochs, figures } => {
                let of = of.map_or(String::new(), |of| format!(" of {of}"));
                (format!("epoch {epoch} of {epochs}{of}: {figures}"), None)
            }
            Notice::OneDiverged { of, epoch } => (
                format!("{of} diverged in epoch {epoch} and is not stored"),
                Some("The other models are trained on. Try a smaller learning_rate for this one."),
            ),
            Notice::PointsDiverged { points, of } => (
                format!("{} of {of} points diverged: {}", points.len(), some_of(&points)),
                Some("They are ranked last. Try smaller learning rates."),
            ),
            Notice::UndefinedR2 { folds, of } => (
                format!(
                    "R2 is not defined in {folds} of {of} folds, whose labels are all the same: points are ranked by their loss"
                ),
                Some("Fewer folds have more rows, and say more."),
            ),
            Notice::FoldsInTurns { folds, at_once } => (
                format!(
                    "folds are trained in turns, {at_once} of {folds} at a time: all points on all folds are too many models, or too large"
                ),
                Some("The source is read as often for each turn. Fewer points or folds have room in memory at once."),
            ),
            Notice::FewBlocks { buffer_blocks, blocks, are_large, is_cut } => (
                format!(
                    "the buffer holds only {buffer_blocks} of {blocks} blocks, too few to mix them well: loss and accuracy, counted \
                     while learning, may be far from the model's"
                ),
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
            Notice::SmallerSearch { asked, processes, why } => (
                format!("the search runs in {processes} of {asked} processes: {why}"),
                Some("What it finds is the same with any number of workers."),
            ),
            Notice::Chosen { epochs, rate, scaled } => {
                let epochs = epochs.map_or(String::new(), |epochs| format!("{epochs} epochs, "));
                let scaled = match scaled {
                    Some((scaled, all)) => format!(", {scaled} of {all} features standardized"),
                    None => String::new(),
                };
                let how = rate.map_or("solver newton".to_owned(), |rate| format!("learning rate {rate:.3e}"));
                (format!("{epochs}{how}{scaled}"), None)
            }
            Notice::Regression { label } => (
                format!("the network predicts numbers: the values of label \"{label}\" are neither whole nor few"),
                Some("If each value is a class, cast the label to text in a query."),
            ),
            Notice::WorseThanConstant(figure) => {
                let figure = match figure {
                    Figure::Loss { model, constant } => {
                        format!("its loss is {model:.4}, that of the best constant {constant:.4}")
                    }
                    Figure::R2(r2) => format!("its R2 is {r2:.4}"),
                };
                (
                    format!("the model is worse than one that always says the same: {figure}"),
                    Some(
                        "Leave out learning_rate, standardize and shuffle, or try a smaller learning_rate and more epochs; look for \
                         features that say something about the label.",
                    ),
                )
            }
            Notice::NotOptimum { feature, distance } => (
                format!(
                    "the model is not that of the least loss on these rows: {feature} is {distance:.2} standard errors from it"
                ),
                Some("Train it with solver => 'newton' on these rows, and they tell the errors of the optimum."),
            ),
            Notice::Precisions => (
                "weights of rows are taken as precisions: only how they compare counts".to_owned(),
                Some("Give weights => 'frequencies' if a row of weight 2 is two rows, or weights => 'precisions'."),
            ),
            Notice::AtInfinity { features } => (
                format!("the least loss on these rows is at infinite weights of {}", some_of(&features)),
                Some(
                    "Their errors mean nothing. A category whose labels are all the same makes those infinite that are compared with it: \
                     leave it out, or train with an l2, such as 0.001.",
                ),
            ),
            Notice::Collinear { features, condition } => (
                format!(
                    "features are nearly linear combinations of others (condition number {condition:.0e} or more): {}",
                    some_of(&features)
                ),
                Some(
                    "The weights of these features and of those others mean nothing by themselves. Leave features out, or train with \
                     an l2, such as 0.001.",
                ),
            ),
            Notice::Sampled { rows } => (
                format!("{rows} rows are looked at, of blocks that are drawn at random"),
                Some("Argument max_rows can be another number of them."),
            ),
            Notice::MissingInSample { what } => (
                format!(
                    "the sample of the rows before the first epoch did not contain {what}: the training begins again with all rows"
                ),
                Some("Use prepare => 'exact' to read all rows before the first epoch at once."),
            ),
            Notice::NotConverged { models, all, of_classes, separated } => {
                let which = if all == 1 { "the model has".into() } else { format!("{models} of {all} models have") };
                let why = if separated {
                    ": features tell all rows of its classes apart, so that weights grow without end"
                } else {
                    ""
                };
                (
                    format!("{which} not come to the least loss{why}"),
                    Some(if separated {
                        "Say an l2, such as 0.001, for weights that are finite; the model predicts well without it, but its weights mean \
                         nothing."
                    } else if of_classes {
                        "Train more epochs, as with warm_start. If the loss hardly falls any more, some features tell classes apart; then \
                         say an l2."
                    } else {
                        "Train more epochs, as with warm_start. If the loss hardly falls any more, some category has only labels of 0; \
                         then say an l2."
                    }),
                )
            }
            Notice::HeldOutClasses { column, classes } => (
                format!(
                    "the model has learned from no row in which label column \"{column}\" is {}",
                    some_of(&classes)
                ),
                Some(
                    "All such rows are held out. Hold out others, with seed or validation_column, or leave such rows out with a query \
                     as source.",
                ),
            ),
            Notice::BlockCut { asked, most } => (
                format!("blocks have {most} instead of {asked}, which is more than corgipile.max_buffer_memory"),
                Some("Raise corgipile.max_buffer_memory, or use a smaller block_size."),
            ),
            Notice::SomeWorseThanConstant { models, all } => (
                format!("{models} of {all} models are worse than one that always says the same"),
                Some("corgipile.training_history has the loss of each."),
            ),
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
            Notice::TwoTargets { column, values: [one, other] } => (
                format!("label column \"{column}\" has only two values, {one} and {other}"),
                Some("The model predicts numbers. For two classes and their probabilities say model => 'logistic'."),
            ),
            Notice::Features { chosen, left_out, parts, one_hot, as_numbers } => {
                let groups =
                    [("left out", left_out), ("parts", parts), ("one-hot", one_hot), ("as numbers", as_numbers)];
                let told = groups.iter().filter(|(_, columns)| !columns.is_empty());
                let told: String = told.map(|(group, columns)| format!("; {group}: {}", some_of(columns))).collect();
                (
                    format!("features: {chosen}{told}"),
                    Some("Name the features to have others; '{*,-id}' takes every column that can be one but id."),
                )
            }
            Notice::LeftOut { rows, of } => (format!("{} are left out because they have NULLs", share(rows, of)), None),
            Notice::Unseen { rows, of } => (
                format!("{} have categories or indices that the model was not trained on", share(rows, of)),
                Some("They count as none of those that it knows; with unseen => 'error' they are an error."),
            ),
            Notice::CalibratedOnTraining { model } => (
                format!("{model} was trained on this source"),
                Some(
                    "Rows that it has learned from, or that have chosen its epochs, are closer to it than new ones: intervals and \
                     sets hold the truth less often than is asked. Hold other rows out.",
                ),
            ),
            Notice::HeldOutForProbabilities { fraction } => (
                format!("{fraction} of the rows are held out to fit probabilities"),
                Some("Say another validation_fraction, or a validation_column, to hold others out."),
            ),
            Notice::CrossFitted { models, all } => {
                let of = if all == 1 { String::new() } else { format!(" of {models} of {all} models") };
                let message = format!(
                    "few rows are held out: probabilities{of} are fitted to all rows, each fifth decided by a model of the others"
                );
                (message, Some("Say a validation_column to fit them to rows that are held out alone."))
            }
            Notice::FewForProbabilities { rows, all_rows, models, all } => {
                let of = if all == 1 { String::new() } else { format!(", of {models} of {all} models") };
                let rows = if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") };
                let (why, hint) = match all_rows {
                    true => (
                        format!("a class has only {rows}"),
                        "All rows are used already: it takes more rows of that class.",
                    ),
                    false => (
                        format!("only {rows} of a class {} held out", if rows == "1 row" { "is" } else { "are" }),
                        "Say a larger validation_fraction, or a validation_column, to hold more rows out.",
                    ),
                };
                (format!("probabilities hardly rest on anything{of}: {why}"), Some(hint))
            }
            Notice::ConstantProbabilities { models, all } => {
                let of = if all == 1 { String::new() } else { format!(", of {models} of {all} models") };
                (
                    format!(
                        "probabilities are the shares of the classes{of}: decisions do not tell a class from others"
                    ),
                    Some("Look for features that say something about the label, or for more rows of each class."),
                )
            }
            Notice::FewToCalibrate { rows, coverage } => (
                format!("{rows} rows are too few for coverages above {coverage:.3}"),
                Some("There intervals are infinite, and sets have all labels."),
            ),
            Notice::Replaced { models } => (
                format!(
                    "deleted {} model{} that newer ones have replaced: {}",
                    models.len(),
                    if models.len() == 1 { "" } else { "s" },
                    some_of(&models)
                ),
                Some(
                    "Option keep_versions, or setting corgipile.keep_versions, says how many are kept; 0 keeps all. What is deployed \
                     or has a comment is kept.",
                ),
            ),
            Notice::Transformed { columns } => (
                format!("numbers that span decades are taken as sign(x) * ln(1 + |x|): {}", some_of(&columns)),
                Some("Option transform can name the columns instead, or be \"none\"."),
            ),
            Notice::Coarse { columns } => (
                format!(
                    "numbers lie so far from 0 that single precision rounds away most of their differences: {}",
                    some_of(&columns)
                ),
                Some("Subtract a number near their mean in a query or a view, as in SELECT x - 1700000000 AS x."),
            ),
            Notice::Clipped { deviations, values, rows } => (
                format!(
                    "values beyond {deviations} standard deviations from the mean of their feature are cut off: {values} in \
                     {rows} rows"
                ),
                Some("The model predicts in the same way. Option clip can be another number of them, or \"none\"."),
            ),
            Notice::Hashed { columns, buckets, categories } => (
                format!(
                    "columns of more than {categories} categories are hashed into {buckets} buckets: {}",
                    some_of(&columns)
                ),
                Some("Option hash can be another number of buckets, or \"off\" for a weight for each category."),
            ),
            Notice::NotShared(why) => (
                format!("the source is not read together with other sessions: {why}"),
                Some("The order is that without share. The view corgipile.stat_reading_groups shows who shares what."),
            ),
            Notice::WasShared { model_id } => (
                format!("model {model_id} was trained with share: the order of its rows cannot be had again"),
                Some("Who trains the same epochs anew gets another model."),
            ),
            Notice::HeldOutByPlace { model_id } => (
                format!(
                    "rows are held out by their place in the table: model {model_id} may have learned from rows that have moved since"
                ),
                Some(
                    "If the table was changed, mark the rows by a column of booleans and name it in validation_column.",
                ),
            ),
            Notice::HeldOutAfterwards { model_id } => (
                format!(
                    "no rows were held out of the training of model {model_id}: it may have learned from those that are now"
                ),
                Some(
                    "Loss and score of these rows say something if they are new to the model; else train without warm_start.",
                ),
            ),
            Notice::OrderNotFixed => (
                "rows come in the order of another extension's scan: the same seed need not give the same model"
                    .to_owned(),
                Some(
                    "A query with ORDER BY over unique columns fixes their order, and so does a copy of the rows in a table.",
                ),
            ),
            Notice::NoNodes(errand, why) => (
                format!("the rows come here to be {errand}: {why}"),
                Some(match errand {
                    Errand::Training => {
                        "Option nodes can name servers, to have an error instead; EXPLAIN shows where rows are trained on."
                    }
                    Errand::Evaluation | Errand::Measurement => {
                        "Argument nodes can name servers, to have an error instead."
                    }
                }),
            ),
            Notice::NodesNeedBatches { batch_size } => (
                format!("batch_size is {batch_size}: with 1, models of servers with different rows would be averaged"),
                Some("Say batch_size to have another one above 1."),
            ),
            Notice::NodesAverage => (
                "with batch_size 1, each server learns by itself, and the models are averaged after each buffer"
                    .to_owned(),
                Some(
                    "Loss and accuracy of an epoch are those of the servers' own models. Where rows differ from server to server, \
                     the mean of the models may be much worse: leave batch_size out, or evaluate it.",
                ),
            ),
            Notice::StepsOfSeveral { mini_batches } => (
                format!("{mini_batches} compressed mini-batches, one of each process or server, make a step together"),
                Some("For steps of as many rows as a single process makes, compress with a smaller batch_rows."),
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
