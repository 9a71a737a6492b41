//! Elements become batches: the rows of a buffer full of elements are shuffled (CorgiPile's tuple shuffle).
//!
//! It guarantees that each row of an epoch's elements is given out once; that batches do not mix epochs; and that what
//! was given is known well enough to go on from there in another process.
//!
//! The ranks of a data-parallel job give the same number of batches in an epoch (a [`Plan`]), as they wait for each
//! other after each one, though their elements may have different numbers of rows.

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::{Schema, SchemaRef};
use joader::ElementSet;
use loading::{Batch, Layout, Pile};
use shuffle::Strategy;
use source::SourceError;
use std::collections::{BTreeSet, VecDeque};

/// The rows of an element, and which of them are the job's.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) batch: RecordBatch,
    /// None for all
    pub(super) chosen: Option<BooleanBuffer>,
}

impl Rows {
    /// Lets go of rows that are not the job's, if there are NULLs: those may be where arrays have no place for them.
    fn without_others(&mut self) -> Result<(), SourceError> {
        let has_nulls = self.batch.columns().iter().any(|column| column.null_count() > 0);
        if let Some(chosen) = self.chosen.take_if(|chosen| has_nulls && chosen.len() == self.batch.num_rows()) {
            let kept = filter_record_batch(&self.batch, &BooleanArray::from(chosen));
            self.batch = kept.map_err(|error| SourceError::Invalid(error.to_string()))?;
        }
        Ok(())
    }
}

/// What went wrong with elements that have come.
#[derive(Debug)]
pub(super) enum MixError {
    /// This element does not go with the others, and was left out.
    Element(u32, SourceError),
    /// Something else.
    Source(SourceError),
}

impl From<SourceError> for MixError {
    fn from(error: SourceError) -> MixError {
        MixError::Source(error)
    }
}

/// How batches are made.
#[derive(Clone, Debug)]
pub(super) struct Mixing {
    pub(super) seed: i64,
    pub(super) batch_size: usize,
    pub(super) drop_last: bool,
    /// elements whose rows are shuffled among each other
    pub(super) buffer: usize,
    /// of a rank of a data-parallel job
    pub(super) plan: Option<Plan>,
}

impl Mixing {
    /// Rows of the next batch, if this is left of a plan.
    fn size(&self, left: Plan) -> usize {
        let even = || left.rows.div_ceil(left.batches.max(1)) as usize;
        match left.batches {
            0 => 0,
            _ if self.drop_last => self.batch_size,
            _ => even().clamp(1, self.batch_size),
        }
    }
}

/// Batches that a rank of a data-parallel job gives in an epoch.
///
/// If batches that are not full are left out, all ranks give as many as the one with the fewest rows can fill, and
/// leave out the rest. If not, all give as many as the one with the most rows needs, and each spreads its rows evenly
/// over them: every row is given, and the batches of a rank differ by a row at most. (Only if a rank has fewer rows
/// than that are there as many batches as it has rows, and others leave out rows.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// of an epoch
    batches: u64,
    /// of the rank
    rows: u64,
}

impl Plan {
    /// Of a rank that has this many rows, when those of all ranks are between `least` and `most`.
    pub(super) fn new(rows: u64, least: u64, most: u64, batch_size: usize, drop_last: bool) -> Plan {
        let size = batch_size as u64;
        let batches = if drop_last { least / size } else { most.div_ceil(size).min(least) };
        Plan { batches, rows }
    }

    /// What is left after this many batches.
    fn after(self, batches: u64, size: impl Fn(Plan) -> usize) -> Plan {
        let next = |plan: Plan| Plan { batches: plan.batches - 1, rows: plan.rows.saturating_sub(size(plan) as u64) };
        (0..batches.min(self.batches)).fold(self, |plan, _| next(plan))
    }
}

/// Where an epoch is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Which epoch.
    pub epoch: u64,
    /// Elements of which no row was given out.
    pub left: BTreeSet<u32>,
    /// Elements of the buffer that is being given out, in the order in which they came.
    pub buffer: Vec<u32>,
    /// The number of that buffer in its epoch.
    pub number: u64,
    /// How many of its rows were given out.
    pub given: u64,
    /// How many batches of the epoch were given out.
    pub batches: u64,
}

struct Buffer {
    elements: Vec<u32>,
    number: u64,
    /// None once all rows were taken
    pile: Option<Pile>,
    places: Vec<(u32, u32)>,
    /// rows in the batch under way, or given out
    taken: usize,
    given: usize,
}

/// One epoch's rows.
pub(super) struct Mixer {
    mixing: Mixing,
    layout: Option<Layout>,
    /// of the first element that came, which the others have to be like
    schema: Option<SchemaRef>,
    epoch: u64,
    /// elements that have not come yet
    missing: BTreeSet<u32>,
    filling: Vec<(u32, Rows)>,
    buffers: VecDeque<Buffer>,
    /// the batch under way
    batch: Option<Batch>,
    next_number: u64,
    /// batches that were given out
    batches: u64,
    /// of a rank's plan
    left: Option<Plan>,
}

impl Mixer {
    /// An epoch that begins with these elements.
    pub(super) fn new(mixing: Mixing, epoch: u64, elements: &ElementSet) -> Mixer {
        let missing = elements.iter().collect();
        let left = mixing.plan;
        Mixer {
            mixing,
            left,
            batches: 0,
            layout: None,
            schema: None,
            epoch,
            missing,
            filling: Vec::new(),
            buffers: VecDeque::new(),
            batch: None,
            next_number: 0,
        }
    }

    /// An epoch that goes on: `rows` are those of the position's buffer.
    pub(super) fn resumed(mixing: Mixing, position: &Position, rows: Vec<Rows>) -> Result<Mixer, MixError> {
        let mut mixer = Mixer::new(mixing, position.epoch, &ElementSet::default());
        mixer.missing.clone_from(&position.left);
        mixer.next_number = position.number;
        mixer.batches = position.batches;
        mixer.left = mixer.mixing.plan.map(|plan| plan.after(position.batches, |left| mixer.mixing.size(left)));
        if !position.buffer.is_empty() {
            mixer.filling = position.buffer.iter().copied().zip(rows).collect();
            mixer.fill()?;
            if let Some(buffer) = mixer.buffers.front_mut() {
                buffer.given = (position.given as usize).min(buffer.places.len());
                buffer.taken = buffer.given;
            }
        }
        Ok(mixer)
    }

    /// From now on the rows of this many elements are shuffled among each other.
    pub(super) fn set_buffer(&mut self, elements: usize) {
        self.mixing.buffer = elements;
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The layout of the rows, once some have come.
    pub(super) fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// What another epoch of the same job has: rows look the same.
    pub(super) fn next_epoch(&self, elements: &ElementSet) -> Mixer {
        let (layout, schema) = (self.layout.clone(), self.schema.clone());
        Mixer { layout, schema, ..Mixer::new(self.mixing.clone(), self.epoch + 1, elements) }
    }

    /// An element comes, or None if it cannot be read. One that came before does not count.
    pub(super) fn push(&mut self, element: u32, rows: Option<Rows>) {
        if self.missing.remove(&element) {
            self.filling.extend(rows.map(|rows| (element, rows)));
        }
    }

    /// The next batch; None if elements have to come before that, or the epoch has ended. After an error about an
    /// element it goes on without that.
    pub(super) fn next(&mut self) -> Result<Option<Batch>, MixError> {
        if self.filling.len() >= self.mixing.buffer.max(1) || (self.missing.is_empty() && !self.filling.is_empty()) {
            self.fill()?;
        }
        self.take()?;
        let rows = self.batch.as_ref().map_or(0, |batch| batch.rows);
        let is_full = rows > 0 && rows >= self.size();
        let is_last = rows > 0 && self.missing.is_empty() && self.untaken() == 0 && !self.mixing.drop_last;
        if !is_full && !is_last {
            return Ok(None);
        }
        let mut given = rows;
        for buffer in &mut self.buffers {
            let of_buffer = given.min(buffer.taken - buffer.given);
            buffer.given += of_buffer;
            given -= of_buffer;
        }
        while self.buffers.front().is_some_and(|buffer| buffer.given == buffer.places.len()) {
            self.buffers.pop_front();
        }
        self.batches += 1;
        if let Some(left) = &mut self.left {
            *left = Plan { batches: left.batches.saturating_sub(1), rows: left.rows.saturating_sub(rows as u64) };
        }
        Ok(self.batch.take())
    }

    /// Rows of the next batch, or of the one under way; 0 if none is left.
    fn size(&self) -> usize {
        let Some(left) = self.left else { return self.mixing.batch_size };
        // elements that cannot be read have no rows, which is known in the end
        let rows = if self.missing.is_empty() && self.filling.is_empty() { self.there() as u64 } else { left.rows };
        self.mixing.size(Plan { rows, ..left })
    }

    /// Rows that have come and were not given out.
    fn there(&self) -> usize {
        self.untaken() + self.batch.as_ref().map_or(0, |batch| batch.rows)
    }

    /// Rows of the buffers that are in no batch.
    fn untaken(&self) -> usize {
        self.buffers.iter().map(|buffer| buffer.places.len() - buffer.taken).sum()
    }

    /// Takes rows into the batch under way until it is full. The memory of a buffer is given back once all of its rows
    /// were taken, also if that does not fill the batch: the elements that do come only where others have gone.
    fn take(&mut self) -> Result<(), SourceError> {
        let size = self.size();
        if size == 0 {
            // other ranks have no more batches
            self.buffers.clear();
        }
        let Some(layout) = &self.layout else { return Ok(()) };
        for buffer in &mut self.buffers {
            let there = self.batch.as_ref().map_or(0, |batch| batch.rows);
            let end = (buffer.taken + size.saturating_sub(there)).min(buffer.places.len());
            if let Some(pile) = &buffer.pile
                && end > buffer.taken
            {
                let more = pile.gather(layout, &buffer.places[buffer.taken..end])?;
                match &mut self.batch {
                    None => self.batch = Some(more),
                    Some(batch) => batch.append(more)?,
                }
                buffer.taken = end;
            }
            if buffer.taken == buffer.places.len() {
                buffer.pile = None;
            }
        }
        Ok(())
    }

    /// Whether all elements have come and all batches were given out.
    pub(super) fn has_ended(&self) -> bool {
        if !self.filling.is_empty() {
            return false;
        }
        let there = self.there();
        self.missing.is_empty() && (there == 0 || (self.mixing.drop_last && there < self.mixing.batch_size))
    }

    /// Where the epoch is.
    pub(super) fn position(&self) -> Position {
        let front = self.buffers.front().filter(|buffer| buffer.given > 0);
        let unused = self.buffers.iter().filter(|buffer| buffer.given == 0).flat_map(|buffer| &buffer.elements);
        let left = self.missing.iter().chain(unused).chain(self.filling.iter().map(|(element, _)| element));
        Position {
            epoch: self.epoch,
            left: left.copied().collect(),
            buffer: front.map(|buffer| buffer.elements.clone()).unwrap_or_default(),
            // what was not begun is drawn again, and numbered again
            number: front.or(self.buffers.front()).map_or(self.next_number, |buffer| buffer.number),
            given: front.map_or(0, |buffer| buffer.given as u64),
            batches: self.batches,
        }
    }

    /// Makes a buffer of what has come. An element that does not go with the others is left out by an error.
    fn fill(&mut self) -> Result<(), MixError> {
        for (_, rows) in &mut self.filling {
            rows.without_others()?;
        }
        let Some((_, first)) = self.filling.first() else { return Ok(()) };
        let schema = self.schema.clone().unwrap_or_else(|| first.batch.schema());
        let layout = match &self.layout {
            Some(layout) => layout.clone(),
            None => Layout::new(&schema)?,
        };
        let mut places = Vec::new();
        let mut wrong = None;
        for (i, (_, rows)) in (0_u32..).zip(&self.filling) {
            if let Some(what) = unlike(&schema, &rows.batch.schema()) {
                wrong = wrong.or(Some((i as usize, SourceError::Invalid(what))));
            }
            let there = rows.batch.num_rows();
            match &rows.chosen {
                None => places.extend((0..there as u32).map(|row| (i, row))),
                Some(chosen) if chosen.len() == there => {
                    places.extend(chosen.set_indices().map(|row| (i, row as u32)));
                }
                Some(chosen) => {
                    let what = format!(
                        "there are {there} instead of {}: rows that are damaged and skipped, and a condition, do not \
                         go together",
                        chosen.len()
                    );
                    wrong = wrong.or(Some((i as usize, SourceError::Invalid(what))));
                }
            }
        }
        let batches: Vec<RecordBatch> = self.filling.iter().map(|(_, rows)| rows.batch.clone()).collect();
        let pile = match (wrong, Pile::new(&layout, &batches)) {
            (None, Ok(pile)) => pile,
            (wrong, pile) => {
                let of_one = |batch| Pile::new(&layout, std::slice::from_ref(batch)).err();
                let other = || batches.iter().enumerate().find_map(|(i, batch)| Some((i, of_one(batch)?)));
                return Err(match wrong.or_else(other) {
                    Some((i, error)) => MixError::Element(self.filling.remove(i).0, error),
                    None => MixError::Source(pile.err().unwrap_or(SourceError::Cancelled)),
                });
            }
        };
        let number = self.next_number;
        self.next_number += 1;
        shuffle::shuffle_tuples(Strategy::CorgiPile, self.mixing.seed, self.epoch + 1, number, &mut places);
        let elements = self.filling.drain(..).map(|(element, _)| element).collect();
        (self.layout, self.schema) = (Some(layout), Some(schema));
        self.buffers.push_back(Buffer { elements, number, pile: Some(pile), places, taken: 0, given: 0 });
        Ok(())
    }
}

/// What is different about an element's columns: a function that prepares rows may give others each time.
fn unlike(wanted: &Schema, is: &Schema) -> Option<String> {
    let names = |of: &Schema| of.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(", ");
    let (names_wanted, names_there) = (names(wanted), names(is));
    if names_wanted != names_there {
        return Some(format!("they have the columns {names_there}, and others have {names_wanted}"));
    }
    let mut both = wanted.fields().iter().zip(is.fields());
    let (wanted, is) = both.find(|(wanted, is)| !wanted.data_type().equals_datatype(is.data_type()))?;
    let (name, wanted, is) = (is.name(), wanted.data_type(), is.data_type());
    Some(format!("column {name:?} is of type {is}, and of type {wanted} in others"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int64Array};
    use loading::{Column, Values};
    use proptest::prelude::*;
    use proptest::strategy::Strategy as _;
    use std::sync::Arc;

    /// Ten rows of an element.
    fn rows(element: u32, chosen: Option<BooleanBuffer>) -> Rows {
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values((0..10).map(|row| i64::from(element) * 10 + row)));
        Rows { batch: RecordBatch::try_from_iter([("x", numbers)]).unwrap(), chosen }
    }

    fn set(range: std::ops::Range<u32>) -> ElementSet {
        ElementSet::from_ranges([range]).unwrap()
    }

    fn numbers(batch: &Batch) -> Vec<i64> {
        let Column::Fixed(Values::I8(numbers)) = &batch.columns[0] else { panic!() };
        numbers.clone()
    }

    fn mixing(batch_size: usize, buffer: usize) -> Mixing {
        Mixing { seed: 3, batch_size, drop_last: false, buffer, plan: None }
    }

    fn drain(mixer: &mut Mixer, given: &mut Vec<i64>) {
        while let Some(batch) = mixer.next().unwrap() {
            given.extend(numbers(&batch));
        }
    }

    proptest! {
        #[test]
        fn each_row_is_given_once_also_by_those_who_go_on(
            order in Just((0..20).collect::<Vec<u32>>()).prop_shuffle(),
            again in Just((0..20).collect::<Vec<u32>>()).prop_shuffle(),
            batch_size in 1_usize..40,
            buffer in 1_usize..8,
            stop in 0_usize..220,
        ) {
            let all = set(0..20);
            let mut mixer = Mixer::new(mixing(batch_size, buffer), 2, &all);
            let mut given = Vec::new();
            'stopped: for element in order {
                mixer.push(element, Some(rows(element, None)));
                while let Some(batch) = mixer.next().unwrap() {
                    given.extend(numbers(&batch));
                    if given.len() >= stop {
                        break 'stopped;
                    }
                }
            }
            // another process reads the buffer again, and gets what is left in another order
            let position = mixer.position();
            let reread = position.buffer.iter().map(|element| rows(*element, None)).collect();
            let mut other = Mixer::resumed(mixing(batch_size, buffer), &position, reread).unwrap();
            let (mut rest, mut same) = (Vec::new(), Vec::new());
            for element in again {
                other.push(element, Some(rows(element, None)));
            }
            drain(&mut other, &mut rest);
            prop_assert!(other.has_ended());
            // what the buffer still had comes in the same order
            let front = mixer.buffers.front().filter(|buffer| buffer.given > 0);
            let kept = front.map_or(0, |buffer| buffer.places.len() - buffer.given);
            for element in 0..20 {
                mixer.push(element, Some(rows(element, None)));
            }
            drain(&mut mixer, &mut same);
            prop_assert_eq!(&rest[..kept], &same[..kept]);
            for more in [rest, same] {
                let mut all: Vec<i64> = given.iter().copied().chain(more).collect();
                all.sort_unstable();
                prop_assert_eq!(all, (0..200).collect::<Vec<_>>());
            }
        }
    }

    proptest! {
        #[test]
        fn ranks_give_the_same_number_of_batches_also_if_they_go_on_elsewhere(
            counts in prop::collection::vec(1_u32..12, 1..5),
            batch_size in 1_usize..30,
            buffer in 1_usize..5,
            drop_last: bool,
            stop in 0_u64..20,
            broken in prop::option::of(0_u32..12),
        ) {
            // a rank has this many elements, of ten rows but for the last one
            let of = |count: u32| u64::from(count) * 10 - u64::from(count % 4);
            let chosen = |count: u32, element: u32| {
                (element + 1 == count).then(|| BooleanBuffer::from_iter((0..10).map(|row| row >= count % 4)))
            };
            let rows_of: Vec<u64> = counts.iter().map(|count| of(*count)).collect();
            let (least, most) = (*rows_of.iter().min().unwrap(), *rows_of.iter().max().unwrap());
            let wanted = if drop_last { least / batch_size as u64 } else { most.div_ceil(batch_size as u64).min(least) };
            for (rank, &count) in counts.iter().enumerate() {
                let plan = Some(Plan::new(of(count), least, most, batch_size, drop_last));
                let mixing = Mixing { drop_last, plan, ..mixing(batch_size, buffer) };
                let mut mixer = Mixer::new(mixing.clone(), 0, &ElementSet::from_ranges(std::iter::once(0..count)).unwrap());
                let mut sizes = Vec::new();
                let mut element = 0;
                let is_broken = |element: u32| rank == 0 && broken == Some(element);
                while !mixer.has_ended() {
                    while let Some(batch) = mixer.next().unwrap() {
                        sizes.push(batch.rows);
                        if mixer.batches == stop {
                            let position = mixer.position();
                            let reread = position.buffer.iter().map(|element| rows(*element, chosen(count, *element)));
                            mixer = Mixer::resumed(mixing.clone(), &position, reread.collect()).unwrap();
                            element = 0;
                        }
                    }
                    if element < count {
                        mixer.push(element, (!is_broken(element)).then(|| rows(element, chosen(count, element))));
                    }
                    element += 1;
                    prop_assert!(element < 100);
                }
                if (0..count).any(is_broken) {
                    // rows are missing: as many batches as they are enough for
                    prop_assert!(sizes.len() as u64 <= wanted);
                    continue;
                }
                prop_assert_eq!(sizes.len() as u64, wanted, "{:?} of {:?}", sizes, rows_of);
                let (shortest, longest) = (*sizes.iter().min().unwrap_or(&0), *sizes.iter().max().unwrap_or(&0));
                prop_assert!(longest <= batch_size && longest - shortest <= 1, "{:?}", sizes);
                prop_assert!(!drop_last || sizes.is_empty() || shortest == batch_size);
                let given: usize = sizes.iter().sum();
                let is_complete = !drop_last && wanted * batch_size as u64 >= of(count);
                prop_assert!(!is_complete || given as u64 == of(count), "{} of {}", given, of(count));
            }
        }
    }

    #[test]
    fn rows_that_are_not_chosen_do_not_come_and_elements_that_cannot_be_read_do_not_stop_the_epoch() {
        let mut mixer = Mixer::new(mixing(100, 10), 0, &set(0..3));
        let even = BooleanBuffer::from_iter((0..10).map(|row| row % 2 == 0));
        mixer.push(0, Some(rows(0, Some(even))));
        mixer.push(1, None);
        assert!(mixer.next().unwrap().is_none());
        mixer.push(2, Some(rows(2, Some(BooleanBuffer::new_unset(10)))));
        let mut given = numbers(&mixer.next().unwrap().unwrap());
        given.sort_unstable();
        assert_eq!(given, [0, 2, 4, 6, 8]);
        assert!(mixer.has_ended());
        let mut mixer = Mixer::new(mixing(100, 10), 0, &set(0..1));
        mixer.push(0, Some(rows(0, Some(BooleanBuffer::new_set(9)))));
        assert!(matches!(mixer.next(), Err(MixError::Element(0, _))), "rows were skipped");
        assert!(mixer.next().unwrap().is_none() && mixer.has_ended());
    }

    #[test]
    fn an_element_of_another_shape_is_left_out_by_an_error_and_the_others_of_its_buffer_come() {
        let text: ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["text"; 10]));
        let short: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![1; 10]));
        let odd = |name, column| Rows { batch: RecordBatch::try_from_iter([(name, column)]).unwrap(), chosen: None };
        let mut mixer = Mixer::new(mixing(100, 10), 0, &set(0..5));
        mixer.push(0, Some(rows(0, None)));
        mixer.push(2, Some(odd("x", text.clone())));
        mixer.push(1, Some(rows(1, None)));
        mixer.push(3, Some(odd("x", short)));
        mixer.push(4, Some(odd("y", text)));
        let mut error_of = |of: u32| match mixer.next() {
            Err(MixError::Element(element, error)) if element == of => error.to_string(),
            other => panic!("{other:?}"),
        };
        assert_eq!(error_of(2), "column \"x\" is of type Utf8, and of type Int64 in others");
        assert_eq!(error_of(3), "column \"x\" is of type Int32, and of type Int64 in others");
        assert_eq!(error_of(4), "they have the columns y, and others have x");
        assert!(!mixer.has_ended());
        let mut given = numbers(&mixer.next().unwrap().unwrap());
        given.sort_unstable();
        assert_eq!(given, (0..20).collect::<Vec<_>>());
        assert!(mixer.has_ended());
    }

    #[test]
    fn rows_of_a_buffer_are_shuffled() {
        let mut mixer = Mixer::new(mixing(100, 10), 0, &set(0..10));
        (0..10).for_each(|element| mixer.push(element, Some(rows(element, None))));
        let given = numbers(&mixer.next().unwrap().unwrap());
        let neighbours = given.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(neighbours < 8, "{given:?}");
    }

    #[test]
    fn the_last_rows_are_left_out_if_they_are_not_wanted() {
        let mixing = Mixing { drop_last: true, ..mixing(7, 1) };
        let mut mixer = Mixer::new(mixing, 0, &set(0..1));
        mixer.push(0, Some(rows(0, None)));
        assert_eq!(mixer.next().unwrap().unwrap().rows, 7);
        assert!(mixer.next().unwrap().is_none() && mixer.has_ended());
    }
}
