//! What an administrator sees of a statement: plan, progress, resources, and its end when it is stopped.

mod cancel;
mod explain;
mod planner;
mod progress;
mod resources;
