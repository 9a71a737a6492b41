//! Reading together with others: blocks that another session has just read are drawn first.
//!
//! A reader that is asked to share becomes a member of the reading group of what it reads, when it opens the source. In
//! each epoch it draws its next block when it wants one, and waits for no one. It leaves the group when it reads no
//! more. Where there is no group, it reads as if it had not been asked to share.

use crate::reading_groups::{NotShared, ReadingGroup};
use crate::scan_control::ShareCounters;
use shuffle::Follower;
use std::sync::atomic::Ordering::Relaxed;

/// Where a reader stands that is to share what it reads.
pub enum Sharing {
    /// it has not opened the source
    Asked,
    Member(Box<Member>),
    /// it was a member, and reads no more
    Left,
    /// it is not one, for this reason
    Alone(NotShared),
}

/// A member of a reading group.
pub struct Member {
    group: ReadingGroup,
    follower: Follower,
}

impl Sharing {
    /// Leaves the group, if it is a member of one.
    pub fn leave(&mut self) {
        if let Sharing::Member(member) = std::mem::replace(self, Sharing::Left) {
            member.group.leave();
        }
    }

    /// Why nothing is shared, if so.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Sharing::Alone(why) => Some(why),
            Sharing::Asked | Sharing::Member(_) | Sharing::Left => None,
        }
    }
}

impl Member {
    pub fn new(group: ReadingGroup) -> Member {
        Member { follower: Follower::new(group.job()), group }
    }

    /// Begins an epoch of these blocks, in the order in which they are read if no one else reads. False if there is no
    /// memory to draw them.
    pub fn begin_epoch(&mut self, epoch: u64, blocks: impl ExactSizeIterator<Item = u32> + Clone) -> bool {
        let len = blocks.len();
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
