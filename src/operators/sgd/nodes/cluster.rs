//! The nodes of a training, as the coordinator sees them.

use super::messages::{Answer, NodeTask, Order, Request, RoundShape, bytes_of, hex, read, text, unhex};
use super::node::CURSOR;
use crate::errors::{Error, NodeError, Result};
use crate::pg::executor::foreign::ForeignRows;
use crate::pg::process::remote::Session;
use sgd::{Combine, Exchange, Round};
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

/// The nodes of a training. The way to the others, for the coordinator's replica of the model.
pub struct Cluster {
    nodes: Vec<Member>,
    /// what came of the last round, which the nodes do not know yet
    round: Option<Round>,
    /// what the nodes have said in the round under way
    says: Option<Vec<Vec<u32>>>,
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
/// written them. The server looks every second whether the coordinator is still there, where the system can tell.
const BEGIN: &str = "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL search_path = pg_catalog;
    SET LOCAL timezone = 'UTC';
    SET LOCAL datestyle = 'ISO';
    SET LOCAL intervalstyle = 'postgres';
    SET LOCAL extra_float_digits = 3;
    SET LOCAL bytea_output = 'hex';
    SET LOCAL standard_conforming_strings = on;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SELECT CASE WHEN pg_catalog.version() OPERATOR(pg_catalog.~) 'linux'
                THEN pg_catalog.set_config('client_connection_check_interval', '1s', true) END";

const INSTALLED: &str =
    "SELECT extversion FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'corgipile'";

impl Cluster {
    /// Opens a session on each server, and a cursor in it. Columns have these names and types here.
    ///
    /// # Errors
    /// [`NodeError`]; what the servers and dblink say is raised.
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
        for (node, version) in nodes.iter().zip(all(&|_| INSTALLED.to_owned())) {
            let server = node.session.server().to_owned();
            match version {
                None => return Err(NodeError::NoExtension(server).into()),
                Some(there) if there != VERSION => {
                    return Err(NodeError::OtherVersion { server, there, here: VERSION }.into());
                }
                Some(_) => {}
            }
        }
        all(&|i| {
            let task = serde_json::to_string(&task(&rows[i])).expect("structs of plain values are always JSON");
            let task = task.replace('\\', "\\\\").replace('\'', "''");
            let cursor = CURSOR.to_string_lossy();
            format!("DECLARE {cursor} NO SCROLL CURSOR FOR SELECT n FROM corgipile.node_training(E'{task}')")
        });
        let mut cluster = Cluster { nodes, round: None, says: None, traffic: Traffic::default() };
        cluster.order(|_| Order::Describe);
        for (answer, node) in cluster.ask()?.into_iter().zip(&cluster.nodes) {
            let server = node.session.server().to_owned();
            let types = answer.types.filter(|types| types.len() == columns.len());
            let types = types.ok_or_else(|| NodeError::Nonsense(server.clone()))?;
            let other = columns.iter().zip(types).find(|((_, here), there)| here != there);
            if let Some(((column, here), there)) = other {
                let (column, here) = (column.clone(), here.clone());
                return Err(NodeError::OtherType { server, column, there, here }.into());
            }
        }
        Ok(cluster)
    }

    /// The servers' names.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.session.server())
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Gives each node something to do with the next request.
    pub fn order(&mut self, order: impl Fn(usize) -> Order) {
        (0..).zip(&mut self.nodes).for_each(|(i, node)| node.orders.push(order(i)));
    }

    /// Has all nodes do what they were given, at the same time, and waits for all of them. What came of the last round
    /// comes before. Their parts in the next one are kept.
    ///
    /// # Errors
    /// [`NodeError::Nonsense`]; what the servers say is raised.
    pub fn ask(&mut self) -> Result<Vec<Answer>> {
        let (shape, words) = self.round.take().map(RoundShape::split).unzip();
        let words = bytes_of(&words.unwrap_or_default());
        for node in &mut self.nodes {
            let request = Request { orders: std::mem::take(&mut node.orders), round: shape.clone() };
            let mut sql = b"SELECT corgipile.node_step('\\x".to_vec();
            hex(&text(&request), &mut sql);
            hex(&words, &mut sql);
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
            let (answer, words) = unhex(&text).and_then(|bytes| read::<Answer>(&bytes)).ok_or_else(nonsense)?;
            says.extend(answer.says.then_some(words));
            answers.push(answer);
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

    /// The parts of the nodes in the round under way.
    fn parts(&mut self) -> Result<Vec<Vec<u32>>> {
        if self.says.is_none() {
            self.ask()?;
        }
        self.says.take().ok_or_else(|| self.nonsense())
    }

    /// Whose answer it is that makes no sense cannot be told.
    pub(super) fn nonsense(&self) -> Error {
        NodeError::Nonsense(self.servers().collect::<Vec<_>>().join(", ")).into()
    }
}

impl Exchange for Cluster {
    type Error = Error;

    fn all_reduce(&mut self, numbers: &mut [f32], combine: &mut Combine<'_>) -> Result<()> {
        let parts = self.parts()?;
        if parts.iter().any(|words| words.len() != numbers.len()) {
            return Err(self.nonsense());
        }
        let own = numbers.to_vec();
        let all: Vec<&[f32]> =
            std::iter::once(own.as_slice()).chain(parts.iter().map(|words| bytemuck::cast_slice(words))).collect();
        combine(numbers, &all);
        self.round = Some(Round::Reduced(bytemuck::cast_slice(numbers).to_vec()));
        Ok(())
    }

    fn gather(&mut self, words: &[u32], take: &mut dyn FnMut(usize, &[u32])) -> Result<()> {
        let mut all = self.parts()?;
        all.insert(0, words.to_vec());
        all.iter().enumerate().for_each(|(process, words)| take(process, words));
        self.round = Some(Round::Gathered(all));
        Ok(())
    }
}
