//! Is a model worse than one that says the same of every row?

use super::learners::{Learner, Learners};
use decode::{Decoder, RowGroups};
use errors::{excerpt, some_of};
use loss::{ModelKind, Output};
use options::chosen::Keep;
use options::loss::Loss;
use options::request::Request;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tuples::Batch;

/// A model may be so much worse before it is said: the loss of an epoch is that of models that were still learning.
const SLACK: f64 = 0.1;

/// The R² of counts may be so far below 0 where their deviance is the least: it is decided by the largest.
const COUNTS: f64 = 1.0;

/// The weights of the classes in what models learn from, by group.
#[derive(Default, Serialize, Deserialize)]
pub struct ClassShares(Vec<Vec<f64>>);

impl ClassShares {
    /// Adds the tuples of a group at these places of a batch's order.
    pub fn add(&mut self, decoder: &Decoder, batch: &Batch, group: usize, places: Range<usize>) {
        if self.0.len() <= group {
            self.0.resize_with(group + 1, Vec::new);
        }
        let classes = &mut self.0[group];
        let mut add = |label: f32, weight: f32| {
            let class = decoder.labels().class(label);
            if classes.len() <= class {
                classes.resize(class + 1, 0.0);
            }
            classes[class] += f64::from(weight);
        };
        for &place in &batch.order()[places] {
            let place = place as usize;
            if batch.has_mini_batches() {
                let mini_batch = batch.mini_batch(place);
                let weight = |i: usize| mini_batch.weights().map_or(1.0, |weights| weights[i]);
                (0..).zip(mini_batch.labels()).for_each(|(i, label)| add(*label, weight(i)));
            } else {
                add(batch.labels()[place], batch.weights().map_or(1.0, |weights| weights[place]));
            }
        }
    }

    /// Adds what another process has learned from.
    pub fn unite(&mut self, other: &ClassShares) {
        for (group, classes) in other.0.iter().enumerate() {
            self.0.resize_with(self.0.len().max(group + 1), Vec::new);
            let all = &mut self.0[group];
            all.resize(all.len().max(classes.len()), 0.0);
            all.iter_mut().zip(classes).for_each(|(all, weight)| *all += weight);
        }
    }

    /// Takes the rows of each class that each of several has counted, if all of them are of one group and weigh the
    /// same: else it is not known what models learn from.
    pub fn take_counts(&mut self, request: &Request, parts: &[Vec<u64>]) {
        let options = &request.options;
        if request.row_groups.group.is_some() || options.weight.is_some() || options.class_weight.is_some() {
            return;
        }
        let mut classes = vec![0.0; parts.iter().map(Vec::len).max().unwrap_or(0)];
        for part in parts {
            classes.iter_mut().zip(part).for_each(|(all, rows)| *all += *rows as f64);
        }
        self.0 = vec![classes];
    }

    fn classes(&self, group: usize) -> usize {
        self.0.get(group).map_or(0, Vec::len)
    }

    /// The loss of the constant that is best for what the model of a group learns from.
    fn constant_loss(&self, kind: ModelKind, group: usize) -> Option<f64> {
        constant_loss(kind, self.0.get(group)?.iter().copied())
    }
}

/// The loss of the constant that is best for classes of these weights, if they weigh anything.
fn constant_loss(kind: ModelKind, weights: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let all: f64 = weights.clone().sum();
    let shares: Vec<f64> = weights.map(|weight| weight / all).collect();
    if all > 0.0 { kind.constant_loss(&shares) } else { None }
}

/// The classes of which a model has learned from no row, because those that it has are held out; where there are
/// groups, with the group.
fn held_out_classes(decoder: &Decoder, shares: &ClassShares, learners: &Learners) -> Vec<String> {
    let of_first_points = learners.trained().filter(|learner| learner.point == 0);
    let unlearned = of_first_points.flat_map(|learner| {
        let learned = shares.0.get(learner.group);
        let is_learned = move |class: usize| learned.is_none_or(|learned| learned.get(class).is_some_and(|w| *w > 0.0));
        let held_out = (0..learner.held_out.len()).filter(|class| learner.held_out[*class] > 0);
        held_out.filter(move |class| !is_learned(*class)).map(|class| (learner.group, class))
    });
    let mut unlearned = unlearned.peekable();
    let (Some(_), Some(classes)) = (unlearned.peek(), decoder.labels().classes()) else { return Vec::new() };
    let mut names = classes.names;
    if classes.swapped {
        names.reverse();
    }
    let groups = decoder.row_groups().map(RowGroups::groups).unwrap_or_default();
    let name = |(group, class): (usize, usize)| match groups.get(group).and_then(Option::as_deref) {
        Some(group) => format!("{} (group {})", excerpt(&names[class]), excerpt(group)),
        None => excerpt(&names[class]),
    };
    unlearned.map(name).collect()
}

/// Warns of classes that are only held out, or else of models that are worse than a constant.
pub fn warn_of_useless(request: &Request, decoder: &Decoder, shares: &ClassShares, learners: &Learners) {
    let classes = held_out_classes(decoder, shares, learners);
    if !classes.is_empty() {
        pg::warning(
            format!("label column \"{}\" is {} in no training row", request.label, some_of(&classes)),
            "All such rows are held out. Hold out other rows with seed or validation_column, or use a query as source \
             that leaves such rows out.",
        );
        return;
    }
    let all = learners.trained().count();
    let mut useless = learners.trained().filter_map(|learner| useless(request, shares, learner));
    if let Some(first) = useless.next() {
        let models = 1 + useless.count();
        match request.trains_several() {
            true => pg::warning(
                format!("{models} of {all} models are worse than a constant baseline"),
                "See corgipile.training_history for the loss of each.",
            ),
            false => pg::warning(
                format!("the model is worse than a constant baseline: its {first}"),
                "Use the defaults of learning_rate, standardize and shuffle, or a smaller learning_rate and more \
                 epochs; or add features that are related to the label.",
            ),
        }
    }
}

/// What a model is compared by, if it is worse.
fn useless(request: &Request, shares: &ClassShares, learner: &Learner) -> Option<String> {
    // the loss of the first epoch is that of models that knew next to nothing, unless they began with the weights of
    // another
    let known = learner.history.get(usize::from(request.resume.is_none())..)?;
    let row = match request.options.keep {
        Keep::Last => known.last(),
        Keep::Best => known.iter().min_by(|a, b| a.deciding_loss().total_cmp(&b.deciding_loss())),
    }?;
    let hyper = &request.points[learner.point].hyperparameters;
    let named = |r2: f64| format!("R2 is {r2:.4}");
    match Loss::of(request.kind) {
        Some(Loss::Quantile) => return None, // of which R² says nothing
        Some(Loss::Poisson) => return row.validation_score.or(row.r2).filter(|r2| *r2 < -COUNTS).map(named),
        _ => {}
    }
    // the loss of an epoch is that of the iterates, and the model is their mean
    if hyper.averaging && row.validation_loss.is_none() {
        return None;
    }
    let kind = request.kind;
    if !kind.is_classifier() {
        let r2 = row.validation_score.or(row.r2)?;
        return (r2 < -SLACK).then(|| named(r2));
    }
    // where each of several classes has an output of its own, the loss is a sum over all of them
    if hyper.design.is_some_and(|design| design.output == Some(Output::Sigmoid)) && shares.classes(learner.group) > 2 {
        return None;
    }
    let (model, mut constant) = (row.deciding_loss(), shares.constant_loss(kind, learner.group)?);
    if row.validation_loss.is_some() {
        // the rows that are held out may have another mix of classes, of which another constant is the best
        let held_out = constant_loss(kind, learner.held_out.iter().map(|rows| *rows as f64));
        constant = held_out.unwrap_or(0.0).max(constant);
    }
    (model > (1.0 + SLACK) * constant).then(|| format!("loss is {model:.4}, that of the best constant {constant:.4}"))
}
