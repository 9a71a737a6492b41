//! Processes: workers, memory that they share, what they tell each other and the progress view.

pub mod all_gather;
pub mod dsm;
pub mod parallel;
pub mod progress;
