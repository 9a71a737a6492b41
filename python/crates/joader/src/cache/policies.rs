//! The policies: most are an order in which elements go.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use rand_xoshiro::Xoshiro256PlusPlus;
use shuffle::{ALONE, below, stream};

use super::{Policy, Use, Victim};

/// Elements by what they are kept for: the least goes first, of several the smallest number.
#[derive(Default)]
struct Ranked {
    ranks: HashMap<u32, (u64, u64)>,
    order: BTreeSet<((u64, u64), u32)>,
}

impl Ranked {
    fn insert(&mut self, element: u32, rank: (u64, u64)) {
        self.ranks.insert(element, rank);
        self.order.insert((rank, element));
    }

    fn remove(&mut self, element: u32) {
        if let Some(rank) = self.ranks.remove(&element) {
            self.order.remove(&(rank, element));
        }
    }

    fn least(&self) -> Option<(u64, u64)> {
        Some(self.order.first()?.0)
    }

    fn victim(&mut self) -> Victim {
        let Some((_, element)) = self.order.pop_first() else { return Victim::None };
        self.ranks.remove(&element);
        Victim::Cached(element)
    }
}

macro_rules! ranked {
    ($(#[$doc:meta])* $name:ident, $rank:expr) => {
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name(Ranked);

        impl Policy for $name {
            fn insert(&mut self, element: u32, usage: Use) {
                let rank: fn(Use) -> (u64, u64) = $rank;
                self.0.insert(element, rank(usage));
            }

            fn remove(&mut self, element: u32) {
                self.0.remove(element);
            }

            fn victim(&mut self, _: Use) -> Victim {
                self.0.victim()
            }
        }
    };
}

ranked! {
    /// JOADER's: what the fewest jobs have still to draw goes first; of several, what was used the longest ago.
    RefCnt, |usage| (usage.to_come as u64, usage.used_at)
}

ranked! {
    /// What was used the longest ago goes first.
    Lru, |usage| (usage.used_at, 0)
}

ranked! {
    /// What was read the longest ago goes first.
    Fifo, |usage| (usage.read_at, 0)
}

/// Random replacement: all are equally likely to go.
pub struct Replacement {
    rng: Xoshiro256PlusPlus,
    elements: Vec<u32>,
    places: HashMap<u32, usize>,
}

impl Replacement {
    /// Draws by this seed.
    pub fn new(seed: i64) -> Self {
        Self { rng: stream(ALONE, seed, 1, 0), elements: Vec::new(), places: HashMap::new() }
    }
}

impl Policy for Replacement {
    fn insert(&mut self, element: u32, _: Use) {
        if self.places.insert(element, self.elements.len()).is_none() {
            self.elements.push(element);
        }
    }

    fn remove(&mut self, element: u32) {
        if let Some(place) = self.places.remove(&element) {
            self.elements.swap_remove(place);
            if let Some(&moved) = self.elements.get(place) {
                self.places.insert(moved, place);
            }
        }
    }

    fn victim(&mut self, _: Use) -> Victim {
        if self.elements.is_empty() {
            return Victim::None;
        }
        let element = self.elements[below(&mut self.rng, self.elements.len())];
        self.remove(element);
        Victim::Cached(element)
    }
}

/// CoorDL's: what is cached stays, and nothing else gets in.
#[derive(Default)]
pub struct MinIo;

impl Policy for MinIo {
    fn insert(&mut self, _: u32, _: Use) {}

    fn remove(&mut self, _: u32) {}

    fn victim(&mut self, _: Use) -> Victim {
        Victim::New
    }
}

/// Belady's optimum, which no one can do better than: what will be asked for last goes, be it the new one. It has to
/// know all requests in advance.
pub struct Optimum {
    /// For each request, when its element is asked for again.
    next: Vec<u64>,
    ranked: Ranked,
}

impl Optimum {
    /// For exactly these requests.
    pub fn new(requests: &[u32]) -> Self {
        let mut next = vec![u64::MAX; requests.len()];
        let mut later = HashMap::new();
        for (at, &element) in requests.iter().enumerate().rev() {
            if let Some(then) = later.insert(element, at as u64) {
                next[at] = then;
            }
        }
        Self { next, ranked: Ranked::default() }
    }

    /// The later, the less.
    fn rank(&self, usage: Use) -> (u64, u64) {
        (u64::MAX - self.next[usage.used_at as usize], 0)
    }
}

impl Policy for Optimum {
    fn insert(&mut self, element: u32, usage: Use) {
        let rank = self.rank(usage);
        self.ranked.insert(element, rank);
    }

    fn remove(&mut self, element: u32) {
        self.ranked.remove(element);
    }

    fn victim(&mut self, new: Use) -> Victim {
        match self.ranked.least() {
            Some(least) if self.rank(new) <= least => Victim::New,
            _ => self.ranked.victim(),
        }
    }
}
