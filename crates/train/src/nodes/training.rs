//! A training whose rows are on other servers, from the first question to the trained model.

use super::choice::{Place, There, notice_rows_come, opened_or_told, task};
use super::cluster::Cluster;
use super::messages::Order;
use super::models::words_of_models;
use crate::learners::Learners;
use crate::opening::{goes_on_in_groups, notice_steps};
use crate::phases::Phase;
use crate::sigmoids::{self, Decided};
use crate::training::{Training, shuffling_of};
use decode::DecoderSpec;
use decode::notices::notice_open_order;
use decode::wanted::Wanted;
use errors::{Errand, Result};
use loss::{ModelParameters, Solver, Steps};
use options::chosen::Point;
use sgd::platt::HeldOutDecisions;
use std::time::{Duration, Instant};
use tuples::Batch;

/// The mini-batch where models of single steps would be averaged that have learned different things.
const BATCH: u32 = 32;

/// Labels are mixed alike on all servers if none of them has a mix that differs by more from that of all rows, in total
/// variation.
const ALIKE: f64 = 0.25;

impl Training {
    /// Trains where the rows are, if that was asked for and can be; that it cannot is reported. Also gives the time of
    /// the pass before the first epoch.
    pub(crate) fn train_there(&mut self) -> Result<Option<(Learners, Duration)>> {
        self.tell_why_here();
        let place = std::mem::replace(&mut self.place, Place::Here);
        let trained = match &place {
            Place::Here | Place::HereBecause(_) => None,
            Place::There(there) => match self.open_nodes(there)? {
                Some(mut cluster) => {
                    let trained = cluster.sensible(|cluster| self.train_on_nodes(cluster))?;
                    self.summary.traffic = Some(cluster.traffic);
                    Some(trained)
                }
                None => None,
            },
        };
        self.place = place;
        Ok(trained)
    }

    /// Reports why the rows are fetched here, if it was asked that they do not.
    pub(crate) fn tell_why_here(&self) {
        if let Place::HereBecause(why) = &self.place {
            notice_rows_come(Errand::Training, why);
        }
    }

    /// Opens the sessions. None if something speaks against it and the rows may be fetched here instead, which is
    /// reported.
    fn open_nodes(&mut self, there: &There) -> Result<Option<Cluster>> {
        let spec = DecoderSpec::of_request(&self.request, &self.source.features);
        // nodes go through their rows before the first epoch, whether anything is wanted or not, unless it is all known
        let shuffling = shuffling_of(
            &self.request,
            self.prepares.is_some() || self.resume.is_none() || goes_on_in_groups(&self.request, self.resume.as_ref()),
        );
        let opened =
            Cluster::open(&there.rows, &there.columns, |rows| task(rows, &spec, &self.source.columns, &shuffling));
        let cluster = opened_or_told(opened, self.request.nodes_may_be_off(), Errand::Training)?;
        if cluster.is_none() && there.order_varies_here && self.request.shuffling.seed_is_given {
            notice_open_order();
        }
        Ok(cluster)
    }

    /// Trains on the nodes. Also gives the time of the pass before the first epoch.
    fn train_on_nodes(&mut self, cluster: &mut Cluster) -> Result<(Learners, Duration)> {
        let start = Instant::now();
        let wanted = self.prepares.or(self.resume.is_none().then_some(Wanted::NOTHING));
        if let Some(wanted) = wanted {
            let parts = cluster.prepare(&mut self.buffers.decoder, wanted, self.resume.is_some())?;
            self.count_imputed();
            if self.resume.is_none() {
                self.fit_to_mix(&parts);
            }
            self.seen.class_shares.take_counts(&self.request, &parts);
        } else if goes_on_in_groups(&self.request, self.resume.as_ref()) {
            cluster.find_groups(&mut self.buffers.decoder, self.request.first_epoch())?;
        }
        if self.prepares.is_some() {
            self.choose();
        } else {
            self.choose_features();
        }
        self.begin_with_model();
        self.request.train_together();
        let preparation = start.elapsed();
        self.phases.end(Phase::Preparation);
        let decoder = &self.buffers.decoder;
        decoder.check_size(decoder.dim(), decoder.standardizer().is_some())?;
        let groups = self.groups_together();
        Learners::default().check_size(&self.request, decoder.dim(), decoder.labels().outputs(), groups)?;
        notice_steps(decoder, cluster.servers().count());
        let trainers = cluster.start(decoder, groups, &self.request, self.resume.as_ref())?;
        let averages = |point: &Point| point.hyperparameters.steps() == Steps::ByTuple;
        if cluster.shares_a_group() && self.request.points.iter().any(averages) {
            pg::notice(
                "with batch_size 1, each server trains its own model, and the models are averaged after each buffer",
                "The reported loss and accuracy are those of the servers' own models. If rows differ from server to \
                 server, the averaged model may be much worse: leave batch_size out, or evaluate the model.",
            );
        }
        let mut learners = self.learners_of(trainers)?;
        self.epochs_together(cluster, &mut learners, &mut Batch::dense(0), |_| Ok(()))?;
        if self.request.options.probability {
            let (request, resume, labels) = (&self.request, self.resume.as_ref(), self.buffers.decoder.labels());
            sigmoids::fit_there((request, resume), &mut learners, labels, |models| cluster.decide(models))?;
        }
        self.phases.end(Phase::Epochs);
        Ok((learners, preparation))
    }

    /// A step per tuple means models that are averaged after each buffer. If rows differ from node to node, each learns
    /// something else, of which the mean is nothing: so they learn by mini-batches, unless a step per tuple was asked
    /// for. Even then they do if nodes have other mixes of the labels. So do networks, whose averages mean nothing
    /// anyway, and models of numbers, whose mixes are not known.
    fn fit_to_mix(&mut self, parts: &[Vec<u64>]) {
        let variation = if self.request.kind.is_classifier() { variation(parts) } else { 1.0 };
        let request = &mut self.request;
        if request.kind.is_linear() && parts.len() <= 1 {
            return;
        }
        let are_alike = request.kind.is_linear() && variation <= ALIKE;
        let is_given = request.options.batch_size.is_some();
        let asks = |point: &Point| point.says.as_ref().is_some_and(|says| says.contains_key("batch_size")) || is_given;
        let suits_newton = request.suits_newton(self.buffers.decoder.dim());
        let by_tuple = |point: &Point| {
            let hyper = &point.hyperparameters;
            hyper.batch_size == 1 && hyper.solver == Solver::Sgd && !(point.has_open_solver && suits_newton)
        };
        let mut changed = 0;
        for point in request.points.iter_mut().filter(|point| by_tuple(point) && !(are_alike && asks(point))) {
            point.hyperparameters.batch_size = BATCH;
            point.has_open_batch_size = false;
            changed += 1;
        }
        if changed > 0 {
            pg::notice(
                format!("batch_size is {BATCH}: with 1, models of servers with different rows would be averaged"),
                "Set batch_size to use another value above 1.",
            );
        }
    }
}

impl Cluster {
    /// Do several nodes learn from one group?
    fn shares_a_group(&self) -> bool {
        self.servers().count() > 1 && (self.owners.is_empty() || self.owners.contains(&None))
    }

    /// What models of these groups decide for all rows that the nodes hold out.
    fn decide(&mut self, models: &[(usize, ModelParameters)]) -> Result<Vec<Decided>> {
        let groups: Vec<usize> = models.iter().map(|(group, _)| *group).collect();
        self.order(|_| Order::Decide(groups.clone()));
        self.attach_words(words_of_models(models.iter().map(|(_, model)| model)));
        let outputs = models.first().map_or(0, |(_, model)| model.outputs);
        let mut all = vec![vec![HeldOutDecisions::default(); outputs]; models.len()];
        for decided in self.ask::<Vec<Decided>>()? {
            if decided.len() != all.len() || decided.iter().any(|decided| decided.len() != outputs) {
                return Err(self.nonsense());
            }
            for (all, own) in all.iter_mut().zip(decided) {
                all.iter_mut().zip(own).for_each(|(all, own)| all.unite(own));
            }
        }
        Ok(all)
    }
}

/// By how much the mix of labels of a node differs from that of all rows, at most, in total variation.
fn variation(parts: &[Vec<u64>]) -> f64 {
    let classes = parts.iter().map(Vec::len).max().unwrap_or(0);
    let shares = |counts: &dyn Fn(usize) -> u64| {
        let all = (0..classes).map(counts).sum::<u64>().max(1) as f64;
        (0..classes).map(|class| counts(class) as f64 / all).collect::<Vec<f64>>()
    };
    let of = |part: &[u64], class: usize| part.get(class).copied().unwrap_or(0);
    let all = shares(&|class| parts.iter().map(|part| of(part, class)).sum());
    let with_rows = parts.iter().filter(|part| part.iter().sum::<u64>() > 0);
    let differences = with_rows.map(|part| {
        let own = shares(&|class| of(part, class));
        own.iter().zip(&all).map(|(own, all)| (own - all).abs()).sum::<f64>() / 2.0
    });
    differences.fold(0.0, f64::max)
}
