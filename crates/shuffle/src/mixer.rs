//! In which order the tuples in the buffer are learned from, and which of them stay for later.
//!
//! A [`Mixer`] knows tuples by their places in the buffer only. Anyone who owns the buffer fills it, says how many
//! tuples it holds by then, learns from the places that it gets, keeps those that are to stay, and fills again. The
//! same code decides for training, for a stream of rows, and for [`TupleOrder`](crate::TupleOrder), which shows it.
//!
//! It guarantees that an order does not depend on how the reads were cut, once the buffer was full: every tuple that
//! comes takes its draws from one stream per epoch.

use crate::permutation::shuffle_tuples_pausing;
use crate::random::count;
use crate::strategies::{Arrival, Retention, close_up};
use crate::{BlockPartition, Geometry, Strategy};

/// Decides about the tuples in a buffer, call after call, epoch after epoch.
#[derive(Debug)]
pub struct Mixer {
    strategy: Strategy,
    seed: i64,
    deal: BlockPartition,
    epoch: u64,
    /// buffers so far in this epoch
    buffer: u64,
    /// were the last tuples of this epoch seen?
    ended: bool,
    /// what keeps tuples in the buffer, if anything does
    retention: Option<Box<dyn Retention>>,
    /// tuples that stay in the buffer, and which of them have to move for that
    kept: usize,
    moves: Vec<(u32, u32)>,
    arrival: Arrival,
}

impl Mixer {
    /// A mixer before the first epoch, of an empty buffer.
    pub fn new(strategy: Strategy, seed: i64) -> Mixer {
        Mixer {
            strategy,
            seed,
            deal: BlockPartition::SINGLE,
            epoch: 0,
            buffer: 0,
            ended: true,
            retention: strategy.definition().retention.map(|new| new()),
            kept: 0,
            moves: Vec::new(),
            arrival: Arrival::default(),
        }
    }

    /// Makes it the mixer of one of several processes, whose tuples each shuffles in an order of its own.
    pub fn set_deal(&mut self, deal: BlockPartition) {
        self.deal = deal;
    }

    /// Whether the epoch before must be run first, its order thrown away: its reservoir is looped over in `epoch`. What
    /// it keeps is a function of seed and epoch and needs no epoch before it.
    pub fn needs_epoch_before(&self, epoch: u64) -> bool {
        self.retention.as_ref().is_some_and(|retention| retention.needs_epoch_before(epoch))
    }

    /// Begins an epoch, whether or not the one before was run to its end. What must stay in the buffer, and where, is
    /// said by [`moves`](Mixer::take_moves) and [`kept`](Mixer::kept) again.
    pub fn begin_epoch(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.buffer = 0;
        self.ended = false;
        self.kept = 0;
        if let Some(retention) = &mut self.retention {
            retention.begin_epoch(epoch);
            let kept = retention.kept_over_mut();
            // moves that no one has made yet come first
            close_up(kept, &mut self.moves);
            self.kept = kept.len();
        }
    }

    /// Whether the epoch is over: nothing more will come, and nothing be learned from.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// How many tuples stay in the buffer. All others are to be removed, after the [`moves`](Mixer::take_moves), before
    /// any come in behind them.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Pairs of places, from and to: the tuples that have to move into the places of tuples that go, one after the
    /// other, so that those that stay are in the first places. During an epoch there are no more of them than tuples
    /// that came last. They are to be made once, before the next tuples come;
    /// those that were taken are not returned again.
    pub fn take_moves(&mut self) -> std::vec::Drain<'_, (u32, u32)> {
        self.moves.drain(..)
    }

    /// How many blocks to read next, at least 1, after the first `position` in the epoch's order: a buffer, or a chunk
    /// of one if the others stay.
    pub fn blocks(&self, geometry: &Geometry, position: u32) -> u32 {
        match &self.retention {
            Some(retention) if self.epoch > 0 => retention.blocks(geometry),
            _ => geometry.left_in_buffer(position),
        }
    }

    /// Whether tuples stay in the buffer from one read to the next.
    pub fn keeps_tuples(&self) -> bool {
        self.epoch > 0 && self.retention.is_some()
    }

    /// Tuples that the strategy keeps; 0 if it keeps none, or as long as it is not known.
    pub fn capacity(&self) -> usize {
        self.retention.as_ref().map_or(0, |retention| retention.capacity())
    }

    /// Now there are `len` tuples in the buffer, those behind the ones that were kept new; `last` if no more will come
    /// in this epoch. Writes into `order` the places to learn from, one after the other: perhaps none before the last
    /// call, perhaps one twice. Pauses while it permutes all that came at once; a pause may panic to end it.
    ///
    /// # Panics
    /// If `len` is less than what should have been kept, or does not fit 32 bits, or if moves were not taken.
    pub fn arrived(&mut self, len: usize, last: bool, order: &mut Vec<u32>, pause: &mut impl FnMut()) {
        let len = u32::try_from(len).expect("a buffer's places have 32 bits");
        let new = self.kept as u32..len;
        assert!(new.start <= new.end, "{len} tuples in a buffer where {} should have stayed", new.start);
        assert!(self.moves.is_empty(), "tuples came before those that stay were moved");
        order.clear();
        self.ended = last;
        let epoch = self.epoch;
        let Some(retention) = self.retention.as_mut().filter(|_| epoch > 0) else {
            count(0..len, order, pause);
            return self.permute(last, order, pause);
        };
        self.arrival.begin(&new);
        retention.take([self.seed.cast_unsigned(), epoch], new, &mut self.arrival, order);
        if last {
            retention.end_epoch(epoch, order);
            let kept = retention.kept_over_mut();
            close_up(kept, &mut self.moves);
            self.kept = kept.len();
        } else {
            self.kept = self.arrival.close_up(retention.slots_mut(), &mut self.moves);
        }
    }

    /// As [`arrived`](Mixer::arrived), for a strategy that [keeps](Mixer::keeps_tuples) no tuples, of which the buffer
    /// may then be in any places: `order` has them, one after the other as the tuples came, and is permuted. So it does
    /// not matter to the order of the tuples where they are. `pause` is called now and then; it may panic to end it.
    pub fn arrived_at(&mut self, last: bool, order: &mut [u32], pause: &mut impl FnMut()) {
        self.permute(last, order, pause);
    }

    fn permute(&mut self, last: bool, order: &mut [u32], pause: &mut impl FnMut()) {
        self.ended = last;
        if !order.is_empty() {
            let place = [self.epoch, self.deal.ordinal(self.buffer)];
            shuffle_tuples_pausing(self.strategy, self.seed, place, order, pause);
            self.buffer += 1;
        }
        self.kept = 0;
    }
}
