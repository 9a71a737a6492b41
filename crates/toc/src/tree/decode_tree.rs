//! The decode tree C′, and what becomes of it before anything is computed.
//!
//! Of the tree only those nodes are kept that save work: a sequence that less than [`WORTH`] rows have is written out
//! into its parent and the last pair, and a sequence of one pair into the pair. So a row is a list of pairs, as in CSR,
//! and a list of codes of nodes; and however little repeats itself, there are never more steps than in CSR. If all
//! nodes together save next to nothing, none is kept.

use super::pairs::Pairs;
use super::read::{Nodes, Stored};
use crate::index::Index;
use crate::{Info, Number};

/// Uses in rows from which on a node without children is kept. With u uses it takes u + 3 steps (add parent and key,
/// store, read u times), and 2u if it is written out.
const WORTH: u32 = 4;

/// C′ and D. Nodes count from 0, without the root.
#[derive(Debug)]
pub(crate) struct Tree<T, N> {
    pub(super) columns: usize,
    /// Keys of the nodes: first of those of the first layer, then of the others, parents first.
    pub(super) keys: Pairs<T>,
    /// Parents of the others.
    pub(super) parents: Vec<N>,
    /// The rows in the order in which they lie: by numbers of codes and pairs, so that the loops over them are mostly
    /// as long as the loop before, which processors guess right.
    pub(super) order: Vec<u32>,
    /// Where each row is in `order`.
    pub(super) places: Vec<u32>,
    /// Where the pairs and the codes of each row begin, in that order, and where the last end.
    pub(super) starts: Vec<[u32; 2]>,
    pub(super) pairs: Pairs<T>,
    pub(super) codes: Vec<N>,
}

/// Node that was written out, and so has no number.
const NONE: u32 = u32::MAX;

/// The rows, those of the smallest lengths first.
fn ascending(lengths: &[[u32; 2]]) -> Vec<u32> {
    let mut order: Vec<([u32; 2], u32)> = allocation::collect(lengths.iter().copied().zip(0..));
    order.sort_unstable();
    allocation::collect(order.into_iter().map(|(_, row)| row))
}

impl<T: Number, N: Index> Tree<T, N> {
    /// Of a tree that was checked.
    pub(crate) fn new(info: &Info, stored: Stored<'_>, nodes: Nodes) -> Tree<T, N> {
        let first_layer = stored.columns.len();
        let values: Vec<T> = stored.values.to_vec();
        let pair_of = |(column, place): (&u32, &u32)| (*column, values[*place as usize]);
        let first_pairs: Vec<(u32, T)> = allocation::collect(stored.columns.iter().zip(&stored.places).map(pair_of));
        let written = written_out(&stored, &nodes);
        let (mut keys, mut parents) = (Pairs::new(), Vec::new());
        for node in (0..written.len()).filter(|node| written[*node].number != NONE) {
            match node.checked_sub(first_layer) {
                None => keys.push(first_pairs[node]),
                Some(i) => {
                    keys.push(first_pairs[nodes.keys[i] as usize]);
                    allocation::push(&mut parents, N::from_place(written[nodes.parents[i] as usize].number));
                }
            }
        }
        let rows: Vec<&[u32]> = allocation::collect(stored.rows());
        let lengths: Vec<[u32; 2]> = allocation::collect(rows.iter().map(|row| lengths_of(row, &written)));
        let order = ascending(&lengths);
        let mut places: Vec<u32> = allocation::zeros(info.rows);
        order.iter().enumerate().for_each(|(place, row)| places[*row as usize] = place as u32);
        let all = |i: usize| lengths.iter().map(|lengths| lengths[i] as usize).sum();
        let (mut starts, mut end) = (allocation::with_capacity(info.rows + 1), 0);
        let (mut pairs, mut codes) = (Pairs::zeros(all(1)), allocation::with_capacity(all(0)));
        starts.push([0, 0]);
        for &row in &order {
            for &code in rows[row as usize] {
                let Written { pairs: n, node, .. } = written[code as usize];
                end += n as usize;
                // the last pair is the code's own
                let mut at = code as usize;
                for place in (end - n as usize..end).rev() {
                    match at.checked_sub(first_layer) {
                        None => pairs.set(place, first_pairs[at]),
                        Some(i) => {
                            pairs.set(place, first_pairs[nodes.keys[i] as usize]);
                            at = nodes.parents[i] as usize;
                        }
                    }
                }
                if node != NONE {
                    codes.push(N::from_place(node));
                }
            }
            starts.push([end as u32, codes.len() as u32]);
        }
        keys.shrink();
        parents.shrink_to_fit();
        Tree { columns: info.columns, keys, parents, order, places, starts, pairs, codes }
    }

    pub(super) fn nodes(&self) -> usize {
        self.keys.columns.len()
    }

    /// How many nodes are of the first layer.
    #[inline(always)]
    pub(super) fn first_layer(&self) -> usize {
        self.nodes() - self.parents.len()
    }

    /// All rows: each with its place.
    #[inline(always)]
    pub(super) fn in_order(&self) -> impl Iterator<Item = (usize, usize)> {
        self.order.iter().enumerate().map(|(place, row)| (place, *row as usize))
    }

    /// Pairs of the row at a place.
    #[inline(always)]
    pub(super) fn pairs(&self, place: usize) -> impl Iterator<Item = (T, usize)> + Clone {
        self.pairs.range(self.starts[place][0] as usize..self.starts[place + 1][0] as usize)
    }

    /// Codes of the row at a place.
    #[inline(always)]
    pub(super) fn codes(&self, place: usize) -> &[N] {
        &self.codes[self.starts[place][1] as usize..self.starts[place + 1][1] as usize]
    }

    /// Parents, keys and numbers of the nodes that are not of the first layer.
    #[inline(always)]
    pub(super) fn links(&self) -> impl DoubleEndedIterator<Item = (usize, (T, usize), usize)> {
        let first_layer = self.first_layer();
        let keys = self.keys.iter().skip(first_layer);
        let links = self.parents.iter().zip(keys).enumerate();
        links.map(move |(i, (parent, key))| (parent.at(), key, first_layer + i))
    }

    /// Column and value of a node's key, and its parent if it is not of the first layer.
    pub(super) fn key(&self, node: usize) -> (u32, T, Option<usize>) {
        let parent = node.checked_sub(self.first_layer()).map(|i| self.parents[i].at());
        (self.keys.columns[node], self.keys.values[node], parent)
    }
}

/// What a node is in a row: pairs, and behind them perhaps a node that is kept.
#[derive(Clone, Copy)]
struct Written {
    pairs: u32,
    /// number of that node, or [`NONE`]
    node: u32,
    /// its own number, if it is kept
    number: u32,
}

/// What all nodes are in rows. Those are kept that save work, if all of them save enough; nodes of the first layer are
/// kept as parents only.
fn written_out(stored: &Stored<'_>, nodes: &Nodes) -> Vec<Written> {
    let first_layer = stored.columns.len();
    let mut uses: Vec<u32> = allocation::zeros(first_layer + nodes.parents.len());
    let mut kept: Vec<bool> = allocation::zeros(uses.len());
    stored.codes.iter().for_each(|code| uses[*code as usize] += 1);
    // children come after parents
    for (i, &parent) in nodes.parents.iter().enumerate().rev() {
        let node = first_layer + i;
        // a node of which a child is kept has been marked by it
        kept[node] |= uses[node] >= WORTH;
        if kept[node] {
            kept[parent as usize] = true;
        } else {
            uses[parent as usize] += uses[node];
        }
    }
    let written = write_out(first_layer, nodes, &kept);
    let [codes, pairs] = lengths_of(&stored.codes, &written).map(u64::from);
    let of_nodes = 3 * kept.iter().filter(|kept| **kept).count() as u64;
    // If they do not save an eighth of the steps, what else they take (a second loop over the rows, a cache that holds
    // more) is more than they save.
    if (codes + pairs + of_nodes) * 8 > nodes.entries * 7 {
        kept.fill(false);
        return write_out(first_layer, nodes, &kept);
    }
    written
}

/// What nodes are in rows of which these are kept.
fn write_out(first_layer: usize, nodes: &Nodes, kept: &[bool]) -> Vec<Written> {
    let mut next = 0;
    let mut number = |kept: bool| {
        next += u32::from(kept);
        if kept { next - 1 } else { NONE }
    };
    let (pairs, others) = kept.split_at(first_layer);
    let mut written = allocation::with_capacity(kept.len());
    written.extend(pairs.iter().map(|kept| Written { pairs: 1, node: NONE, number: number(*kept) }));
    for (&parent, &kept) in nodes.parents.iter().zip(others) {
        let Written { pairs, node, .. } = written[parent as usize];
        written.push(match number(kept) {
            NONE => Written { pairs: pairs + 1, node, number: NONE },
            number => Written { pairs: 0, node: number, number },
        });
    }
    written
}

/// How many codes and pairs a row has.
fn lengths_of(row: &[u32], written: &[Written]) -> [u32; 2] {
    let of = |code: &u32| written[*code as usize];
    row.iter().map(of).fold([0, 0], |[codes, pairs], of| [codes + u32::from(of.node != NONE), pairs + of.pairs])
}
