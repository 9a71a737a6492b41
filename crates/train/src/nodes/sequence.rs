//! What the coordinator does with its nodes: in which sequence they learn from their tuples.
//!
//! It is the sequence of several processes (`data_parallel.rs`), of which the first one, the coordinator, has no
//! tuples.

use super::cluster::Cluster;
use super::messages::{Call, Filled, Order, Start, Whose, all_tuples};
use super::whole_groups::owners;
use crate::learners::GroupModel;
use crate::resume::Resume;
use crate::team::{Cohort, Here, OwnBuffer, Team, Turns};
use crate::validation::{OwnEvaluation, United};
use decode::wanted::Wanted;
use decode::{Decoder, EpochCounts};
use errors::Result;
use errors::limits::MAX_GROUPS;
use loss::{Hyperparameters, ModelKind, Steps};
use options::request::Request;
use pg::check_for_interrupts;
use scan::preparation::{Found, unite};
use scan::progress;
use sgd::Trainer;

/// A buffer of all nodes.
struct AllFilled {
    /// what each node has; nothing at its end
    nodes: Vec<OwnBuffer>,
    /// how much the loss of a mini-batch can bend, for each trainer
    curvatures: Vec<Option<f64>>,
}

impl AllFilled {
    /// What the coordinator, which has nothing, and each node have of a group.
    fn turns(&self, group: usize) -> Turns<'_> {
        Turns::new(std::iter::once(None).chain(self.nodes.iter().map(Some)), group)
    }

    fn tuples(&self) -> usize {
        let of_node = |own: &OwnBuffer| match own.lengths.is_empty() {
            true => own.turns.iter().sum::<usize>(),
            false => own.lengths.iter().map(|length| *length as usize).sum(),
        };
        self.nodes.iter().map(of_node).sum()
    }
}

impl Cluster {
    /// Has each node go through its rows, and ends the decoder's preparation with what they have found. What the
    /// decoder knows may be that of a model, whose classes and categories stay. Gives the rows of each class that each
    /// node has.
    pub fn prepare(&mut self, decoder: &mut Decoder, wanted: Wanted, is_of_model: bool) -> Result<Vec<Vec<u64>>> {
        self.order(|_| Order::Prepare(wanted, is_of_model.then(|| Box::new(decoder.state()))));
        if is_of_model {
            decoder.measure_again();
        }
        let found: Vec<Found> = self.ask()?;
        let parts = unite(decoder, wanted, &found)?;
        self.owners = owners(decoder, found.iter().map(Found::groups));
        Ok(parts)
    }

    /// Has each node go through its rows for the groups that they fall into, which the decoder, whose knowledge is that
    /// of a model, then knows. This epoch is the next.
    pub fn find_groups(&mut self, decoder: &mut Decoder, epoch: u32) -> Result<()> {
        self.order(|_| Order::FindGroups(Box::new(decoder.state()), epoch));
        let found: Vec<Vec<String>> = self.ask()?;
        self.owners = owners(decoder, found.iter().map(Vec::as_slice));
        Ok(())
    }

    /// Has each node make replicas of the models, and gives the coordinator's.
    pub fn start(
        &mut self,
        decoder: &Decoder,
        groups: usize,
        request: &Request,
        resume: Option<&Resume>,
    ) -> Result<Vec<Trainer>> {
        let (dim, outputs, sparse) = (decoder.dim(), decoder.labels().outputs(), decoder.is_sparse());
        let points: Vec<_> = request.points.iter().map(|point| decoder.in_units(point.hyperparameters)).collect();
        self.forget_owners_of_large(&points, (dim, outputs));
        // the mean of the iterates is the coordinator's affair, unless nodes evaluate it, or train by themselves, or
        // the state has it
        let has_owners = self.owners.iter().any(Option::is_some);
        let averages = resume.is_some() || request.row_groups.hold_out.is_some() || has_owners;
        let of_nodes = |hyper: &Hyperparameters| Hyperparameters { averaging: hyper.averaging && averages, ..*hyper };
        let of_nodes: Vec<Hyperparameters> = points.iter().map(of_nodes).collect();
        let saved = resume.map(Resume::trainer_state);
        let whose: Vec<Vec<Whose>> = (0..self.servers().count()).map(|node| self.whose(node)).collect();
        self.order(|node| {
            let (decoder, kind, points) = (decoder.state_with_groups(), request.kind, of_nodes.clone());
            let (saved, whose) = (saved.map(<[u8]>::len), whose[node].clone());
            Order::Start(Box::new(Start { decoder, kind, points, groups, dim, outputs, sparse, whose, saved }))
        });
        saved.into_iter().for_each(|saved| self.attach(saved));
        let new = |hyper: Hyperparameters| -> Result<Trainer> {
            let trainer = match resume {
                Some(resume) => resume.replica(hyper, dim, outputs, sparse)?,
                None => Trainer::replica(hyper, dim, outputs, sparse)?,
            };
            Ok(trainer.exempt(&decoder.exempt(&hyper))?)
        };
        (0..groups).flat_map(|_| points.iter().copied()).map(new).collect()
    }

    /// Has the nodes fill their buffers. None if the epoch has no more of them.
    fn fill(&mut self) -> Result<Option<AllFilled>> {
        self.order(|_| Order::Fill);
        let answers: Vec<(Filled, Vec<u32>)> = self.ask_words()?;
        if answers.iter().all(|(filled, _)| filled.turns.is_none()) {
            return Ok(None);
        }
        let mut all = AllFilled { nodes: Vec::new(), curvatures: Vec::new() };
        for (Filled { turns, curvatures }, lengths) in answers {
            all.curvatures.resize(all.curvatures.len().max(curvatures.len()), None);
            for (most, own) in all.curvatures.iter_mut().zip(curvatures) {
                *most = [*most, own].into_iter().flatten().reduce(f64::max);
            }
            let own = OwnBuffer { turns: turns.unwrap_or_default(), lengths };
            let turns = all_tuples(&own.turns).filter(|_| own.turns.len() <= MAX_GROUPS);
            let is_sound = turns.is_some_and(|turns| own.lengths.is_empty() || turns == own.lengths.len());
            if !is_sound {
                return Err(self.nonsense());
            }
            all.nodes.push(own);
        }
        Ok(Some(all))
    }

    /// The trainers of a cohort, whose turn it is, learn from the buffers.
    fn learn(
        &mut self,
        cohort: &mut Cohort,
        trainers: &mut [&mut Trainer],
        (mut turns, curvatures): (Turns, &[Option<f64>]),
    ) -> Result<()> {
        let nodes = turns.of_each().len() - 1;
        let of_step = cohort.turns_of_step(nodes);
        let tuples = match cohort.steps {
            Steps::ByTuple => (turns.of_each().iter().copied().max().unwrap_or(0), 1),
            _ => turns.tuples(of_step),
        };
        let curvatures = cohort.members.iter().map(|member| curvatures.get(*member).copied().flatten());
        let curvatures: Vec<Option<f64>> = curvatures.collect();
        self.order(|_| Order::Begin(tuples, curvatures.clone()));
        let mut members = cohort.members(trainers);
        for (member, curvature) in members.iter_mut().zip(&curvatures) {
            member.begin_buffer_of_all(tuples, *curvature);
        }
        match cohort.steps {
            Steps::AtEnd => self.order(|node| Order::Learn(turns.of_each()[node + 1])),
            Steps::ByTuple => {
                self.order(|node| Order::Learn(turns.of_each()[node + 1]));
                self.make(&mut members, &Call::Average(turns.of_each().to_vec()))?;
            }
            Steps::ByMiniBatch(_) | Steps::ByWholeMiniBatches => {
                while turns.left() > 0 {
                    let (shares, tuples) = turns.take(cohort.turns_until(of_step));
                    self.order(|node| Order::Learn(shares[node + 1]));
                    if let Some(tuples) = cohort.learned((shares.iter().sum(), tuples), of_step) {
                        self.make(&mut members, &Call::Step(tuples))?;
                        check_for_interrupts();
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts what all have counted of the models at these places, that learn together, and gives what the nodes'
    /// decoders have. Nothing if there are no such models.
    fn count(&mut self, trainers: &mut [&mut Trainer], together: &[usize]) -> Result<Option<Vec<EpochCounts>>> {
        if together.is_empty() {
            return Ok(None);
        }
        self.turn(Some(together).filter(|together| together.len() < trainers.len()), trainers.len());
        let members = trainers.iter_mut().enumerate().filter(|(i, _)| together.binary_search(i).is_ok());
        let mut members: Vec<&mut Trainer> = members.map(|(_, trainer)| &mut **trainer).collect();
        let counts: Option<Vec<_>> = self.make(&mut members, &Call::Count)?.into_iter().collect();
        counts.map(Some).ok_or_else(|| self.nonsense())
    }

    /// Ends the epoch on the nodes, if that has not been done.
    fn end_epoch(&mut self) {
        if std::mem::take(&mut self.in_epoch) {
            let gone = std::mem::take(&mut self.gone);
            self.order(|_| Order::EndEpoch(gone.clone()));
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
        let steps = trainers.iter().map(|trainer| trainer.steps());
        let owners: Vec<Option<usize>> =
            groups.iter().zip(steps).map(|(group, steps)| self.owner(*group, steps)).collect();
        let mut cohorts = Cohort::all(trainers, groups);
        cohorts.retain(|cohort| cohort.members.iter().all(|member| owners[*member].is_none()));
        let together: Vec<usize> = (0..).zip(&owners).filter(|(_, owner)| owner.is_none()).map(|(i, _)| i).collect();
        let is_one = cohorts.len() == 1 && together.len() == trainers.len();
        let epoch = trainers.first().map_or(0, |trainer| trainer.epoch());
        self.order(|_| Order::BeginEpoch(epoch));
        self.in_epoch = true;
        while let Some(filled) = self.fill()? {
            progress::tuples(filled.tuples());
            for cohort in &mut cohorts {
                let turns = filled.turns(cohort.group);
                if turns.left() == 0 {
                    continue;
                }
                self.turn(Some(cohort.members.as_slice()).filter(|_| !is_one), trainers.len());
                self.learn(cohort, trainers, (turns, &filled.curvatures))?;
            }
            check(trainers)?;
        }
        for cohort in &mut cohorts {
            let Some(tuples) = cohort.end_step() else { continue };
            self.turn(Some(cohort.members.as_slice()).filter(|_| !is_one), trainers.len());
            self.make(&mut cohort.members(trainers), &Call::Step(tuples))?;
        }
        let decoder = &here.buffers.decoder;
        let of_whole = self.end_whole(trainers, &owners, (decoder.labels().outputs(), decoder.is_sparse()))?;
        let counts = self.count(trainers, &together)?.or(of_whole).ok_or_else(|| self.nonsense())?;
        let decoder = &mut here.buffers.decoder;
        decoder.begin_epoch();
        counts.iter().for_each(|counts| decoder.count_rows_of_others(counts));
        Ok(())
    }

    fn evaluate(&mut self, kind: ModelKind, models: Vec<GroupModel>, _epoch: u32, _here: Here<'_>) -> Result<United> {
        self.end_epoch();
        self.order(|_| Order::Evaluate);
        let evaluated: Vec<OwnEvaluation> = self.ask()?;
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
