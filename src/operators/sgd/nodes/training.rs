//! A training whose rows are on other servers, from the first question to the trained model.

use super::choice::{Place, There, task};
use super::cluster::Cluster;
use crate::errors::{Error, Notice, Result, TrainingError};
use crate::operators::decoder::DecoderSpec;
use crate::operators::nulls::notice_left_out;
use crate::operators::sgd::epoch_row::EpochRow;
use crate::operators::sgd::learners::{Learner, check_network};
use crate::operators::sgd::phases::Phase;
use crate::operators::sgd::training::{Training, shuffling_of};
use crate::operators::wanted::Wanted;
use crate::pg;
use crate::pg::process::progress;
use sgd::Trainer;
use std::time::{Duration, Instant};

/// The mini-batch where models of single steps would be averaged that have learned different things.
const BATCH: u32 = 32;

/// Labels are mixed alike on all servers if none of them has a mix that differs by more from that of all rows, in total
/// variation.
const ALIKE: f64 = 0.25;

impl Training {
    /// Trains where the rows are, if that was asked for and can be; that it cannot is told. Also gives the time of the
    /// pass before the first epoch.
    ///
    /// # Errors
    /// Those of the nodes, and what is wrong with the rows; what the servers say is raised.
    pub(in crate::operators::sgd) fn train_there(&mut self) -> Result<Option<(Learner, Duration)>> {
        let place = std::mem::replace(&mut self.place, Place::Here);
        let trained = match &place {
            Place::Here => None,
            Place::HereBecause(why) => {
                pg::report_notice(Notice::NoNodes(why.clone()));
                None
            }
            Place::There(there) => match self.open_nodes(there)? {
                Some(mut cluster) => {
                    let trained = self.train_on_nodes(&mut cluster)?;
                    self.traffic = Some(cluster.traffic);
                    Some(trained)
                }
                None => None,
            },
        };
        self.place = place;
        Ok(trained)
    }

    /// Opens the sessions. None if something speaks against it and the rows may come here instead, which is told.
    fn open_nodes(&mut self, there: &There) -> Result<Option<Cluster>> {
        let spec = DecoderSpec::of_request(&self.request, &self.features);
        let shuffling = shuffling_of(&self.request, true);
        let opened = Cluster::open(&there.rows, &there.columns, |rows| task(rows, &spec, &self.columns, &shuffling));
        match opened {
            Ok(cluster) => Ok(Some(cluster)),
            Err(Error::Node(error)) if error.is_obstacle() && self.request.nodes_may_be_off() => {
                pg::report_notice(Notice::NoNodes(error.to_string()));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Trains on the nodes. Also gives the time of the pass before the first epoch.
    fn train_on_nodes(&mut self, cluster: &mut Cluster) -> Result<(Learner, Duration)> {
        let start = Instant::now();
        let wanted = self.prepares.unwrap_or(Wanted::NOTHING);
        let parts = cluster.prepare(&mut self.buffers.decoder, wanted)?;
        self.count_imputed();
        self.fit_to_mix(&parts);
        if self.prepares.is_some() {
            self.choose();
        } else {
            self.choose_features();
        }
        let preparation = start.elapsed();
        self.phases.end(Phase::Preparation);
        let decoder = &self.buffers.decoder;
        let point = self.request.first_point();
        let hyper = point.hyperparameters;
        decoder.check_size(decoder.dim(), decoder.standardizer().is_some())?;
        check_network(&hyper, decoder.dim(), decoder.labels().outputs())?;
        let trainer = cluster.start(decoder, hyper)?;
        let mut learner = Learner::new(0, 0, trainer);
        let (unit, standardized) = (self.loss_unit(), decoder.standardizer().is_some());
        let diverged = |e: sgd::Diverged| TrainingError::Diverged { epoch: e.epoch, standardized }.into();
        for epoch in 1..=self.request.max_epochs {
            let begin = Instant::now();
            learner.trainer.begin_epoch();
            let check = |trainer: &Trainer| trainer.check().map_err(diverged);
            let decoder = &mut self.buffers.decoder;
            cluster.epoch(&mut learner.trainer, decoder, hyper.batch_size as usize, check)?;
            if epoch == 1 && decoder.all_weigh_nothing() {
                return Err(TrainingError::NoWeight.into());
            }
            let report = learner.trainer.end_epoch().map_err(diverged)?;
            if epoch == 1 {
                notice_left_out(&self.buffers.decoder, report.tuples);
            }
            progress::loss(report.loss * unit);
            learner.history.push(EpochRow::new(report, unit, begin.elapsed(), Duration::ZERO));
            learner.judge(&self.request, 1, None, &|_, _| None)?;
            if !learner.learns() {
                break;
            }
        }
        self.phases.end(Phase::Epochs);
        Ok((learner, preparation))
    }

    /// A step per tuple means models that are averaged after each buffer. If nodes have other mixes of the labels, each
    /// learns something else, of which the mean is nothing: then they learn by mini-batches. So do networks, whose
    /// averages mean nothing anyway, and models of numbers, whose mixes are not known.
    fn fit_to_mix(&mut self, parts: &[Vec<u64>]) {
        let variation = if self.request.kind.is_classifier() { variation(parts) } else { 1.0 };
        let request = &mut self.request;
        let needs = variation > ALIKE || !request.kind.is_linear();
        let point = &mut request.points[0];
        if parts.len() > 1 && needs && point.hyperparameters.batch_size == 1 {
            point.hyperparameters.batch_size = BATCH;
            point.has_open_batch_size = false;
            pg::report_notice(Notice::NodesNeedBatches { batch_size: BATCH });
        }
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
