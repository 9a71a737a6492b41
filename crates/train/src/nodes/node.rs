//! A node: what a session on another server does for a training.

use super::evaluated_model::EvaluatedModel;
use super::messages::{
    Call, Filled, NodeTask, Order, Request, RoundShape, Start, Whose, answer_text, bytes_of, read, words_of,
};
use super::models::{linear_models, model_of};
use super::replicas::Replicas;
use crate::clusters::{factor_at, measure_clusters};
use crate::feature_profile::{self, measure_features};
use crate::learn::learn_side_by_side;
use crate::learners::check_models;
use crate::model_rows::ModelRows;
use crate::sigmoids::{self, Decided};
use crate::team::{OwnBuffer, needs_others};
use crate::validation::{OwnEvaluation, OwnParts};
use decode::{Decoder, DecoderState, OwnedSpec};
use errors::limits::{MAX_GROUPS, MAX_MODELS};
use errors::{Error, NodeError, OrRaise, Result, raise};
use loss::{Hyperparameters, ModelKind};
use model::table::{current_user, role_name};
use options::shuffling::Shuffling;
use pg::call::arguments::Arguments;
use pg::call::cursor;
use pg::catalog::names::quote_identifier;
use pg::errors::unless_it_panics;
use pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use pg::executor::explain::Explain;
use pg::executor::query::Running;
use pg::snapshot::Snapshot;
use pg::{check_for_interrupts, require_utf8};
use scan::Buffers;
use scan::Source;
use scan::preparation::{find_groups, measure};
use scan::scan_control::ScanControl;
use scan::worker_rows::json;
use sgd::{ClusterFactor, Halt, Halting, Round, Trainer};
use shuffle::BlockPartition;
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use std::ops::Range;
use tuples::{Batch, TupleSource};

thread_local! {
    /// what the node is asked in the row that is about to be read, and what it has answered
    static ASKED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    static ANSWERED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

pub const CURSOR: &CStr = c"corgipile_node";

/// Asks the node of this session, whose cursor is open.
pub fn step(request: Vec<u8>) -> Result<Vec<u8>> {
    ANSWERED.set(None);
    ASKED.set(Some(request));
    cursor::advance(CURSOR);
    ASKED.set(None);
    ANSWERED.take().ok_or_else(|| NodeError::OutOfTurn.into())
}

/// Runs what follows from what another server has sent. That it panics is the sender's fault.
fn sensible<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    unless_it_panics(f).unwrap_or_else(|| Err(NodeError::NonsenseAsked.into()))
}

/// State of the scan: a row for each request.
pub struct NodeScan {
    /// None in the copies of the plan that EvalPlanQual makes and never runs
    training: Option<NodeTraining>,
    answers: i64,
}

static METHODS: Methods = Methods::new::<NodeScan>(c"CorgiPileNode");

impl CustomScan for NodeScan {
    fn methods() -> &'static Methods {
        &METHODS
    }

    fn begin(node: Node, eflags: Flags) -> NodeScan {
        let open = || {
            if !Arguments::may_be_of_node(node) {
                let role = role_name(current_user()).unwrap_or_default();
                return Err(NodeError::NotGranted(quote_identifier(&role)).into());
            }
            let task: Option<String> = Arguments::of_node(node).get(0);
            let task: Option<NodeTask> = task.and_then(|task| serde_json::from_str(&task).ok());
            let task = task.filter(NodeTask::is_sound).ok_or(NodeError::NonsenseAsked)?;
            NodeTraining::open(task, node.snapshot(), node.instrument(), eflags)
        };
        let open = || sensible(open).or_raise();
        NodeScan { training: (!node.in_eval_plan_qual()).then(open), answers: 0 }
    }

    fn next(&mut self, node: Node) -> bool {
        let (Some(training), Some(asked)) = (&mut self.training, ASKED.take()) else { raise(&NodeError::OutOfTurn) };
        let answer = sensible(|| training.answer(&asked)).or_raise();
        ANSWERED.set(Some(answer));
        self.answers += 1;
        node.store_values(&[self.answers.into(), (asked.len() as i64).into()]);
        true
    }

    /// What was learned is not unlearned.
    fn rescan(&mut self, _node: Node) {}

    fn end(&mut self, _node: Node) {
        if let Some(training) = self.training.take() {
            training.buffers.finish();
        }
    }

    fn explain(&mut self, _node: Node, explain: Explain) {
        if let Some(training) = &self.training {
            explain.inner_query(training.buffers.query());
        }
    }
}

/// A node's part of a training.
struct NodeTraining {
    spec: OwnedSpec,
    types: Vec<String>,
    buffers: Buffers,
    batch: Batch,
    kind: ModelKind,
    replicas: Replicas,
    pass: Pass,
    outputs: usize,
    shuffling: Shuffling,
    /// how rows are distributed, if they fall into groups or some are held out
    parts: Option<OwnParts>,
    /// what was stopped because the others have not said their part yet
    stopped: Option<Call>,
    /// the model that was evaluated here, with the scores that were not said yet
    evaluated: Option<EvaluatedModel>,
    /// the rounds that it has gone through, for each trainer whose turn it is, unless that is done
    rounds: Vec<Option<Vec<Round>>>,
}

/// A pass over the node's rows.
#[derive(Default)]
struct Pass {
    /// that is under way, or was the last
    epoch: u32,
    /// have rows been gone through?
    has_read: bool,
    /// is the next epoch that of a training that a model has come through?
    goes_on: bool,
    /// has the epoch no more buffers?
    at_end: bool,
    /// where in the buffer's order each group has its tuples
    places: Vec<Range<usize>>,
    /// the next tuple of the buffer to learn from
    place: usize,
}

/// What the node says of an order, as JSON, and words behind the text.
struct Answer {
    said: Vec<u8>,
    behind: Vec<u32>,
}

/// What trainers say in a round, in the sequence of their turn; None of one that is done.
type Says = Vec<Option<Vec<u32>>>;

impl NodeTraining {
    /// Plans and starts the read of the rows.
    fn open(task: NodeTask, snapshot: Snapshot<'_>, instrument: c_int, flags: Flags) -> Result<NodeTraining> {
        require_utf8()?;
        let source = Source::resolve(&task.sql)?;
        let spec = OwnedSpec { columns: source.columns().to_vec(), ..task.spec };
        let planned = source.plan(&spec.spec, &task.shuffling)?;
        let types = planned.column_types();
        let decoder = spec.decoder()?;
        Ok(NodeTraining {
            buffers: Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder),
            spec,
            types,
            batch: Batch::dense(0),
            kind: ModelKind::Logistic,
            replicas: Replicas::default(),
            pass: Pass::default(),
            outputs: 1,
            shuffling: task.shuffling,
            parts: None,
            stopped: None,
            evaluated: None,
            rounds: Vec::new(),
        })
    }

    /// Does what is asked, as far as it goes.
    fn answer(&mut self, asked: &[u8]) -> Result<Vec<u8>> {
        let (Request { orders, rounds }, mut words) = read::<Request>(asked).ok_or(NodeError::NonsenseAsked)?;
        let mut answer = Answer { said: b"null".to_vec(), behind: Vec::new() };
        let mut says = None;
        self.hear(&rounds, &mut words)?;
        if let Some(call) = self.stopped.take() {
            says = self.make(call)?;
        }
        for order in orders {
            check_for_interrupts();
            if says.is_some() {
                return Err(NodeError::NonsenseAsked.into());
            }
            says = self.follow(order, &mut words, &mut answer)?;
        }
        let says = says.unwrap_or_default();
        let lengths: Vec<Option<usize>> = says.iter().map(|words| words.as_ref().map(Vec::len)).collect();
        let mut bytes = answer_text(&answer.said, &lengths);
        says.iter().flatten().for_each(|words| bytes.extend(bytes_of(words)));
        bytes.extend(bytes_of(&answer.behind));
        Ok(bytes)
    }

    /// Takes what came of the last round.
    fn hear(&mut self, rounds: &[Option<RoundShape>], words: &mut Vec<u32>) -> Result<()> {
        if rounds.len() > self.rounds.len() {
            return Err(NodeError::NonsenseAsked.into());
        }
        for (shape, own) in rounds.iter().zip(&mut self.rounds) {
            if let (Some(shape), Some(own)) = (shape, own) {
                own.push(shape.take(words).ok_or(NodeError::NonsenseAsked)?);
            }
        }
        Ok(())
    }

    /// Does one thing. What the node says in a round, if it has to.
    fn follow(&mut self, order: Order, words: &mut Vec<u32>, answer: &mut Answer) -> Result<Option<Says>> {
        match order {
            Order::Describe => answer.said = json(&self.types),
            Order::Prepare(wanted, of_model) => {
                self.pass.has_read = true;
                if let Some(state) = of_model {
                    self.adopt(&state)?;
                    self.buffers.decoder.measure_again();
                    self.pass.goes_on = true;
                }
                answer.said = json(&measure(&mut self.buffers, &mut self.batch, wanted)?);
            }
            Order::FindGroups(state, epoch) => answer.said = json(&self.find_groups(&state, epoch)?),
            Order::Start(start) => self.start(*start, std::mem::take(words))?,
            Order::BeginEpoch(epoch) => self.begin_epoch(epoch)?,
            Order::Fill => {
                let (filled, lengths) = self.fill()?;
                (answer.said, answer.behind) = (json(&filled), lengths);
            }
            Order::Turn(turn) => {
                if !self.replicas.take_turn(turn) {
                    return Err(NodeError::NonsenseAsked.into());
                }
                self.pass.place = self.own_places().start;
            }
            Order::Begin(tuples, curvatures) => {
                for (trainer, curvature) in self.replicas.in_turn().zip(curvatures) {
                    trainer.begin_buffer_of_all(tuples, curvature);
                }
            }
            Order::Learn(tuples) => self.learn(tuples)?,
            Order::Make(call) if self.replicas.turns() == 0 || !call.is_sound() => {
                return Err(NodeError::NonsenseAsked.into());
            }
            Order::Make(call) => {
                if let Call::Count = call {
                    answer.said = json(&self.buffers.decoder.epoch_counts());
                }
                self.rounds = vec![Some(Vec::new()); self.replicas.turns()];
                return self.make(call);
            }
            // what the coordinator makes of models that have diverged is its affair
            Order::EndEpoch(gone) => self.replicas.end_epoch(&gone),
            Order::EndOwn(from) => {
                let (outcomes, states) = self.replicas.end_own(from)?;
                answer.said = json(&(outcomes, self.buffers.decoder.epoch_counts()));
                answer.behind = words_of(&states);
            }
            Order::Evaluate => answer.said = json(&self.evaluate()?),
            Order::Decide(groups) => answer.said = json(&self.decide(groups, &std::mem::take(words))?),
            Order::EvaluateModel(task) => {
                let model = model_of(&std::mem::take(words), task.document)?;
                let evaluated = EvaluatedModel::new(model, task.policies, &self.spec, &mut self.buffers)?;
                answer.said = json(&(evaluated.sums(), self.buffers.decoder.epoch_counts()));
                self.evaluated = Some(evaluated);
            }
            Order::Scores => {
                let evaluated = self.evaluated.as_mut().ok_or(NodeError::NonsenseAsked)?;
                let scores = evaluated.next_scores();
                (answer.said, answer.behind) = (json(&scores.bytes().len()), words_of(scores.bytes()));
            }
            Order::Clusters(task) => {
                let factor = match task {
                    Some(task) => {
                        let model = model_of(&std::mem::take(words), task.document)?;
                        self.buffers.decoder = ModelRows::plain(task.policies).decoder(&model, &self.spec.columns)?;
                        factor_at(&model, &self.buffers.decoder)
                    }
                    None => {
                        self.go_to_next_pass()?;
                        ClusterFactor::new(self.kind)
                    }
                };
                answer.said = json(&measure_clusters(&mut self.buffers, &mut self.batch, factor)?.sums());
            }
            Order::Features(task) => {
                let model = model_of(&std::mem::take(words), task.document)?;
                self.buffers.decoder = feature_profile::decoder(&model, &self.spec.columns)?;
                let features = measure_features(&model, task.like.as_ref(), &mut self.buffers)?;
                answer.said = json(&(features, self.buffers.decoder.epoch_counts()));
            }
            Order::GoOn(learning) => self.replicas.go_on(&learning),
        }
        Ok(None)
    }

    /// Where the group of those whose turn it is has its tuples.
    fn own_places(&self) -> Range<usize> {
        self.replicas.group_in_turn().and_then(|group| self.pass.places.get(group)).cloned().unwrap_or_default()
    }

    /// The decoder has this knowledge from now on.
    fn adopt(&mut self, state: &DecoderState) -> Result<()> {
        self.buffers.decoder = self.decoder_with(state)?;
        Ok(())
    }

    fn decoder_with(&self, state: &DecoderState) -> Result<Decoder> {
        let mut decoder = self.spec.decoder()?;
        if !state.is_sound() {
            return Err(NodeError::NonsenseAsked.into());
        }
        decoder.adopt(state);
        Ok(decoder)
    }

    /// Goes through all rows for the groups that they fall into, as a decoder with this knowledge reads them.
    fn find_groups(&mut self, state: &DecoderState, epoch: u32) -> Result<Vec<String>> {
        self.adopt(state)?;
        find_groups(&mut self.buffers, &mut self.batch, epoch)?;
        Ok(self.buffers.decoder.group_names())
    }

    /// Takes over what all nodes have found, and makes replicas of the models.
    fn start(&mut self, start: Start, words: Vec<u32>) -> Result<()> {
        let Start { decoder: state, kind, points, groups, dim, outputs, sparse, whose, saved } = start;
        let decoder = self.decoder_with(&state)?;
        decoder.check_size(dim, false)?;
        // each number by itself, and then the product, which bounds none of them where another is 0
        let is_valid = |hyper: &Hyperparameters| hyper.kind == kind && hyper.validate().is_ok();
        let fits = points.len() <= MAX_MODELS && groups <= MAX_GROUPS && whose.len() <= MAX_GROUPS;
        // what is bounded is what one training needs: a second one would come on top of it
        let fits = fits && self.replicas.is_empty();
        if !fits || !points.iter().all(is_valid) || decoder.labels().outputs() != outputs {
            return Err(NodeError::NonsenseAsked.into());
        }
        check_models(&points, points.len() * groups, (dim, outputs))?;
        self.buffers.decoder = decoder;
        (self.outputs, self.kind) = (outputs, kind);
        let bytes = bytes_of(&words);
        let saved = match saved {
            Some(length) => Some(bytes.get(..length).ok_or(NodeError::NonsenseAsked)?),
            None => None,
        };
        self.parts = (!self.spec.spec.row_groups.is_empty())
            .then(|| OwnParts::new(&self.shuffling, BlockPartition::SINGLE, groups));
        let decoder = &self.buffers.decoder;
        let of_group = |group| points.iter().enumerate().map(move |(point, hyper)| ((group, point), *hyper));
        for (of, hyper) in (0..groups).flat_map(of_group) {
            let of_group = whose.get(of.0).copied().filter(|_| !needs_others(hyper.steps()));
            self.replicas.add(of, of_group.unwrap_or(Whose::All), || {
                let trainer = match saved {
                    None => Trainer::replica(hyper, dim, outputs, sparse)?,
                    Some(saved) => Trainer::resume_replica(hyper, outputs, sparse, saved)
                        .map_err(|_| Error::from(NodeError::NonsenseAsked))?,
                };
                Ok(trainer.exempt(&decoder.exempt(&hyper))?)
            })?;
            check_for_interrupts();
        }
        self.replicas.all_turn();
        Ok(())
    }

    fn begin_epoch(&mut self, epoch: u32) -> Result<()> {
        if std::mem::take(&mut self.pass.goes_on) {
            self.buffers.decoder.begin_epoch();
            self.buffers.control(&ScanControl::epoch(epoch.into()));
        } else {
            self.go_to_next_pass()?;
        }
        (self.pass.at_end, self.pass.epoch) = (false, epoch);
        self.replicas.begin_epoch();
        self.parts.iter_mut().for_each(|parts| parts.begin_epoch(epoch.into()));
        Ok(())
    }

    /// The next pass over the rows begins.
    fn go_to_next_pass(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.pass.has_read, true) { self.buffers.next_epoch() } else { Ok(()) }
    }

    /// Fills the buffer: what is in it, and the lengths of whole mini-batches.
    fn fill(&mut self) -> Result<(Filled, Vec<u32>)> {
        self.pass.places.clear();
        self.pass.at_end = self.pass.at_end || !self.buffers.next_batch(&mut self.batch)?;
        if self.pass.at_end {
            return Ok((Filled::default(), Vec::new()));
        }
        self.pass.places = match &mut self.parts {
            Some(parts) => parts.take_each(&mut self.batch)?,
            None => std::iter::once(0..self.batch.order().len()).collect(),
        };
        self.pass.place = self.own_places().start;
        let (places, batch) = (&self.pass.places, &self.batch);
        let curvatures = self.replicas.curvatures(batch, places)?;
        self.replicas.learn_own((batch, self.outputs), places)?;
        let OwnBuffer { turns, lengths } = OwnBuffer::new(batch, places);
        Ok((Filled { turns: Some(turns), curvatures }, lengths))
    }

    fn learn(&mut self, tuples: usize) -> Result<()> {
        let places = self.pass.place..self.pass.place.saturating_add(tuples);
        if places.end > self.own_places().end.max(self.pass.place) {
            return Err(NodeError::NonsenseAsked.into());
        }
        self.pass.place = places.end;
        let mut trainers: Vec<&mut Trainer> = self.replicas.in_turn().collect();
        learn_side_by_side(&mut trainers, &self.batch, self.outputs, places)
    }

    /// Does something together with the others, as far as their parts are known. What the node says in the next round.
    fn make(&mut self, call: Call) -> Result<Option<Says>> {
        let mut says = Vec::new();
        for (trainer, rounds) in self.replicas.in_turn().zip(&mut self.rounds) {
            let Some(known) = rounds else {
                says.push(None);
                continue;
            };
            match call.make(trainer, &mut Halting::new(known)) {
                Ok(()) => {
                    *rounds = None;
                    says.push(None);
                }
                Err(Halt::Says(words)) => says.push(Some(words)),
                Err(Halt::Nonsense) => return Err(NodeError::NonsenseAsked.into()),
                Err(Halt::OutOfMemory(error)) => return Err(error.into()),
            }
        }
        if says.iter().all(Option::is_none) {
            return Ok(None);
        }
        self.stopped = Some(call);
        Ok(Some(says))
    }

    fn decide(&mut self, groups: Vec<usize>, words: &[u32]) -> Result<Vec<Decided>> {
        let NodeTraining { parts, buffers, batch, pass, kind, outputs, .. } = self;
        if groups.len() > MAX_MODELS {
            return Err(NodeError::NonsenseAsked.into());
        }
        let models = linear_models(groups, words, (buffers.decoder.dim(), *outputs)).ok_or(NodeError::NonsenseAsked)?;
        let parts = parts.as_mut().ok_or(NodeError::NonsenseAsked)?;
        sigmoids::decide(*kind, models, parts.ended((pass.epoch, buffers, batch)))
    }

    fn evaluate(&mut self) -> Result<OwnEvaluation> {
        let models = self.replicas.models()?;
        let is_here: Vec<bool> = models.iter().map(Option::is_some).collect();
        let NodeTraining { parts, buffers, batch, pass, kind, .. } = self;
        let parts = parts.as_mut().ok_or(NodeError::NonsenseAsked)?;
        let models = models.into_iter().flatten().collect();
        let own = OwnEvaluation::new(parts.evaluate(*kind, models, (pass.epoch, buffers, batch))?);
        Ok(own.spread(*kind, &is_here))
    }
}
