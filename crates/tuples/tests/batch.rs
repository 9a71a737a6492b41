//! A batch keeps what its kernels rely on, whatever is done to it.

use proptest::prelude::*;
use tuples::{Batch, LANES, OutOfMemory};

/// Row `i` as the documentation describes it.
fn expected_row(features: &[f32], stride: usize) -> Vec<f32> {
    let mut row = features.to_vec();
    row.push(1.0);
    row.resize(stride, 0.0);
    row
}

/// Features that tell their tuple, so that a mix-up shows.
fn features_of(tuple: u32, dim: usize) -> Vec<f32> {
    (0..dim).map(|column| tuple as f32 + column as f32 / 1000.0).collect()
}

fn filled(dim: usize, tuples: u32) -> Batch {
    let mut batch = Batch::new(dim);
    for tuple in 0..tuples {
        batch.push(tuple as f32).unwrap().copy_from_slice(&features_of(tuple, dim));
    }
    batch
}

#[test]
fn exact_labels_move_with_their_tuples() {
    let mut batch = Batch::new(1);
    batch.set_exact(true);
    for i in 0..5 {
        batch.push(i as f32).unwrap()[0] = i as f32;
    }
    assert_eq!(batch.exact_labels(), Some(&[0.0, 1.0, 2.0, 3.0, 4.0][..]), "those of new tuples");
    batch.exact_labels_mut().iter_mut().for_each(|label| *label += 1e-9);
    batch.fill_holes([(4, 0)].into_iter(), 4);
    batch.retain_from(1, |label| label != 2.0);
    assert_eq!(batch.exact_labels(), Some(&[4.0 + 1e-9, 1.0 + 1e-9, 3.0 + 1e-9][..]));
    let mut copy = Batch::new(1);
    copy.push_copy(&batch, 0).unwrap();
    assert_eq!((copy.exact_labels(), copy.exact_label(0)), (None, 4.0));
    copy.set_exact(true);
    copy.push_copy(&batch, 1).unwrap();
    assert_eq!(copy.exact_label(0), 1.0 + 1e-9);
    copy.set_exact(false);
    assert!(copy.is_empty() && copy.exact_labels().is_none());
}

#[test]
fn a_new_batch_allocates_nothing() {
    let batch = Batch::new(28);
    assert_eq!((batch.len(), batch.capacity(), batch.bytes()), (0, 0, 0));
    assert!(batch.is_empty() && batch.rows().is_empty() && batch.labels().is_empty() && batch.order().is_empty());
}

#[test]
fn rows_in_memory_that_others_have_used_have_their_constant_and_padding() {
    // as much as is kept for the next batch
    let mut before = Batch::new(63);
    before.reserve(40_000).unwrap();
    let place = before.rows().as_ptr();
    (0..40_000).for_each(|_| before.push(0.0).unwrap().fill(f32::NAN));
    drop(before);
    let mut after = Batch::new(28);
    after.reserve(60_000).unwrap();
    assert_eq!(after.rows().as_ptr(), place);
    for tuple in 0..60_000 {
        after.push(0.0).unwrap().copy_from_slice(&features_of(tuple, 28));
        assert_eq!(after.row(tuple as usize), expected_row(&features_of(tuple, 28), 32));
    }
}

#[test]
fn the_stride_has_room_for_the_constant_input() {
    for (dim, stride) in [(0, 16), (1, 16), (15, 16), (16, 32), (28, 32), (31, 32), (32, 48), (2000, 2016)] {
        assert_eq!(Batch::new(dim).stride(), stride, "{dim} features");
        let mut batch = Batch::new(dim);
        batch.extend(1).unwrap();
        assert_eq!(batch.bytes(), stride * 4 + 8, "{dim} features");
    }
}

#[test]
fn a_reserved_batch_does_not_move_while_it_fills() {
    let mut batch = Batch::new(3);
    batch.reserve(1000).unwrap();
    assert_eq!(batch.capacity(), 1000);
    batch.push(0.0).unwrap().fill(0.0);
    let place = batch.rows().as_ptr();
    batch.extend(999).unwrap();
    assert_eq!((batch.rows().as_ptr(), batch.capacity()), (place, 1000));
}

#[test]
fn a_cleared_batch_keeps_its_memory() {
    let mut batch = filled(3, 100);
    let (place, capacity) = (batch.rows().as_ptr(), batch.capacity());
    batch.clear();
    assert!(batch.is_empty());
    batch.extend(100).unwrap();
    assert_eq!((batch.rows().as_ptr(), batch.capacity()), (place, capacity));
    assert!(batch.labels().iter().all(|&label| label == 0.0));
}

#[test]
fn a_batch_that_grows_at_least_doubles_its_room() {
    let mut batch = filled(3, 100);
    let capacity = batch.capacity();
    batch.extend(capacity - batch.len() + 1).unwrap();
    assert!(batch.capacity() >= 2 * capacity);
}

#[test]
fn the_order_is_the_identity_again_after_the_next_tuple_a_truncate_or_a_clear() {
    let reversed = || {
        let mut batch = filled(3, 4);
        batch.order_mut().reverse();
        assert_eq!(batch.order(), [3, 2, 1, 0]);
        batch
    };
    let mut pushed = reversed();
    pushed.push(0.0).unwrap();
    assert_eq!(pushed.order(), [0, 1, 2, 3, 4]);
    let mut cut = reversed();
    cut.truncate(3);
    assert_eq!(cut.order(), [0, 1, 2]);
    let mut uncut = reversed();
    uncut.truncate(4);
    assert_eq!(uncut.order(), [0, 1, 2, 3]);
    let mut refilled = reversed();
    refilled.clear();
    refilled.extend(2).unwrap();
    assert_eq!(refilled.order(), [0, 1]);
}

#[test]
fn memory_that_cannot_be_had_is_an_error_and_leaves_the_batch_as_it_was() {
    for more in [u32::MAX as usize, usize::MAX - 5, usize::MAX] {
        let mut batch = filled(3, 5);
        let before = format!("{batch:?}");
        assert!(batch.reserve(more).unwrap_err().bytes > 1 << 32);
        assert!(batch.extend(more).unwrap_err().bytes > 1 << 32);
        assert_eq!(format!("{batch:?}"), before);
    }
    for dim in [1 << 60, usize::MAX - 1, usize::MAX] {
        let mut batch = Batch::new(dim);
        assert!(batch.push(1.0).unwrap_err().bytes > 1 << 60);
        assert!(batch.is_empty() && batch.labels().is_empty());
    }
    let message = "out of memory: could not allocate 7 bytes";
    assert_eq!(OutOfMemory { bytes: 7 }.to_string(), message);
}

#[test]
#[should_panic(expected = "no tuple 5 in a batch of 5")]
fn a_row_behind_the_last_cannot_be_read() {
    let mut batch = filled(3, 6);
    batch.truncate(5);
    batch.row(5);
}

#[test]
#[should_panic(expected = "no tuple 5 in a batch of 5")]
fn a_row_behind_the_last_cannot_be_written() {
    let mut batch = filled(3, 6);
    batch.truncate(5);
    batch.features_mut(5);
}

#[derive(Debug, Clone)]
enum Step {
    Push,
    /// this many tuples, filled from the last to the first
    Extend(usize),
    Reserve(usize),
    Truncate(usize),
    /// of the tuples behind the first this many, those with a label divisible by 3 go
    RetainFrom(usize),
    Clear,
    RotateOrder(usize),
    /// doubles all features and labels through `rows_mut`
    DoubleRows,
    /// negates the features of a tuple in place
    Negate(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Push),
        4 => (0..40_usize).prop_map(Step::Extend),
        1 => (0..100_usize).prop_map(Step::Reserve),
        2 => (0..60_usize).prop_map(Step::Truncate),
        2 => (0..60_usize).prop_map(Step::RetainFrom),
        1 => Just(Step::Clear),
        2 => (0..50_usize).prop_map(Step::RotateOrder),
        1 => Just(Step::DoubleRows),
        1 => (0..50_usize).prop_map(Step::Negate),
    ]
}

/// What a batch should contain, kept the simple way.
#[derive(Default)]
struct Model {
    tuples: Vec<(f32, Vec<f32>)>,
    order: Vec<u32>,
    /// makes each tuple's contents its own
    made: u32,
}

impl Model {
    fn make(&mut self, dim: usize) -> (f32, Vec<f32>) {
        self.made += 1;
        let tuple = (self.made as f32, features_of(self.made, dim));
        self.tuples.push(tuple.clone());
        self.identity();
        tuple
    }

    fn identity(&mut self) {
        self.order = (0..self.tuples.len() as u32).collect();
    }

    fn take(&mut self, step: &Step, batch: &mut Batch) {
        let dim = batch.dim();
        match *step {
            Step::Push => {
                let (label, features) = self.make(dim);
                batch.push(label).unwrap().copy_from_slice(&features);
            }
            Step::Extend(n) => {
                self.identity();
                let new: Vec<_> = (0..n).map(|_| self.make(dim)).collect();
                let mut rows = batch.extend(n).unwrap();
                assert_eq!((rows.len(), rows.is_empty()), (n, n == 0));
                for (i, (label, features)) in new.iter().enumerate().rev() {
                    let (to_label, to_features) = rows.row_mut(i);
                    *to_label = *label;
                    to_features.copy_from_slice(features);
                }
            }
            Step::Reserve(more) => {
                batch.reserve(more).unwrap();
                assert!(batch.capacity() >= batch.len() + more);
            }
            Step::Truncate(len) => {
                self.tuples.truncate(len);
                self.identity();
                batch.truncate(len);
            }
            Step::RetainFrom(first) => {
                let keep = |label: f32| label % 3.0 != 0.0;
                let mut place = 0;
                self.tuples.retain(|(label, _)| {
                    place += 1;
                    place <= first || keep(*label)
                });
                self.identity();
                batch.retain_from(first, keep);
            }
            Step::Clear => {
                self.tuples.clear();
                self.identity();
                batch.clear();
            }
            Step::RotateOrder(by) if !self.order.is_empty() => {
                let by = by % self.order.len();
                self.order.rotate_left(by);
                batch.order_mut().rotate_left(by);
            }
            Step::DoubleRows => {
                let mut rows = batch.rows_of(0..batch.len());
                for (i, (label, features)) in self.tuples.iter_mut().enumerate() {
                    *label *= 2.0;
                    features.iter_mut().for_each(|x| *x *= 2.0);
                    let (to_label, to_features) = rows.row_mut(i);
                    *to_label *= 2.0;
                    to_features.iter_mut().for_each(|x| *x *= 2.0);
                }
            }
            Step::Negate(i) if i < self.tuples.len() => {
                self.tuples[i].1.iter_mut().for_each(|x| *x = -*x);
                batch.features_mut(i).iter_mut().for_each(|x| *x = -*x);
            }
            Step::RotateOrder(_) | Step::Negate(_) => {}
        }
    }

    fn check(&self, batch: &Batch) {
        let stride = batch.stride();
        assert_eq!((batch.len(), batch.is_empty()), (self.tuples.len(), self.tuples.is_empty()));
        assert!(batch.capacity() >= batch.len());
        assert_eq!(batch.bytes(), batch.len() * (stride * 4 + 8));
        assert_eq!(batch.order(), self.order);
        assert_eq!(batch.rows().len(), batch.len() * stride);
        assert_eq!(batch.labels().len(), batch.len());
        for (i, (label, features)) in self.tuples.iter().enumerate() {
            assert_eq!((batch.label(i), batch.labels()[i]), (*label, *label));
            assert_eq!(batch.features(i), features);
            assert_eq!(batch.row(i), expected_row(features, stride));
            assert_eq!(&batch.rows()[i * stride..][..stride], batch.row(i));
            assert_eq!(batch.row(i).as_ptr().align_offset(LANES * size_of::<f32>()), 0, "row {i} is not aligned");
        }
    }
}

proptest! {
    #[test]
    fn a_batch_holds_aligned_padded_rows_in_the_order_told_after_any_steps(
        dim in prop_oneof![0..40_usize, Just(200)], steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut batch = Batch::new(dim);
        let mut model = Model::default();
        for step in &steps {
            model.take(step, &mut batch);
            model.check(&batch);
        }
    }

    #[test]
    fn labels_can_be_rewritten_in_place(labels in prop::collection::vec(-1.0..1.0_f32, 0..50)) {
        let mut batch = filled(2, labels.len() as u32);
        batch.labels_mut().copy_from_slice(&labels);
        prop_assert_eq!(batch.labels(), &labels[..]);
        prop_assert!((0..labels.len()).all(|i| batch.features(i) == features_of(i as u32, 2)));
    }
}

#[test]
fn holes_are_filled_by_one_move_after_the_other() {
    let mut batch = filled(5, 8);
    batch.set_weighted(true);
    for tuple in 0..8 {
        batch.push(tuple as f32).unwrap().copy_from_slice(&features_of(tuple, 5));
        batch.weights_mut()[tuple as usize] = 10.0 + tuple as f32;
    }
    batch.set_order(&[7, 7, 1]).unwrap();
    // 7 goes to 0, and on to 3 when 0 gets 5
    batch.fill_holes([(7, 0), (0, 3), (5, 0)].into_iter(), 5);
    assert_eq!(batch.order(), [0, 1, 2, 3, 4]);
    for (place, tuple) in [5, 1, 2, 7, 4].into_iter().enumerate() {
        assert_eq!(batch.features(place), features_of(tuple, 5));
        assert_eq!((batch.label(place), batch.weights().unwrap()[place]), (tuple as f32, 10.0 + tuple as f32));
    }
    assert_eq!(batch.row(3), expected_row(&features_of(7, 5), batch.stride()));
    batch.fill_holes(std::iter::empty(), 0);
    assert!(batch.is_empty());
}

#[test]
#[should_panic(expected = "no tuple 5")]
fn a_hole_behind_the_last_tuple_is_none() {
    filled(2, 5).fill_holes([(1, 5)].into_iter(), 5);
}

#[test]
fn an_order_that_is_left_to_others_is_empty_until_they_set_it() {
    let mut batch = filled(3, 6);
    batch.detach_order();
    assert!(batch.order().is_empty());
    batch.set_order(&[5, 0]).unwrap();
    assert_eq!(batch.order(), [5, 0]);
    batch.push(6.0).unwrap().copy_from_slice(&features_of(6, 3));
    assert!(batch.order().is_empty());
    batch.set_order(&[6, 1]).unwrap();
    batch.retain_from(2, |label| label % 2.0 == 0.0);
    assert!(batch.order().is_empty());
    let kept = [0, 1, 2, 4, 6];
    assert_eq!(batch.labels(), kept.map(|tuple| tuple as f32));
    assert!((0..5).all(|i| batch.features(i) == features_of(kept[i], 3)));
    batch.set_order(&[4]).unwrap();
    batch.truncate(2);
    assert_eq!((batch.order(), batch.len()), (&[][..], 2));
    batch.clear();
    batch.extend(3).unwrap();
    assert_eq!(batch.order(), [0, 1, 2], "from a clear on the batch makes its order itself");
}

#[test]
fn an_order_is_taken_whoever_makes_it_and_only_of_places_that_there_are() {
    let mut batch = filled(3, 6);
    let mut places = vec![5, 0];
    batch.take_order(&mut places).unwrap();
    assert_eq!((batch.order(), &places[..]), (&[5, 0][..], &[5, 0][..]), "its own order is a copy");
    batch.detach_order();
    batch.take_order(&mut places).unwrap();
    assert_eq!((batch.order(), &places[..]), (&[5, 0][..], &[][..]), "one that is left to others is exchanged");
    // no one looks at the batch any more
    let take = std::panic::AssertUnwindSafe(move || batch.take_order(&mut vec![6]));
    let beyond = std::panic::catch_unwind(take);
    assert!(beyond.is_err(), "there is no tuple 6");
}

#[test]
fn bytes_of_some_tuples_add_up_to_all() {
    let mut batch = filled(5, 9);
    assert_eq!(batch.bytes_of(0..4) + batch.bytes_of(4..9), batch.bytes());
    batch.set_weighted(true);
    batch.extend(3).unwrap();
    assert_eq!(batch.bytes_of(1..3), 2 * (batch.stride() * 4 + 8 + 4));
    let mut batch = Batch::sparse();
    for entries in [3, 0, 7, 1] {
        batch.push_sparse(0.0, entries).unwrap();
    }
    let parts = [0..1, 1..3, 3..4, 4..4].map(|places| batch.bytes_of(places));
    assert_eq!(parts.iter().sum::<usize>(), batch.bytes());
    assert_eq!(parts[1] - parts[0], batch.bytes_of(1..2) + 4 * 8);
}

#[test]
fn tags_go_with_their_tuples() {
    let mut batch = Batch::new(1);
    batch.set_tagged(true);
    for i in 0..6u16 {
        batch.push(f32::from(i)).unwrap()[0] = f32::from(i);
        *batch.tags_mut().last_mut().unwrap() = u32::from(i) * 10;
    }
    batch.retain(&[0, 2, 3, 5]);
    assert_eq!(batch.tags(), Some(&[0, 20, 30, 50][..]));
    batch.fill_holes([(3, 0)].into_iter(), 3);
    assert_eq!(batch.tags(), Some(&[50, 20, 30][..]));
    batch.retain_from(1, |label| label != 2.0);
    assert_eq!((batch.tags(), batch.labels()), (Some(&[50, 30][..]), &[5.0, 3.0][..]));
    batch.push(7.0).unwrap()[0] = 7.0;
    assert_eq!(batch.tags(), Some(&[50, 30, 0][..]), "a new tuple has none");
    batch.set_tagged(false);
    assert_eq!((batch.tags(), batch.len()), (None, 0));
}

#[test]
fn copies_are_the_same_tuples() {
    let mut dense = Batch::new(2);
    dense.push(1.0).unwrap().copy_from_slice(&[2.0, 3.0]);
    let mut copy = Batch::new(2);
    copy.push_copy(&dense, 0).unwrap();
    assert_eq!((copy.row(0), copy.labels()), (dense.row(0), dense.labels()));
    let mut sparse = Batch::sparse();
    let (indices, values) = sparse.push_sparse(4.0, 2).unwrap();
    indices.copy_from_slice(&[1, 8]);
    values.copy_from_slice(&[0.5, 0.25]);
    let mut copy = Batch::sparse();
    copy.push_copy(&sparse, 0).unwrap();
    assert_eq!((copy.sparse_row(0), copy.labels(), copy.dim()), (sparse.sparse_row(0), sparse.labels(), 9));
}
