//! The order in which to learn from the tuples.

use crate::OutOfMemory;

/// The order, and what is known of it.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) places: Vec<u32>,
    state: OrderState,
}

/// What is known of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OrderState {
    Identity,
    /// it may be anything
    Reordered,
    /// it is made by somebody else, and empty as long as that has not been done
    Detached,
}

impl Order {
    /// Of no tuples.
    pub(super) const EMPTY: Order = Order { places: Vec::new(), state: OrderState::Identity };

    /// Tuples that fit without another allocation.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        if self.state == OrderState::Detached { usize::MAX } else { self.places.capacity() }
    }

    /// Makes room for this many tuples in all.
    pub(super) fn reserve(&mut self, tuples: usize, error: OutOfMemory) -> Result<(), OutOfMemory> {
        if self.state == OrderState::Detached {
            return Ok(());
        }
        let more = tuples.saturating_sub(self.places.len());
        allocation::try_reserve_exact(&mut self.places, more).map_err(|_| error)
    }

    /// Makes the order that of no tuples.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.state = OrderState::Identity;
    }

    /// Makes the order what it is when there are `before` tuples that are about to be `len`.
    #[inline]
    pub(super) fn resize(&mut self, before: usize, len: usize) {
        match self.state {
            OrderState::Identity => {}
            OrderState::Reordered => self.make_identity(before),
            OrderState::Detached => self.places.clear(),
        }
        if self.state == OrderState::Identity && len > before {
            // a batch refuses what does not fit 32 bits
            self.places.extend(before as u32..len as u32);
        } else {
            self.places.truncate(len);
        }
    }

    #[cold]
    fn make_identity(&mut self, len: usize) {
        self.places.clear();
        self.places.extend(0..len as u32);
        self.state = OrderState::Identity;
    }

    /// The places, to be changed by somebody else.
    #[inline]
    pub(super) fn places_mut(&mut self) -> &mut Vec<u32> {
        if self.state == OrderState::Identity {
            self.state = OrderState::Reordered;
        }
        &mut self.places
    }

    /// Whether it is left to somebody else.
    pub(super) fn is_detached(&self) -> bool {
        self.state == OrderState::Detached
    }

    /// Leaves the order to somebody else.
    pub(super) fn detach(&mut self) {
        self.places.clear();
        self.state = OrderState::Detached;
    }
}
