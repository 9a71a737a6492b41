//! Where the rows of a data set lie: which units a range of rows touches.

use std::ops::Range;

use source::{SourceError, Unit};

/// The units of a data set, and the number of the first row of each.
pub(crate) struct Layout {
    units: Vec<Unit>,
    /// One more than there are units: the last one is the number of all rows.
    starts: Vec<u64>,
}

impl Layout {
    pub(crate) fn new(units: Vec<Unit>) -> Self {
        let mut starts = Vec::with_capacity(units.len() + 1);
        starts.push(0);
        let mut rows = 0;
        for unit in &units {
            rows += unit.rows;
            starts.push(rows);
        }
        Self { units, starts }
    }

    pub(crate) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The units that `rows` touches, each with the part of its rows, numbered from the unit's first row.
    pub(crate) fn parts(
        &self,
        rows: Range<u64>,
    ) -> Result<impl Iterator<Item = (usize, Range<u64>)> + '_, SourceError> {
        let all = *self.starts.last().unwrap_or(&0);
        if rows.start > rows.end || rows.end > all {
            let Range { start, end } = rows;
            return Err(SourceError::Invalid(format!("rows {start} to {end} were asked for, where there are {all}")));
        }
        // The last unit that begins at or before the first row: units without rows before it are passed over.
        let first = self.starts.partition_point(|&start| start <= rows.start).saturating_sub(1);
        Ok((first..self.units.len()).map_while(move |unit| {
            let (start, end) = (self.starts[unit], self.starts[unit + 1]);
            (start < rows.end).then(|| (unit, rows.start.max(start) - start..rows.end.min(end) - start))
        }))
    }
}

/// At most `count` of the numbers up to `all`, evenly spread, with the first and the last one.
pub(crate) fn spread(all: usize, count: usize) -> impl Iterator<Item = usize> {
    let count = count.min(all);
    (0..count).map(move |nth| if count == 1 { 0 } else { nth * (all - 1) / (count - 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(rows: &[u64]) -> Layout {
        Layout::new(rows.iter().map(|&rows| Unit { rows, bytes: rows }).collect())
    }

    fn parts(layout: &Layout, rows: Range<u64>) -> Vec<(usize, Range<u64>)> {
        layout.parts(rows).unwrap().filter(|(_, part)| !part.is_empty()).collect()
    }

    #[test]
    fn parts_of_every_range_are_its_rows_in_order() {
        let lengths = [0, 3, 0, 0, 5, 1, 0];
        let layout = layout(&lengths);
        let numbers: Vec<(usize, u64)> =
            lengths.iter().enumerate().flat_map(|(unit, &rows)| (0..rows).map(move |row| (unit, row))).collect();
        for start in 0..=9 {
            for end in start..=9 {
                let rows: Vec<_> = parts(&layout, start..end)
                    .into_iter()
                    .flat_map(|(unit, part)| part.map(move |row| (unit, row)))
                    .collect();
                assert_eq!(rows, numbers[start as usize..end as usize], "{start}..{end}");
            }
        }
    }

    #[test]
    fn a_spread_has_both_ends_and_nothing_twice() {
        assert_eq!(spread(0, 3).count(), 0);
        assert_eq!(spread(5, 1).collect::<Vec<_>>(), [0]);
        assert_eq!(spread(2, 3).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(spread(101, 5).collect::<Vec<_>>(), [0, 25, 50, 75, 100]);
    }

    #[test]
    fn rows_that_are_not_there_are_refused() {
        assert!(layout(&[3, 4]).parts(5..8).is_err());
        assert!(layout(&[]).parts(0..1).is_err());
        assert!(parts(&layout(&[]), 0..0).is_empty());
    }
}
