//! The rows of a batch may be in memory of somebody else, such as of another process.

use std::rc::Rc;
use tuples::{Allocator, Batch, Memory, TupleColumns};

/// Memory of somebody else.
#[derive(Debug)]
struct Lent(Vec<f32>);

impl Memory for Lent {
    fn floats(&self) -> &[f32] {
        &self.0
    }

    fn floats_mut(&mut self) -> &mut [f32] {
        &mut self.0
    }
}

/// Gives this many floats at most, at once.
#[derive(Debug)]
struct Lender(usize);

impl Allocator for Lender {
    fn allocate(&self, floats: usize) -> Option<Box<dyn Memory>> {
        (floats <= self.0).then(|| Box::new(Lent(vec![0.0; floats])) as Box<dyn Memory>)
    }
}

/// The same steps with the process's own memory and with somebody else's.
fn fill(batch: &mut Batch) {
    batch.become_dense(20);
    batch.set_weighted(true);
    for i in 0..50 {
        let features = batch.push(i as f32).expect("memory");
        features.iter_mut().zip(0..).for_each(|(feature, k)| *feature = (i * 100 + k) as f32);
        batch.weights_mut()[i] = 0.5;
    }
    batch.fill_holes([(49, 3)].into_iter(), 40);
    batch.reserve(1000).expect("memory");
    batch.truncate(30);
    batch.extend(2).expect("memory").row_mut(1).1.fill(7.0);
    batch.features_mut(30).fill(8.0);
    batch.set_order(&[3, 1, 31]).expect("memory");
}

#[test]
fn rows_in_memory_of_somebody_else_are_those_in_ones_own() {
    let (mut own, mut lent) = (Batch::new(0), Batch::with_allocator(Rc::new(Lender(1 << 20))));
    fill(&mut own);
    fill(&mut lent);
    assert!(lent.memory().is_some() && own.memory().is_none());
    assert_eq!(own.rows(), lent.rows());
    assert_eq!((own.labels(), own.weights(), own.order()), (lent.labels(), lent.weights(), lent.order()));
    lent.release();
    assert!(lent.memory().is_none() && lent.is_empty());
    fill(&mut lent);
    assert_eq!(own.rows(), lent.rows());
}

#[test]
fn memory_that_somebody_else_refuses_is_an_error_and_the_batch_as_it_was() {
    let mut batch = Batch::with_allocator(Rc::new(Lender(32 * 100)));
    batch.become_dense(20);
    batch.reserve(90).expect("room for 90 rows of 32 floats");
    batch.extend(90).expect("reserved");
    assert!(batch.extend(100).unwrap_err().bytes > 32 * 100 * 4);
    assert_eq!(batch.len(), 90);
    assert_eq!(batch.row(89)[20], 1.0);
}

#[test]
fn tuples_are_taken_over_from_another_process() {
    let mut there = Batch::new(0);
    fill(&mut there);
    let mut here = Batch::new(0);
    let others = |batch: &Batch| {
        let (labels, order) = (batch.labels().to_vec(), batch.order().to_vec());
        (labels, batch.weights().map(<[f32]>::to_vec), order)
    };
    let (labels, weights, order) = others(&there);
    let taken = TupleColumns { labels: &labels, weights: weights.as_deref(), order: &order };
    here.adopt_rows(20, Box::new(Lent(there.rows().to_vec())), &taken).expect("memory");
    assert_eq!((here.rows(), here.dim(), here.stride()), (there.rows(), there.dim(), there.stride()));
    assert_eq!(others(&here), others(&there));

    let mut sparse = Batch::sparse();
    for (label, indices) in [(1.0, vec![3, 9]), (2.0, vec![]), (3.0, vec![5])] {
        let (places, values) = sparse.push_sparse(label, indices.len()).expect("memory");
        places.copy_from_slice(&indices);
        values.fill(label);
    }
    let (labels, _, order) = others(&sparse);
    let taken = TupleColumns { labels: &labels, weights: None, order: &order };
    here.copy_rows(&sparse.sparse_parts().expect("sparse"), &taken).expect("memory");
    assert!(here.is_sparse() && here.dim() == 10 && here.weights().is_none());
    (0..3).for_each(|i| assert_eq!(here.sparse_row(i), sparse.sparse_row(i)));
    assert_eq!(others(&here), others(&sparse));
}
