//! Training by an aggregate: corgipile_sgd_agg() and corgipile_train_uda().

mod agreement;
mod parts;
mod states;
mod train_uda;
