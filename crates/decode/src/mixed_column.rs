//! One of several columns of features: of numbers, of vectors, of categories, or of bags of words.

use super::bag::Bag;
use super::category_column::{CategoryColumn, MixedFault};
use super::hashed::HashedText;
use super::imputation::Imputation;
use errors::RowFault;
use model::{Buckets, Coding, Elements};
use pg::values::array::ArrayFault;
use pg::values::number::{NumberType, narrow};
use pg::values::typed::TypedDatum;
use pg::values::vector::VectorReader;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub struct MixedColumn {
    pub name: String,
    /// dimensions of the columns before
    pub first: u32,
    /// what is imputed in the columns before: each number, and each column of other kinds
    pub position: u32,
    pub kind: MixedKind,
}

pub enum MixedKind {
    Number(NumberType),
    Vector(VectorColumn),
    Category(HashedText, Box<CategoryColumn>),
    Hashed(HashedText),
    Bag(Bag, BagSquares),
}

/// What bags add to |x|².
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct BagSquares {
    sum: f64,
    rows: u64,
}

/// A column of vectors, all of the same length.
pub struct VectorColumn {
    pub reader: VectorReader,
    /// once it is known
    pub len: Option<usize>,
}

#[derive(Serialize, Deserialize)]
pub enum FoundColumn {
    /// these categories, and whether NULL is one
    Categories(Vec<String>, bool),
    Hashed,
    Bags(BagSquares),
    /// vectors of this many numbers, if there was one
    Vector(Option<usize>),
}

impl MixedColumn {
    /// Dimensions of its own.
    pub fn dim(&self) -> usize {
        match &self.kind {
            MixedKind::Category(_, categories) => categories.names.len(),
            _ => self.numbers(),
        }
    }

    /// How many of its dimensions are numbers.
    pub fn numbers(&self) -> usize {
        match &self.kind {
            MixedKind::Number(_) => 1,
            MixedKind::Vector(vector) => vector.len.unwrap_or_default(),
            MixedKind::Category(..) | MixedKind::Hashed(_) | MixedKind::Bag(..) => 0,
        }
    }

    /// How many values are imputed in it.
    pub fn positions(&self) -> usize {
        if self.has_numbers() { self.numbers() } else { 1 }
    }

    pub fn has_numbers(&self) -> bool {
        matches!(self.kind, MixedKind::Number(_) | MixedKind::Vector(_))
    }

    pub fn is_hashed(&self) -> bool {
        matches!(self.kind, MixedKind::Hashed(_) | MixedKind::Bag(..))
    }

    /// What number `i` of its numbers is called.
    pub fn number_name(&self, i: usize) -> Cow<'_, str> {
        match self.kind {
            MixedKind::Vector(_) => Cow::Owned(format!("{}[{}]", self.name, i + 1)),
            _ => Cow::Borrowed(&self.name),
        }
    }

    /// The dimensions of its numbers.
    pub fn number_places(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.numbers() as u32
    }

    /// How its values become features; None of a column of numbers. Hashed columns share this many buckets.
    pub fn coding(&self, buckets: u32) -> Option<Coding> {
        Some(match &self.kind {
            MixedKind::Number(_) => return None,
            MixedKind::Vector(vector) => Coding::Vector(Elements { elements: vector.len.unwrap_or_default() }),
            MixedKind::Category(_, categories) => Coding::OneHot(categories.names.clone()),
            MixedKind::Hashed(_) => Coding::Hashed(Buckets { buckets, of: None }),
            MixedKind::Bag(bag, _) => Coding::Hashed(Buckets { buckets, of: Some(bag.kind()) }),
        })
    }

    /// What was found so far; None of a column of numbers.
    pub fn found(&self) -> Option<FoundColumn> {
        Some(match &self.kind {
            MixedKind::Number(_) => return None,
            MixedKind::Vector(vector) => FoundColumn::Vector(vector.len),
            MixedKind::Category(_, categories) => {
                let (names, has_null) = categories.found();
                FoundColumn::Categories(names, has_null)
            }
            MixedKind::Hashed(_) => FoundColumn::Hashed,
            MixedKind::Bag(_, squares) => FoundColumn::Bags(*squares),
        })
    }

    /// Meets what another process has found in the same column.
    pub fn unite(&mut self, found: &FoundColumn) -> Result<(), RowFault> {
        match (&mut self.kind, found) {
            (MixedKind::Category(_, categories), FoundColumn::Categories(names, has_null)) => {
                categories.unite((names, *has_null), &self.name)?;
                if categories.has_too_many() {
                    self.hash();
                }
            }
            (MixedKind::Vector(VectorColumn { len: Some(own), .. }), FoundColumn::Vector(Some(len))) if own != len => {
                return Err(RowFault::Length(*len, *own));
            }
            (MixedKind::Vector(vector), FoundColumn::Vector(len)) => vector.len = vector.len.or(*len),
            (MixedKind::Bag(_, squares), FoundColumn::Bags(others)) => {
                squares.sum += others.sum;
                squares.rows += others.rows;
            }
            _ => self.hash(),
        }
        Ok(())
    }

    /// Makes a column of categories one that is hashed.
    #[cold]
    pub fn hash(&mut self) {
        if let MixedKind::Category(text, _) = self.kind {
            self.kind = MixedKind::Hashed(text);
        }
    }
}

impl BagSquares {
    /// Adds a row, whose bag has this sum of squares; of NULL it is 1, as of any category.
    pub fn add(&mut self, sum: f64) {
        self.sum += sum;
        self.rows += 1;
    }

    pub fn mean(self) -> f64 {
        if self.rows > 0 { self.sum / self.rows as f64 } else { 0.0 }
    }
}

impl VectorColumn {
    /// Reads the numbers of a vector, the first of which is imputed at `position`.
    #[inline]
    pub fn read(
        &self,
        value: Option<TypedDatum<'_>>,
        out: &mut [f32],
        (imputation, position): (Option<&mut Imputation>, usize),
        name: &str,
    ) -> Result<(), MixedFault> {
        let fault = match value {
            Some(vector) => match self.reader.read(vector, out) {
                Ok(()) => return Ok(()),
                Err(fault) => Some((vector, fault)),
            },
            None => None,
        };
        self.read_unusual(fault, out, (imputation, position), name)
    }

    /// The same of a vector that has a fault, or is NULL: then all of its numbers are.
    #[cold]
    fn read_unusual(
        &self,
        fault: Option<(TypedDatum<'_>, ArrayFault)>,
        out: &mut [f32],
        (imputation, position): (Option<&mut Imputation>, usize),
        name: &str,
    ) -> Result<(), MixedFault> {
        let null = |i: usize| MixedFault::Null(format!("{name}[{}]", i + 1));
        match (fault, imputation) {
            (Some((vector, ArrayFault::Null(_))), Some(imputation)) => {
                let read = self.reader.read_with_nulls(vector, out, f32::NAN);
                read.map_err(|fault| vector_fault(fault, out.len(), name))?;
                for (i, value) in out.iter_mut().enumerate().filter(|(_, value)| value.is_nan()) {
                    *value = imputation.value(position + i).ok_or_else(|| null(i))?;
                }
                Ok(())
            }
            (Some((_, fault)), _) => Err(vector_fault(fault, out.len(), name)),
            (None, Some(imputation)) => {
                for (i, value) in out.iter_mut().enumerate() {
                    *value = imputation.value(position + i).ok_or_else(|| MixedFault::Null(name.to_owned()))?;
                }
                Ok(())
            }
            (None, None) => Err(MixedFault::Null(name.to_owned())),
        }
    }
}

/// What is wrong with a vector of a column, of which `expected` numbers were to be read.
pub fn vector_fault(fault: ArrayFault, expected: usize, name: &str) -> MixedFault {
    match RowFault::of_vector(fault, expected, |i| format!("{name}[{i}]")) {
        RowFault::NullFeature(name) => MixedFault::Null(name),
        fault => MixedFault::Row(Box::new(fault)),
    }
}

pub fn bag_fault(fault: ArrayFault, name: &str) -> MixedFault {
    MixedFault::Row(Box::new(match fault {
        ArrayFault::Dimensions(n) => RowFault::ColumnDimensions(name.to_owned(), n),
        _ => RowFault::DamagedVector,
    }))
}

/// What stands for a NULL at `position`, which is a number.
#[cold]
pub fn null_number(imputation: Option<&mut Imputation>, position: usize, name: &str) -> Result<f32, MixedFault> {
    imputation.and_then(|imputation| imputation.value(position)).ok_or_else(|| MixedFault::Null(name.to_owned()))
}

/// The column at `position`, which is hashed, is NULL: a value of its own.
#[cold]
pub fn meet_null(imputation: Option<&mut Imputation>, position: usize, name: &str) -> Result<(), MixedFault> {
    imputation.map(|imputation| imputation.met(position)).ok_or_else(|| MixedFault::Null(name.to_owned()))
}

pub fn read_number(number: NumberType, value: TypedDatum<'_>, name: &str) -> Result<f32, MixedFault> {
    narrow(number.read(value)).map_err(|fault| MixedFault::Row(Box::new(RowFault::of_number(fault, name.to_owned()))))
}
