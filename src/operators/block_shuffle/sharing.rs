//! Reading together with others: blocks that another session has just read are drawn first.
//!
//! A reader that is asked to share becomes a member of the reading group of what it reads, when it opens the source. In
//! each epoch it draws its next block when it wants one, and waits for nobody. It leaves the group when it reads no
//! more. Where there is no group, it reads as if it had not been asked to share.

use super::common_decoding::CommonDecoding;
use crate::operators::decoder::Decoder;
use crate::operators::reading_groups::{NotShared, ReadingGroup, SharedPages};
use crate::operators::scan_control::ShareCounters;
use joader::{Follower, JobSet};
use std::sync::atomic::Ordering::Relaxed;

/// Where a reader stands that is to share what it reads.
pub enum Sharing {
    /// it has not opened the source
    Asked,
    Member(Box<Member>),
    /// it was a member, and reads no more
    Left,
    /// it is none, for this reason
    Alone(NotShared),
}

/// A member of a reading group.
pub struct Member {
    group: ReadingGroup,
    follower: Follower,
    /// its part in decoding pages for each other, if it has one
    pub(super) common: Option<CommonDecoding>,
}

impl Sharing {
    /// Leaves the group, if it is a member of one.
    pub fn leave(&mut self) {
        if let Sharing::Member(member) = std::mem::replace(self, Sharing::Left) {
            let Member { group, common, .. } = *member;
            common.into_iter().for_each(CommonDecoding::leave);
            group.leave();
        }
    }

    /// Why nothing is shared, if so.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Sharing::Alone(why) => Some(why),
            Sharing::Asked | Sharing::Member(_) | Sharing::Left => None,
        }
    }

    /// Why a member cannot decode pages for others, if so.
    pub fn no_common_decoding(&self) -> Option<&str> {
        match self {
            Sharing::Member(member) => member.common.as_ref()?.refusal(),
            Sharing::Asked | Sharing::Left | Sharing::Alone(_) => None,
        }
    }
}

impl Member {
    /// A member that has no epoch yet.
    pub fn new(group: ReadingGroup, common: Option<CommonDecoding>) -> Member {
        Member { follower: Follower::new(group.job()), group, common }
    }

    /// Are there other members?
    fn has_others(&self) -> bool {
        self.group.board().members.load(Relaxed).count_ones() > 1
    }

    /// Readies the member to take pages of others that decode the same; `are_dear` says whether its pages are dear in
    /// any case. False if there are no others, or if its pages are cheap.
    pub(super) fn decodes_commonly(&mut self, decoder: &Decoder, are_dear: bool) -> bool {
        self.has_others() && self.common.as_mut().is_some_and(|common| common.is_ready(&self.group, decoder, are_dear))
    }

    /// The pages that members keep for each other, once this one has a part in them.
    pub(super) fn pages(&self) -> Option<&SharedPages> {
        self.common.as_ref()?.pages()
    }

    /// Counts a page of the block with this number, from 1, that was taken, and the bytes that were not read for it.
    pub(super) fn count_taken(&mut self, block: u64, bytes: u64, share: &mut ShareCounters) {
        share.pages_taken += 1;
        share.bytes_saved += bytes;
        let shown = self.group.counters();
        shown.bytes_saved.fetch_add(bytes, Relaxed);
        if self.common.as_mut().is_some_and(|common| common.takes_first_of(block)) {
            share.taken += 1;
            shown.taken.fetch_add(1, Relaxed);
        }
    }

    /// The members that have not yet drawn a block.
    pub(super) fn drawing(&self, number: u32) -> JobSet {
        let needs = self.group.board().needs.get(number as usize).map_or(0, |needs| needs.load(Relaxed));
        JobSet::from_bits(needs)
    }

    /// Begins an epoch of these blocks, in the order in which they are read if nobody else reads. False if there is no
    /// memory to draw them.
    pub fn begin_epoch(&mut self, epoch: u64, blocks: impl ExactSizeIterator<Item = u32> + Clone) -> bool {
        let len = blocks.len();
        self.common.iter_mut().for_each(CommonDecoding::begin_epoch);
        if self.follower.begin_epoch(&self.group.board(), blocks).is_err() {
            return false;
        }
        let counters = self.group.counters();
        for (counter, value) in
            [(&counters.epoch, epoch), (&counters.blocks, len as u64), (&counters.remaining, len as u64)]
        {
            counter.store(value, Relaxed);
        }
        true
    }

    /// Draws the next block of the epoch.
    pub fn draw(&mut self, share: &mut ShareCounters) -> Option<u32> {
        let board = self.group.board();
        let drawn = self.follower.draw(&board)?;
        let counters = self.group.counters();
        let (shown, counted) = match drawn.followed {
            true => (&counters.followed, &mut share.followed),
            false => (&counters.drawn, &mut share.drawn),
        };
        *counted += 1;
        shown.fetch_add(1, Relaxed);
        counters.remaining.store(self.follower.remaining() as u64, Relaxed);
        share.members = share.members.max(board.members.load(Relaxed).count_ones());
        Some(drawn.element)
    }
}
