//! Many linear models that learn from the same tuples side by side, a model to a lane.
//!
//! Guarantees: each model makes the steps of plain SGD, tuple by tuple, with its own learning rate, penalty and bound,
//! as a `sgd::Trainer` of its own would from the tuples that it learns from, up to rounding; which ones
//! these are, the parts of the tuples say. A model depends on the hyperparameters and the sequence of tuples alone, bit
//! for bit, and not on how it was cut into ranges, nor on the other models.
//!
//! It prevents that a hundred models take a hundred times as long as one. What one model spends on a tuple, it spends
//! waiting: the gradient needs the dot product, and the next dot product the gradient. Of sixteen models in the lanes
//! of a register, all wait together, and no lane is added up to another; the tuple is read once for all of them.

mod engine;
mod group;
mod learn;

pub use engine::Panel;
