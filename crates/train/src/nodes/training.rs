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
use loss::{ModelParameters, Steps};
use options::chosen::Point;
use options::nodes::Nodes;
use options::request::Request;
use sgd::platt::HeldOutDecisions;
use std::time::{Duration, Instant};
use tuples::Batch;

/// What has become of a training whose rows may be on other servers.
pub(crate) enum Remote {
    /// It is over there; with the time of the pass before the first epoch.
    Trained(Learners, Duration),
    /// It is to be made here, of rows that are fetched, since that takes less time.
    Fetching(Box<Request>),
    /// It is to be made here.
    Local,
}

impl Training {
    /// Trains where the rows are, if that was asked for and can be; that it cannot is reported.
    pub(crate) fn train_there(&mut self) -> Result<Remote> {
        self.tell_why_here();
        let place = std::mem::replace(&mut self.place, Place::Here);
        let mut trained = Remote::Local;
        if let Place::There(there) = &place
            && let Some(mut cluster) = self.open_nodes(there)?
        {
            trained = cluster.sensible(|cluster| self.train_on_nodes(cluster, there.columns.len()))?;
            self.summary.traffic = Some(cluster.traffic);
            if matches!(trained, Remote::Fetching(_)) && there.order_varies_here && self.request.shuffling.seed_is_given
            {
                notice_open_order();
            }
        }
        self.place = place;
        match trained {
            Remote::Fetching(_) => self.place = Place::HereBecause("that takes less time".to_owned()),
            // what goes on with the model has to know
            Remote::Local => self.request.options.servers = Nodes::Off,
            Remote::Trained(..) => {}
        }
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
        let open =
            || Cluster::open(&there.rows, &there.columns, |rows| task(rows, &spec, &self.source.columns, &shuffling));
        let cluster = opened_or_told(open, self.request.nodes_may_be_off(), Errand::Training)?;
        if cluster.is_none() && there.order_varies_here && self.request.shuffling.seed_is_given {
            notice_open_order();
        }
        Ok(cluster)
    }

    /// Trains on the nodes, of whose rows this many columns are read.
    fn train_on_nodes(&mut self, cluster: &mut Cluster, columns: usize) -> Result<Remote> {
        let start = Instant::now();
        let wanted = self.prepares.or(self.resume.is_none().then_some(Wanted::NOTHING));
        if let Some(wanted) = wanted {
            let parts = cluster.prepare(&mut self.buffers.decoder, wanted, self.resume.is_some())?;
            if self.resume.is_none()
                && let Some(request) = self.fit_to_servers(cluster, &parts, (start.elapsed(), columns))
            {
                return Ok(Remote::Fetching(request));
            }
            self.count_imputed();
            self.seen.class_shares.take_counts(&self.request, &parts);
        } else if goes_on_in_groups(&self.request, self.resume.as_ref()) {
            cluster.find_groups(&mut self.buffers.decoder, self.request.first_epoch())?;
        }
        self.choose_and_begin();
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
        if !self.summary.is_way_chosen && cluster.shares_a_group() && self.request.points.iter().any(averages) {
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
        Ok(Remote::Trained(learners, preparation))
    }
}

impl Cluster {
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
