//! The strategies by which tuples are ordered, a file for each, and their list.
//!
//! It guarantees that a strategy is defined in one place: what it does with blocks and with tuples, and what goes with
//! it. It prevents a misspelt name from silently becoming a default.

mod block_only;
mod block_only_stratified;
mod corgipile;
mod corgipile_one_buffer;
mod corgipile_simple;
mod definition;
mod epoch_shuffle;
mod mrs;
mod no_shuffle;
mod retention;
mod shuffle_once;
mod sliding_window;

use std::ffi::CStr;
use std::fmt;
use std::str::FromStr;

pub use definition::CHUNKS_PER_BUFFER;
pub(crate) use definition::{BlockOrder, Definition, Sort};
pub(crate) use retention::{Arrival, Retention, close_up};

/// Makes the list of strategies: the variants, in the order in which they are listed to users, and their definitions.
macro_rules! strategies {
    ($($(#[$doc:meta])* $variant:ident = $module:ident,)*) => {
        /// How the tuples of a table are ordered in each epoch.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Strategy {
            $($(#[$doc])* $variant,)*
        }

        impl Strategy {
            /// Every strategy, in the order in which they are listed to users.
            pub const ALL: [Strategy; [$(stringify!($variant)),*].len()] = [$(Strategy::$variant),*];

            /// Everything that the strategy says about itself.
            pub(crate) fn definition(self) -> &'static Definition {
                match self {
                    $(Strategy::$variant => const { &$module::DEFINITION },)*
                }
            }
        }
    };
}

strategies! {
    /// The table's own order, in every epoch. The baseline that suffers from clustered labels.
    NoShuffle = no_shuffle,
    /// A copy in random order, made before the first epoch and read in every one.
    ShuffleOnce = shuffle_once,
    /// A copy in a new random order for every epoch.
    EpochShuffle = epoch_shuffle,
    /// The table's own order through a window of one buffer: each tuple that comes takes the place of a random one,
    /// which goes (TensorFlow's shuffle).
    SlidingWindow = sliding_window,
    /// Multiplexed reservoir sampling (Bismarck's): the table's own order, but for the tuples that a reservoir keeps,
    /// among which come those of the last epoch's reservoir, again and again.
    Mrs = mrs,
    /// Blocks in random order, the tuples within them as they lie.
    BlockOnly = block_only,
    /// Blocks in random order, and the tuples of a buffer full of blocks shuffled among each other.
    CorgiPile = corgipile,
    /// As `block_only`, with the blocks of a buffer drawn as `corgipile` draws them.
    BlockOnlyStratified = block_only_stratified,
    /// As `corgipile`, with the blocks of a buffer drawn as the paper draws them: all sets of blocks are equally
    /// likely.
    CorgiPileSimple = corgipile_simple,
    /// As `corgipile_simple`, but an epoch is one buffer: the paper's Algorithm 1. Other blocks come in each epoch.
    CorgiPileOneBuffer = corgipile_one_buffer,
}

/// A name that is no [`Strategy`]'s.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown shuffle strategy \"{0}\"")]
pub struct UnknownStrategy(pub String);

impl Strategy {
    /// The name by which users know the strategy.
    pub fn name(self) -> &'static str {
        self.definition().name
    }

    /// Whether blocks come in random order.
    pub fn shuffles_blocks(self) -> bool {
        self.definition().blocks != BlockOrder::Natural
    }

    /// Whether the tuples in a buffer are shuffled.
    pub fn shuffles_tuples(self) -> bool {
        self.definition().shuffles_tuples
    }

    /// Whether a sorted copy of the table is read, instead of the table.
    pub fn sorts(self) -> bool {
        self.definition().sort != Sort::Never
    }

    /// Whether the copy is sorted again for each epoch.
    pub fn sorts_each_epoch(self) -> bool {
        self.definition().sort == Sort::EachEpoch
    }

    /// Whether tuples stay in the buffer from one read to the next, in every epoch but 0.
    pub fn keeps_tuples(self) -> bool {
        self.definition().retention.is_some()
    }

    /// What EXPLAIN calls the number of tuples that stay in the buffer; None if none do.
    pub fn capacity_label(self) -> Option<&'static CStr> {
        self.definition().capacity_label
    }

    /// Whether each tuple comes exactly once in an epoch.
    pub fn permutes(self) -> bool {
        self.definition().permutes
    }

    /// Whether an epoch is one buffer of the table's blocks.
    pub fn reads_one_buffer(self) -> bool {
        self.definition().blocks == BlockOrder::OneBuffer
    }

    /// Whether the rows may fall into groups, or a validation part: tuples that stay in the buffer would stay in that
    /// of another group, and one buffer may have no row of a group.
    pub fn supports_groups(self) -> bool {
        !self.keeps_tuples() && !self.reads_one_buffer()
    }

    /// Whether several processes can learn from it together.
    pub fn supports_workers(self) -> bool {
        self.definition().supports_workers
    }

    /// Whether an aggregate can learn from it.
    pub fn supports_aggregate(self) -> bool {
        self.definition().supports_aggregate
    }

    /// Why decoded tuples cannot be kept for the next epoch; None if they can.
    pub fn uncacheable(self) -> Option<&'static str> {
        self.definition().uncacheable
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
            "no_shuffle, shuffle_once, epoch_shuffle, sliding_window, mrs, block_only, corgipile, block_only_stratified, \
             corgipile_simple, corgipile_one_buffer"
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
    fn only_corgipile_in_its_forms_shuffles_both_blocks_and_tuples() {
        let with = |question: fn(Strategy) -> bool| Strategy::ALL.into_iter().filter(move |s| question(*s));
        let corgipile = [Strategy::CorgiPile, Strategy::CorgiPileSimple, Strategy::CorgiPileOneBuffer];
        assert!(with(|strategy| strategy.shuffles_blocks() && strategy.shuffles_tuples()).eq(corgipile));
        assert!(with(Strategy::shuffles_tuples).eq(corgipile));
        assert!(with(Strategy::sorts).eq([Strategy::ShuffleOnce, Strategy::EpochShuffle]));
    }

    #[test]
    fn what_a_strategy_supports_follows_from_what_it_does() {
        for strategy in Strategy::ALL {
            assert!(!strategy.supports_groups() || !strategy.keeps_tuples(), "{strategy}");
            assert!(!strategy.sorts_each_epoch() || strategy.sorts(), "{strategy}");
            assert!(strategy.permutes() || strategy.keeps_tuples() || strategy.reads_one_buffer(), "{strategy}");
            assert_eq!(strategy.capacity_label().is_some(), strategy.keeps_tuples(), "{strategy}");
            let has_other_tuples = strategy.sorts_each_epoch() || strategy.reads_one_buffer();
            assert_eq!(strategy.uncacheable().is_some(), strategy.keeps_tuples() || has_other_tuples);
        }
    }
}
