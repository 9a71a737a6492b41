//! Which weights a penalty is on.

use choices::choice;

choice! {
    /// Which weights l2 is on. Intercepts know no penalty.
    Penalized {
        /// All.
        All = "all",
        /// Those of categories, and not those of numbers.
        Categories = "categories",
    }
}
