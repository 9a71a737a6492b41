//! Sparse rows, weights and orders of any kind keep what belongs together, whatever is done to a batch.

use proptest::prelude::*;
use tuples::Batch;

/// Entries that tell their tuple, so that a mix-up shows.
fn entries_of(tuple: u32, nnz: usize) -> (Vec<u32>, Vec<f32>) {
    let indices = (0..nnz as u32).map(|i| tuple % 7 + 3 * i).collect();
    (indices, (0..nnz).map(|i| tuple as f32 + i as f32 / 1000.0).collect())
}

fn push(batch: &mut Batch, tuple: u32, nnz: usize) {
    let (from_indices, from_values) = entries_of(tuple, nnz);
    let (indices, values) = batch.push_sparse(tuple as f32, nnz).unwrap();
    indices.copy_from_slice(&from_indices);
    values.copy_from_slice(&from_values);
}

#[test]
fn a_new_sparse_batch_allocates_nothing_and_has_no_features() {
    let batch = Batch::sparse();
    assert_eq!((batch.len(), batch.capacity(), batch.bytes(), batch.nnz(), batch.dim()), (0, 0, 0, 0, 0));
    assert!(batch.is_sparse() && batch.is_empty() && batch.weights().is_none());
}

#[test]
fn the_dimension_is_that_of_the_largest_index_and_never_shrinks() {
    let mut batch = Batch::sparse();
    batch.set_dim(5);
    assert_eq!(batch.dim(), 5);
    batch.push_sparse(1.0, 2).unwrap().0.copy_from_slice(&[0, 9]);
    assert_eq!(batch.dim(), 10);
    batch.push_sparse(1.0, 0).unwrap();
    batch.push_sparse(1.0, 1).unwrap().0[0] = 3;
    assert_eq!(batch.dim(), 10);
    batch.clear();
    assert_eq!((batch.dim(), batch.len()), (10, 0));
    batch.push_sparse(1.0, 1).unwrap().0[0] = u32::MAX;
    assert_eq!(batch.dim(), 1 << 32);
}

#[test]
fn a_tuple_that_is_taken_back_leaves_no_dimension() {
    let mut batch = Batch::sparse();
    push(&mut batch, 1, 2);
    let dim = batch.dim();
    batch.push_sparse(2.0, 1).unwrap().0[0] = 1000;
    batch.pop();
    assert_eq!((batch.dim(), batch.len(), batch.nnz(), batch.order()), (dim, 1, 2, &[0][..]));
    batch.pop();
    batch.pop();
    assert!(batch.is_empty());
}

#[test]
fn bytes_grow_with_the_entries() {
    let mut batch = Batch::sparse();
    push(&mut batch, 1, 10);
    let one = batch.bytes();
    assert_eq!(one, 10 * 8 + 8 + 8);
    push(&mut batch, 1, 0);
    assert_eq!(batch.bytes(), one + 16);
    batch.set_weighted(true);
    push(&mut batch, 1, 10);
    assert_eq!(batch.bytes(), one + 4);
}

#[test]
fn sparse_memory_that_cannot_be_had_is_an_error_and_leaves_the_batch_as_it_was() {
    let mut batch = Batch::sparse();
    push(&mut batch, 3, 4);
    let before = format!("{batch:?}");
    for nnz in [usize::MAX, usize::MAX / 16, 1 << 60] {
        assert!(batch.push_sparse(1.0, nnz).unwrap_err().bytes > 1 << 32);
        assert_eq!(format!("{batch:?}"), before);
    }
    for more in [u32::MAX as usize, usize::MAX] {
        assert!(batch.reserve(more).unwrap_err().bytes > 1 << 32);
        assert_eq!((batch.len(), batch.sparse_row(0)), (1, (&[3, 6, 9, 12][..], &[3.0, 3.001, 3.002, 3.003][..])));
    }
}

#[test]
#[should_panic(expected = "dense tuples")]
fn a_sparse_batch_has_no_dense_rows() {
    let mut batch = Batch::sparse();
    push(&mut batch, 1, 1);
    batch.row(0);
}

#[test]
#[should_panic(expected = "sparse tuples")]
fn a_dense_batch_has_no_sparse_rows() {
    let mut batch = Batch::dense(1);
    batch.push(1.0).unwrap();
    batch.sparse_row(0);
}

#[test]
fn weights_are_1_until_they_are_written_and_may_be_switched_on_and_off() {
    let mut batch = Batch::dense(1);
    batch.push(1.0).unwrap();
    batch.set_weighted(true);
    assert!(batch.is_empty());
    batch.extend(3).unwrap();
    assert_eq!(batch.weights(), Some(&[1.0; 3][..]));
    batch.weights_mut()[1] = 0.5;
    batch.push(1.0).unwrap();
    batch.retain(&[1, 3]);
    assert_eq!(batch.weights(), Some(&[0.5, 1.0][..]));
    batch.set_weighted(false);
    batch.push(1.0).unwrap();
    assert!(batch.weights_mut().is_empty() && batch.weights().is_none());
}

#[test]
fn an_order_may_have_any_length_until_the_next_tuple() {
    let mut batch = Batch::sparse();
    (0..3).for_each(|tuple| push(&mut batch, tuple, 1));
    batch.set_order(&[2, 2, 0, 2, 1]).unwrap();
    assert_eq!(batch.order(), [2, 2, 0, 2, 1]);
    push(&mut batch, 3, 1);
    assert_eq!(batch.order(), [0, 1, 2, 3]);
    batch.set_order(&[0]).unwrap();
    assert_eq!(batch.order(), [0]);
    batch.retain(&[0, 2]);
    assert_eq!((batch.order(), batch.labels()), (&[0, 1][..], &[0.0, 2.0][..]));
}

#[test]
#[should_panic(expected = "no tuple")]
fn an_order_of_tuples_that_are_not_there_is_refused() {
    let mut batch = Batch::sparse();
    push(&mut batch, 0, 1);
    batch.set_order(&[1]).unwrap();
}

#[test]
#[should_panic(expected = "ascend")]
fn places_to_be_retained_ascend() {
    let mut batch = Batch::sparse();
    (0..3).for_each(|tuple| push(&mut batch, tuple, 1));
    batch.retain(&[1, 1]);
}

#[derive(Debug, Clone)]
enum Step {
    Push(usize),
    Pop,
    Truncate(usize),
    /// keeps the tuples whose bit is set
    Retain(u64),
    /// of the tuples behind the first this many, those with a label divisible by 3 go
    RetainFrom(usize),
    Clear,
    Reserve(usize),
    Order(Vec<prop::sample::Index>),
    Double(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..9_usize).prop_map(Step::Push),
        1 => Just(Step::Pop),
        1 => (0..30_usize).prop_map(Step::Truncate),
        2 => any::<u64>().prop_map(Step::Retain),
        1 => (0..20_usize).prop_map(Step::RetainFrom),
        1 => Just(Step::Clear),
        1 => (0..50_usize).prop_map(Step::Reserve),
        2 => prop::collection::vec(any::<prop::sample::Index>(), 0..20).prop_map(Step::Order),
        1 => (0..30_usize).prop_map(Step::Double),
    ]
}

/// A tuple kept the simple way: label, weight, entries.
type Tuple = (f32, f32, (Vec<u32>, Vec<f32>));

/// Does the same to a batch, dense or sparse, and to a list.
struct Pair {
    batch: Batch,
    tuples: Vec<Tuple>,
    order: Vec<u32>,
    made: u32,
}

const DIM: usize = 3;

impl Pair {
    fn new(sparse: bool, weighted: bool) -> Pair {
        let mut batch = if sparse { Batch::sparse() } else { Batch::dense(DIM) };
        batch.set_weighted(weighted);
        Pair { batch, tuples: Vec::new(), order: Vec::new(), made: 0 }
    }

    fn push(&mut self, nnz: usize) {
        self.made += 1;
        let (label, weighted) = (self.made as f32, self.batch.weights().is_some());
        let nnz = if self.batch.is_sparse() { nnz } else { DIM };
        let entries = entries_of(self.made, nnz);
        if self.batch.is_sparse() {
            push(&mut self.batch, self.made, nnz);
        } else {
            self.batch.push(label).unwrap().copy_from_slice(&entries.1);
        }
        let weight = if weighted { label / 2.0 } else { 1.0 };
        if let Some(last) = self.batch.weights_mut().last_mut() {
            *last = weight;
        }
        self.tuples.push((label, weight, entries));
    }

    fn take(&mut self, step: &Step) {
        let len = self.tuples.len();
        match step {
            Step::Push(nnz) => self.push(*nnz),
            Step::Pop => {
                self.tuples.pop();
                self.batch.pop();
            }
            Step::Truncate(len) => {
                self.tuples.truncate(*len);
                self.batch.truncate(*len);
            }
            Step::Retain(bits) => {
                let places: Vec<u32> = (0..len as u32).filter(|i| bits >> (i % 64) & 1 == 1).collect();
                self.tuples = places.iter().map(|&i| self.tuples[i as usize].clone()).collect();
                self.batch.retain(&places);
            }
            Step::RetainFrom(first) => {
                let mut place = 0;
                self.tuples.retain(|(label, ..)| {
                    place += 1;
                    place <= *first || label % 3.0 != 0.0
                });
                self.batch.retain_from(*first, |label| label % 3.0 != 0.0);
            }
            Step::Clear => {
                self.tuples.clear();
                self.batch.clear();
            }
            Step::Reserve(more) => self.batch.reserve(*more).unwrap(),
            Step::Order(places) if len > 0 => {
                self.order = places.iter().map(|place| place.index(len) as u32).collect();
                self.batch.set_order(&self.order).unwrap();
            }
            Step::Double(i) if *i < len => {
                self.tuples[*i].2.1.iter_mut().for_each(|x| *x *= 2.0);
                let values =
                    if self.batch.is_sparse() { self.batch.sparse_row_mut(*i).1 } else { self.batch.features_mut(*i) };
                values.iter_mut().for_each(|x| *x *= 2.0);
            }
            Step::Order(_) | Step::Double(_) => {}
        }
        if !matches!(step, Step::Order(_) | Step::Double(_) | Step::Reserve(_)) {
            self.order = (0..self.tuples.len() as u32).collect();
        }
    }

    fn check(&self) {
        let (batch, tuples) = (&self.batch, &self.tuples);
        assert_eq!((batch.len(), batch.order()), (tuples.len(), &self.order[..]));
        assert_eq!(batch.nnz(), tuples.iter().map(|(.., (indices, _))| indices.len()).sum());
        assert_eq!(batch.labels(), tuples.iter().map(|tuple| tuple.0).collect::<Vec<_>>());
        if let Some(weights) = batch.weights() {
            assert_eq!(weights, tuples.iter().map(|tuple| tuple.1).collect::<Vec<_>>());
        }
        for (i, (.., (indices, values))) in tuples.iter().enumerate() {
            if batch.is_sparse() {
                assert_eq!(batch.sparse_row(i), (&indices[..], &values[..]));
                assert!(indices.last().is_none_or(|&index| (index as usize) < batch.dim()));
            } else {
                assert_eq!(batch.features(i), values);
                assert_eq!(batch.row(i)[DIM], 1.0);
            }
        }
    }
}

proptest! {
    #[test]
    fn a_batch_keeps_rows_labels_and_weights_together_after_any_steps(
        sparse: bool, weighted: bool, steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut pair = Pair::new(sparse, weighted);
        for step in &steps {
            pair.take(step);
            pair.check();
        }
    }
}
