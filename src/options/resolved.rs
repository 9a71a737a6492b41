//! A call of corgipile_train() in which nothing is open: what is recorded with a model, and what EXPLAIN shows.

use super::chosen::{Options, Point};
use super::rows::ClassWeight;
use sgd::{Design, Hyperparameters, ModelKind, Optimizer, Schedule, Solver};
use shuffle::{BlockSize, BufferSize, Strategy};

/// A call in which nothing is open.
pub struct Resolved<'a> {
    pub kind: ModelKind,
    /// do the labels decide what the network predicts?
    pub has_open_objective: bool,
    pub label: &'a str,
    /// the feature columns, as they are shown
    pub features: &'a str,
    pub options: &'a Options,
    pub group_by: Option<&'a str>,
    /// what one model is trained with; None for what several points of a grid have in common
    pub point: Option<&'a Point>,
    /// how many there are
    pub points: usize,
    /// the most that one of them takes
    pub max_epochs: u32,
    /// are the epochs still to be chosen by the tuples?
    pub has_open_epochs: bool,
    /// the model that is trained on, and its epochs
    pub continues: Option<(i64, u32)>,
    pub strategy: Strategy,
    pub seed: i64,
    pub block_size: BlockSize,
    pub buffer_size: BufferSize,
    pub sample: Option<f64>,
    /// is the source read together with other sessions, or was it in the training that goes on?
    pub shares: bool,
    /// processes that were asked for
    pub workers: u32,
    /// those that have trained; None before
    pub processes: Option<u32>,
    /// is the source read as blocks, and not by a query?
    pub in_blocks: bool,
}

impl Resolved<'_> {
    pub fn hyper(&self) -> Option<&Hyperparameters> {
        self.point.map(|point| &point.hyperparameters)
    }

    /// Is it Newton's method, which has neither a learning rate nor mini-batches?
    pub fn is_newton(&self) -> bool {
        self.hyper().is_some_and(|hyper| hyper.solver == Solver::Newton)
    }

    /// What a model is trained with by gradients.
    fn hyper_of_sgd(&self) -> Option<&Hyperparameters> {
        self.hyper().filter(|hyper| hyper.solver == Solver::Sgd)
    }

    /// The same of a model without hidden layers.
    pub fn hyper_of_linear_sgd(&self) -> Option<&Hyperparameters> {
        self.hyper_of_sgd().filter(|hyper| hyper.design.is_none())
    }

    pub fn schedule(&self) -> Option<Schedule> {
        self.hyper_of_sgd().map(|hyper| hyper.schedule)
    }

    pub fn optimizer(&self) -> Option<Optimizer> {
        self.hyper_of_sgd().map(|hyper| hyper.optimizer)
    }

    pub fn design(&self) -> Option<&Design> {
        self.hyper()?.design.as_ref()
    }

    /// The size of mini-batches, if it is not that of the source's.
    pub fn batch_size(&self) -> Option<u32> {
        self.hyper_of_sgd().map(|hyper| hyper.batch_size).filter(|size| *size < Hyperparameters::WHOLE_MINI_BATCHES)
    }

    /// The weights of classes, as EXPLAIN shows them.
    pub fn class_weight(&self) -> Option<String> {
        Some(match self.options.class_weight.as_ref()? {
            ClassWeight::Balanced => ClassWeight::BALANCED.to_owned(),
            given => given.to_json().to_string(),
        })
    }
}
