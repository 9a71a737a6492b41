//! Processes: workers, memory that they share, what they tell each other, the progress view, and sessions that read
//! together.

pub mod all_gather;
pub mod dsm;
mod late_memory;
pub mod parallel;
pub mod progress;
pub mod reading_groups;
