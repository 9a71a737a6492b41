//! corgipile_io_profile(): how large a block has to be for random blocks to be read as fast as the table in sequence.

use errors::{ArgumentError, OrRaise, Result, SourceError};
use pg::call::arguments::Arguments;
use pg::call::function::Call;
use pg::catalog::relation_files::RelationFiles;
use pg::{PAGE_BYTES, random_seed};
use pgrx::prelude::*;
use shuffle::{BlockSize, BufferSize, Strategy, block_order};
use std::ops::Range;
use std::time::Duration;

/// The speed at which blocks of one size are read.
pub(super) struct Measured {
    pub(super) pages: u32,
    /// bytes per second
    pub(super) random: f64,
}

/// Random blocks should be read at this share of the sequential speed at least.
const GOOD: f64 = 0.9;

/// Largest block that can be asked for.
const MAX_BLOCK: u64 = 1 << 30;

/// The longest measurement that can be asked for, in seconds.
const MAX_SECONDS: f64 = 3600.0;

/// Returns (block_size, random_mb_per_s, sequential_mb_per_s, ratio, recommended) for each size.
#[pg_extern(sql = false)]
fn corgipile_io_profile(call: Call<'_>) {
    let (sizes, sequential, _) = asked_profile(&call.arguments()).or_raise();
    let recommended = sizes.iter().position(|size| size.random >= GOOD * sequential);
    call.return_rows(sizes.iter().enumerate().map(|(place, Measured { pages, random })| {
        let size = BlockSize::Bytes(u64::from(*pages) * u64::from(PAGE_BYTES)).to_string();
        [
            size.into(),
            (random / 1e6).into(),
            (sequential / 1e6).into(),
            (random / sequential).into(),
            (recommended == Some(place)).into(),
        ]
    }));
}

fn asked_profile(arguments: &Arguments) -> Result<(Vec<Measured>, f64, u32)> {
    let relation: pg_sys::Oid = arguments.get(0).ok_or(ArgumentError::NullArgument("relation"))?;
    let largest = pages_of("max_block_size", arguments, 1, MAX_BLOCK)?;
    let budget = pages_of("max_read", arguments, 2, u64::MAX)?;
    profile(relation, largest, budget, arguments.get(3))
}

/// Measures each size up to `largest` pages, the sequential speed in bytes per second, which is the median of as many
/// places, and counts the relation's pages. Reads `budget` pages and `seconds` at most, and a block of each size.
pub(super) fn profile(
    relation: pg_sys::Oid,
    largest: u64,
    budget: u64,
    seconds: Option<f64>,
) -> Result<(Vec<Measured>, f64, u32)> {
    let seconds = seconds.ok_or(ArgumentError::NullArgument("max_seconds"))?;
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        let reason = format!("{seconds} is not above 0 and at most {MAX_SECONDS}");
        return Err(ArgumentError::InvalidArgument { argument: "max_seconds", reason, hint: None }.into());
    }
    let mut files = RelationFiles::open(relation)?;
    let pages = files.pages();
    if pages < MIN_PAGES {
        return Err(SourceError::TooFewPages { pages, least: MIN_PAGES }.into());
    }
    let sizes = sizes(largest.min((pages / 2).into()) as u32);
    let shares = 2 * sizes.len() as u32;
    let share = Share {
        pages: u32::try_from(budget / u64::from(shares)).unwrap_or(u32::MAX),
        time: Duration::from_secs_f64(seconds) / shares,
    };
    // Both patterns take turns, so that a change of the disk's speed meets both.
    let (mut measured, mut sequences) = (Vec::new(), Vec::new());
    let length = share.pages.clamp(sizes[sizes.len() - 1], pages / 2);
    for size in sizes {
        let blocks = random_blocks(pages / size, (share.pages / size).max(1));
        let random = share.speed(&mut files, blocks.map(|block| block * size..(block + 1) * size).collect())?;
        measured.push(Measured { pages: size, random });
        let start = random_blocks(pages - length, 1).next().unwrap_or(0);
        let pieces = (start..start + length).step_by(PIECE as usize);
        let pieces = pieces.map(|page| page..(page + PIECE).min(start + length)).collect();
        sequences.push(share.speed(&mut files, pieces)?);
    }
    sequences.sort_by(f64::total_cmp);
    Ok((measured, sequences[sequences.len() / 2], pages))
}

/// `n` of `blocks` blocks, or all if there are fewer, in random order. Of a great many, only some are eligible.
fn random_blocks(blocks: u32, n: u32) -> impl Iterator<Item = u32> {
    let eligible = blocks.min(1 << 20);
    let order = block_order(Strategy::BlockOnly, random_seed(), 1, eligible, 1);
    let block = move |i| (u64::from(i) * u64::from(blocks) / u64::from(eligible)) as u32;
    order.into_iter().take(n as usize).map(block)
}

/// A relation with fewer pages has no blocks to speak of.
const MIN_PAGES: u32 = 16;

/// Pages that are read at once in a sequence, which ends early when the time is up.
const PIECE: u32 = 32;

/// The sizes to measure: one page, twice as many and so on, and the largest.
fn sizes(largest: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = (0..).map(|i| 1 << i).take_while(|size| *size < largest).collect();
    sizes.push(largest);
    sizes
}

/// The part of the pages that each measurement may read, and its time.
struct Share {
    pages: u32,
    time: Duration,
}

impl Share {
    /// Reads ranges of pages one after the other, until the time is up, and gives the speed.
    fn speed(&self, files: &mut RelationFiles, ranges: Vec<Range<u32>>) -> Result<f64> {
        for range in &ranges {
            files.forget(range.clone())?;
        }
        let (mut pages, mut time) = (0, Duration::ZERO);
        for range in ranges {
            pages += range.len();
            time += files.read(range)?;
            if time > self.time {
                break;
            }
        }
        Ok(pages as f64 * f64::from(PAGE_BYTES) / time.as_secs_f64().max(f64::MIN_POSITIVE))
    }
}

/// An argument that is a size, in whole pages.
fn pages_of(argument: &'static str, arguments: &Arguments, i: usize, most: u64) -> Result<u64> {
    let text: String = arguments.get(i).ok_or(ArgumentError::NullArgument(argument))?;
    let refuse = |reason: String, hint: &str| {
        Err(ArgumentError::InvalidArgument { argument, reason, hint: Some(hint.into()) }.into())
    };
    let hint = "Use a size such as '64kB' or '50MB'. Valid units are B, kB, MB, GB and TB.";
    let bytes = match text.parse::<BufferSize>() {
        Ok(BufferSize::Bytes(bytes)) => bytes,
        Ok(BufferSize::Auto | BufferSize::Percent(_)) => {
            return refuse(format!("\"{text}\" is not a number of bytes"), hint);
        }
        Err(_) => return refuse(format!("\"{text}\" is not a size"), hint),
    };
    if bytes < PAGE_BYTES.into() || bytes > most {
        return refuse(format!("\"{text}\" is not from one page to 1GB"), "A page has 8kB.");
    }
    Ok(bytes / u64::from(PAGE_BYTES))
}
