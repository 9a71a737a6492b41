//! What coordinator and nodes tell each other: a JSON text, and numbers behind it as they are.

use crate::operators::decoder::{DecoderState, OwnedSpec, RowCounts};
use crate::operators::preparation::Found;
use crate::operators::wanted::Wanted;
use crate::options::shuffling::Shuffling;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sgd::{Hyperparameters, Round};

/// What a node is told when its cursor opens.
#[derive(Serialize, Deserialize)]
pub struct NodeTask {
    /// a SELECT of the columns that the decoder wants
    pub sql: String,
    pub spec: OwnedSpec,
    pub shuffling: Shuffling,
}

/// A thing for a node to do. One after which it has something to say is the last one of its request.
#[derive(Serialize, Deserialize)]
pub enum Order {
    /// Say the types of the columns.
    Describe,
    /// Go through all rows, and say what was found.
    Prepare(Wanted),
    /// This is what all nodes have found, and what is to be trained.
    Start(Box<Start>),
    BeginEpoch,
    /// Fill the buffer, and say how many tuples it has.
    Fill,
    /// All buffers have so many tuples together, and this is how much the loss of a mini-batch of them can bend.
    Begin(usize, Option<f64>),
    /// Learn from the next tuples of the buffer.
    Learn(usize),
    /// Step together with the others: so many tuples are in the mini-batch.
    Step(u32),
    /// Become the mean of all, each of which has learned from so many tuples.
    Average(Vec<usize>),
    /// Count what all have counted.
    Count,
    EndEpoch,
}

/// What a node needs to learn.
#[derive(Serialize, Deserialize)]
pub struct Start {
    pub decoder: DecoderState,
    pub hyperparameters: Hyperparameters,
    pub dim: usize,
    pub outputs: usize,
    pub sparse: bool,
}

/// What the coordinator asks.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub orders: Vec<Order>,
    /// what came of the round that the node has its part in; its words are behind the text
    pub round: Option<RoundShape>,
}

/// A round without its words.
#[derive(Clone, Serialize, Deserialize)]
pub enum RoundShape {
    Reduced,
    /// how many words each has given
    Gathered(Vec<usize>),
}

/// What a node answers. Its part in a round is behind the text.
#[derive(Default, Serialize, Deserialize)]
pub struct Answer {
    pub types: Option<Vec<String>>,
    pub found: Option<Found>,
    /// what came of filling the buffer
    pub filled: Option<Filled>,
    /// has it something to say in a round?
    pub says: bool,
    /// what its decoder has counted in the epoch
    pub counts: Option<RowCounts>,
}

/// A buffer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Filled {
    /// None at the end of the epoch
    pub tuples: Option<usize>,
    /// how much the loss of a mini-batch can bend, if that is to be known
    pub curvature: Option<f64>,
}

impl RoundShape {
    /// A round as its shape and its words.
    pub fn split(round: Round) -> (RoundShape, Vec<u32>) {
        match round {
            Round::Reduced(words) => (RoundShape::Reduced, words),
            Round::Gathered(all) => (RoundShape::Gathered(all.iter().map(Vec::len).collect()), all.concat()),
        }
    }

    /// The round of this shape; None if there are not as many words.
    pub fn join(&self, words: Vec<u32>) -> Option<Round> {
        let RoundShape::Gathered(lengths) = self else { return Some(Round::Reduced(words)) };
        let mut rest = words.as_slice();
        let mut all = Vec::new();
        for length in lengths {
            let (own, others) = rest.split_at_checked(*length)?;
            all.push(own.to_vec());
            rest = others;
        }
        rest.is_empty().then_some(Round::Gathered(all))
    }
}

/// The text of a message, with its length.
pub fn text(message: &impl Serialize) -> Vec<u8> {
    let json = serde_json::to_vec(message).expect("structs of plain values are always JSON");
    let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
    bytes.extend(json);
    bytes
}

/// Words as bytes.
pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The message that these bytes are; None if they are none.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, Vec<u32>)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (json, words) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (words, []) = words.as_chunks::<4>() else { return None };
    Some((serde_json::from_slice(json).ok()?, words.iter().map(|word| u32::from_le_bytes(*word)).collect()))
}

/// Bytes as PostgreSQL writes them in hexadecimal, without what comes before.
pub fn hex(bytes: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    to.reserve(2 * bytes.len());
    to.extend(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}

/// The bytes that a text of PostgreSQL's stands for; None if it is no such text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.strip_prefix("\\x")?.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
