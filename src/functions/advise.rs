//! corgipile_advise(): which block size reaches a model in the least time, by the speed of the disk and by Theorem 1.

use super::{cluster_factor, io_profile};
use errors::{ArgumentError, OrRaise, Result};
use loss::{Extent, Hyperparameters};
use options::nodes::Nodes;
use options::shuffling::Shuffling;
use pg::PAGE_BYTES;
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pgrx::prelude::*;
use shuffle::{BlockSize, Geometry, Mixing, correlation};

/// The largest block to try, as the papers do.
const LARGEST_BLOCK: u64 = 50 << 20;

/// The most that is read to measure the disk, apart from the pass over the rows.
const MAX_READ: u64 = 1 << 30;

/// What to expect of one size of blocks.
struct Expected {
    block_size: BlockSize,
    geometry: Geometry,
    mixing: Mixing,
    epochs: f64,
    epoch_seconds: f64,
}

/// Returns (block_size, blocks, buffer_blocks, cluster_factor, error_factor, epochs, epoch_seconds, seconds,
/// recommended) for each size.
#[pg_extern(sql = false)]
fn corgipile_advise(call: Call<'_>) {
    let expected = expected(&call.arguments()).or_raise();
    let seconds = |of: &Expected| of.epochs * of.epoch_seconds;
    let least = expected.iter().map(seconds).fold(f64::INFINITY, f64::min);
    let recommended = expected.iter().position(|of| seconds(of) <= least);
    call.return_rows(expected.iter().enumerate().map(|(place, of)| {
        [
            of.block_size.to_string().into(),
            i64::from(of.geometry.blocks).into(),
            i64::from(of.geometry.buffer_blocks).into(),
            of.mixing.cluster_factor.into(),
            of.mixing.error_factor.into(),
            of.epochs.into(),
            of.epoch_seconds.into(),
            seconds(of).into(),
            (recommended == Some(place)).into(),
        ]
    }));
}

fn expected(arguments: &Arguments) -> Result<Vec<Expected>> {
    let relation: pg_sys::Oid = arguments.get(0).ok_or(ArgumentError::NullArgument("relation"))?;
    let buffer_size: Option<String> = arguments.get(4);
    let page = u64::from(PAGE_BYTES);
    let (sizes, _, pages) = io_profile::profile(relation, LARGEST_BLOCK / page, MAX_READ / page, arguments.get(5))?;
    let measured = cluster_factor::measured(arguments, None, 3, &Nodes::Off)?;
    // where all gradients are the same, any order will do
    let correlation = measured.factor().map_or(0.0, |factor| correlation(factor, measured.tuples_per_block()));
    let tuples = measured.tuples();
    let epochs = f64::from(Hyperparameters::most_automatic_epochs(Extent { tuples, features: 0 }));
    let mut expected = Vec::new();
    for size in sizes {
        let block_size = BlockSize::Bytes(u64::from(size.pages) * page);
        let shuffling = Shuffling::parse(None, Some(0), Some(block_size.to_string()), buffer_size.clone())?;
        let geometry = shuffling.geometry(pages)?;
        let mixing = Mixing::new(correlation, tuples, &geometry);
        let epoch_seconds = f64::from(pages) * f64::from(PAGE_BYTES) / size.random;
        expected.push(Expected {
            block_size,
            geometry,
            mixing,
            epochs: epochs * mixing.epochs_factor(),
            epoch_seconds,
        });
    }
    Ok(expected)
}
