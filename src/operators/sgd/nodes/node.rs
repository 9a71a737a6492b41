//! A node: what a session on another server does for a training.

use super::messages::{Answer, Filled, NodeTask, Order, Request, Start, bytes_of, read, text};
use crate::errors::{Error, NodeError, OrRaise, Result};
use crate::operators::buffers::Buffers;
use crate::operators::decoder::OwnedSpec;
use crate::operators::preparation::measure;
use crate::operators::sgd::learn::learn;
use crate::operators::source::Source;
use crate::pg::call::arguments::Arguments;
use crate::pg::call::cursor;
use crate::pg::executor::custom_scan::{CustomScan, Flags, Methods, Node};
use crate::pg::executor::explain::Explain;
use crate::pg::executor::query::Running;
use crate::pg::require_utf8;
use crate::pg::snapshot::Snapshot;
use sgd::{Halt, Halting, Round, Trainer};
use std::cell::RefCell;
use std::ffi::{CStr, c_int};
use tuples::{Batch, TupleSource};

thread_local! {
    /// what the node is asked in the row that is about to be read, and what it has answered
    static ASKED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
    static ANSWERED: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// The cursor of a node.
pub const CURSOR: &CStr = c"corgipile_node";

/// Asks the node of this session, whose cursor is open.
///
/// # Errors
/// [`NodeError::OutOfTurn`] if there is none; those of the node are raised.
pub fn step(request: Vec<u8>) -> Result<Vec<u8>> {
    ANSWERED.set(None);
    ASKED.set(Some(request));
    cursor::advance(CURSOR);
    ASKED.set(None);
    ANSWERED.take().ok_or_else(|| NodeError::OutOfTurn.into())
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
            let task: Option<String> = Arguments::of_node(node).get(0);
            let task = task.and_then(|task| serde_json::from_str(&task).ok()).ok_or(NodeError::NonsenseAsked);
            let open = |task| NodeTraining::open(task, node.snapshot(), node.instrument(), eflags);
            task.map_err(Error::from).and_then(open).or_raise()
        };
        NodeScan { training: (!node.in_eval_plan_qual()).then(open), answers: 0 }
    }

    fn next(&mut self, node: Node) -> bool {
        let (Some(training), Some(asked)) = (&mut self.training, ASKED.take()) else {
            Error::from(NodeError::OutOfTurn).raise()
        };
        let answer = training.answer(&asked).or_raise();
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
    trainer: Option<Trainer>,
    outputs: usize,
    /// the next tuple of the buffer to learn from
    place: usize,
    /// has the epoch no more buffers?
    at_end: bool,
    /// what was stopped because the others have not said their part yet, and the rounds that it has gone through
    stopped: Option<Call>,
    rounds: Vec<Round>,
}

/// What is done together with the others.
enum Call {
    Step(u32),
    Average(Vec<usize>),
    Count,
}

impl NodeTraining {
    /// Plans and starts the read of the rows.
    fn open(task: NodeTask, snapshot: Snapshot<'_>, instrument: c_int, flags: Flags) -> Result<NodeTraining> {
        require_utf8()?;
        let source = Source::resolve(&task.sql)?;
        let spec = task.spec.with_columns(source.columns().to_vec());
        let planned = source.plan(&spec.spec(), &task.shuffling)?;
        let types = planned.column_types();
        let decoder = spec.decoder()?;
        Ok(NodeTraining {
            buffers: Buffers::new(Running::start(planned, snapshot, instrument, flags), decoder),
            spec,
            types,
            batch: Batch::dense(0),
            trainer: None,
            outputs: 1,
            place: 0,
            at_end: false,
            stopped: None,
            rounds: Vec::new(),
        })
    }

    /// Does what is asked, as far as it goes.
    fn answer(&mut self, asked: &[u8]) -> Result<Vec<u8>> {
        let (Request { orders, round }, words) = read::<Request>(asked).ok_or(NodeError::NonsenseAsked)?;
        let mut answer = Answer::default();
        let mut says = None;
        if let Some(shape) = round {
            self.rounds.push(shape.join(words).ok_or(NodeError::NonsenseAsked)?);
        }
        if let Some(call) = self.stopped.take() {
            says = self.call(call)?;
        }
        for order in orders {
            if says.is_some() {
                return Err(NodeError::NonsenseAsked.into());
            }
            says = self.follow(order, &mut answer)?;
        }
        answer.says = says.is_some();
        let mut bytes = text(&answer);
        bytes.extend(bytes_of(&says.unwrap_or_default()));
        Ok(bytes)
    }

    /// Does one thing. What the node says in a round, if it has to.
    fn follow(&mut self, order: Order, answer: &mut Answer) -> Result<Option<Vec<u32>>> {
        match order {
            Order::Describe => answer.types = Some(self.types.clone()),
            Order::Prepare(wanted) => answer.found = Some(measure(&mut self.buffers, &mut self.batch, wanted)?),
            Order::Start(start) => self.start(*start)?,
            Order::BeginEpoch => {
                self.buffers.next_epoch()?;
                self.at_end = false;
                self.trainer()?.begin_epoch();
            }
            Order::Fill => answer.filled = Some(self.fill()?),
            Order::Begin(tuples, curvature) => self.trainer()?.begin_buffer_of_all(tuples, curvature),
            Order::Learn(tuples) => self.learn(tuples)?,
            Order::Step(tuples) => return self.call(Call::Step(tuples)),
            Order::Average(tuples) => return self.call(Call::Average(tuples)),
            Order::Count => {
                answer.counts = Some(self.buffers.decoder.counts());
                return self.call(Call::Count);
            }
            // whether the model has diverged is for the coordinator to say, whose model it is, too
            Order::EndEpoch => drop(self.trainer()?.end_epoch()),
        }
        Ok(None)
    }

    fn trainer(&mut self) -> Result<&mut Trainer> {
        self.trainer.as_mut().ok_or_else(|| NodeError::NonsenseAsked.into())
    }

    /// Takes over what all nodes have found, and makes a replica of the model.
    fn start(&mut self, start: Start) -> Result<()> {
        let Start { decoder: state, hyperparameters, dim, outputs, sparse } = start;
        let mut decoder = self.spec.decoder()?;
        decoder.adopt(&state);
        decoder.check_size(dim, false)?;
        if hyperparameters.validate().is_err() || decoder.labels().outputs() != outputs {
            return Err(NodeError::NonsenseAsked.into());
        }
        self.buffers.decoder = decoder;
        self.outputs = outputs;
        self.trainer = Some(Trainer::replica(hyperparameters, dim, outputs, sparse)?);
        Ok(())
    }

    fn fill(&mut self) -> Result<Filled> {
        self.place = 0;
        self.at_end = self.at_end || !self.buffers.next_batch(&mut self.batch)?;
        if self.at_end {
            return Ok(Filled { tuples: None, curvature: None });
        }
        let tuples = self.batch.order().len();
        let NodeTraining { trainer, batch, .. } = self;
        let curvature = trainer.as_ref().map(|trainer| trainer.curvature_of_buffer(batch, 0..tuples)).transpose()?;
        Ok(Filled { tuples: Some(tuples), curvature: curvature.flatten() })
    }

    fn learn(&mut self, tuples: usize) -> Result<()> {
        let NodeTraining { trainer, batch, place, outputs, .. } = self;
        let places = *place..place.saturating_add(tuples);
        let Some(trainer) = trainer.as_mut().filter(|_| places.end <= batch.order().len()) else {
            return Err(NodeError::NonsenseAsked.into());
        };
        *place = places.end;
        learn(trainer, batch, *outputs, places)
    }

    /// Does something together with the others, as far as their parts are known. What the node says in the next round.
    fn call(&mut self, call: Call) -> Result<Option<Vec<u32>>> {
        let Some(trainer) = &mut self.trainer else { return Err(NodeError::NonsenseAsked.into()) };
        let mut halting = Halting::new(&self.rounds);
        let ended = match &call {
            Call::Step(tuples) => trainer.step_synchronized(*tuples, &mut halting),
            Call::Average(tuples) => trainer.average_synchronized(tuples, &mut halting),
            Call::Count => trainer.count_synchronized(&mut halting),
        };
        match ended {
            Ok(()) => {
                self.rounds.clear();
                Ok(None)
            }
            Err(Halt::Says(words)) => {
                self.stopped = Some(call);
                Ok(Some(words))
            }
            Err(Halt::Nonsense) => Err(NodeError::NonsenseAsked.into()),
            Err(Halt::OutOfMemory(error)) => Err(error.into()),
        }
    }
}
