//! The decode tree C′, built in one pass over the codes (Algorithm 2).
//!
//! Each code but the last of its row makes a node: its parent is that code, its key the first pair of the next one. So
//! the codes themselves are the parents, and all that is kept besides them is the key of each, as a node of the first
//! layer. A node has the place of the code that made it; the last code of a row has one, too, which no one uses: so
//! nothing branches where a row ends, and loops over nodes are as simple as those over an array. A tree that serves
//! many products is made compact: without the nodes that no row uses.

use super::read::{NOT_ASCENDING, Stored, UNKNOWN, check_entries};
use crate::index::Index;
use crate::{Error, Info, Number};

/// C′ and D. Nodes count from 0, without the root: first those of the first layer, then one for each code.
#[derive(Debug)]
pub(crate) struct Tree<T, N> {
    pub(super) columns: usize,
    /// Columns and values of the first layer.
    pub(super) first_columns: Vec<u32>,
    pub(super) first_values: Vec<T>,
    /// D: nodes of all rows, one after the other.
    pub(super) codes: Vec<N>,
    /// Parents of the nodes behind the first layer: the codes, until the tree is [compact](Tree::compact).
    pub(super) parents: Vec<N>,
    /// Keys of the nodes behind the first layer, as nodes of the first layer.
    pub(super) keys: Vec<N>,
    /// Codes of each row: where they begin in `codes`, and where the last end.
    pub(super) starts: Vec<u32>,
    /// The rows by numbers of codes, so that the loops over them are as long as the loop before, which processors guess
    /// right.
    pub(super) order: Vec<u32>,
}

/// What is known of a node while the tree is built.
#[derive(Clone, Copy, Default)]
struct Span {
    /// Where its sequence begins: a node of the first layer.
    head: u32,
    /// Last column of its sequence.
    tail: u32,
    length: u32,
    /// Its number here.
    node: u32,
}

impl<T: Number, N: Index> Tree<T, N> {
    /// Checks everything: each code is of a node that its row could know, the columns of each row ascend, and the rows
    /// together have not too many entries. In place of the tree comes about how many entries there are if they are less
    /// work one by one, by [`saves_work`], and the tree is not `forced`.
    pub(crate) fn new(info: &Info, stored: &Stored<'_>, forced: bool) -> Result<Result<Tree<T, N>, usize>, Error> {
        let first_layer = stored.columns.len();
        let n = stored.len();
        let mut spans: Vec<Span> = allocation::filled(Span::default(), first_layer + n);
        for (node, (span, &tail)) in spans.iter_mut().zip(&stored.columns).enumerate() {
            *span = Span { head: node as u32, tail, length: 1, node: node as u32 };
        }
        let mut begins: Vec<u8> = allocation::zeros(n + 1);
        stored.starts.iter().for_each(|start| begins[*start as usize] = 1);
        let mut codes: Vec<N> = allocation::with_capacity(n);
        let mut keys: Vec<N> = allocation::with_capacity(n);
        let quarter = if n < 1000 || forced { usize::MAX } else { n / 4 };
        let mut known = first_layer;
        let (mut entries, mut descends) = (0u64, false);
        let mut before = Span::default();
        for (place, &begins) in begins[..n].iter().enumerate() {
            // it has become clear that nothing repeats itself: sequences grow, but not to more than twice the length
            if place == quarter && !saves_work(n, first_layer, 8 * entries) {
                return Ok(Err(4 * entries as usize));
            }
            let code = stored.codes.get(place) as usize;
            if code >= known {
                return Err(UNKNOWN);
            }
            let span = spans[code];
            entries += u64::from(span.length);
            codes.push(N::from_place(span.node));
            keys.push(N::from_place(span.head));
            // without a branch: what the first code of a row writes is written over by the next
            let tail = stored.columns[span.head as usize];
            descends |= (begins == 0) & (before.tail >= tail);
            let node = (first_layer + place).wrapping_sub(1) as u32;
            spans[known] = Span { head: before.head, tail, length: before.length.wrapping_add(1), node };
            known += usize::from(begins == 0);
            before = span;
        }
        if descends {
            return Err(NOT_ASCENDING);
        }
        check_entries(info, entries)?;
        if !forced && !saves_work(n, first_layer, entries) {
            return Ok(Err(entries as usize));
        }
        // the key of a code's node is where the next code begins
        if n > 0 {
            keys.copy_within(1.., 0);
        }
        let values: Vec<T> = stored.values.to_vec();
        Ok(Ok(Tree {
            columns: info.columns,
            first_columns: stored.columns.clone(),
            first_values: allocation::collect(stored.places.iter().map(|place| values[*place as usize])),
            parents: allocation::copy(&codes),
            codes,
            keys,
            order: by_length(&stored.starts),
            starts: stored.starts.clone(),
        }))
    }

    /// Removes the nodes behind the first layer that are no code of a row, and that no such node descends from. It
    /// takes about as long as building the tree, and saves most of the steps over nodes.
    pub(super) fn drop_unused(&mut self) {
        let first_layer = self.first_layer();
        let mut used: Vec<bool> = allocation::zeros(self.nodes());
        self.codes.iter().for_each(|code| used[code.at()] = true);
        for (parent, _, node) in self.links().rev() {
            used[parent] |= used[node];
        }
        // where each node is then; parents come before their children
        let mut places: Vec<N> = allocation::copy(&self.parents);
        let new = |places: &[N], node: N| node.at().checked_sub(first_layer).map_or(node, |i| places[i]);
        let mut kept = 0;
        for i in 0..places.len() {
            if used[first_layer + i] {
                self.parents[kept] = new(&places, self.parents[i]);
                self.keys[kept] = self.keys[i];
                places[i] = N::from_place((first_layer + kept) as u32);
                kept += 1;
            }
        }
        self.codes.iter_mut().for_each(|code| *code = new(&places, *code));
        for nodes in [&mut self.parents, &mut self.keys] {
            nodes.truncate(kept);
            nodes.shrink_to_fit();
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.first_layer() + self.parents.len()
    }

    /// How many nodes are of the first layer.
    #[inline(always)]
    pub(super) fn first_layer(&self) -> usize {
        self.first_columns.len()
    }

    /// Column and value of each node of the first layer.
    #[inline(always)]
    pub(super) fn first(&self) -> impl ExactSizeIterator<Item = (T, usize)> {
        self.first_values.iter().zip(&self.first_columns).map(|(value, column)| (*value, *column as usize))
    }

    /// Parent and key of each node behind the first layer, and its number. Those of the last codes of rows mean
    /// nothing, and no code is such a node; a compact tree has none of them.
    #[inline(always)]
    pub(super) fn links(&self) -> impl DoubleEndedIterator<Item = (usize, usize, usize)> {
        let links = self.parents.iter().zip(&self.keys).enumerate();
        links.map(|(i, (parent, key))| (parent.at(), key.at(), self.first_columns.len() + i))
    }

    /// All rows, each with its codes.
    #[inline(always)]
    pub(super) fn rows(&self) -> impl Iterator<Item = (usize, &[N])> {
        self.order.iter().map(|row| (*row as usize, self.codes_of(*row as usize)))
    }

    #[inline(always)]
    pub(super) fn codes_of(&self, row: usize) -> &[N] {
        &self.codes[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Column and value of the entries of a row, ascending; zeros may be among them.
    pub(super) fn entries_of(&self, row: usize) -> Vec<(u32, T)> {
        let mut entries = Vec::new();
        for code in self.codes_of(row) {
            let begin = entries.len();
            let mut node = code.at();
            while let Some(i) = node.checked_sub(self.first_layer()) {
                entries.push(self.pair(self.keys[i].at()));
                node = self.parents[i].at();
            }
            entries.push(self.pair(node));
            entries[begin..].reverse();
        }
        entries
    }

    fn pair(&self, node: usize) -> (u32, T) {
        (self.first_columns[node], self.first_values[node])
    }
}

/// Whether a tree of this many codes and pairs of the first layer takes less work than its entries one by one would. A
/// code is about as much as an entry, and its node as much again; and if they do not save an eighth, reading what they
/// are takes longer than that.
fn saves_work(codes: usize, first_layer: usize, entries: u64) -> bool {
    (2 * codes + first_layer) as u64 * 8 <= entries * 7
}

/// The rows, the shortest first.
fn by_length(starts: &[u32]) -> Vec<u32> {
    let lengths = || starts.windows(2).map(|ends| (ends[1] - ends[0]) as usize);
    let mut places: Vec<u32> = allocation::zeros(lengths().max().unwrap_or(0) + 2);
    lengths().for_each(|length| places[length + 1] += 1);
    for length in 1..places.len() {
        places[length] += places[length - 1];
    }
    let mut order: Vec<u32> = allocation::zeros(starts.len() - 1);
    for (row, length) in lengths().enumerate() {
        order[places[length] as usize] = row as u32;
        places[length] += 1;
    }
    order
}
