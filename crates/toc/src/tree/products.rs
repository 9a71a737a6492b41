//! Algorithms 3 to 8 on the decode tree C′.

use super::decode_tree::Tree;
use crate::Number;
use crate::index::Index;
use crate::kernels::{Block, WIDEST, each_block};
use crate::operations::Form;

/// Most bytes of what is kept for the nodes while a matrix is multiplied: they should stay in a cache.
const CACHE: usize = 1 << 20;

/// Most columns at a time where that would be more.
const CACHED: usize = 20;

/// This many numbers of lent memory, whatever they are.
#[inline(always)]
fn lent<T: Number>(scratch: &mut Vec<T>, n: usize) -> &mut [T] {
    if scratch.len() < n {
        allocation::resize(scratch, n, T::ZERO);
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
        let is_small = self.nodes() * WIDEST * size_of::<T>() <= CACHE;
        each_block(width, if is_small { WIDEST } else { CACHED }, block);
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
