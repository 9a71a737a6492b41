//! Algorithms 3 to 8 on the decode tree C′.
//!
//! Of the tree only those nodes are kept that save work: a sequence that less than [`WORTH`] rows have is written out into
//! its parent and the last pair, and a sequence of one pair into the pair. So a row is a list of pairs, as in CSR, and a list of
//! codes of nodes; and however little repeats itself, there are never more steps than in CSR. If all nodes together save next to
//! nothing, none is kept.

use super::Stored;
use super::read::Nodes;
use crate::index::Index;
use crate::kernels::{Block, each_block, each_small_block};
use crate::operations::Form;
use crate::{Info, Number};

/// Uses in rows from which on a node without children is kept. With u uses it takes u + 3 steps (add parent and key, store, read
/// u times), and 2u if it is written out.
const WORTH: u32 = 4;

/// Columns and values of pairs.
#[derive(Debug)]
struct Pairs<T> {
    columns: Vec<u32>,
    values: Vec<T>,
}

impl<T: Number> Pairs<T> {
    fn new() -> Pairs<T> {
        Pairs { columns: Vec::new(), values: Vec::new() }
    }

    fn zeros(n: usize) -> Pairs<T> {
        Pairs { columns: vec![0; n], values: vec![T::ZERO; n] }
    }

    fn set(&mut self, place: usize, (column, value): (u32, T)) {
        self.columns[place] = column;
        self.values[place] = value;
    }

    fn push(&mut self, (column, value): (u32, T)) {
        self.columns.push(column);
        self.values.push(value);
    }

    fn heap_bytes(&self) -> usize {
        self.columns.capacity() * 4 + self.values.capacity() * size_of::<T>()
    }

    #[inline(always)]
    fn iter(&self) -> impl DoubleEndedIterator<Item = (T, usize)> + ExactSizeIterator + Clone {
        self.values.iter().zip(&self.columns).map(|(value, column)| (*value, *column as usize))
    }

    #[inline(always)]
    fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = (T, usize)> + Clone {
        let columns = &self.columns[range.clone()];
        self.values[range].iter().zip(columns).map(|(value, column)| (*value, *column as usize))
    }

    fn shrink(&mut self) {
        self.columns.shrink_to_fit();
        self.values.shrink_to_fit();
    }
}

/// C′ and D. Nodes count from 0, without the root.
#[derive(Debug)]
pub(crate) struct Tree<T, N> {
    columns: usize,
    /// Keys of the nodes: first of those of the first layer, then of the others, parents first.
    keys: Pairs<T>,
    /// Parents of the others.
    parents: Vec<N>,
    /// The rows in the order in which they lie: by numbers of codes and pairs, so that the loops over them are mostly as long
    /// as the loop before, which processors guess right.
    order: Vec<u32>,
    /// Where each row is in `order`.
    places: Vec<u32>,
    /// Where the pairs and the codes of each row begin, in that order, and where the last end.
    starts: Vec<[u32; 2]>,
    pairs: Pairs<T>,
    codes: Vec<N>,
}

/// Most bytes of what is kept for the nodes while a matrix is multiplied: they should stay in a cache.
const CACHE: usize = 1 << 20;

/// Node that was written out, and so has no number.
const NONE: u32 = u32::MAX;

impl<T: Number, N: Index> Tree<T, N> {
    /// Of a tree that was checked.
    pub(crate) fn new(info: &Info, stored: Stored<'_>, nodes: Nodes) -> Tree<T, N> {
        let first_layer = stored.columns.len();
        let values: Vec<T> = stored.values.to_vec();
        let pair_of = |(column, place): (&u32, &u32)| (*column, values[*place as usize]);
        let first_pairs: Vec<(u32, T)> = stored.columns.iter().zip(&stored.places).map(pair_of).collect();
        let written = written_out(&stored, &nodes);
        let (mut keys, mut parents) = (Pairs::new(), Vec::new());
        for node in (0..written.len()).filter(|node| written[*node].number != NONE) {
            match node.checked_sub(first_layer) {
                None => keys.push(first_pairs[node]),
                Some(i) => {
                    keys.push(first_pairs[nodes.keys[i] as usize]);
                    parents.push(N::of(written[nodes.parents[i] as usize].number));
                }
            }
        }
        let rows: Vec<&[u32]> = stored.rows().collect();
        let lengths: Vec<[u32; 2]> = rows.iter().map(|row| lengths_of(row, &written)).collect();
        let mut order: Vec<([u32; 2], u32)> = lengths.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let order: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
        let mut places = vec![0; info.rows];
        order.iter().enumerate().for_each(|(place, row)| places[*row as usize] = place as u32);

        let all = |i: usize| lengths.iter().map(|lengths| lengths[i] as usize).sum();
        let mut starts = Vec::with_capacity(info.rows + 1);
        let (mut pairs, mut codes) = (Pairs::zeros(all(1)), Vec::with_capacity(all(0)));
        let mut end = 0;
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
                    codes.push(N::of(node));
                }
            }
            starts.push([end as u32, codes.len() as u32]);
        }
        keys.shrink();
        parents.shrink_to_fit();
        Tree { columns: info.columns, keys, parents, order, places, starts, pairs, codes }
    }

    fn nodes(&self) -> usize {
        self.keys.columns.len()
    }

    /// How many nodes are of the first layer.
    #[inline(always)]
    fn first_layer(&self) -> usize {
        self.nodes() - self.parents.len()
    }

    /// All rows: each with its place.
    #[inline(always)]
    fn in_order(&self) -> impl Iterator<Item = (usize, usize)> {
        self.order.iter().enumerate().map(|(place, row)| (place, *row as usize))
    }

    /// Pairs of the row at a place.
    #[inline(always)]
    fn pairs(&self, place: usize) -> impl Iterator<Item = (T, usize)> + Clone {
        self.pairs.range(self.starts[place][0] as usize..self.starts[place + 1][0] as usize)
    }

    /// Codes of the row at a place.
    #[inline(always)]
    fn codes(&self, place: usize) -> &[N] {
        &self.codes[self.starts[place][1] as usize..self.starts[place + 1][1] as usize]
    }

    /// Parents, keys and numbers of the nodes that are not of the first layer.
    #[inline(always)]
    fn links(&self) -> impl DoubleEndedIterator<Item = (usize, (T, usize), usize)> {
        let first_layer = self.first_layer();
        let keys = self.keys.iter().skip(first_layer);
        let links = self.parents.iter().zip(keys).enumerate();
        links.map(move |(i, (parent, key))| (parent.at(), key, first_layer + i))
    }

    /// Column and value of a node's key, and its parent if it is not of the first layer.
    fn key(&self, node: usize) -> (u32, T, Option<usize>) {
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

/// What all nodes are in rows. Those are kept that save work, if all of them save enough; nodes of the first layer are kept as
/// parents only.
fn written_out(stored: &Stored<'_>, nodes: &Nodes) -> Vec<Written> {
    let first_layer = stored.columns.len();
    let mut uses = vec![0u32; first_layer + nodes.parents.len()];
    let mut kept = vec![false; uses.len()];
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
    // If they do not save an eighth of the steps, what else they take (a second loop over the rows, a cache that holds more) is
    // more than they save.
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
    let mut written = Vec::with_capacity(kept.len());
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

/// So many numbers of lent memory, whatever they are.
#[inline(always)]
fn lent<T: Number>(scratch: &mut Vec<T>, n: usize) -> &mut [T] {
    if scratch.len() < n {
        scratch.resize(n, T::ZERO);
    }
    &mut scratch[..n]
}

impl<T: Number, N: Index> Form<T> for Tree<T, N> {
    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn heap_bytes(&self) -> usize {
        self.keys.heap_bytes()
            + self.pairs.heap_bytes()
            + (self.parents.capacity() + self.codes.capacity()) * size_of::<N>()
            + (self.order.capacity() + self.places.capacity()) * 4
            + self.starts.capacity() * size_of::<[u32; 2]>()
    }

    /// Algorithm 4: H of each node is the product of its sequence with v.
    #[inline(always)]
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let h = lent(scratch, self.nodes());
        for (h, (value, column)) in h.iter_mut().zip(self.keys.iter()) {
            *h = value * v[column];
        }
        let first_layer = self.first_layer();
        for (i, parent) in self.parents.iter().enumerate() {
            let sequence = h[parent.at()];
            h[first_layer + i] += sequence;
        }
        for (place, row) in self.in_order() {
            let mut sum = T::ZERO;
            for (value, column) in self.pairs(place) {
                sum += value * v[column];
            }
            let mut of_nodes = T::ZERO;
            for code in self.codes(place) {
                of_nodes += h[code.at()];
            }
            out[row] = sum + of_nodes;
        }
    }

    /// Algorithm 5: G of each node is the sum of v over the rows whose codes it or its descendants are.
    #[inline(always)]
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let g = lent(scratch, self.nodes());
        g.fill(T::ZERO);
        for (place, row) in self.in_order() {
            let v = v[row];
            for (value, column) in self.pairs(place) {
                out[column] += value * v;
            }
            for code in self.codes(place) {
                g[code.at()] += v;
            }
        }
        let first_layer = self.first_layer();
        for (i, parent) in self.parents.iter().enumerate().rev() {
            let sum = g[first_layer + i];
            g[parent.at()] += sum;
        }
        for (g, (value, column)) in g.iter().zip(self.keys.iter()) {
            out[column] += value * *g;
        }
    }

    /// Algorithm 7, for a few columns of M at a time.
    #[inline(always)]
    fn times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        self.each_block_in_cache(width, &mut Times { tree: self, m, width, out, scratch });
    }

    /// Algorithm 8, for a few columns of M at a time.
    #[inline(always)]
    fn transposed_times_matrix(&self, m: &[T], width: usize, out: &mut [T], scratch: &mut Vec<T>) {
        self.each_block_in_cache(width, &mut TransposedTimes { tree: self, m, width, out, scratch });
    }

    fn get(&self, i: usize, j: usize) -> T {
        let place = self.places[i] as usize;
        if let Some((value, _)) = self.pairs(place).find(|(_, column)| *column == j) {
            return value;
        }
        // the code whose sequence ends at column j or behind it, and its node at or before j
        let codes = self.codes(place);
        let code = codes.partition_point(|code| (self.key(code.at()).0 as usize) < j);
        let mut node = codes.get(code).map(|code| code.at());
        while let Some(at) = node {
            let (column, value, parent) = self.key(at);
            match (column as usize).cmp(&j) {
                std::cmp::Ordering::Greater => node = parent,
                std::cmp::Ordering::Equal => return value,
                std::cmp::Ordering::Less => break,
            }
        }
        T::ZERO
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        let place = self.places[i] as usize;
        let mut entries: Vec<(u32, T)> = self.pairs(place).map(|(value, column)| (column as u32, value)).collect();
        for code in self.codes(place) {
            let mut node = Some(code.at());
            while let Some(at) = node {
                let (column, value, parent) = self.key(at);
                entries.push((column, value));
                node = parent;
            }
        }
        entries.sort_unstable_by_key(|(column, _)| *column);
        entries.retain(|(_, value)| value.to_f64().to_bits() != 0);
        entries.into_iter().for_each(|(column, value)| f(column, value));
    }
}

impl<T: Number, N: Index> Tree<T, N> {
    #[inline(always)]
    fn each_block_in_cache(&self, width: usize, block: &mut impl Block) {
        if self.nodes() * 64 * size_of::<T>() > CACHE {
            each_small_block(width, block);
        } else {
            each_block(width, block);
        }
    }
}

/// `W` numbers of a row of a matrix.
#[inline(always)]
fn block_of<T, const W: usize>(m: &[T], at: usize) -> &[T; W] {
    m[at..].first_chunk().expect("a row is as long as its width")
}

struct Times<'a, T, N> {
    tree: &'a Tree<T, N>,
    m: &'a [T],
    width: usize,
    out: &'a mut [T],
    scratch: &'a mut Vec<T>,
}

impl<T: Number, N: Index> Block for Times<'_, T, N> {
    #[inline(always)]
    fn run<const W: usize>(&mut self, from: usize) {
        let tree = self.tree;
        let h = lent(self.scratch, tree.nodes() * W).as_chunks_mut::<W>().0;
        for (h, (value, column)) in h.iter_mut().zip(tree.keys.iter()).take(tree.first_layer()) {
            let m = block_of::<T, W>(self.m, column * self.width + from);
            for lane in 0..W {
                h[lane] = value * m[lane];
            }
        }
        for (parent, (value, column), node) in tree.links() {
            let m = block_of::<T, W>(self.m, column * self.width + from);
            let (before, h) = h.split_at_mut(node);
            let (parent, h) = (&before[parent], &mut h[0]);
            for lane in 0..W {
                h[lane] = parent[lane] + value * m[lane];
            }
        }
        // in two loops, each with few enough variables for the registers that there are
        let width = self.width;
        for (place, row) in tree.in_order() {
            let mut sums = [T::ZERO; W];
            for code in tree.codes(place) {
                let h = &h[code.at()];
                for lane in 0..W {
                    sums[lane] += h[lane];
                }
            }
            self.out[row * width + from..][..W].copy_from_slice(&sums);
        }
        let m = self.m.get(from..).unwrap_or_default(); // without columns there is nothing
        for (place, row) in tree.in_order() {
            let mut sums = [T::ZERO; W];
            for (value, column) in tree.pairs(place) {
                let m = block_of::<T, W>(m, column * width);
                for lane in 0..W {
                    sums[lane] += value * m[lane];
                }
            }
            for (out, sum) in self.out[row * width + from..][..W].iter_mut().zip(sums) {
                *out += sum;
            }
        }
    }
}

struct TransposedTimes<'a, T, N> {
    tree: &'a Tree<T, N>,
    m: &'a [T],
    width: usize,
    out: &'a mut [T],
    scratch: &'a mut Vec<T>,
}

impl<T: Number, N: Index> Block for TransposedTimes<'_, T, N> {
    #[inline(always)]
    fn run<const W: usize>(&mut self, from: usize) {
        let tree = self.tree;
        let width = self.width;
        let g = lent(self.scratch, tree.nodes() * W).as_chunks_mut::<W>().0;
        g.fill([T::ZERO; W]);
        for (place, row) in tree.in_order() {
            let row = block_of::<T, W>(self.m, row * width + from);
            for (value, column) in tree.pairs(place) {
                add_scaled(value, row, &mut self.out[column * width + from..]);
            }
            for code in tree.codes(place) {
                let g = &mut g[code.at()];
                for lane in 0..W {
                    g[lane] += row[lane];
                }
            }
        }
        for (parent, (value, column), node) in tree.links().rev() {
            let (before, g) = g.split_at_mut(node);
            let (parent, g) = (&mut before[parent], &g[0]);
            for lane in 0..W {
                parent[lane] += g[lane];
            }
            add_scaled(value, g, &mut self.out[column * width + from..]);
        }
        for (g, (value, column)) in g.iter().zip(tree.keys.iter()).take(tree.first_layer()) {
            add_scaled(value, g, &mut self.out[column * width + from..]);
        }
    }
}

/// `out` += a x, in a length that the compiler knows.
#[inline(always)]
fn add_scaled<T: Number, const W: usize>(a: T, x: &[T; W], out: &mut [T]) {
    let out: &mut [T; W] = out.first_chunk_mut().expect("a row is as long as its width");
    for lane in 0..W {
        out[lane] += a * x[lane];
    }
}
