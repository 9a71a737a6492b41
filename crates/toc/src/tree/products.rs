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
        self.order.len()
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn heap_bytes(&self) -> usize {
        self.first_values.capacity() * size_of::<T>()
            + (self.codes.capacity() + self.parents.capacity() + self.keys.capacity()) * size_of::<N>()
            + (self.first_columns.capacity() + self.order.capacity() + self.starts.capacity()) * 4
    }

    fn compact(&mut self) {
        self.drop_unused();
    }

    fn all_finite(&self) -> bool {
        self.first_values.iter().all(|value| value.is_finite())
    }

    /// Algorithm 4: H of each node is the product of its sequence with v.
    #[inline(always)]
    fn times_vector(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let h = lent(scratch, self.nodes());
        for (h, (value, column)) in h.iter_mut().zip(self.first()) {
            *h = value * v[column];
        }
        for (parent, key, node) in self.links() {
            h[node] = h[parent] + h[key];
        }
        for (row, codes) in self.rows() {
            let mut sum = T::ZERO;
            for code in codes {
                sum += h[code.at()];
            }
            out[row] = sum;
        }
    }

    /// Algorithm 5: G of each node is the sum of v over the rows whose codes it or its descendants are.
    #[inline(always)]
    fn vector_times(&self, v: &[T], out: &mut [T], scratch: &mut Vec<T>) {
        let g = lent(scratch, self.nodes());
        g.fill(T::ZERO);
        for (row, codes) in self.rows() {
            let v = v[row];
            for code in codes {
                g[code.at()] += v;
            }
        }
        for (parent, key, node) in self.links().rev() {
            let sum = g[node];
            g[parent] += sum;
            g[key] += sum;
        }
        for (g, (value, column)) in g.iter().zip(self.first()) {
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
        let entry = self.entries_of(i).into_iter().find(|(column, _)| *column as usize == j);
        entry.map_or(T::ZERO, |(_, value)| value)
    }

    fn each_entry_of_row(&self, i: usize, f: &mut dyn FnMut(u32, T)) {
        let entries = self.entries_of(i).into_iter().filter(|(_, value)| value.to_f64().to_bits() != 0);
        entries.for_each(|(column, value)| f(column, value));
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
        for (h, (value, column)) in h.iter_mut().zip(tree.first()) {
            let m = block_of::<T, W>(self.m, column * self.width + from);
            for lane in 0..W {
                h[lane] = value * m[lane];
            }
        }
        for (parent, key, node) in tree.links() {
            let (before, h) = h.split_at_mut(node);
            let (parent, key, h) = (&before[parent], &before[key], &mut h[0]);
            for lane in 0..W {
                h[lane] = parent[lane] + key[lane];
            }
        }
        for (row, codes) in tree.rows() {
            let mut sums = [T::ZERO; W];
            for code in codes {
                let h = &h[code.at()];
                for lane in 0..W {
                    sums[lane] += h[lane];
                }
            }
            self.out[row * self.width + from..][..W].copy_from_slice(&sums);
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
        for (row, codes) in tree.rows() {
            let m = block_of::<T, W>(self.m, row * width + from);
            for code in codes {
                let g = &mut g[code.at()];
                for lane in 0..W {
                    g[lane] += m[lane];
                }
            }
        }
        for (parent, key, node) in tree.links().rev() {
            let (before, g) = g.split_at_mut(node);
            let g = &g[0];
            for to in [parent, key] {
                let to = &mut before[to];
                for lane in 0..W {
                    to[lane] += g[lane];
                }
            }
        }
        for (g, (value, column)) in g.iter().zip(tree.first()) {
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
