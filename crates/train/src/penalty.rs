//! The penalty that a call does not name: none, or 1 / rows or ten times that on the weights of categories, whichever
//! is better.
//!
//! Which one that is depends on the table: where few rows have each category, a penalty keeps their noise out of its
//! weight; where few rows say all there is to know of it, it costs accuracy. So all are trained before the first
//! epoch, side by side, on a part of the rows, and compared by their loss on the others. A table of many rows, where
//! that would take long and the penalty is next to nothing, has none.

use super::phases::Phases;
use super::training::Training;
use decode::Decoder;
use errors::Result;
use loss::Extent;
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
    /// The points but the last have those that are tried, and the last has none: they are compared, with the epochs
    /// that a table of this extent has.
    Compared(Extent),
    /// It is what the request says, or this one.
    Settled(Option<Chosen>),
}

/// A penalty that was chosen.
pub struct Chosen {
    /// as a multiple of 1 / rows
    times: f64,
    /// what a notice says of it
    told: String,
}

/// Rows of a table that is read for the choice, at most.
const MOST_ROWS: u64 = 100_000;
/// The part of them that is held out.
const HELD_OUT: f64 = 0.2;
/// By what share the loss has to be less with a penalty: a smaller difference is one of chance.
const LEAST: f64 = 1e-3;
/// The penalties that are tried, as multiples of 1 / rows.
const TIMES: [f64; 2] = [1.0, 10.0];
/// Rows of a table that is divided several times, as the rows held out of it are few.
const FEW_ROWS: u64 = 2000;
const DIVISIONS: i64 = 5;

impl Training {
    /// Settles the penalty, if it is open. Gives what a notice says of it.
    pub(super) fn choose_penalty(&mut self) -> String {
        self.penalty = match std::mem::replace(&mut self.penalty, Penalty::Settled(None)) {
            Penalty::Open(request) if is_worth_it(&self.buffers.decoder) => {
                Penalty::Settled(choose(&request, self.extent_of_an_epoch()))
            }
            Penalty::Open(_) => Penalty::Settled(None),
            settled => settled,
        };
        let rows = self.buffers.decoder.effective_rows();
        let mut penalize = |point: usize, times: f64| {
            let hyper = &mut self.request.points[point].hyperparameters;
            *hyper = hyper.with_automatic_penalty(rows / times);
            hyper.l2
        };
        match &self.penalty {
            Penalty::Settled(None) => String::new(),
            Penalty::Settled(Some(Chosen { times, told })) => {
                format!(", l2 {:.3e} on categories: {told}", penalize(0, *times))
            }
            _ => {
                for (point, times) in TIMES.into_iter().enumerate() {
                    penalize(point, times);
                }
                String::new()
            }
        }
    }
}

fn is_worth_it(decoder: &Decoder) -> bool {
    decoder.has_categories() && decoder.extent().tuples <= MOST_ROWS
}

/// The penalty that is better than 0 on a table of this extent; None if 0 is best, or if the rows are too few to
/// say.
fn choose(request: &Request, extent: Extent) -> Option<Chosen> {
    let seed = request.shuffling.seed;
    // rows that the call holds out are the same each time
    let divisions = if extent.tuples <= FEW_ROWS && request.row_groups.hold_out.is_none() { DIVISIONS } else { 1 };
    let divide = |division: i64| compare(request.clone(), extent, seed.wrapping_add(division)).ok();
    // if rows of one class alone are held out, or none, there is nothing to compare
    let compared: Vec<Vec<f64>> =
        (0..divisions).filter_map(divide).filter(|losses| losses.len() == TIMES.len() + 1).collect();
    let mean = |point: usize| compared.iter().map(|losses| losses[point]).sum::<f64>() / compared.len() as f64;
    let losses: Vec<f64> = (0..=TIMES.len()).map(mean).collect();
    let without = losses[TIMES.len()];
    let (mut best, mut chosen) = (without, None);
    for (times, loss) in TIMES.into_iter().zip(losses) {
        if loss < (1.0 - LEAST) * best {
            (best, chosen) = (loss, Some(times));
        }
    }
    let [best, without] = [best, without].map(in_few_digits);
    let told = format!("loss {best} in the rows held out for the choice, {without} without it");
    chosen.map(|times| Chosen { times, told })
}

/// Trains a model with each penalty and one without. Gives their losses in rows that were held out by this seed.
fn compare(mut request: Request, extent: Extent, seed: i64) -> Result<Vec<f64>> {
    let mut without = request.points[0].clone();
    without.has_open_penalty = false;
    request.points = vec![request.points[0].clone(); TIMES.len()];
    request.points.push(without);
    // the first of several calls chooses for all of them
    let epochs = request.options.planned_epochs;
    request.points.iter_mut().for_each(|point| point.max_epochs = epochs.unwrap_or(point.max_epochs));
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
        training.penalty = Penalty::Compared(extent);
        let losses = training.losses_held_out();
        training.close();
        losses
    })
}

/// A loss is of any size: that of squared amounts, too.
fn in_few_digits(loss: f64) -> String {
    if (1e-3..1e5).contains(&loss) { format!("{loss:.4}") } else { format!("{loss:.4e}") }
}
