//! In which way several servers train: by what was measured of them, or as the call says.

use super::cluster::Cluster;
use crate::training::Training;
use loss::{Hyperparameters, Solver};
use options::chosen::Point;
use options::nodes::Nodes;
use options::request::Request;
use sgd::{Servers, Way};
use std::time::Duration;

/// The mini-batch where models of single steps would be averaged that have learned different things.
const BATCH: u32 = 32;

/// The smallest and the largest mini-batch of linear models whose size is chosen: a step of the largest takes longer
/// than its round trip.
const BATCHES: (u32, u32) = (BATCH, 4096);

/// Epochs after which Newton's method has come near the optimum.
const EPOCHS_FOR_NEWTON: u32 = 5;

/// Values of a row, of which one-hot encoding may make more, that are counted as sent.
const MOST_VALUES: usize = 4096;

/// Labels are mixed alike on all servers if none of them has a mix that differs by more from that of all rows, in total
/// variation.
const ALIKE: f64 = 0.25;

impl Training {
    /// Has the models learn in a way that suits the servers. Gives what to train with here, if the rows are to be
    /// fetched: only `auto` does so.
    ///
    /// Where no group has rows on several servers, there is nothing to choose: each server learns as a single one does.
    pub(super) fn fit_to_servers(
        &mut self,
        cluster: &Cluster,
        parts: &[Vec<u64>],
        (pass, columns): (Duration, usize),
    ) -> Option<Box<Request>> {
        if self.request.kind.is_linear() && !cluster.shares_a_group() {
            return None;
        }
        let variation = if self.request.kind.is_classifier() { variation(parts) } else { 1.0 };
        let are_alike = self.request.kind.is_linear() && variation <= ALIKE;
        match self.servers(cluster, are_alike, (pass, columns)) {
            Some(servers) => self.choose_way(&servers),
            None => {
                self.fit_to_mix(are_alike);
                None
            }
        }
    }

    /// What a choice between ways to train depends on, if it is open.
    fn servers(&self, cluster: &Cluster, are_alike: bool, (pass, columns): (Duration, usize)) -> Option<Servers> {
        let (request, decoder) = (&self.request, &self.buffers.decoder);
        let has_open_size = |point: &Point| {
            let hyper = &point.hyperparameters;
            let says = point.says.as_ref().is_some_and(|says| says.contains_key("batch_size"));
            hyper.solver == Solver::Sgd && !says && !(point.has_open_solver && request.suits_newton(decoder.dim()))
        };
        let is_open = request.options.servers == Nodes::Auto
            && request.options.batch_size.is_none()
            && !decoder.has_mini_batches()
            && request.points.iter().all(has_open_size);
        let (extent, outputs) = (decoder.extent(), decoder.labels().outputs());
        let hyper = request.first_point().hyperparameters;
        let epochs = |point: &Point| match point.has_open_epochs {
            true => point.hyperparameters.automatic_epochs(extent),
            false => request.options.planned_epochs.unwrap_or(point.max_epochs),
        };
        let epochs = request.points.iter().map(epochs).max().unwrap_or(1);
        let takes_newton = outputs == 1
            && epochs >= EPOCHS_FOR_NEWTON
            && request.suits_newton(decoder.dim())
            && request.points.iter().all(|point| point.may_take_newton);
        // an array has its values in one column
        let values = if decoder.is_sparse() { columns } else { columns.max(decoder.dim().min(MOST_VALUES)) };
        is_open.then(|| Servers {
            count: cluster.servers().count(),
            rows: extent.tuples,
            columns: values,
            weights: hyper.weights(decoder.dim(), outputs).saturating_mul(request.points.len()),
            groups: cluster.shared_groups(),
            epochs,
            round_trip: cluster.round_trip().as_secs_f64(),
            pass: pass.as_secs_f64(),
            newton: takes_newton.then(|| decoder.dim()),
            averages: are_alike,
            // a rate that the call gives does not follow the size
            batches: match (request.kind.is_linear(), request.has_open_rate()) {
                (true, true) => BATCHES,
                (true, false) => (BATCH, BATCH),
                // a network of single rows would be averaged
                (false, _) => (2, largest_of_network(hyper)),
            },
            fetches: self.others.original.is_some(),
        })
    }

    /// Takes the way that is expected to be the quickest, and reports it.
    fn choose_way(&mut self, servers: &Servers) -> Option<Box<Request>> {
        let ways = servers.ways();
        let name = |(way, seconds): &(Way, f64)| {
            let name = match way {
                Way::Newton => "Newton's method".to_owned(),
                Way::Averaging => "averaging".to_owned(),
                Way::MiniBatches(rows) => format!("mini-batches of {rows} rows"),
                Way::Fetching => "fetching the rows".to_owned(),
            };
            format!("{name} {}", about(*seconds))
        };
        let way = ways[0].0;
        let names: Vec<String> = ways.iter().map(name).collect();
        let round_trip = 1e3 * servers.round_trip;
        pg::notice(
            format!(
                "of the ways to train on {} servers, the first is taken, by estimates with a round trip of \
                 {round_trip:.2} ms: {}",
                servers.count,
                names.join(", ")
            ),
            "To choose another way, set solver or batch_size, or leave servers out.",
        );
        self.summary.is_way_chosen = true;
        for point in &mut self.request.points {
            match way {
                Way::Newton => point.has_open_solver = true,
                Way::MiniBatches(rows) => {
                    point.hyperparameters.batch_size = rows;
                    point.has_open_batch_size = false;
                }
                Way::Averaging | Way::Fetching => {}
            }
        }
        if way == Way::Fetching { self.others.original.take() } else { None }
    }

    /// A step per tuple means models that are averaged after each buffer. If rows differ from node to node, each learns
    /// something else, of which the mean is nothing: so they learn by mini-batches, unless a step per tuple was asked
    /// for. Even then they do if nodes have other mixes of the labels. So do networks, whose averages mean nothing
    /// anyway, and models of numbers, whose mixes are not known.
    fn fit_to_mix(&mut self, are_alike: bool) {
        let request = &mut self.request;
        let is_given = request.options.batch_size == Some(1);
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
    pub(super) fn shares_a_group(&self) -> bool {
        self.servers().count() > 1 && self.shared_groups() > 0
    }

    /// How many groups have rows on several nodes; 1 if there are no groups.
    fn shared_groups(&self) -> usize {
        if self.owners.is_empty() { 1 } else { self.owners.iter().filter(|owner| owner.is_none()).count() }
    }
}

/// The largest mini-batch of a network whose size is chosen.
fn largest_of_network(hyper: Hyperparameters) -> u32 {
    hyper.with_automatic_batch_size(u32::MAX, u64::MAX).batch_size
}

/// Seconds, as people say them.
fn about(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
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
