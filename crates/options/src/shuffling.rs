//! How the tuples of a source are shuffled: the arguments that all shuffling functions have.

use super::cache::CachePlan;
use super::call;
use super::table;
use crate::settings;
use errors::{ArgumentError, Error, Result};
use serde::{Deserialize, Serialize};
use shuffle::{BlockSize, BufferSize, Geometry, Seeks, Sizes, Strategy};

/// Pages of a sample that means, deviations and learning rates are taken from. Where rows are sorted, the rows of a
/// page are alike: then a mean is known to a thirtieth of its deviation, and much better elsewhere.
const SAMPLE_PAGES: u32 = 1024;

/// Rows of such a sample after which no more of its pages are read: rows may be small, or have large values elsewhere.
pub const SAMPLE_ROWS: u64 = 65_536;

/// How the tuples of one query are shuffled: what the two shuffling nodes get.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Shuffling {
    #[serde(with = "text")]
    pub strategy: Strategy,
    pub seed: i64,
    /// does a training's call have the seed, or was it drawn?
    #[serde(skip)]
    pub seed_is_given: bool,
    #[serde(with = "text")]
    pub block_size: BlockSize,
    #[serde(with = "text")]
    pub buffer_size: BufferSize,
    /// pages of a block, if they were chosen before, by another process or for the model that a training continues
    #[serde(default)]
    pub pages_per_block: Option<u32>,
    /// pages of the largest source in which seeks are cheap; known once the source is planned
    #[serde(default)]
    pub pages_cheap_to_seek: u32,
    /// the epoch of the first scan; each rescan is the next
    pub first_epoch: u64,
    /// no batch has tuples of two blocks; for strategies that learn from the tuples as they come
    #[serde(default)]
    pub block_by_block: bool,
    /// tuples in a buffer stay as they came, because the learner shuffles each group by itself. Not for strategies that
    /// keep tuples in the buffer
    #[serde(default)]
    pub shuffled_above: bool,
    /// which part of the blocks is read at all; None: all of them
    #[serde(default)]
    pub sample: Option<f64>,
    /// None for the one that reads the tuples once, or wants slots
    #[serde(default)]
    pub cache: Option<CachePlan>,
    /// who says that it is read together with other sessions; None: it is not
    #[serde(default)]
    pub share: Option<SaysShare>,
}

/// Who says that a source is read together with other sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SaysShare {
    Call,
    Setting,
}

impl Shuffling {
    /// The natural order, read in small buffers.
    pub fn none() -> Shuffling {
        Shuffling {
            strategy: Strategy::NoShuffle,
            seed: 0,
            seed_is_given: false,
            block_size: BlockSize::Auto,
            buffer_size: BufferSize::Bytes(4 << 20),
            pages_per_block: None,
            pages_cheap_to_seek: 0,
            first_epoch: 0,
            block_by_block: false,
            shuffled_above: false,
            sample: None,
            cache: None,
            share: None,
        }
    }

    /// Reads the arguments that all shuffling functions have; a NULL seed is drawn, the others have their defaults.
    pub fn parse(
        strategy: Option<String>,
        seed: Option<i64>,
        block_size: Option<String>,
        buffer_size: Option<String>,
    ) -> Result<Shuffling> {
        let or_default = |given: Option<String>, name| given.or_else(|| table::default(name)).unwrap_or_default();
        let (block_size, buffer_size) = (or_default(block_size, "block_size"), or_default(buffer_size, "buffer_size"));
        let shuffling = Shuffling {
            strategy: call::strategy(or_default(strategy, "shuffle"))?,
            seed: seed.unwrap_or_else(pg::random_seed),
            block_size: block_size.parse().map_err(|e| invalid_size("block_size", e))?,
            buffer_size: buffer_size.parse().map_err(|e| invalid_size("buffer_size", e))?,
            first_epoch: 1,
            ..Shuffling::none()
        };
        // whether the block size is one for our pages does not depend on how many there are
        shuffling.geometry(1).map(|_| shuffling)
    }

    /// Reads only this part of the blocks, if one is given.
    pub fn with_sample(self, sample: Option<f64>) -> Result<Shuffling> {
        let Some(given) = sample else { return Ok(self) };
        call::number("sample", given)?;
        if self.strategy.sorts() {
            return Err(call::invalid("sample", format!("{} copies the whole source", self.strategy.name())));
        }
        Ok(Shuffling { sample, ..self })
    }

    /// Reads together with other sessions, if the call says so, or says nothing and `corgipile.shared_scan` is on.
    pub fn with_share(self, given: Option<bool>) -> Result<Shuffling> {
        let share = match given.unwrap_or_else(settings::share) {
            true if self.strategy.shuffles_blocks() && self.strategy.permutes() => {
                Some(given.map_or(SaysShare::Setting, |_| SaysShare::Call))
            }
            true if given.is_some() => return Err(ArgumentError::NotShared(self.strategy.name()).into()),
            _ => None,
        };
        Ok(Shuffling { share, ..self })
    }

    /// Has another server written what an option can be?
    pub fn is_sound(&self) -> bool {
        let is_sample = |sample| call::number("sample", sample).is_ok();
        self.sample.is_none_or(is_sample) && u32::try_from(self.first_epoch).is_ok()
    }

    /// How `pages` pages fall into blocks and buffers.
    pub fn geometry(&self, pages: u32) -> Result<Geometry> {
        // A buffer that is cut to its memory is planned as such: then its buffers are filled evenly, too.
        let mut sizes = self.sizes(pages);
        if self.is_cut_to_memory(pages) {
            sizes.buffer = BufferSize::Bytes(settings::max_buffer_memory());
        }
        Geometry::new(pages, pg::PAGE_BYTES, &sizes).map_err(|e| invalid_size("block_size", e))
    }

    /// How many blocks of `pages` pages are read, if not in sequence.
    pub fn seeks(&self, pages: u32) -> u32 {
        let blocks = || self.geometry(pages).map_or(0, |geometry| geometry.blocks);
        if self.strategy.shuffles_blocks() { blocks() } else { 0 }
    }

    /// What the geometry of `pages` pages is chosen by, but that its buffer may still be cut to its memory.
    fn sizes(&self, pages: u32) -> Sizes {
        let (block, pages_per_block) = match self.has_cut_blocks() {
            true => (BlockSize::Bytes(settings::max_buffer_memory()), None),
            false => (self.block_size, self.pages_per_block),
        };
        // who keeps tuples in the buffer reads in sequence, and mixes by the size of the buffer alone
        let seeks = match pages <= self.pages_cheap_to_seek && !self.strategy.keeps_tuples() {
            true => Seeks::Cheap,
            false => Seeks::Expensive,
        };
        Sizes { block, buffer: self.buffer_size, seeks, pages_per_block }
    }

    /// The size of a block that was asked for, or chosen before.
    fn asked_block_size(&self) -> BlockSize {
        let chosen = self.pages_per_block.map(|pages| u64::from(pages) * u64::from(pg::PAGE_BYTES));
        chosen.map_or(self.block_size, BlockSize::Bytes)
    }

    /// Are blocks smaller than was asked for, because `corgipile.max_buffer_memory` is?
    fn has_cut_blocks(&self) -> bool {
        let is_beyond =
            matches!(self.asked_block_size(), BlockSize::Bytes(bytes) if bytes > settings::max_buffer_memory());
        // what goes through a block by parts has no need of it as a whole
        is_beyond && !self.block_by_block
    }

    /// Tells the user if blocks are smaller than was asked for.
    pub fn tell_of_cut_blocks(&self) {
        if self.has_cut_blocks() {
            let (most, asked) = (BlockSize::Bytes(settings::max_buffer_memory()), self.asked_block_size());
            pg::notice(
                format!("blocks have {most} instead of {asked}, which exceeds {}", settings::buffer_limit()),
                "Raise that setting, or use a smaller block_size.",
            );
        }
    }

    /// Is the buffer for `pages` pages smaller than was asked for, because `corgipile.max_buffer_memory` is?
    pub fn is_cut_to_memory(&self, pages: u32) -> bool {
        let asked = match self.buffer_size {
            BufferSize::Bytes(bytes) => bytes,
            _ => u64::from(self.sizes(pages).buffer_pages(pages, pg::PAGE_BYTES)) * u64::from(pg::PAGE_BYTES),
        };
        asked > settings::max_buffer_memory()
    }

    /// Is the buffer a share of the pages, whose memory only `corgipile.max_buffer_memory` limits?
    pub fn is_a_share(&self) -> bool {
        !matches!(self.buffer_size, BufferSize::Bytes(_))
    }

    /// How the pages that are read of `pages` pages fall into blocks and buffers, and, of a sample,
    /// which blocks they are.
    pub fn sampled(&self, pages: u32) -> Result<(Geometry, Option<Vec<u32>>)> {
        let Some(fraction) = self.sample.filter(|fraction| *fraction < 1.0) else {
            return self.geometry(pages).map(|geometry| (geometry, None));
        };
        // blocks and buffers as of a table that has as many pages
        let Geometry { pages_per_block, .. } = self.geometry((f64::from(pages) * fraction).ceil() as u32)?;
        let chosen = shuffle::sample_blocks(self.seed, pages.div_ceil(pages_per_block), fraction);
        let all = Geometry { pages, pages_per_block, blocks: pages.div_ceil(pages_per_block), buffer_blocks: 1 };
        let read = chosen.iter().map(|block| all.pages_of(*block).len() as u32).sum();
        let geometry = Shuffling { pages_per_block: Some(pages_per_block), ..self.clone() }.geometry(read)?;
        Ok((geometry, Some(chosen)))
    }

    /// The sample of `pages` pages that a preparation pass may read, each page a block of its own; None if all of them
    /// are few enough to be read, or the user has said which are.
    pub fn preparation_sample(&self, pages: u32) -> Option<(Geometry, Option<Vec<u32>>)> {
        if pages <= 4 * SAMPLE_PAGES || self.sample.is_some() {
            return None;
        }
        let chosen = shuffle::sample_blocks(self.seed, pages, f64::from(SAMPLE_PAGES) / f64::from(pages));
        let read = chosen.len() as u32;
        let memory = (self.buffer_memory() / u64::from(pg::PAGE_BYTES)).try_into().unwrap_or(u32::MAX);
        Some((
            Geometry { pages: read, pages_per_block: 1, blocks: read, buffer_blocks: read.min(memory) },
            Some(chosen),
        ))
    }

    /// Bytes of memory that the buffer may take, however many blocks that is.
    pub fn buffer_memory(&self) -> u64 {
        match self.buffer_size {
            BufferSize::Auto | BufferSize::Percent(_) => settings::max_buffer_memory(),
            BufferSize::Bytes(bytes) => bytes.min(settings::max_buffer_memory()),
        }
    }
}

fn invalid_size(argument: &'static str, error: shuffle::SizeError) -> Error {
    call::refused(argument, error.to_string(), error.hint())
}

/// Values that are written as users write them.
mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::fmt::Display;
    use std::str::FromStr;

    pub fn serialize<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub fn deserialize<'de, T: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
