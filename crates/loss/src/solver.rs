//! How losses are made small.

use choices::choice;

choice! {
    /// How a model's loss is made small.
    Solver {
        /// Steps along the gradients of a tuple or a mini-batch.
        Sgd = "sgd",
        /// Steps by gradient and Hessian of all tuples.
        Newton = "newton",
    }
}

impl Solver {
    /// Features that a Hessian may have: of more, its squares take hundreds of megabytes, and steps minutes.
    pub const MAX_FEATURES: usize = 2_000;
}
