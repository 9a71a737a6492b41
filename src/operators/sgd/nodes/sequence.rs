//! What the coordinator does with its nodes: in which sequence they learn from their tuples.
//!
//! It is the sequence of several processes (`data_parallel.rs`), of which the first one, the coordinator, has no
//! tuples.

use super::cluster::Cluster;
use super::messages::{Call, Order, Start};
use crate::errors::Result;
use crate::operators::decoder::Decoder;
use crate::operators::preparation::{Found, unite};
use crate::operators::sgd::learners::Judged;
use crate::operators::sgd::resume::Resume;
use crate::operators::sgd::team::{Cohort, Here, Team};
use crate::operators::sgd::validation::{OwnEvaluation, United};
use crate::operators::wanted::Wanted;
use crate::options::request::Request;
use crate::pg::check_for_interrupts;
use crate::pg::process::progress;
use sgd::{Hyperparameters, ModelKind, Steps, Trainer};
use shuffle::RoundRobin;

/// A buffer of all nodes.
struct Filled {
    /// tuples of each group that each node has; none at its end
    nodes: Vec<Vec<usize>>,
    /// how much the loss of a mini-batch can bend, for each trainer
    curvatures: Vec<Option<f64>>,
}

impl Filled {
    /// Tuples of a group that the coordinator, which has none, and each node has.
    fn sizes(&self, group: usize) -> Vec<usize> {
        let of_nodes = self.nodes.iter().map(|of| of.get(group).copied().unwrap_or(0));
        std::iter::once(0).chain(of_nodes).collect()
    }
}

impl Cluster {
    /// Has each node go through its rows, and ends the decoder's preparation with what they have found. Gives the rows
    /// of each class that each node has.
    ///
    /// # Errors
    /// As [`unite`]; what is wrong with the rows is raised.
    pub fn prepare(&mut self, decoder: &mut Decoder, wanted: Wanted) -> Result<Vec<Vec<u64>>> {
        self.order(|_| Order::Prepare(wanted));
        let found: Option<Vec<Found>> = self.ask()?.into_iter().map(|answer| answer.found).collect();
        let found = found.ok_or_else(|| self.nonsense())?;
        unite(decoder, wanted, &found)
    }

    /// Has each node make replicas of the models, and gives the coordinator's.
    ///
    /// # Errors
    /// [`ResourceError::OutOfMemory`](crate::errors::ResourceError::OutOfMemory); as [`Resume::replica`]
    pub fn start(
        &mut self,
        decoder: &Decoder,
        groups: usize,
        request: &Request,
        resume: Option<&Resume>,
    ) -> Result<Vec<Trainer>> {
        let (dim, outputs, sparse) = (decoder.dim(), decoder.labels().outputs(), decoder.is_sparse());
        let in_units = |hyper: Hyperparameters| match decoder.target() {
            Some(target) => hyper.of_scaled_targets(target.scale),
            None => hyper,
        };
        let points: Vec<_> = request.points.iter().map(|point| in_units(point.hyperparameters)).collect();
        // the mean of the iterates is the coordinator's affair, unless nodes judge it, or the state has it
        let averages = resume.is_some() || request.row_groups.hold_out.is_some();
        let of_nodes = |hyper: &Hyperparameters| Hyperparameters { averaging: hyper.averaging && averages, ..*hyper };
        let of_nodes: Vec<Hyperparameters> = points.iter().map(of_nodes).collect();
        let saved = resume.map(Resume::trainer_state);
        self.order(|_| {
            let (decoder, kind, points) = (decoder.state_with_groups(), request.kind, of_nodes.clone());
            let saved = saved.map(<[u8]>::len);
            Order::Start(Box::new(Start { decoder, kind, points, groups, dim, outputs, sparse, saved }))
        });
        saved.into_iter().for_each(|saved| self.attach(saved));
        let new = |hyper| match resume {
            Some(resume) => resume.replica(hyper, dim, outputs, sparse),
            None => Ok(Trainer::replica(hyper, dim, outputs, sparse)?),
        };
        (0..groups).flat_map(|_| points.iter().copied()).map(new).collect()
    }

    /// Has the nodes fill their buffers. None if the epoch has no more of them.
    fn fill(&mut self) -> Result<Option<Filled>> {
        self.order(|_| Order::Fill);
        let filled: Option<Vec<_>> = self.ask()?.into_iter().map(|answer| answer.filled).collect();
        let filled = filled.ok_or_else(|| self.nonsense())?;
        if filled.iter().all(|filled| filled.tuples.is_none()) {
            return Ok(None);
        }
        let mut curvatures: Vec<Option<f64>> = Vec::new();
        for filled in &filled {
            curvatures.resize(curvatures.len().max(filled.curvatures.len()), None);
            for (most, own) in curvatures.iter_mut().zip(&filled.curvatures) {
                *most = [*most, *own].into_iter().flatten().reduce(f64::max);
            }
        }
        let nodes = filled.into_iter().map(|filled| filled.tuples.unwrap_or_default()).collect();
        Ok(Some(Filled { nodes, curvatures }))
    }

    /// The trainers of a cohort, whose turn it is, learn from the buffers.
    fn learn(
        &mut self,
        cohort: &mut Cohort,
        trainers: &mut [&mut Trainer],
        (sizes, curvatures): (&[usize], &[Option<f64>]),
    ) -> Result<()> {
        let tuples: usize = sizes.iter().sum();
        let most = match cohort.steps {
            Steps::ByTuple => sizes.iter().copied().max().unwrap_or(0),
            _ => tuples,
        };
        let curvatures = cohort.members.iter().map(|member| curvatures.get(*member).copied().flatten());
        let curvatures: Vec<Option<f64>> = curvatures.collect();
        self.order(|_| Order::Begin(most, curvatures.clone()));
        let mut members = cohort.members(trainers);
        members
            .iter_mut()
            .zip(&curvatures)
            .for_each(|(member, curvature)| member.begin_buffer_of_all(most, *curvature));
        match cohort.steps {
            Steps::AtEnd => self.order(|node| Order::Learn(sizes[node + 1])),
            Steps::ByTuple => {
                self.order(|node| Order::Learn(sizes[node + 1]));
                self.make(&mut members, &Call::Average(sizes.to_vec()))?;
            }
            Steps::ByMiniBatch(size) => {
                let mut turns = RoundRobin::default();
                turns.begin(sizes.iter().copied());
                while turns.left() > 0 {
                    let shares = turns.take_of_all(size - cohort.pending);
                    self.order(|node| Order::Learn(shares[node + 1]));
                    cohort.pending += shares.iter().sum::<usize>();
                    if cohort.pending == size {
                        cohort.pending = 0;
                        self.make(&mut members, &Call::Step(size as u32))?;
                        check_for_interrupts();
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the epoch on the nodes, if that has not been done.
    fn end_epoch(&mut self) {
        if std::mem::take(&mut self.in_epoch) {
            self.order(|_| Order::EndEpoch);
            self.forget_turn();
        }
    }
}

impl Team for Cluster {
    fn epoch(
        &mut self,
        (trainers, groups): (&mut [&mut Trainer], &[usize]),
        here: Here<'_>,
        check: &dyn Fn(&[&mut Trainer]) -> Result<()>,
    ) -> Result<()> {
        let mut cohorts = Cohort::all(trainers, groups);
        let is_one = cohorts.len() == 1;
        self.order(|_| Order::BeginEpoch);
        self.in_epoch = true;
        while let Some(filled) = self.fill()? {
            progress::tuples(filled.nodes.as_slice().iter().flatten().sum());
            for cohort in &mut cohorts {
                let sizes = filled.sizes(cohort.group);
                if sizes.iter().all(|tuples| *tuples == 0) {
                    continue;
                }
                self.turn(Some(cohort.members.as_slice()).filter(|_| !is_one), trainers.len());
                self.learn(cohort, trainers, (&sizes, &filled.curvatures))?;
            }
            check(trainers)?;
        }
        for cohort in cohorts.iter().filter(|cohort| cohort.pending > 0) {
            self.turn(Some(cohort.members.as_slice()).filter(|_| !is_one), trainers.len());
            self.make(&mut cohort.members(trainers), &Call::Step(cohort.pending as u32))?;
        }
        self.turn(None, trainers.len());
        let answers = self.make(trainers, &Call::Count)?;
        let counts: Option<Vec<_>> = answers.into_iter().map(|answer| answer.counts).collect();
        let counts = counts.ok_or_else(|| self.nonsense())?;
        let decoder = &mut here.buffers.decoder;
        decoder.begin_epoch();
        counts.iter().for_each(|counts| decoder.count_rows_of_others(counts));
        Ok(())
    }

    fn evaluate(&mut self, kind: ModelKind, models: Vec<Judged>, _epoch: u32, _here: Here<'_>) -> Result<United> {
        self.end_epoch();
        self.order(|_| Order::Evaluate);
        let evaluated: Option<Vec<OwnEvaluation>> = self.ask()?.into_iter().map(|answer| answer.evaluated).collect();
        let evaluated = evaluated.ok_or_else(|| self.nonsense())?;
        United::new(kind, models.len(), &evaluated).ok_or_else(|| self.nonsense())
    }

    fn go_on(&mut self, learning: Vec<(usize, usize)>) -> Result<()> {
        if !learning.is_empty() {
            self.end_epoch();
            self.order(|_| Order::GoOn(learning.clone()));
        }
        Ok(())
    }
}
