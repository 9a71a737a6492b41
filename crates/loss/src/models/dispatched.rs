//! The losses that share the loops of the engines.
//!
//! Guarantees: the bits are those of the loss itself. It prevents that every loop of every engine is compiled for every
//! loss and every instruction set: which loss it is, is decided tuple by tuple, which a processor guesses rightly. The
//! losses that most models have are compiled into loops of their own, where a tuple takes a few nanoseconds
//! ([`ModelKind::with_pointwise`]).

use simd::{Chunk, Simd};

use super::definition::LinearModel;
use super::epsilon_insensitive::EpsilonInsensitive;
use super::huber::Huber;
use super::linear::Linear;
use super::logistic::Logistic;
use super::objective::{Pointwise, PointwiseVisitor};
use super::poisson::Poisson;
use super::quantile::Quantile;
use super::squared_hinge::SquaredHinge;
use super::svm::Svm;
use crate::ModelKind;
use crate::totals::Totals;

macro_rules! dispatched {
    ($($loss:ident)*) => {
        /// One of several losses.
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum Dispatched {
            $($loss($loss),)*
        }

        impl Dispatched {
            /// The loss of a model of this kind, with this number of the loss.
            #[inline]
            pub(super) fn new(kind: ModelKind, number: f32) -> Dispatched {
                match kind {
                    $(ModelKind::$loss => Dispatched::$loss($loss::objective(number)),)*
                    _ => panic!("{kind} is not pointwise, or has loops of its own"),
                }
            }
        }

        impl Pointwise for Dispatched {
            #[inline(always)]
            fn factor(self, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => loss.factor(y),)* }
            }

            #[inline(always)]
            fn direction(self, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => loss.direction(y),)* }
            }

            #[inline(always)]
            fn negative_gradient<S: Simd>(self, simd: S, m: f32, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => Pointwise::negative_gradient(loss, simd, m, y),)* }
            }

            #[inline(always)]
            fn negative_gradients<S: Simd>(self, simd: S, margins: Chunk, y: f32) -> Chunk {
                match self { $(Dispatched::$loss(loss) => Pointwise::negative_gradients(loss, simd, margins, y),)* }
            }

            #[inline(always)]
            fn bend(self, m: f32, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => Pointwise::bend(loss, m, y),)* }
            }

            #[inline(always)]
            fn loss(self, m: f32, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => Pointwise::loss(loss, m, y),)* }
            }

            #[inline(always)]
            fn losses(self, margins: &[f32], labels: &[f32], out: &mut [f32]) {
                match self { $(Dispatched::$loss(loss) => loss.losses(margins, labels, out),)* }
            }

            #[inline(always)]
            fn single_loss(self, m: f32, y: f32) -> f32 {
                match self { $(Dispatched::$loss(loss) => Pointwise::single_loss(loss, m, y),)* }
            }

            #[inline(always)]
            fn count(self, totals: &mut Totals, margins: &[f32], labels: &[f32], weights: &[f32]) {
                match self { $(Dispatched::$loss(loss) => Pointwise::count(loss, totals, margins, labels, weights),)* }
            }
        }
    };
}

dispatched! { Poisson Quantile EpsilonInsensitive Huber SquaredHinge }

impl ModelKind {
    /// Hands what a linear model minimises, with this number of the loss, to the visitor: the losses that most models
    /// have by their own types, others as one of several.
    ///
    /// # Panics
    /// If it is not [pointwise](ModelKind::is_pointwise).
    #[inline(always)]
    pub fn with_pointwise<V: PointwiseVisitor>(self, number: f32, visitor: V) -> V::Output {
        match self {
            ModelKind::Logistic => visitor.visit(Logistic::objective(number)),
            ModelKind::Svm => visitor.visit(Svm::objective(number)),
            ModelKind::Linear => visitor.visit(Linear::objective(number)),
            _ => visitor.visit(Dispatched::new(self, number)),
        }
    }
}
