//! What readers read: each row, in an order that depends on nothing but seed and epoch, from any batch on.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use loading::{Batch, Column, Config, Memory, Next, Plan, Ranks, Reader, Shuffle, Size, Values, Worker};
use proptest::prelude::*;
use source::{Cancel, Source, SourceError, Unit};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ALONE: Worker = Worker { index: 0, workers: 1 };
const SOON: Duration = Duration::from_secs(20);

/// Rows with their numbers, in units of unequal size; counts what is read, and fails where it is asked to.
struct Numbered {
    memory: Memory,
    units: Vec<Unit>,
    read: AtomicU64,
    fails_at: Option<u64>,
}

impl Numbered {
    fn new(units: &[u64]) -> Numbered {
        let rows: u64 = units.iter().sum();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|row| row.to_string())));
        let rows = RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap();
        let units = units.iter().map(|rows| Unit { rows: *rows, bytes: rows * 20 }).collect();
        Numbered { memory: Memory::new(rows, 1), units, read: AtomicU64::new(0), fails_at: None }
    }
}

impl Source for Numbered {
    fn schema(&self) -> SchemaRef {
        self.memory.schema()
    }

    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn read(&self, rows: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        self.read.fetch_add(rows.end - rows.start, Ordering::Relaxed);
        match self.fails_at {
            Some(row) if rows.contains(&row) && row % 2 == 0 => panic!("row {row} is bad"),
            Some(row) if rows.contains(&row) => Err(SourceError::Invalid(format!("row {row} is bad"))),
            _ => self.memory.read(rows, cancel),
        }
    }

    fn fingerprint(&self) -> u64 {
        self.memory.fingerprint()
    }
}

fn config() -> Config {
    Config {
        block_size: Size::Rows(10),
        buffer_size: Size::Percent(20.0),
        shuffle: Shuffle::CorgiPile,
        seed: 7,
        batch_size: 8,
        lanes: 1,
        together: 1,
        world_size: 1,
        ranks: Ranks::Pad,
        drop_last: false,
    }
}

fn plan(units: &[u64], config: Config) -> Arc<Plan> {
    Arc::new(Plan::new(Arc::new(Numbered::new(units)), config).unwrap())
}

fn numbers(batch: &Batch) -> Vec<i64> {
    let Column::Fixed(Values::I8(numbers)) = &batch.columns[0] else { panic!("{batch:?}") };
    let Column::Object(texts) = &batch.columns[1] else { panic!("{batch:?}") };
    let expected: StringArray = numbers.iter().map(|number| Some(number.to_string())).collect();
    assert_eq!(texts.as_ref(), &expected as &dyn arrow::array::Array);
    assert_eq!(batch.rows, numbers.len());
    numbers.clone()
}

fn next(reader: &mut Reader) -> Option<Vec<i64>> {
    match reader.next(SOON).unwrap() {
        Next::Batch(batch) => Some(numbers(&batch)),
        Next::Pending => panic!("nothing came for long"),
        Next::End => None,
    }
}

fn batches(plan: &Arc<Plan>, epoch: u64, rank: u32, from: u64, worker: Worker) -> Vec<Vec<i64>> {
    let mut reader = Reader::new(plan.clone(), epoch, rank, from, worker, 3, 0);
    std::iter::from_fn(|| next(&mut reader)).collect()
}

/// What `torch` makes of several workers: their batches in turns, without those that have none left.
fn by_workers(plan: &Arc<Plan>, epoch: u64, rank: u32, from: u64, workers: u32) -> Vec<Vec<i64>> {
    let of = |index| batches(plan, epoch, rank, from, Worker { index, workers }).into_iter();
    let mut of_workers: Vec<_> = (0..workers).map(of).collect();
    let mut all = Vec::new();
    loop {
        let turn: Vec<_> = of_workers.iter_mut().filter_map(Iterator::next).collect();
        if turn.is_empty() {
            return all;
        }
        all.extend(turn);
    }
}

fn sorted(batches: &[Vec<i64>]) -> Vec<i64> {
    let mut rows = batches.concat();
    rows.sort_unstable();
    rows
}

#[test]
fn each_row_comes_once_in_each_epoch_whatever_the_shuffle() {
    let units = [3, 0, 40, 1, 1, 1, 150, 7];
    for (name, shuffle) in Shuffle::ALL {
        for lanes in [1, 3, 4] {
            let plan = plan(&units, Config { shuffle, lanes, together: lanes, ..config() });
            let epochs = [0, 1].map(|epoch| batches(&plan, epoch, 0, 0, ALONE));
            for epoch in &epochs {
                assert!(sorted(epoch).into_iter().eq(0..203), "{name}, {lanes} lanes");
                assert_eq!(epoch.len() as u64, plan.batches(0), "{name}, {lanes} lanes");
            }
            let changes = !matches!(shuffle, Shuffle::None);
            assert_eq!(epochs[0] != epochs[1], changes, "{name}");
            assert_eq!(epochs[0], batches(&plan, 0, 0, 0, ALONE), "{name}");
        }
    }
}

#[test]
fn rows_that_are_not_shuffled_come_as_they_lie() {
    let plan = plan(&[50, 53], Config { shuffle: Shuffle::None, ..config() });
    assert!(batches(&plan, 3, 0, 0, ALONE).concat().into_iter().eq(0..103));
}

#[test]
fn an_order_is_the_same_for_any_number_of_workers_and_ranks() {
    let of = |world_size| Config { lanes: 8, together: 8, world_size, batch_size: 5, ..config() };
    let alone = batches(&plan(&[1000, 3], of(1)), 2, 0, 0, ALONE);
    assert!(sorted(&alone).into_iter().eq(0..1003));
    for world_size in [1, 2, 4, 8] {
        let plan = plan(&[1000, 3], of(world_size));
        for workers in [1, 2, 3, 4, 8] {
            let ranks: Vec<_> = (0..world_size).map(|rank| by_workers(&plan, 2, rank, 0, workers)).collect();
            let mut all = Vec::new();
            for step in 0..ranks[0].len() {
                all.extend(ranks.iter().map(|batches| batches[step].clone()));
            }
            // a row that came again is behind all others of its batch, or alone in one
            let mut pads = all.split_off(all.len().min(alone.len())).concat();
            for (batch, alone) in all.iter_mut().zip(&alone) {
                pads.extend(batch.drain(alone.len().min(batch.len())..));
            }
            assert!(pads.len() < world_size as usize);
            assert_eq!(all, alone, "{world_size} ranks, {workers} workers");
        }
    }
}

#[test]
fn ranks_have_equal_batches_and_see_every_row_or_leave_out_a_remainder() {
    for units in [vec![1003], vec![0, 150, 150, 0, 150, 150, 150, 150, 103], vec![1], vec![2], vec![], vec![0]] {
        let rows: u64 = units.iter().sum();
        for (ranks, (world_size, lanes, together)) in [Ranks::Pad, Ranks::Drop, Ranks::Join]
            .into_iter()
            .flat_map(|ranks| [(3, 3, 3), (3, 6, 6), (3, 6, 3), (4, 12, 12), (1, 5, 5)].map(|case| (ranks, case)))
        {
            let plan = plan(&units, Config { ranks, world_size, lanes, together, ..config() });
            let of: Vec<_> = (0..world_size).map(|rank| batches(&plan, 1, rank, 0, ALONE)).collect();
            let case = format!("{units:?}, {ranks:?}, {world_size} ranks, {together} of {lanes} lanes");
            for (rank, batches) in (0..).zip(&of) {
                assert_eq!(batches.len() as u64, plan.batches(rank), "{case}");
            }
            let sizes = |batches: &Vec<Vec<i64>>| batches.iter().map(Vec::len).collect::<Vec<_>>();
            if ranks != Ranks::Join {
                assert!(of.iter().all(|batches| sizes(batches) == sizes(&of[0])), "{case}");
            }
            let mut seen: Vec<i64> = of.concat().concat();
            let came = seen.len() as u64;
            seen.sort_unstable();
            seen.dedup();
            let all = match ranks {
                Ranks::Pad => seen.len() as u64 == rows && came - rows < world_size.into(),
                Ranks::Drop => came == seen.len() as u64 && rows - came < world_size.into(),
                Ranks::Join => came == rows && seen.len() as u64 == rows,
            };
            assert!(all, "{case}: {came} rows, {} of them different", seen.len());
        }
    }
}

#[test]
fn the_last_batches_are_left_out_if_they_are_not_full() {
    let plan = plan(&[1003], Config { drop_last: true, world_size: 3, lanes: 3, together: 3, ..config() });
    for rank in 0..3 {
        let batches = batches(&plan, 0, rank, 0, ALONE);
        assert_eq!(batches.len(), 1003 / 24);
        assert!(batches.iter().all(|batch| batch.len() == 8));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// An epoch that is begun at any batch goes on as it would have, and reads no more than a buffer again.
    #[test]
    fn an_epoch_goes_on_from_any_batch(
        units in prop::collection::vec(0..80_u64, 1..12),
        (groups, world_size, workers) in (1..4_u32, 1..4_u32, 1..4_u32),
        (batch_size, part, seed, shuffle) in (1..30_u32, 0.0..1.0_f64, any::<i64>(), 0..Shuffle::ALL.len()),
    ) {
        let shuffle = Shuffle::ALL[shuffle].1;
        let lanes = groups * world_size;
        let config = Config { batch_size, world_size, lanes, together: lanes, seed, shuffle, ..config() };
        let source = Arc::new(Numbered::new(&units));
        let plan = Arc::new(Plan::new(source.clone(), config).unwrap());
        for rank in 0..world_size {
            let whole = batches(&plan, 1, rank, 0, ALONE);
            let from = (whole.len() as f64 * part) as usize;
            source.read.store(0, Ordering::Relaxed);
            prop_assert_eq!(&by_workers(&plan, 1, rank, from as u64, workers), &whole[from..]);
            let read = source.read.load(Ordering::Relaxed);
            let left: usize = whole[from..].iter().map(Vec::len).sum();
            // at most a buffer of each of the rank's lanes: with blocks of unequal size, a block more
            let buffers = (plan.rows() / 5 + 15 * 5) / u64::from(world_size);
            prop_assert!(shuffle.has_window() || read <= left as u64 + buffers + 15 * u64::from(groups), "{}", read);
        }
    }
}

#[test]
fn an_error_or_a_panic_in_a_thread_reaches_the_reader() {
    for row in [500, 501] {
        let mut source = Numbered::new(&[1000]);
        source.fails_at = Some(row);
        let plan = Arc::new(Plan::new(Arc::new(source), config()).unwrap());
        let mut reader = Reader::new(plan, 0, 0, 0, ALONE, 2, 0);
        let error = loop {
            match reader.next(SOON) {
                Ok(Next::Batch(_)) => {}
                Ok(other) => panic!("{other:?}"),
                Err(error) => break error.to_string(),
            }
        };
        assert!(error.contains(&format!("row {row} is bad")), "{error}");
        // and it does not wait for ever after that
        assert!(matches!(reader.next(SOON), Err(SourceError::Cancelled)));
    }
}

/// Waits in each read until it is cancelled.
struct Stuck(Numbered);

impl Source for Stuck {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
    fn units(&self) -> &[Unit] {
        self.0.units()
    }
    fn read(&self, _: Range<u64>, cancel: &Cancel) -> Result<RecordBatch, SourceError> {
        loop {
            cancel.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    fn fingerprint(&self) -> u64 {
        0
    }
}

#[test]
fn a_reader_that_waits_can_be_ended() {
    let plan = Arc::new(Plan::new(Arc::new(Stuck(Numbered::new(&[1000]))), config()).unwrap());
    let mut reader = Reader::new(plan.clone(), 0, 0, 0, ALONE, 4, 0);
    let begin = Instant::now();
    assert!(matches!(reader.next(Duration::from_millis(50)), Ok(Next::Pending)));
    reader.close();
    assert!(matches!(reader.next(SOON), Ok(Next::End)));
    drop(Reader::new(plan, 0, 0, 0, ALONE, 4, 0));
    assert!(begin.elapsed() < Duration::from_secs(5));
}

/// Holds back until it is asked to go on, and counts what was read meanwhile.
#[test]
fn what_is_read_ahead_stays_within_the_budget() {
    let source = Arc::new(Numbered::new(&[10_000]));
    let plan = Arc::new(Plan::new(source.clone(), Config { buffer_size: Size::Percent(5.0), ..config() }).unwrap());
    let mut reader = Reader::new(plan, 0, 0, 0, ALONE, 4, 0);
    assert!(next(&mut reader).is_some());
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until && source.read.load(Ordering::Relaxed) < 1000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // the buffer in use and the next one
    assert_eq!(source.read.load(Ordering::Relaxed), 1000);
}

#[test]
fn arguments_that_make_no_sense_are_named() {
    let refused = |config: Config| {
        let source = Arc::new(Numbered::new(&[100]));
        Plan::new(source, config).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(refused(Config { batch_size: 0, ..config() }).starts_with("batch_size: "));
    assert!(refused(Config { world_size: 0, ..config() }).starts_with("world_size: "));
    let lanes = refused(Config { world_size: 4, lanes: 6, together: 6, ..config() });
    assert_eq!(lanes, "lanes: 6 is not a multiple of the 4 ranks that share them");
    assert!(refused(Config { lanes: 0, ..config() }).starts_with("lanes: "));
}
