//! Numbers in ascending order, however many there are, within work_mem and beyond it in a temporary file.
//!
//! As many numbers as the memory holds are sorted together: a run, which is written to the file. Reading merges the
//! runs. PostgreSQL's own sort takes ten times as long, as it calls functions for each number, and a third as many
//! numbers fill its memory. It takes those that are left when there are as many runs as are merged at once.

use super::temp_file::TempFile;
use crate::compat::next_sorted;
use crate::errors::OrRaise;
use crate::interrupts::check_for_interrupts;
use pgrx::pg_sys;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Most runs that are merged.
const MAX_RUNS: usize = 256;

/// Numbers of a run: at least what 64 kB hold, as work_mem itself; at most what is sorted between two looks for
/// interrupts.
const RUN: Range<usize> = 1 << 13..1 << 22;

/// Words of a number in a file.
const WORDS: u64 = 2;

/// Numbers on their way through a sort.
pub struct NumberSort {
    /// of the run that is collected
    numbers: Vec<i64>,
    /// how many numbers a run has
    capacity: usize,
    file: Option<TempFile>,
    /// where each run in the file begins
    runs: Vec<u64>,
    /// what is left when there are enough runs
    rest: Option<Rest>,
}

impl NumberSort {
    /// An empty sort that shares `work_mem` with others, `sorts` in all. Belongs to the current memory context and
    /// resource owner.
    pub fn new(sorts: usize) -> NumberSort {
        // SAFETY: reads a setting, in kilobytes.
        let bytes = unsafe { pg_sys::work_mem } as usize * 1024 / sorts.max(1);
        let capacity = (bytes / size_of::<i64>()).clamp(RUN.start, RUN.end);
        NumberSort { numbers: Vec::new(), capacity, file: None, runs: Vec::new(), rest: None }
    }

    /// Takes a number. An ERROR if the temporary file cannot be written, or exceeds temp_file_limit.
    #[inline]
    pub fn push(&mut self, number: i64) {
        if self.numbers.len() == self.capacity {
            self.end_run();
        }
        allocation::push(&mut self.numbers, number);
    }

    /// Makes what was collected a run in the file.
    #[cold]
    fn end_run(&mut self) {
        check_for_interrupts();
        if self.runs.len() == MAX_RUNS {
            let rest = self.rest.get_or_insert_with(|| Rest::new(self.capacity));
            self.numbers.drain(..).for_each(|number| rest.push(number));
            return;
        }
        self.numbers.sort_unstable();
        let file = self.file.get_or_insert_with(TempFile::create);
        self.runs.push(file.len() / WORDS);
        file.append(bytemuck::cast_slice(&self.numbers)).or_raise();
        self.numbers.clear();
    }

    /// Sorts the numbers and gives them one by one.
    pub fn finish(self, next: impl FnMut(i64)) {
        self.sort().for_each(next);
    }

    /// Sorts the numbers.
    pub fn sort(mut self) -> SortedNumbers {
        if self.file.is_some() {
            self.end_run();
            self.numbers = Vec::new();
        } else {
            self.numbers.sort_unstable();
        }
        let end = self.file.as_ref().map_or(0, TempFile::len) / WORDS;
        let ends = self.runs.iter().copied().skip(1).chain([end]);
        let room = (self.capacity / self.runs.len().max(1)).clamp(1 << 9, 1 << 15);
        let mut sources: Vec<Source> =
            self.runs.iter().zip(ends).map(|(first, end)| Source::Run(Run::new(*first..end, room))).collect();
        if self.runs.is_empty() {
            sources.push(Source::Memory(self.numbers.into_iter()));
        }
        sources.extend(self.rest.map(|rest| Source::Rest(rest.sort())));
        let mut sorted = SortedNumbers { file: self.file, sources, least: BinaryHeap::new(), given: 0 };
        sorted.least = (0..sorted.sources.len()).filter_map(|i| sorted.next_of(i)).collect();
        sorted
    }
}

/// Numbers that are sorted, one by one. What the sort has taken goes after the last one, or with its memory context and
/// resource owner.
pub struct SortedNumbers {
    file: Option<TempFile>,
    sources: Vec<Source>,
    /// the next number of each source that has one, and the source
    least: BinaryHeap<Reverse<(i64, usize)>>,
    given: u64,
}

/// Numbers in ascending order.
enum Source {
    Memory(std::vec::IntoIter<i64>),
    Run(Run),
    Rest(SortedRest),
}

impl SortedNumbers {
    #[inline]
    fn next_of(&mut self, source: usize) -> Option<Reverse<(i64, usize)>> {
        let number = match &mut self.sources[source] {
            Source::Memory(numbers) => numbers.next(),
            Source::Run(run) => run.next(self.file.as_ref()?),
            Source::Rest(rest) => rest.next(),
        };
        number.map(|number| Reverse((number, source)))
    }
}

impl Iterator for SortedNumbers {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.given & 0xffff == 0 {
            check_for_interrupts();
        }
        self.given += 1;
        let Some(Reverse((number, source))) = self.least.peek().copied() else {
            if let Some(file) = self.file.take() {
                file.end();
            }
            return None;
        };
        let next = self.next_of(source);
        if let Some(mut least) = self.least.peek_mut() {
            match next {
                Some(next) => *least = next,
                None => _ = std::collections::binary_heap::PeekMut::pop(least),
            }
        }
        Some(number)
    }
}

/// A run in the file, part of which is in memory.
struct Run {
    /// numbers that are not in memory
    rest: Range<u64>,
    room: usize,
    read: Vec<i64>,
    at: usize,
}

impl Run {
    fn new(rest: Range<u64>, room: usize) -> Run {
        Run { rest, room, read: Vec::new(), at: 0 }
    }

    #[inline]
    fn next(&mut self, file: &TempFile) -> Option<i64> {
        if self.at == self.read.len() {
            let len = self.room.min((self.rest.end - self.rest.start) as usize);
            allocation::resize(&mut self.read, len, 0);
            file.read(self.rest.start * WORDS, bytemuck::cast_slice_mut(&mut self.read)).or_raise();
            (self.rest.start, self.at) = (self.rest.start + len as u64, 0);
        }
        let number = self.read.get(self.at).copied();
        self.at += 1;
        number
    }
}

/// PostgreSQL's own sort.
struct Rest(*mut pg_sys::Tuplesortstate);

impl Rest {
    /// With memory for this many numbers.
    fn new(numbers: usize) -> Rest {
        // SAFETY: the sort is by the type's own operator; all arguments are plain values.
        Rest(unsafe {
            pg_sys::tuplesort_begin_datum(
                pg_sys::INT8OID,
                pg_sys::Oid::from(pg_sys::Int8LessOperator),
                pg_sys::Oid::INVALID,
                false,
                (numbers * size_of::<i64>() / 1024) as i32,
                std::ptr::null_mut(),
                pg_sys::TUPLESORT_NONE as i32,
            )
        })
    }

    fn push(&mut self, number: i64) {
        // SAFETY: the sort was begun with this type, which is passed by value.
        unsafe { pg_sys::tuplesort_putdatum(self.0, pg_sys::Datum::from(number), false) };
    }

    fn sort(self) -> SortedRest {
        // SAFETY: begun in new(), and not sorted yet.
        unsafe { pg_sys::tuplesort_performsort(self.0) };
        SortedRest(self.0)
    }
}

/// Null after the last one.
struct SortedRest(*mut pg_sys::Tuplesortstate);

impl SortedRest {
    fn next(&mut self) -> Option<i64> {
        if self.0.is_null() {
            return None;
        }
        let mut value = pg_sys::Datum::null();
        // SAFETY: the sort was performed and has not ended; numbers are passed by value.
        unsafe {
            if next_sorted(self.0, &mut value) {
                return Some(value.value() as i64);
            }
            pg_sys::tuplesort_end(self.0);
        }
        self.0 = std::ptr::null_mut();
        None
    }
}

#[cfg(feature = "pg_test")]
#[pgrx::pg_schema]
mod tests {
    use super::{MAX_RUNS, NumberSort, RUN};
    use pgrx::prelude::*;

    /// Numbers of both signs, many of them twice.
    fn numbers(count: usize) -> impl Iterator<Item = i64> {
        (0..count as u64).map(|i| (i / 2 * 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64)
    }

    #[pg_test]
    fn test_numbers_are_sorted_in_memory_in_runs_and_beyond_them() {
        for count in [0, 1, 5, RUN.start, RUN.start + 1, 3 * RUN.start, (MAX_RUNS + 2) * RUN.start + 7] {
            let mut sort = NumberSort { capacity: RUN.start, ..NumberSort::new(1) };
            numbers(count).for_each(|number| sort.push(number));
            let mut expected: Vec<i64> = numbers(count).collect();
            expected.sort_unstable();
            let mut sorted = sort.sort();
            assert!(sorted.by_ref().eq(expected), "{count}");
            assert_eq!(sorted.next(), None);
            assert!(sorted.file.is_none(), "closed");
        }
    }
}
