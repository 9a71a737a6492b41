//! Algorithms 3 to 8 on the decode tree C′.
//!
//! The tree is kept without nodes that no row uses, and with the first layer apart: the key of any other node is that of
//! a node of the first layer, whose product is known already, so that scans of the tree add and never multiply.

use super::Stored;
use super::read::Nodes;
use crate::index::Index;
use crate::kernels::{Block, each_block, each_small_block};
use crate::operations::Form;
use crate::{Info, Number};

/// C′ and D. Nodes count from 0, without the root.
#[derive(Debug)]
pub(crate) struct Tree<T, N> {
    rows: usize,
    columns: usize,
    /// Column and value of the keys of the first layer.
    key_columns: Vec<u32>,
    key_values: Vec<T>,
    /// Parent of the other nodes, and node of the first layer that has the same key; parents first.
    links: Vec<[N; 2]>,
    /// Codes of each row: where they begin in `codes`, and where the last end.
    starts: Vec<u32>,
    codes: Vec<N>,
}

/// Most bytes of what is kept for the nodes while a matrix is multiplied: they should stay in a cache.
const CACHE: usize = 1 << 20;

impl<T: Number, N: Index> Tree<T, N> {
    /// Of a tree that was checked.
    pub(crate) fn new(info: &Info, stored: Stored<'_>, nodes: Nodes) -> Tree<T, N> {
        let first_layer = stored.columns.len();
        let mut used = vec![false; first_layer + nodes.parents.len()];
        stored.codes.iter().for_each(|code| used[*code as usize] = true);
        for (i, (&parent, &key)) in nodes.parents.iter().zip(&nodes.keys).enumerate().rev() {
            if used[first_layer + i] {
                used[parent as usize] = true;
                used[key as usize] = true;
            }
        }
        // numbers of the nodes that stay
        let mut next = 0;
        let mut numbers = Vec::with_capacity(used.len());
        for &used in &used {
            numbers.push(next);
            next += u32::from(used);
        }
        let number = |node: u32| N::of(numbers[node as usize]);
        let values: Vec<T> = stored.values.to_vec();
        let first = || (0..first_layer).filter(|node| used[*node]);
        let links = nodes.parents.iter().zip(&nodes.keys).zip(&used[first_layer..]);
        Tree {
            rows: info.rows,
            columns: info.columns,
            key_columns: first().map(|node| stored.columns[node]).collect(),
            key_values: first().map(|node| values[stored.places[node] as usize]).collect(),
            links: links.filter(|(_, used)| **used).map(|((p, k), _)| [number(*p), number(*k)]).collect(),
            codes: stored.codes.iter().map(|code| number(*code)).collect(),
            starts: stored.starts,
        }
    }

    fn nodes(&self) -> usize {
        self.key_columns.len() + self.links.len()
    }

    #[inline(always)]
    fn codes(&self, i: usize) -> &[N] {
        &self.codes[self.starts[i] as usize..self.starts[i + 1] as usize]
    }

    #[inline(always)]
    fn keys(&self) -> impl Iterator<Item = (T, usize)> {
        self.key_values.iter().zip(&self.key_columns).map(|(value, column)| (*value, *column as usize))
    }

    /// Column and value of a node's key, and its parent if it is not of the first layer.
    fn key(&self, node: usize) -> (u32, T, Option<usize>) {
        let link = node.checked_sub(self.key_columns.len()).map(|i| self.links[i]);
        let key = link.map_or(node, |[_, key]| key.at());
        (self.key_columns[key], self.key_values[key], link.map(|[parent, _]| parent.at()))
    }
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
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn heap_bytes(&self) -> usize {
        self.key_columns.capacity() * 4
            + self.key_values.capacity() * size_of::<T>()
            + self.links.capacity() * size_of::<[N; 2]>()
            + self.starts.capacity() * 4
            + self.codes.capacity() * size_of::<N>()
    }

    /// Algorithm 4: H of each node is the product of its sequence with v.
    #[inline(always)]
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let h = lent(scratch, self.nodes());
        for (h, (value, column)) in h.iter_mut().zip(self.keys()) {
            *h = value * v[column];
        }
        let first_layer = self.key_columns.len();
        for (i, [parent, key]) in self.links.iter().enumerate() {
            h[first_layer + i] = h[parent.at()] + h[key.at()];
        }
        for (i, out) in out.iter_mut().enumerate() {
            let mut sum = T::ZERO;
            for code in self.codes(i) {
                sum += h[code.at()];
            }
            *out = sum;
        }
    }

    /// Algorithm 5: G of each node is the sum of v over the rows whose codes it or its descendants are.
    #[inline(always)]
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let g = lent(scratch, self.nodes());
        g.fill(T::ZERO);
        for (i, v) in v.iter().enumerate() {
            for code in self.codes(i) {
                g[code.at()] += *v;
            }
        }
        let first_layer = self.key_columns.len();
        for (i, [parent, key]) in self.links.iter().enumerate().rev() {
            let sum = g[first_layer + i];
            g[key.at()] += sum;
            g[parent.at()] += sum;
        }
        for (g, (value, column)) in g.iter().zip(self.keys()) {
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
        // the code whose sequence ends at column j or behind it, and its node at or before j
        let codes = self.codes(i);
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
        let mut sequence = Vec::new();
        for code in self.codes(i) {
            let mut node = Some(code.at());
            while let Some(at) = node {
                let (column, value, parent) = self.key(at);
                sequence.push((column, value));
                node = parent;
            }
            for (column, value) in sequence.drain(..).rev() {
                if value.to_f64().to_bits() != 0 {
                    f(column, value);
                }
            }
        }
    }
}

impl<T: Number, N: Index> Tree<T, N> {
    #[inline(always)]
    fn each_block_in_cache(&self, width: usize, block: &mut impl Block) {
        if self.nodes() * 32 * size_of::<T>() > CACHE {
            each_small_block(width, 0, block);
        } else {
            each_block(width, block);
        }
    }
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
        for (h, (value, column)) in h.iter_mut().zip(tree.keys()) {
            let row: &[T; W] = self.m[column * self.width + from..].first_chunk().expect("a row of the width");
            for (h, x) in h.iter_mut().zip(row) {
                *h = value * *x;
            }
        }
        let first_layer = tree.key_columns.len();
        for (i, [parent, key]) in tree.links.iter().enumerate() {
            let (parent, key) = (&h[parent.at()], &h[key.at()]);
            let sum: [T; W] = std::array::from_fn(|lane| parent[lane] + key[lane]);
            h[first_layer + i] = sum;
        }
        for i in 0..tree.rows {
            let mut sums = [T::ZERO; W];
            for code in tree.codes(i) {
                for (sum, h) in sums.iter_mut().zip(&h[code.at()]) {
                    *sum += *h;
                }
            }
            self.out[i * self.width + from..][..W].copy_from_slice(&sums);
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
        let g = lent(self.scratch, tree.nodes() * W).as_chunks_mut::<W>().0;
        g.fill([T::ZERO; W]);
        for i in 0..tree.rows {
            let row: &[T; W] = self.m[i * self.width + from..].first_chunk().expect("a row of the width");
            for code in tree.codes(i) {
                add(&mut g[code.at()], row);
            }
        }
        let first_layer = tree.key_columns.len();
        for (i, [parent, key]) in tree.links.iter().enumerate().rev() {
            let sum = g[first_layer + i];
            add(&mut g[key.at()], &sum);
            add(&mut g[parent.at()], &sum);
        }
        for (g, (value, column)) in g.iter().zip(tree.keys()) {
            let row = &mut self.out[column * self.width + from..][..W];
            for (out, g) in row.iter_mut().zip(g) {
                *out += value * *g;
            }
        }
    }
}

#[inline(always)]
fn add<T: Number, const W: usize>(sums: &mut [T; W], row: &[T; W]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += *x;
    }
}
