//! One job that follows others.

use std::sync::atomic::Ordering::Relaxed;

use super::{Board, Followed, Job, bit};
use allocation::OutOfMemory;

/// Elements of a job's own order that are looked at when it has nothing to follow: the best of the next ones is drawn.
const CANDIDATES: usize = 64;

/// The place of an element that was drawn.
const DRAWN: u32 = u32::MAX;

/// One job: what it still has to draw, with 4 bytes for each element of its own and 4 for each below the largest.
#[derive(Debug)]
pub struct Follower {
    job: Job,
    /// The elements in the job's own order, and where each stands there, by its number. Those before `first` are drawn,
    /// and some of the others.
    order: Vec<u32>,
    places: Vec<u32>,
    first: usize,
    left: usize,
    /// Draws in the ring that were this job's, or that it has followed: of this epoch, and of those before, sorted.
    own: Vec<u64>,
    before: Vec<u64>,
}

impl Follower {
    /// A job that has drawn all of its elements: it has none.
    pub fn new(job: Job) -> Self {
        Self { job, order: Vec::new(), places: Vec::new(), first: 0, left: 0, own: Vec::new(), before: Vec::new() }
    }

    /// The job joins, if it has not, and begins an epoch with these elements, each of them once, in the order in which
    /// it draws them if no one else is there. Those that are beyond the board are drawn, too, but no one follows.
    ///
    /// # Errors
    /// [`OutOfMemory`]: then nothing has changed.
    pub fn begin_epoch(
        &mut self,
        board: &Board<'_>,
        order: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Result<(), OutOfMemory> {
        let (count, end) = (order.len(), order.clone().max().map_or(0, |last| last as usize + 1));
        let more = [count.saturating_sub(self.order.len()), end.saturating_sub(self.places.len())];
        allocation::try_reserve_exact(&mut self.order, more[0])?;
        allocation::try_reserve_exact(&mut self.places, more[1])?;
        let ring = board.recent.len();
        for (draws, most) in [(&mut self.own, 2 * ring), (&mut self.before, 3 * ring)] {
            allocation::try_reserve_exact(draws, most.saturating_sub(draws.len()))?;
        }
        let oldest = board.oldest();
        self.before.append(&mut self.own);
        self.before.retain(|draw| *draw >= oldest);
        self.before.sort_unstable();
        self.before.dedup();
        self.before.truncate(ring); // of a ring that others have damaged not more is remembered
        self.order.clear();
        self.places.clear();
        self.places.resize(end, DRAWN);
        (self.first, self.left) = (0, count);
        board.forget(self.job);
        for element in order {
            self.places[element as usize] = self.order.len() as u32;
            self.order.push(element);
            if let Some(needs) = board.needs.get(element as usize) {
                needs.fetch_or(bit(self.job), Relaxed);
            }
        }
        board.members.fetch_or(bit(self.job), Relaxed);
        Ok(())
    }

    /// The next element; None at the end of the epoch.
    pub fn draw(&mut self, board: &Board<'_>) -> Option<Followed> {
        if self.left == 0 {
            return None;
        }
        let recent = board.recent().find(|(draw, element)| {
            // the bit says whether it is needed, but shared memory is not to be trusted with an index
            board.needs(*element) & bit(self.job) != 0
                && self.is_left(*element)
                && self.before.binary_search(draw).is_err()
        });
        let (draw, element) = match recent {
            Some(recent) => recent,
            None => {
                let element = self.choose(board)?;
                (board.push(element), element)
            }
        };
        self.take(element, board);
        self.remember(draw, board);
        Some(Followed { element, followed: recent.is_some() })
    }

    /// How many elements are left in the epoch.
    pub fn remaining(&self) -> usize {
        self.left
    }

    fn remember(&mut self, draw: u64, board: &Board<'_>) {
        let ring = board.recent.len();
        if self.own.len() == 2 * ring {
            let oldest = board.oldest();
            self.own.retain(|draw| *draw >= oldest);
            // of a ring that others have damaged nothing is remembered
            self.own.truncate((2 * ring).saturating_sub(1));
        }
        if ring > 0 {
            self.own.push(draw);
        }
    }

    fn is_left(&self, element: u32) -> bool {
        self.places.get(element as usize).is_some_and(|&place| place != DRAWN)
    }

    /// The elements that are left, in the job's own order.
    fn in_order(&self) -> impl Iterator<Item = u32> {
        self.order[self.first..].iter().copied().filter(|element| self.is_left(*element))
    }

    /// One of the elements that are left: see the module's second rule. Of those that are equally good, the first.
    fn choose(&self, board: &Board<'_>) -> Option<u32> {
        let members = board.members.load(Relaxed) & !bit(self.job);
        if members == 0 {
            return self.in_order().next();
        }
        let idle = board.idle(self.job);
        let busy = members & !idle;
        let (mut best, mut chosen) = (None, None);
        for element in self.in_order().take(CANDIDATES) {
            let needs = board.needs(element);
            let rank = Some(((needs & idle).count_ones(), u64::BITS - (needs & busy).count_ones()));
            if rank > best {
                (best, chosen) = (rank, Some(element));
            }
        }
        chosen
    }

    fn take(&mut self, element: u32, board: &Board<'_>) {
        if let Some(needs) = board.needs.get(element as usize) {
            needs.fetch_and(!bit(self.job), Relaxed);
        }
        self.places[element as usize] = DRAWN;
        self.left -= 1;
        while self.order.get(self.first).is_some_and(|element| !self.is_left(*element)) {
            self.first += 1;
        }
        if self.order.len() - self.first > 2 * self.left + CANDIDATES {
            self.close_gaps();
        }
    }

    /// Drops what was drawn from the order. What that costs was saved up by as many draws.
    fn close_gaps(&mut self) {
        let Self { order, places, .. } = self;
        order.retain(|element| places[*element as usize] != DRAWN);
        for (place, element) in order.iter().enumerate() {
            places[*element as usize] = place as u32;
        }
        self.first = 0;
    }
}
