//! What coordinator and nodes tell each other: a JSON text, and numbers behind it as they are.

use decode::wanted::Wanted;
use decode::{DecoderState, OwnedSpec};
use loss::{EpochReport, Exchange, Hyperparameters, ModelKind};
use model::Policies;
use options::shuffling::Shuffling;
use scan::worker_rows::json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sgd::profile::Profile;
use sgd::{Halt, Round, Trainer};
use std::io::{self, BufReader, Read};
use tuples::pause::{PER_PAUSE, pause, pausing};

/// What a node gets when its cursor opens.
#[derive(Serialize, Deserialize)]
pub struct NodeTask {
    /// a SELECT of the columns that the decoder wants
    pub sql: String,
    pub spec: OwnedSpec,
    pub shuffling: Shuffling,
}

impl NodeTask {
    /// Could a coordinator have written it? Its numbers have the ranges of the options that they come from: one beyond
    /// them may be one of steps that would not end.
    pub fn is_sound(&self) -> bool {
        self.spec.is_sound() && self.shuffling.is_sound()
    }
}

/// A thing for a node to do. One after which it has something to say is the last one of its request.
#[derive(Serialize, Deserialize)]
pub enum Order {
    /// Say the types of the columns.
    Describe,
    /// Go through all rows, and say what was found. The state is that of a model whose classes and categories stay.
    Prepare(Wanted, Option<Box<DecoderState>>),
    /// Go through all rows, as they come to who knows this, and say which groups there are. The epoch behind that comes
    /// next.
    FindGroups(Box<DecoderState>, u32),
    /// This is what all nodes have found, and what is to be trained. A state that goes on is behind the text.
    Start(Box<Start>),
    BeginEpoch(u32),
    /// Fill the buffer, have the models learn from it whose rows are all here, and say what it has to learn from.
    Fill,
    /// It is the turn of these trainers of a group, by their places, which begin with the group's first tuple of the
    /// buffer.
    Turn(Vec<usize>),
    /// All buffers have this many tuples together, and a full step this many, and this is how much the loss of a
    /// mini-batch of them can bend, for each trainer whose turn it is.
    Begin((usize, usize), Vec<Option<f64>>),
    /// Learn from the next tuples of the buffer, or whole mini-batches.
    Learn(usize),
    /// Make a step or a mean together with the others, or count what all have counted.
    Make(Call),
    /// End the epoch of models whose rows are all here, and say what came of them, beginning with this one of them, and
    /// what was counted.
    EndOwn(usize),
    /// End the epoch of all others. Models that have diverged are gone, and those at these places, whose rows are all
    /// on one node.
    EndEpoch(Vec<usize>),
    /// Evaluate the models on what is held out.
    Evaluate,
    /// Say what these models, of these groups, decide for what is held out. Their weights and intercepts are behind the
    /// text, one model after the other.
    Decide(Vec<usize>),
    /// Evaluate the model whose document is behind the text on all rows, and say what was counted.
    EvaluateModel(ModelTask),
    /// Say the next scores of the model that was evaluated, of which no rows are left at the end of each curve.
    Scores,
    /// Go through all rows, block by block, and say what the blocks add up to: at zero weights, or at the model whose
    /// document is behind the text.
    Clusters(Option<ModelTask>),
    /// Measure the features of all rows as those of the model whose document is behind the text.
    Features(FeaturesTask),
    /// Only the trainers of these groups and points learn on.
    GoOn(Vec<(usize, usize)>),
}

/// What the trainers whose turn it is do together with those of the others.
#[derive(Clone, Serialize, Deserialize)]
pub enum Call {
    /// A step: this many tuples are in the mini-batch.
    Step(u32),
    /// Become the mean of all, each of which has learned from this many tuples.
    Average(Vec<usize>),
    Count,
}

impl Call {
    /// Can its numbers be those of tuples, of which a buffer has 2^32 at most?
    pub fn is_sound(&self) -> bool {
        match self {
            Call::Average(tuples) => all_tuples(tuples).is_some(),
            Call::Step(_) | Call::Count => true,
        }
    }

    /// Makes it, as far as the exchange lets it.
    pub fn make<E: Exchange<Error = Halt>>(&self, trainer: &mut Trainer, exchange: &mut E) -> Result<(), Halt> {
        match self {
            Call::Step(tuples) => trainer.step_synchronized(*tuples, exchange),
            Call::Average(tuples) => trainer.average_synchronized(tuples, exchange),
            Call::Count => trainer.count_synchronized(exchange),
        }
    }
}

/// What a node needs to learn.
#[derive(Serialize, Deserialize)]
pub struct Start {
    pub decoder: DecoderState,
    pub kind: ModelKind,
    pub points: Vec<Hyperparameters>,
    /// that models learn from
    pub groups: usize,
    pub dim: usize,
    pub outputs: usize,
    pub sparse: bool,
    /// where each group has its rows; none if all may be anywhere
    pub whose: Vec<Whose>,
    /// bytes of the state that goes on, if one does
    pub saved: Option<usize>,
}

/// Where the rows are that a model learns from, as a node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whose {
    /// anywhere
    All,
    Own,
    /// all of them on another node
    Other,
}

/// What came of a model whose rows are all on one node. Its state is behind the text, unless it has diverged.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Outcome {
    /// its place among all that learn
    pub place: usize,
    pub tuples: u64,
    /// None if it has diverged, or has learned from nothing
    pub report: Option<EpochReport>,
    /// of its state
    pub bytes: usize,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct ModelTask {
    /// bytes of its document
    pub document: usize,
    pub policies: Policies,
}

#[derive(Serialize, Deserialize)]
pub struct FeaturesTask {
    /// bytes of the document of the model that has them
    pub document: usize,
    /// what they are compared with
    pub like: Option<Profile>,
}

/// What the coordinator asks.
#[derive(Serialize, Deserialize)]
pub struct Request {
    pub orders: Vec<Order>,
    /// what came of the round that the node has its part in, for each trainer whose turn it is, unless it is done; the
    /// words are behind the text
    pub rounds: Vec<Option<RoundShape>>,
}

/// A round without its words.
#[derive(Clone, Serialize, Deserialize)]
pub enum RoundShape {
    /// this many words
    Reduced(usize),
    /// how many words each has given
    Gathered(Vec<usize>),
}

/// A buffer.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Filled {
    /// the turns of each group: tuples, or whole mini-batches, whose lengths are behind the text; None at the end of
    /// the epoch
    pub turns: Option<Vec<usize>>,
    /// how much the loss of a mini-batch can bend, for each trainer, if that is to be known
    pub curvatures: Vec<Option<f64>>,
}

impl RoundShape {
    pub fn split(round: Round) -> (RoundShape, Vec<u32>) {
        match round {
            Round::Reduced(words) => (RoundShape::Reduced(words.len()), words),
            Round::Gathered(all) => (RoundShape::Gathered(all.iter().map(Vec::len).collect()), all.concat()),
        }
    }

    fn words(&self, rest: usize) -> Option<usize> {
        match self {
            RoundShape::Reduced(words) => Some(*words).filter(|words| *words <= rest),
            RoundShape::Gathered(lengths) => {
                let add = |sum: usize, length: &usize| sum.checked_add(*length).filter(|sum| *sum <= rest);
                lengths.iter().try_fold(0, add)
            }
        }
    }

    /// Takes the round of this shape from the front of the words; None if there are not as many.
    pub fn take(&self, words: &mut Vec<u32>) -> Option<Round> {
        let rest = words.split_off(self.words(words.len())?);
        self.join(std::mem::replace(words, rest))
    }

    /// The round of this shape; None if there are not as many words.
    fn join(&self, words: Vec<u32>) -> Option<Round> {
        let RoundShape::Gathered(lengths) = self else { return Some(Round::Reduced(words)) };
        let mut rest = words.as_slice();
        let mut all = Vec::new();
        for length in pausing(lengths) {
            let (own, others) = rest.split_at_checked(*length)?;
            allocation::push(&mut all, allocation::copy(own));
            rest = others;
        }
        rest.is_empty().then_some(Round::Gathered(all))
    }
}

/// The sum of numbers of tuples, or of mini-batches, in a buffer each; None if a buffer cannot have as many.
pub fn all_tuples(numbers: &[usize]) -> Option<usize> {
    let add = |sum: usize, number: &usize| sum.checked_add(*number).filter(|_| u32::try_from(*number).is_ok());
    numbers.iter().try_fold(0, add)
}

/// Takes as many words from the front as each has; None if there are others.
pub fn cut(lengths: &[Option<usize>], mut words: Vec<u32>) -> Option<Vec<Option<Vec<u32>>>> {
    let mut parts = Vec::new();
    for length in lengths {
        parts.push(match length {
            Some(length) if *length <= words.len() => {
                let rest = words.split_off(*length);
                Some(std::mem::replace(&mut words, rest))
            }
            Some(_) => return None,
            None => None,
        });
    }
    words.is_empty().then_some(parts)
}

/// Bytes as words, the last one filled up.
pub fn words_of(bytes: &[u8]) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    allocation::collect(pausing(bytes.chunks(4)).map(word))
}

/// The text of a message, with its length.
pub fn text(message: &impl Serialize) -> Vec<u8> {
    let json = json(message);
    let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
    allocation::append(&mut bytes, &json);
    bytes
}

/// The text of an answer: what is said of the last order, as JSON, and how many words the node says in a round, for
/// each trainer whose turn it is, unless that is done; nothing if none has anything to say.
pub fn answer_text(said: &[u8], says: &[Option<usize>]) -> Vec<u8> {
    let json = [b"[", said, b",", &json(&says), b"]"].concat();
    [&(json.len() as u32).to_le_bytes(), &json[..]].concat()
}

pub fn bytes_of(words: &[u32]) -> Vec<u8> {
    allocation::collect(pausing(words).flat_map(|word| word.to_le_bytes()))
}

/// The message that these bytes are; None if they are not.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, Vec<u32>)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (json, words) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (words, []) = words.as_chunks::<4>() else { return None };
    let words = pausing(words).map(|word| u32::from_le_bytes(*word));
    let json = BufReader::with_capacity(PER_PAUSE.min(json.len()), Pausing(json));
    Some((serde_json::from_reader(json).ok()?, allocation::collect(words)))
}

/// Bytes that are read with a pause before each part.
struct Pausing<'a>(&'a [u8]);

impl Read for Pausing<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        pause();
        self.0.read(to)
    }
}

/// Bytes as PostgreSQL writes them in hexadecimal, without what comes before.
pub fn hex(bytes: &[u8], to: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    allocation::reserve(to, 2 * bytes.len());
    to.extend(pausing(bytes).flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}

/// The bytes that a text of PostgreSQL's stands for; None if it is no such text.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.strip_prefix("\\x")?.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| (digit as char).to_digit(16).map(|digit| digit as u8);
    let mut bytes = allocation::with_capacity(pairs.len());
    for [high, low] in pausing(pairs) {
        bytes.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(bytes)
}
