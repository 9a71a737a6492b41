//! A member's part in common decoding: which pages are dear, and who decodes the same.
//!
//! Who decodes the same has the same digest of columns, filter and expressions, as long as these depend on the row
//! alone, and of all that the decoder's tuples depend on.

use super::pages::Pages;
use crate::operators::decoder::Decoder;
use crate::operators::reading_groups::{NotShared, ReadingGroup, SharedPages};
use crate::settings;
use pg::executor::custom_scan::Node;
use pg::snapshot::Held;
use pg::values::digest::digest;

/// A member's part in common decoding.
pub struct CommonDecoding {
    /// what its node makes of a row, and what its snapshot keeps
    expressions: String,
    held: Held,
    state: State,
    /// is what others make known to be the same as what is made here, in this epoch?
    is_described: bool,
    /// are pages dear for their values out of line, as the last one tells that was decoded here?
    are_dear: bool,
    /// the number of the last block of which a page was taken
    taken_of: u64,
}

enum State {
    /// there was no page so far for others
    Idle,
    On(Box<SharedPages>),
    /// it has no part in it, for this reason
    Off(NotShared),
}

/// Rows are dear to decode if one in so many has a value that was out of line or compressed.
const DETOASTED_MANY: u64 = 16;

impl CommonDecoding {
    /// The part of a member that reads these pages; None if it has none.
    pub fn new<T>(node: Node, pages: &Pages<T>) -> Option<CommonDecoding> {
        let Pages::Heap(scan) = pages else { return None };
        if settings::share_memory() == 0 {
            return None;
        }
        let (held, expressions) = (scan.held()?, node.pure_expressions()?);
        let state = State::Idle;
        Some(CommonDecoding { expressions, held, state, is_described: false, are_dear: false, taken_of: 0 })
    }

    /// A new epoch begins, in which the decoder may know more.
    pub fn begin_epoch(&mut self) {
        self.is_described = false;
        if let State::On(pages) = &self.state {
            pages.set_course([0..0, 0..0]);
        }
    }

    /// Leaves the others' pages.
    pub fn leave(self) {
        if let State::On(pages) = self.state {
            pages.leave();
        }
    }

    /// Why there is no part in it, if there was to be one.
    pub fn refusal(&self) -> Option<&str> {
        match &self.state {
            State::Off(why) => Some(why),
            State::Idle | State::On(_) => None,
        }
    }

    /// Are pages kept for each other?
    pub fn is_on(&self) -> bool {
        matches!(self.state, State::On(_))
    }

    /// A page of so many rows was decoded here, of which so many values were out of line or compressed.
    pub fn decoded_here(&mut self, rows: usize, detoasted: u64) {
        if rows > 0 {
            self.are_dear = detoasted * DETOASTED_MANY > rows as u64;
        }
    }

    /// Readies the part of a member of this group, which has others, to take pages of those that decode the same.
    /// `are_dear` says whether pages are dear in any case. False if they are cheap, or there is no part in it yet.
    pub fn is_ready(&mut self, group: &ReadingGroup, decoder: &Decoder, are_dear: bool) -> bool {
        if !(are_dear || self.are_dear) || matches!(self.state, State::Off(_)) {
            return false;
        }
        if !self.is_described {
            let Some(description) = decoder.description() else { return false };
            if matches!(self.state, State::Idle) {
                let joined = SharedPages::join(group, settings::share_memory(), self.held);
                self.state = joined.map_or_else(State::Off, |pages| State::On(Box::new(pages)));
            }
            if let State::On(pages) = &self.state {
                pages.set_digest(digest(&[&self.expressions, &description]));
            }
            self.is_described = true;
        }
        self.is_on()
    }

    /// The others' pages, once there is a part in them.
    pub fn pages(&self) -> Option<&SharedPages> {
        match &self.state {
            State::On(pages) => Some(pages),
            State::Idle | State::Off(_) => None,
        }
    }

    /// Is it the first page of the block with this number, from 1, that is taken?
    pub fn takes_first_of(&mut self, block: u64) -> bool {
        std::mem::replace(&mut self.taken_of, block) != block
    }
}
