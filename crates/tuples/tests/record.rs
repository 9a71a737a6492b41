//! What is written as a record is read as it was, behind whatever is there.

use proptest::prelude::*;
use tuples::{Batch, RecordHeader};

/// A tuple as it is made: label, weight, tag, and entries by dimension.
type Tuple = (f32, f32, u32, Vec<(u32, f32)>);

const DIM: usize = 5;

fn tuples() -> impl Strategy<Value = Vec<Tuple>> {
    let entries = prop::collection::btree_map(0..DIM as u32, prop::num::f32::ANY, 0..=DIM);
    let tuple = (prop::num::f32::ANY, 0f32..9.0, 0u32.., entries.prop_map(|map| map.into_iter().collect()));
    prop::collection::vec(tuple, 0..20)
}

/// A batch like those of the tests, with these tuples.
fn batch(tuples: &[Tuple], (sparse, weighted, tagged): (bool, bool, bool)) -> Batch {
    let mut batch = if sparse { Batch::sparse() } else { Batch::dense(DIM) };
    batch.set_weighted(weighted);
    batch.set_tagged(tagged);
    for (label, weight, tag, entries) in tuples {
        if sparse {
            let (indices, values) = batch.push_sparse(*label, entries.len()).unwrap();
            for (i, (index, value)) in entries.iter().enumerate() {
                (indices[i], values[i]) = (*index, *value);
            }
        } else {
            let features = batch.push(*label).unwrap();
            features.fill(0.0);
            entries.iter().for_each(|(index, value)| features[*index as usize] = *value);
        }
        let last = batch.len() - 1;
        if weighted {
            batch.weights_mut()[last] = *weight;
        }
        if tagged {
            batch.tags_mut()[last] = *tag;
        }
    }
    batch
}

/// The bits of tuple `i`.
fn bits(batch: &Batch, i: usize) -> (u32, Option<u32>, Option<u32>, Vec<u32>, Vec<u32>) {
    let (indices, values) = if batch.is_sparse() { batch.sparse_row(i) } else { (&[][..], batch.row(i)) };
    (
        batch.label(i).to_bits(),
        batch.weights().map(|weights| weights[i].to_bits()),
        batch.tags().map(|tags| tags[i]),
        indices.to_vec(),
        values.iter().map(|value| value.to_bits()).collect(),
    )
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(
        before in tuples(),
        written in tuples(),
        kind in (any::<bool>(), any::<bool>(), any::<bool>()),
        skipped: u32,
        part in (0usize..20, 0usize..20),
    ) {
        let from = batch(&written, kind);
        let (start, end) = (part.0.min(from.len()), part.1.min(from.len()));
        let places = start.min(end)..start.max(end);
        let header = RecordHeader::new(&from, places.clone(), skipped);
        let mut words = vec![7; RecordHeader::WORDS + header.body(&from)];
        from.write_record(places.clone(), header, &mut words);

        let mut to = batch(&before, kind);
        let (head, body) = words.split_at(RecordHeader::WORDS);
        let read = RecordHeader::read(head);
        prop_assert_eq!((read, read.skipped), (header, skipped));
        to.read_record(read, body).unwrap();
        let expected = (0..before.len()).map(|i| bits(&batch(&before, kind), i)).chain(places.map(|i| bits(&from, i)));
        prop_assert_eq!((0..to.len()).map(|i| bits(&to, i)).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        prop_assert_eq!(to.order().len(), to.len());
    }
}

#[test]
fn an_empty_record_needs_no_shape() {
    let from = Batch::dense(0);
    let header = RecordHeader::new(&from, 0..0, 3);
    let mut words = [9; RecordHeader::WORDS];
    from.write_record(0..0, header, &mut words);
    let mut to = batch(&[], (true, true, true));
    to.read_record(RecordHeader::read(&words), &[]).unwrap();
    assert!(to.is_empty());
}

#[test]
#[should_panic(expected = "words of the record")]
fn a_record_of_another_kind_of_batch_is_refused() {
    let from = batch(&[(1.0, 1.0, 0, vec![])], (false, false, false));
    let header = RecordHeader::new(&from, 0..1, 0);
    let mut words = vec![0; RecordHeader::WORDS + header.body(&from)];
    from.write_record(0..1, header, &mut words);
    let mut to = batch(&[], (false, true, false));
    to.read_record(header, &words[RecordHeader::WORDS..]).unwrap();
}
