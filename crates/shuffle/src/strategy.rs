//! The strategies by which tuples are ordered, and their names.
//!
//! It guarantees that each strategy is decided in one place, by what it does with blocks and with tuples, and
//! prevents a misspelt name from silently becoming a default.

use std::fmt;
use std::str::FromStr;

/// How the tuples of a table are ordered in each epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// The table's own order, in every epoch. The baseline that suffers from clustered labels.
    NoShuffle,
    /// A copy in random order, made before the first epoch and read in every one.
    ShuffleOnce,
    /// A copy in a new random order for every epoch.
    EpochShuffle,
    /// The table's own order through a window of one buffer: each tuple that comes takes the place of a random one, which
    /// goes (TensorFlow's shuffle).
    SlidingWindow,
    /// Multiplexed reservoir sampling (Bismarck's): the table's own order, but for the tuples that a reservoir keeps, among
    /// which come those of the last epoch's reservoir, again and again.
    Mrs,
    /// Blocks in random order, the tuples within them as they lie.
    BlockOnly,
    /// Blocks in random order, and the tuples of a buffer full of blocks shuffled among each other.
    CorgiPile,
}

/// A name that is no [`Strategy`]'s.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown shuffle strategy \"{0}\"")]
pub struct UnknownStrategy(pub String);

impl Strategy {
    /// Every strategy, in the order in which they are listed to users.
    pub const ALL: [Strategy; 7] = [
        Strategy::NoShuffle,
        Strategy::ShuffleOnce,
        Strategy::EpochShuffle,
        Strategy::SlidingWindow,
        Strategy::Mrs,
        Strategy::BlockOnly,
        Strategy::CorgiPile,
    ];

    /// The name by which users know the strategy.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::NoShuffle => "no_shuffle",
            Strategy::ShuffleOnce => "shuffle_once",
            Strategy::EpochShuffle => "epoch_shuffle",
            Strategy::SlidingWindow => "sliding_window",
            Strategy::Mrs => "mrs",
            Strategy::BlockOnly => "block_only",
            Strategy::CorgiPile => "corgipile",
        }
    }

    /// Whether blocks come in random order.
    pub fn shuffles_blocks(self) -> bool {
        matches!(self, Strategy::BlockOnly | Strategy::CorgiPile)
    }

    /// Whether the tuples in a buffer are shuffled.
    pub fn shuffles_tuples(self) -> bool {
        matches!(self, Strategy::CorgiPile)
    }

    /// Whether a sorted copy of the table is read, instead of the table.
    pub fn sorts(self) -> bool {
        matches!(self, Strategy::ShuffleOnce | Strategy::EpochShuffle)
    }

    /// Whether each tuple comes exactly once in an epoch.
    pub fn permutes(self) -> bool {
        self != Strategy::Mrs
    }

    /// The names of all strategies in one line, for a hint.
    pub fn known() -> String {
        Strategy::ALL.map(Strategy::name).join(", ")
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    /// Reads a name exactly as [`Strategy::name`] writes it.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
        found.ok_or_else(|| UnknownStrategy(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_is_found_by_its_own_name() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
    }

    #[test]
    fn the_known_names_are_listed_in_one_line() {
        assert_eq!(
            Strategy::known(),
            "no_shuffle, shuffle_once, epoch_shuffle, sliding_window, mrs, block_only, corgipile"
        );
    }

    #[test]
    fn a_name_that_differs_in_case_or_space_is_unknown() {
        for name in ["CorgiPile", " corgipile", "corgi", "", "no_shuffle, block_only"] {
            let error = name.parse::<Strategy>().unwrap_err();
            assert_eq!(error, UnknownStrategy(name.to_owned()));
            assert_eq!(error.to_string(), format!("unknown shuffle strategy \"{name}\""));
        }
    }

    #[test]
    fn only_corgipile_shuffles_both_blocks_and_tuples() {
        let with = |question: fn(Strategy) -> bool| Strategy::ALL.into_iter().filter(move |s| question(*s));
        assert!(with(Strategy::shuffles_blocks).eq([Strategy::BlockOnly, Strategy::CorgiPile]));
        assert!(with(Strategy::shuffles_tuples).eq([Strategy::CorgiPile]));
        assert!(with(Strategy::sorts).eq([Strategy::ShuffleOnce, Strategy::EpochShuffle]));
    }
}
