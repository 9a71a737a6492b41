//! The column of the rows' weights, and what tuples weigh in the objective.
//!
//! A row weighs its own weight times that of its class. What counts is how the weights of the rows of a model compare:
//! tuples get them divided by their mean, so that the mean loss over the tuples is Σ w·loss / Σ w, which penalties are
//! added to. For that, a preparation pass adds up the weights of each group of rows, class by class. Classes that are
//! to be balanced weigh the same in all.

use errors::{Result, RowFault, TrainingError};
use pg::values::number::{NumberFault, NumberType, narrow};
use pg::values::typed::TypedDatum;
use serde::{Deserialize, Serialize};

pub struct Weight {
    pub number: NumberType,
    /// which of the row's columns it is
    pub place: usize,
}

impl Weight {
    #[inline]
    pub fn read(&self, value: TypedDatum<'_>) -> std::result::Result<f32, Box<RowFault>> {
        let weight = narrow(self.number.read(value)).map_err(|fault| {
            Box::new(match fault {
                NumberFault::NotFinite(value) => RowFault::WeightNotFinite(value),
                NumberFault::OutOfRange(value) => RowFault::WeightOutOfRange(value),
            })
        })?;
        if weight < 0.0 { Err(Box::new(RowFault::NegativeWeight(weight.into()))) } else { Ok(weight) }
    }
}

/// What rows add up to that a preparation pass has met, by group, then by class.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct RowSums(Vec<Vec<RowSum>>);

/// What the rows of one class add up to.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct RowSum {
    /// those that weigh something
    rows: u64,
    weight: f64,
    /// of the weights
    squares: f64,
}

impl RowSum {
    pub fn of_row(weight: f32) -> RowSum {
        let weight = f64::from(weight);
        RowSum { rows: u64::from(weight > 0.0), weight, squares: weight * weight }
    }

    /// This many rows of weight 1.
    pub fn of_rows(rows: u64) -> RowSum {
        RowSum { rows, weight: rows as f64, squares: rows as f64 }
    }

    fn add(&mut self, other: RowSum) {
        self.rows += other.rows;
        self.weight += other.weight;
        self.squares += other.squares;
    }
}

impl RowSums {
    #[inline]
    pub fn add(&mut self, group: usize, class: usize, sum: RowSum) {
        if self.0.len() <= group {
            allocation::resize(&mut self.0, group + 1, Vec::new());
        }
        let classes = &mut self.0[group];
        if classes.len() <= class {
            allocation::resize(classes, class + 1, RowSum::default());
        }
        classes[class].add(sum);
    }

    /// Were there no rows?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows that weigh something, by class.
    pub fn of_classes(&self) -> Vec<u64> {
        let mut rows = vec![0; self.0.iter().map(Vec::len).max().unwrap_or_default()];
        for group in &self.0 {
            rows.iter_mut().zip(group).for_each(|(all, sum)| *all += sum.rows);
        }
        rows
    }

    /// All that was added up, with its group and class.
    pub fn all(&self) -> impl Iterator<Item = (usize, usize, RowSum)> {
        (0..).zip(&self.0).flat_map(|(group, classes)| (0..).zip(classes).map(move |(class, sum)| (group, class, *sum)))
    }

    /// How many rows of the same weight would say as much: (Σw)² / Σw², where weights are multiplied by these
    /// factors, if by any. `order` has the classes in their final sequence, by their numbers here.
    pub fn effective_rows(&self, factors: Option<&Factors>, order: &[u32]) -> f64 {
        let (mut weight, mut squares) = (0.0, 0.0);
        for (group, classes) in self.0.iter().enumerate() {
            for (rank, class) in order.iter().enumerate() {
                let sum = classes.get(*class as usize).copied().unwrap_or_default();
                let factor = factors.map_or(1.0, |factors| factors.of(group, rank));
                weight += factor * sum.weight;
                squares += factor * factor * sum.squares;
            }
        }
        if squares > 0.0 { weight * weight / squares } else { 0.0 }
    }

    /// What weights are to be multiplied by. `order` has the classes in their final sequence, by their numbers here,
    /// and `class_weights` what they weigh in that sequence, 1 where nothing is said; None if they are to be balanced.
    pub fn factors(&self, class_weights: Option<&[f64]>, order: &[u32]) -> Result<Factors> {
        let of_group = |classes: &Vec<RowSum>| {
            let sum = |class: &u32| classes.get(*class as usize).copied().unwrap_or_default();
            let own: Vec<f64> = match class_weights {
                Some(given) => (0..order.len()).map(|class| given.get(class).copied().unwrap_or(1.0)).collect(),
                None => order
                    .iter()
                    .map(|class| if sum(class).rows > 0 { sum(class).weight.recip() } else { 0.0 })
                    .collect(),
            };
            let (mut rows, mut weight, mut all) = (0, 0.0, 0.0);
            for (sum, own) in order.iter().map(sum).zip(&own).filter(|(_, own)| **own > 0.0) {
                rows += sum.rows;
                weight += sum.weight;
                all += sum.weight * own;
            }
            let weighs = all > 0.0 && all.is_finite();
            // a class that is held out as a whole weighs what its rows do
            let absent = |class: &u32| class_weights.is_none() && sum(class).rows == 0;
            let per_row = rows as f64 / weight;
            let factors = order.iter().zip(own);
            let factors = factors.map(|(class, own)| if absent(class) { per_row } else { own * rows as f64 / all });
            // of a group that is held out as a whole nothing is learned
            if classes.is_empty() {
                return Some(OfGroup::default());
            }
            weighs.then(|| OfGroup { per_row, of_classes: allocation::collect(factors) })
        };
        let groups: Option<Vec<OfGroup>> = self.0.iter().map(of_group).collect();
        Ok(Factors(groups.ok_or(TrainingError::NoWeight)?))
    }
}

/// What the weights of rows are to be multiplied by, so that their mean in each group is 1.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Factors(Vec<OfGroup>);

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct OfGroup {
    /// without the weights of classes
    per_row: f64,
    of_classes: Vec<f64>,
}

impl Factors {
    /// What the weights of the rows of this group and class are multiplied by.
    #[inline]
    pub fn of(&self, group: usize, class: usize) -> f64 {
        self.0.get(group).and_then(|group| group.of_classes.get(class)).copied().unwrap_or(1.0)
    }

    /// The weight of a tuple of this group and class as it is without weights of classes.
    pub fn without_class(&self, group: usize, class: usize, weight: f32) -> f64 {
        let (of_class, per_row) = (self.of(group, class), self.0.get(group).map_or(1.0, |group| group.per_row));
        if of_class > 0.0 { f64::from(weight) / of_class * per_row } else { 0.0 }
    }

    /// Are they of rows of one group?
    pub fn are_of_one_group(&self) -> bool {
        self.0.len() == 1
    }

    /// A number that tells them from others, but for rounding.
    pub fn digest(&self) -> u64 {
        let bits = self.0.iter().flat_map(|group| &group.of_classes).map(|factor| (*factor as f32).to_bits());
        bits.fold(0, |digest: u64, bits| (digest ^ u64::from(bits)).wrapping_mul(0x100_0000_01b3))
    }
}
