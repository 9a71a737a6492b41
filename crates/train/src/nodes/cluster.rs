//! The nodes of a training, as the coordinator sees them.

use super::messages::{Call, NodeTask, Order, Request, RoundShape, bytes_of, cut, hex, read, text, unhex, words_of};
use super::node::CURSOR;
use decode::EpochCounts;
use errors::{Error, NodeError, Result};
use pg::errors::unless_it_panics;
use pg::executor::remote_rows::ForeignRows;
use pg::process::remote::Session;
use serde::de::{DeserializeOwned, IgnoredAny};
use sgd::{Halt, Round, Trainer, Uniting};
use std::time::{Duration, Instant};

/// What was sent, and how long it took to be answered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// requests that all nodes have answered
    pub requests: u64,
    /// bytes of statements and of their answers, of all nodes
    pub sent: u64,
    pub received: u64,
    /// from the last request of each to the last answer
    pub waited: Duration,
    /// from the first answer of each to the last one
    pub slowest: Duration,
}

/// The nodes of a training: the way to the others, for the coordinator's replicas of the models.
pub struct Cluster {
    nodes: Vec<Member>,
    /// what came of the last round, which the nodes do not know yet, for each trainer whose turn it is
    rounds: Vec<Option<Round>>,
    /// what the nodes have said in the round under way, each for each trainer whose turn it is
    says: Option<Vec<Vec<Option<Vec<u32>>>>>,
    /// places of the trainers whose turn it is; None if it is that of all
    turn: Option<Vec<usize>>,
    /// bytes that are behind the text of the next request
    saved: Vec<u8>,
    /// has the epoch begun, and not ended?
    pub(super) in_epoch: bool,
    /// the node that each group lies on whole, if there is one; none if groups are not known
    pub(super) owners: Vec<Option<usize>>,
    /// places of models that nodes have trained by themselves, and that are not any more
    pub(super) gone: Vec<usize>,
    pub traffic: Traffic,
}

struct Member {
    session: Session,
    /// what it is to do with the next request
    orders: Vec<Order>,
}

/// The version that both sides have.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Begins a session: as postgres_fdw does, so that constants in the statements that it has written are read as it has
/// written them. The server looks every second whether the coordinator is still there, where the system can tell, and
/// ends the session when the network has been gone for 15 seconds, with a request under way or without.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL search_path = pg_catalog;
    SET LOCAL timezone = 'UTC';
    SET LOCAL datestyle = 'ISO';
    SET LOCAL intervalstyle = 'postgres';
    SET LOCAL extra_float_digits = 3;
    SET LOCAL bytea_output = 'hex';
    SET LOCAL standard_conforming_strings = on;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL tcp_keepalives_idle = 5;
    SET LOCAL tcp_keepalives_interval = 5;
    SET LOCAL tcp_keepalives_count = 2;
    SET LOCAL tcp_user_timeout = '15s';
    SELECT CASE WHEN pg_catalog.version() OPERATOR(pg_catalog.~) 'linux'
                THEN pg_catalog.set_config('client_connection_check_interval', '1s', true) END";

/// The version that a server has, and behind a blank the encoding of its database.
const INSTALLED: &str = "SELECT pg_catalog.concat(extversion, ' ', pg_catalog.current_setting('server_encoding'))
    FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'corgipile'";

impl Cluster {
    /// Opens a session on each server, and a cursor in it. Columns have these names and types here.
    pub fn open(
        rows: &[ForeignRows],
        columns: &[(String, String)],
        task: impl Fn(&ForeignRows) -> NodeTask,
    ) -> Result<Cluster> {
        let connect = |rows: &ForeignRows| Ok(Member { session: Session::connect(&rows.server)?, orders: Vec::new() });
        let nodes = rows.iter().map(connect).collect::<Result<Vec<Member>>>()?;
        let all = |statement: &dyn Fn(usize) -> String| -> Vec<Option<String>> {
            (0..).zip(&nodes).for_each(|(i, node)| node.session.send(statement(i).as_bytes()));
            nodes.iter().map(|node| node.session.answer()).collect()
        };
        all(&|_| BEGIN.to_owned());
        for (node, installed) in nodes.iter().zip(all(&|_| INSTALLED.to_owned())) {
            let server = node.session.server().to_owned();
            let Some(installed) = installed else { return Err(NodeError::NoExtension(server).into()) };
            match installed.split_once(' ').unwrap_or((&installed, "")) {
                (VERSION, "UTF8") => {}
                (VERSION, encoding) => return Err(NodeError::OtherEncoding(server, encoding.to_owned()).into()),
                (there, _) => {
                    return Err(NodeError::OtherVersion { server, there: there.to_owned(), here: VERSION }.into());
                }
            }
        }
        all(&|i| {
            let task = serde_json::to_string(&task(&rows[i])).expect("structs of plain values are always JSON");
            let task = task.replace('\\', "\\\\").replace('\'', "''");
            let cursor = CURSOR.to_string_lossy();
            format!("DECLARE {cursor} NO SCROLL CURSOR FOR SELECT n FROM corgipile.node_training(E'{task}')")
        });
        let mut cluster = Cluster {
            nodes,
            rounds: Vec::new(),
            says: None,
            turn: None,
            saved: Vec::new(),
            in_epoch: false,
            owners: Vec::new(),
            gone: Vec::new(),
            traffic: Traffic::default(),
        };
        cluster.order(|_| Order::Describe);
        for (types, node) in cluster.ask::<Vec<String>>()?.into_iter().zip(&cluster.nodes) {
            let server = node.session.server().to_owned();
            if types.len() != columns.len() {
                return Err(NodeError::Nonsense(server).into());
            }
            let other = columns.iter().zip(types).find(|((_, here), there)| here != there);
            if let Some(((column, here), there)) = other {
                let (column, here) = (column.clone(), here.clone());
                return Err(NodeError::OtherType { server, column, there, here }.into());
            }
        }
        Ok(cluster)
    }

    /// How long a request takes that asks for nothing: the least of a few.
    pub fn round_trip(&self) -> Duration {
        const ASKED: u32 = 3;
        let ask = |_| {
            let start = Instant::now();
            self.nodes.iter().for_each(|node| node.session.send(b"SELECT '1'::pg_catalog.text"));
            self.nodes.iter().for_each(|node| drop(node.session.answer()));
            start.elapsed()
        };
        (0..ASKED).map(ask).min().unwrap_or_default()
    }

    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.session.server())
    }

    /// Gives each node something to do with the next request.
    pub fn order(&mut self, order: impl Fn(usize) -> Order) {
        (0..).zip(&mut self.nodes).for_each(|(i, node)| node.orders.push(order(i)));
    }

    /// Gives this node something to do with the next request.
    pub fn order_of(&mut self, node: usize, order: Order) {
        self.nodes[node].orders.push(order);
    }

    /// Has all nodes do what they were given, at the same time, and waits for all of them. What came of the last round
    /// comes before. Their parts in the next one are kept. Gives what each says of its last order.
    pub fn ask<T: DeserializeOwned>(&mut self) -> Result<Vec<T>> {
        Ok(self.ask_words()?.into_iter().map(|(said, _)| said).collect())
    }

    /// As [`ask`](Cluster::ask), with the words behind each answer.
    pub fn ask_words<T: DeserializeOwned>(&mut self) -> Result<Vec<(T, Vec<u32>)>> {
        let rounds = std::mem::take(&mut self.rounds).into_iter().map(|round| round.map(RoundShape::split).unzip());
        let (shapes, words): (Vec<Option<RoundShape>>, Vec<Option<Vec<u32>>>) = rounds.unzip();
        let mut behind = words.into_iter().flatten().flat_map(|words| bytes_of(&words)).collect::<Vec<u8>>();
        behind.append(&mut std::mem::take(&mut self.saved));
        for node in &mut self.nodes {
            let request = Request { orders: std::mem::take(&mut node.orders), rounds: shapes.clone() };
            let mut sql = b"SELECT corgipile.node_step('\\x".to_vec();
            hex(&text(&request), &mut sql);
            hex(&behind, &mut sql);
            sql.extend(b"')");
            node.session.send(&sql);
            self.traffic.sent += sql.len() as u64;
        }
        let asked = Instant::now();
        let mut first = None;
        let (mut answers, mut says) = (Vec::new(), Vec::new());
        for node in &self.nodes {
            let text = node.session.answer().unwrap_or_default();
            first.get_or_insert_with(Instant::now);
            self.traffic.received += text.len() as u64;
            let nonsense = || Error::from(NodeError::Nonsense(node.session.server().to_owned()));
            let answer = unhex(&text).and_then(|bytes| read::<(T, Vec<Option<usize>>)>(&bytes));
            let ((said, lengths), mut words) = answer.ok_or_else(nonsense)?;
            if !lengths.is_empty() {
                says.push(cut(&lengths, std::mem::take(&mut words)).ok_or_else(nonsense)?);
            }
            answers.push((said, words));
        }
        if !says.is_empty() && says.len() != self.nodes.len() {
            return Err(self.nonsense());
        }
        self.says = (!says.is_empty()).then_some(says);
        self.traffic.requests += 1;
        self.traffic.waited += asked.elapsed();
        self.traffic.slowest += first.map_or(Duration::ZERO, |first| first.elapsed());
        Ok(answers)
    }

    /// It is the turn of these trainers, by their places, or of all; they begin with the first tuple of the buffer.
    pub fn turn(&mut self, members: Option<&[usize]>, trainers: usize) {
        if members.is_some() || self.turn.is_some() {
            let all = || (0..trainers).collect();
            let places: Vec<usize> = members.map_or_else(all, <[usize]>::to_vec);
            self.order(|_| Order::Turn(places.clone()));
        }
        self.turn = members.map(<[usize]>::to_vec);
    }

    /// From now on there are other trainers, and it is the turn of all.
    pub fn forget_turn(&mut self) {
        self.turn = None;
    }

    /// These bytes, a state or a document, go along with the next request.
    pub fn attach(&mut self, saved: &[u8]) {
        self.attach_words(words_of(saved));
    }

    /// These numbers go along with the next request.
    pub fn attach_words(&mut self, words: Vec<u32>) {
        self.saved = bytes_of(&words);
    }

    /// The trainers whose turn it is, here and there, do something together. Gives what the nodes' decoders have
    /// counted, if it is to count.
    pub fn make(&mut self, trainers: &mut [&mut Trainer], call: &Call) -> Result<Vec<Option<EpochCounts>>> {
        self.order(|_| Order::Make(call.clone()));
        let answers = self.ask()?;
        let mut parts: Vec<Part> = trainers.iter().map(|_| Part::default()).collect();
        loop {
            self.rounds.clear();
            let mut is_done = true;
            for (trainer, part) in trainers.iter_mut().zip(&mut parts) {
                let round = part.go_on(trainer, call).map_err(|halted| halted.unwrap_or_else(|| self.nonsense()))?;
                self.rounds.push(round);
                is_done &= part.is_done;
            }
            if is_done {
                return Ok(answers);
            }
            self.hear(&mut parts)?;
        }
    }

    /// Gives each trainer that is not done what the nodes say in the next round.
    fn hear(&mut self, parts: &mut [Part]) -> Result<()> {
        if self.says.is_none() {
            self.ask::<IgnoredAny>()?;
        }
        let says = self.says.take().ok_or_else(|| self.nonsense())?;
        for (place, part) in parts.iter_mut().enumerate().filter(|(_, part)| !part.is_done) {
            let of_node = |says: &Vec<Option<Vec<u32>>>| says.get(place).cloned().flatten();
            let others: Option<Vec<Vec<u32>>> = says.iter().map(of_node).collect();
            part.says.extend(others.ok_or_else(|| self.nonsense())?);
        }
        Ok(())
    }

    /// Runs what follows from what the servers say. That it panics is the fault of one of them.
    pub fn sensible<R>(&mut self, f: impl FnOnce(&mut Cluster) -> Result<R>) -> Result<R> {
        unless_it_panics(|| f(self)).unwrap_or_else(|| Err(self.nonsense()))
    }

    /// The sender of an invalid answer is unknown.
    pub(super) fn nonsense(&self) -> Error {
        NodeError::Nonsense(self.servers().collect::<Vec<_>>().join(", ")).into()
    }
}

/// How far one of the coordinator's trainers is in what all do together.
#[derive(Default)]
struct Part {
    rounds: Vec<Round>,
    /// what all say in the next round, the coordinator first; empty before that
    says: Vec<Vec<u32>>,
    is_done: bool,
}

impl Part {
    /// Goes on as far as is known what the others say, and gives what came of the round that was heard. An error
    /// without a reason if that is invalid.
    fn go_on(&mut self, trainer: &mut Trainer, call: &Call) -> std::result::Result<Option<Round>, Option<Error>> {
        if self.is_done {
            return Ok(None);
        }
        let says = std::mem::take(&mut self.says);
        let mut uniting = Uniting::new(&self.rounds, (!says.is_empty()).then_some(says));
        let made = call.make(trainer, &mut uniting);
        let round = uniting.into_round();
        self.rounds.extend(round.clone());
        match made {
            Ok(()) => self.is_done = true,
            Err(Halt::Says(words)) => self.says = vec![words],
            Err(Halt::Nonsense) => return Err(None),
            Err(Halt::OutOfMemory(error)) => return Err(Some(error.into())),
        }
        Ok(round)
    }
}
