//! The penalty that a call does not name: none, or 1 / rows on the weights of categories, whichever is better.
//!
//! Which one that is depends on the table: where few rows have each category, a penalty keeps their noise out of its
//! weight; where few rows say all there is to know of it, it costs accuracy. So both are trained before the first
//! epoch, side by side, on a part of the rows, and compared by their loss on the others. A table of many rows, where
//! that would take long and the penalty is next to nothing, has none.

use super::phases::Phases;
use super::training::Training;
use decode::Decoder;
use errors::Result;
use options::loader::Loader;
use options::nodes::Nodes;
use options::request::Request;
use options::row_groups::HoldOut;
use options::rows::Prepare;
use pg::executor::custom_scan::Flags;
use pg::snapshot::Snapshot;
use scan::Source;

pub enum Penalty {
    /// It is to be chosen for this request.
    Open(Box<Request>),
    /// It is on the first point and not on the second: they are compared.
    Compared,
    /// It is what the request says; this is what a notice says of it.
    Settled(String),
}

/// Rows of a table that is read for the choice, at most.
const MOST_ROWS: u64 = 100_000;
/// The part of them that is held out.
const HELD_OUT: f64 = 0.2;
/// By what share the loss has to be less with a penalty: a smaller difference is one of chance.
const LEAST: f64 = 1e-3;

impl Training {
    /// Settles the penalty, if it is open. Gives what a notice says of it.
    pub(super) fn choose_penalty(&mut self) -> String {
        let none = Penalty::Settled(String::new());
        self.penalty = match std::mem::replace(&mut self.penalty, none) {
            Penalty::Open(request) if is_worth_it(&self.buffers.decoder) => {
                Penalty::Settled(compare(*request).ok().flatten().unwrap_or_default())
            }
            Penalty::Open(_) => Penalty::Settled(String::new()),
            settled => settled,
        };
        let told = match &self.penalty {
            Penalty::Settled(told) if told.is_empty() => return String::new(),
            Penalty::Settled(told) => told,
            _ => "",
        };
        let rows = self.buffers.decoder.effective_rows();
        let hyper = &mut self.request.points[0].hyperparameters;
        *hyper = hyper.with_automatic_penalty(rows);
        format!(", l2 {:.3e} on categories: {told}", hyper.l2)
    }
}

fn is_worth_it(decoder: &Decoder) -> bool {
    decoder.has_categories() && decoder.extent().tuples <= MOST_ROWS
}

/// Trains a model with the penalty and one without. Gives how they compare if the former is better; None if it is not,
/// or if the rows are too few to say.
fn compare(mut request: Request) -> Result<Option<String>> {
    let mut without = request.points[0].clone();
    without.has_open_penalty = false;
    request.points.push(without);
    // the first of several calls chooses for all of them
    let epochs = request.options.planned_epochs;
    request.points.iter_mut().for_each(|point| point.max_epochs = epochs.unwrap_or(point.max_epochs));
    let seed = request.shuffling.seed;
    request.row_groups.hold_out.get_or_insert(HoldOut::Rows { fraction: HELD_OUT, seed });
    (request.options.probability, request.options.verbose) = (false, false);
    // the scan of others is for the training itself
    request.shuffling.share = None;
    request.options.statistics = Prepare::Exact;
    (request.workers, request.loader, request.options.servers) = (1, Loader::InProcess, Nodes::Off);
    let source = Source::resolve(&request.source)?;
    let open = |snapshot: Snapshot<'_>| {
        Training::open_request((request, source), None, (snapshot, 0, Flags::NONE), Phases::begin())
    };
    pg::quietly(|| {
        let mut training = Snapshot::with_active(open)?;
        training.penalty = Penalty::Compared;
        let losses = training.losses_held_out();
        training.close();
        // rows of one class alone are held out, or none: then there is nothing to compare
        Ok(match losses.unwrap_or_default()[..] {
            [with, without] if with < (1.0 - LEAST) * without => {
                let [with, without] = [with, without].map(in_few_digits);
                Some(format!("loss {with} in the rows held out for the choice, {without} without it"))
            }
            _ => None,
        })
    })
}

/// A loss is of any size: that of squared amounts, too.
fn in_few_digits(loss: f64) -> String {
    if (1e-3..1e5).contains(&loss) { format!("{loss:.4}") } else { format!("{loss:.4e}") }
}
