//! What calls of our functions in FROM are expected to do, for the planner, by the constants among their arguments.

use loss::Hyperparameters;
use options::call::TrainArguments;
use options::search::{FOLDS, SearchArguments, TRIALS};
use options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::executor::estimates::{Expected, Extent, Rows};
use scan::looks_like_query;
use scan::shuffle_scan::ShuffleArguments;
use serde_json::Value;

/// corgipile_train(): a row for each epoch of each point of a grid.
pub fn of_train(arguments: Arguments<'_>) -> Expected {
    let Ok(arguments) = TrainArguments::of_call(&arguments) else { return Expected::unknown() };
    let points = points(&arguments).unwrap_or(1.0);
    let epochs = epochs(&arguments);
    Expected { models: points, rows: Rows::OfPass(points), ..reading(arguments, epochs) }
}

/// corgipile_search(): a row for each point, after a training of all points on all folds and one of the best on all
/// rows.
pub fn of_search(arguments: Arguments<'_>) -> Expected {
    let (own, rest) = SearchArguments::split(arguments);
    let Ok(arguments) = TrainArguments::of_call(&rest) else { return Expected::unknown() };
    let trials = own.trials.map_or(TRIALS as f64, f64::from);
    let points = points(&arguments).unwrap_or(trials).max(1.0);
    let folds = own.folds.map_or(f64::from(FOLDS), f64::from).max(1.0);
    let epochs = epochs(&arguments);
    let passes = move |extent| 2.0 * epochs(extent);
    Expected { models: points * folds, rows: Rows::AtEnd(points), ..reading(arguments, passes) }
}

/// corgipile_shuffle(): the rows of the table once.
pub fn of_shuffle(arguments: Arguments<'_>) -> Expected {
    let ShuffleArguments { strategy, block_size, buffer_size, sample, .. } = ShuffleArguments::of_call(&arguments);
    let shuffling = Shuffling::parse(strategy, Some(0), block_size, buffer_size).ok();
    let sample = sample.filter(|sample| (0.0..=1.0).contains(sample)).unwrap_or(1.0);
    Expected { sample, rows: Rows::OfTable, seeks: seeks(shuffling), ..Expected::unknown() }
}

/// The part of a training on another server: it depends on a message.
pub fn of_node(_: Arguments<'_>) -> Expected {
    Expected::unknown()
}

/// The epochs that are asked for, or that a linear model of such a table has.
fn epochs(arguments: &TrainArguments) -> impl Fn(Option<Extent>) -> f64 + use<> {
    let asked = arguments.says("max_epochs").and_then(Value::as_f64);
    move |extent| {
        let automatic = || match extent {
            Some(Extent { rows, columns }) => {
                let (tuples, features) = (rows.max(1.0) as u64, columns as usize);
                Hyperparameters::most_automatic_epochs(loss::Extent { tuples, features })
            }
            None => Hyperparameters::EPOCHS,
        };
        asked.unwrap_or_else(|| automatic().into()).max(1.0)
    }
}

/// How many points the grid lists.
fn points(arguments: &TrainArguments) -> Option<f64> {
    let points = arguments.says("grid")?.as_array()?;
    Some(points.len().max(1) as f64)
}

fn reading(arguments: TrainArguments, passes: impl Fn(Option<Extent>) -> f64 + 'static) -> Expected {
    let text = |name: &str| arguments.says(name).and_then(Value::as_str).map(str::to_owned);
    let shuffling = Shuffling::parse(text("shuffle"), Some(0), text("block_size"), text("buffer_size")).ok();
    let sample = arguments.says("sample").and_then(Value::as_f64).filter(|sample| (0.0..=1.0).contains(sample));
    let (sample, table) = (sample.unwrap_or(1.0), arguments.source.filter(|source| !looks_like_query(source)));
    Expected { table, passes: Box::new(passes), sample, seeks: seeks(shuffling), ..Expected::unknown() }
}

fn seeks(shuffling: Option<Shuffling>) -> Box<dyn Fn(u32) -> u32> {
    Box::new(move |pages| shuffling.as_ref().map_or(0, |shuffling| shuffling.seeks(pages)))
}
