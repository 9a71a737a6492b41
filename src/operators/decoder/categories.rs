//! Columns of numbers and of categories, the latter one-hot: a dimension per category.
//!
//! The categories are found in a pass of their own, after which their dimensions follow the type's order. Rows are
//! sparse: they have an entry per number, 0 or not, and one for each category.

use super::columns::number_fault;
use super::imputation::Imputation;
use crate::errors::{RowFault, excerpt};
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_TEXT_BYTES};
use crate::models::CategoryNames;
use crate::options::rows::Unseen;
use crate::pg::executor::query::Column;
use crate::pg::tuples::row::Row;
use crate::pg::values::distinct::Distinct;
use crate::pg::values::number::{NumberType, narrow};
use crate::pg::values::typed::TypedDatum;
use sgd::Standardizer;

/// Columns that are numbers or categories.
pub struct MixedColumns {
    columns: Vec<MixedColumn>,
    /// entries of a row
    entries: Vec<(u32, f32)>,
    /// does the row under way have a category that counts as none?
    has_unseen: bool,
}

struct MixedColumn {
    name: String,
    /// dimensions of the columns before
    first: u32,
    kind: MixedKind,
}

enum MixedKind {
    Number(NumberType),
    Category(Box<CategoryColumn>),
}

struct CategoryColumn {
    values: Distinct,
    /// by value, its place among the column's categories
    places: Vec<u32>,
    /// their text, by place, once they are known; and whether NULLs are one of them
    names: CategoryNames,
    state: CategoryState,
    /// bytes of the values that were found
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CategoryState {
    /// they are being found
    Open,
    /// a pass over the same rows has found them all
    Prepared,
    /// they are those of a model that predicts; what to do with others
    Model(Unseen),
    /// they are those of a model whose training is continued
    Continued,
}

/// The categories of a model's columns, by column, and what to do with others.
pub type KnownCategories<'a> = (&'a [(String, CategoryNames)], Unseen);

/// Why a row has no entries.
pub enum MixedFault {
    /// this column is NULL
    Null(String),
    Row(Box<RowFault>),
}

impl MixedColumns {
    /// Columns with a number type hold numbers, the others categories. The categories are still to be found, or are
    /// those of a model.
    pub fn new(columns: &[(&Column, Option<NumberType>)], known: Option<KnownCategories>) -> Self {
        let column = |(column, number): &(&Column, Option<NumberType>)| MixedColumn {
            name: column.name.clone(),
            first: 0,
            kind: match number {
                Some(number) => MixedKind::Number(*number),
                None => MixedKind::Category(Box::new(CategoryColumn::new(column, known))),
            },
        };
        let columns = columns.iter().map(column).collect();
        let mut mixed = MixedColumns { columns, entries: Vec::new(), has_unseen: false };
        mixed.number();
        mixed
    }

    /// Gives the columns their dimensions.
    fn number(&mut self) {
        let mut first = 0;
        for column in &mut self.columns {
            column.first = first;
            first += column.dim() as u32;
        }
    }

    /// Dimensions of all columns.
    pub fn dim(&self) -> usize {
        self.columns.iter().map(MixedColumn::dim).sum()
    }

    /// Columns of numbers.
    pub fn numbers(&self) -> usize {
        self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).count()
    }

    /// Must categories be found before anything can be learned?
    pub fn need_preparation(&self) -> bool {
        self.columns.iter().any(|c| matches!(&c.kind, MixedKind::Category(c) if c.state == CategoryState::Open))
    }

    /// All rows have been read: no other categories will come.
    pub fn close(&mut self) {
        for column in &mut self.columns {
            if let MixedKind::Category(categories) = &mut column.kind {
                categories.close();
            }
        }
        self.number();
    }

    /// Takes over the categories that were found in another process, by place, of each column that has some.
    pub fn adopt(&mut self, categories: &[CategoryNames]) {
        let columns = self.columns.iter_mut().filter_map(|column| match &mut column.kind {
            MixedKind::Category(categories) => Some(categories),
            MixedKind::Number(_) => None,
        });
        for (categories, names) in columns.zip(categories) {
            categories.set_names(names.clone());
            categories.state = CategoryState::Prepared;
        }
        self.number();
    }

    /// The categories that were adopted are those of a model whose training is continued.
    pub fn close_by_model(&mut self) {
        for column in &mut self.columns {
            if let MixedKind::Category(categories) = &mut column.kind {
                categories.state = CategoryState::Continued;
            }
        }
    }

    /// The categories of the columns that have some, in the columns' sequence.
    pub fn categories(&self) -> Vec<(String, CategoryNames)> {
        let of_column = |column: &MixedColumn| match &column.kind {
            MixedKind::Category(categories) => Some((column.name.clone(), categories.names.clone())),
            MixedKind::Number(_) => None,
        };
        self.columns.iter().filter_map(of_column).collect()
    }

    /// Expands a scaling of the columns of numbers to all dimensions. Categories stay as they are.
    pub fn expand(&self, numbers: &Standardizer) -> Standardizer {
        let mut all = Standardizer { mean: vec![0.0; self.dim()], scale: vec![1.0; self.dim()] };
        let places = self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.first as usize);
        for (i, place) in places.enumerate() {
            all.mean[place] = numbers.mean[i];
            all.scale[place] = numbers.scale[i];
        }
        all
    }

    /// Of numbers by feature, those of each column; 0 for categories.
    pub fn by_column(&self, features: &[f32]) -> Vec<f32> {
        let of_column = |column: &MixedColumn| match column.kind {
            MixedKind::Number(_) => features.get(column.first as usize).copied().unwrap_or_default(),
            MixedKind::Category(_) => 0.0,
        };
        self.columns.iter().map(of_column).collect()
    }

    /// Expands numbers of the columns of numbers to all dimensions; 0 for categories.
    pub fn expand_numbers(&self, numbers: &[f32]) -> Vec<f32> {
        let mut all = vec![0.0; self.dim()];
        let places = self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.first as usize);
        places.zip(numbers).for_each(|(place, number)| all[place] = *number);
        all
    }

    /// Of numbers by column, those of the columns of numbers.
    pub fn numbers_of(&self, by_column: &[f32]) -> Vec<f32> {
        let columns = self.columns.iter().zip(by_column);
        columns.filter(|(c, _)| matches!(c.kind, MixedKind::Number(_))).map(|(_, number)| *number).collect()
    }

    /// Each column, and whether it has categories.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.name.as_str(), matches!(column.kind, MixedKind::Category(_))))
    }

    /// Has the row that was read last a category that is none of those that are known?
    #[inline]
    pub fn has_unseen(&self) -> bool {
        self.has_unseen
    }

    /// Registers the categories of a row whose features begin with column `first`, and reads its numbers.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub fn prepare(
        &mut self,
        row: Row<'_>,
        first: usize,
        numbers: &mut [f32],
        mut imputation: Option<&mut Imputation>,
    ) -> std::result::Result<(), MixedFault> {
        let mut place = 0;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let value = row.get(first + i);
            match &mut column.kind {
                MixedKind::Number(number) => {
                    numbers[place] = match value {
                        Some(value) => read_number(*number, value, &column.name)?,
                        None => null_number(imputation.as_deref_mut(), i, &column.name)?,
                    };
                    place += 1;
                }
                MixedKind::Category(categories) => match value {
                    Some(value) => drop(categories.place(value, &column.name)?),
                    None => drop(categories.place_of_null(imputation.as_deref_mut(), i, &column.name)?),
                },
            }
        }
        Ok(())
    }

    /// The entries of a row whose features begin with column `first`, by ascending dimension.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub fn read(
        &mut self,
        row: Row<'_>,
        first: usize,
        mut imputation: Option<&mut Imputation>,
    ) -> std::result::Result<&[(u32, f32)], MixedFault> {
        self.entries.clear();
        self.has_unseen = false;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let value = row.get(first + i);
            match &mut column.kind {
                MixedKind::Number(number) => {
                    let number = match value {
                        Some(value) => read_number(*number, value, &column.name)?,
                        None => null_number(imputation.as_deref_mut(), i, &column.name)?,
                    };
                    self.entries.push((column.first, number));
                }
                MixedKind::Category(categories) => {
                    let place = match value {
                        Some(value) => categories.place(value, &column.name)?,
                        None => categories.place_of_null(imputation.as_deref_mut(), i, &column.name)?,
                    };
                    match place {
                        Some(place) => self.entries.push((column.first + place, 1.0)),
                        None => self.has_unseen = true,
                    }
                }
            }
        }
        Ok(&self.entries)
    }
}

impl MixedColumn {
    fn dim(&self) -> usize {
        match &self.kind {
            MixedKind::Number(_) => 1,
            MixedKind::Category(categories) => categories.names.len(),
        }
    }
}

impl CategoryColumn {
    fn new(column: &Column, known: Option<KnownCategories>) -> CategoryColumn {
        let values = Distinct::new(column.type_oid, column.collation);
        let names = CategoryNames::default();
        let mut new = CategoryColumn { values, places: Vec::new(), names, state: CategoryState::Open, bytes: 0 };
        if let Some((known, unseen)) = known {
            let names = known.iter().find(|(name, _)| *name == column.name).map(|(_, names)| names.clone());
            new.set_names(names.unwrap_or_default());
            new.state = CategoryState::Model(unseen);
        }
        new
    }

    /// Makes these the categories, by place.
    fn set_names(&mut self, names: CategoryNames) {
        for (place, name) in names.values.iter().enumerate() {
            // a text that is no value of the type, such as an enum's label that was dropped, will not be met
            if let Some((_, false)) = self.values.add_text(name) {
                self.places.push(place as u32);
            }
        }
        self.names = names;
    }

    /// Which of the column's categories this is; None if it is to be ignored.
    #[inline]
    fn place(&mut self, value: TypedDatum<'_>, column: &str) -> std::result::Result<Option<u32>, MixedFault> {
        match self.values.find(value) {
            Some(i) => Ok(Some(self.places[i])),
            None => self.unseen(value, column).map_err(|fault| MixedFault::Row(Box::new(fault))),
        }
    }

    /// Which of the column's categories a NULL is, in column `i`; None if it is to be ignored.
    #[cold]
    fn place_of_null(
        &mut self,
        imputation: Option<&mut Imputation>,
        i: usize,
        column: &str,
    ) -> std::result::Result<Option<u32>, MixedFault> {
        let Some(imputation) = imputation else { return Err(MixedFault::Null(column.to_owned())) };
        self.names.has_null |= self.state == CategoryState::Open;
        let value = || "NULL".to_owned();
        let fault = match self.state {
            _ if self.names.has_null => {
                imputation.met(i);
                return Ok(Some(self.names.values.len() as u32));
            }
            CategoryState::Model(Unseen::Zero) => return Ok(None),
            CategoryState::Open | CategoryState::Prepared => RowFault::Appeared { what: "category", value: value() },
            CategoryState::Model(_) | CategoryState::Continued => RowFault::UnseenCategory {
                column: column.to_owned(),
                value: value(),
                continued: self.state == CategoryState::Continued,
            },
        };
        Err(MixedFault::Row(Box::new(fault)))
    }

    #[cold]
    fn unseen(&mut self, value: TypedDatum<'_>, column: &str) -> std::result::Result<Option<u32>, RowFault> {
        if self.state == CategoryState::Model(Unseen::Zero) {
            return Ok(None);
        }
        let i = self.values.add(value);
        match self.state {
            CategoryState::Open => self.check_new(i, column),
            CategoryState::Prepared => {
                Err(RowFault::Appeared { what: "category", value: excerpt(&self.values.text(i)) })
            }
            CategoryState::Model(_) | CategoryState::Continued => Err(RowFault::UnseenCategory {
                column: column.to_owned(),
                value: excerpt(&self.values.text(i)),
                continued: self.state == CategoryState::Continued,
            }),
        }
    }

    /// A new category, whose place is still provisional.
    fn check_new(&mut self, i: usize, column: &str) -> std::result::Result<Option<u32>, RowFault> {
        let size = self.values.size(i);
        self.bytes += size;
        if size > MAX_TEXT_BYTES {
            return Err(RowFault::CategoryTooLong(column.to_owned(), size));
        }
        if i == MAX_CATEGORIES || self.bytes > MAX_CATEGORIES_BYTES {
            return Err(RowFault::TooManyCategories { column: column.to_owned(), categories: i });
        }
        self.places.push(i as u32);
        Ok(Some(i as u32))
    }

    fn close(&mut self) {
        if self.state != CategoryState::Open {
            return;
        }
        let order = self.values.sorted();
        for (place, i) in order.iter().enumerate() {
            self.places[*i as usize] = place as u32;
            self.names.values.push(self.values.text(*i as usize));
        }
        self.state = CategoryState::Prepared;
    }
}

/// What stands for a NULL in column `i`, which has numbers.
#[cold]
fn null_number(imputation: Option<&mut Imputation>, i: usize, name: &str) -> std::result::Result<f32, MixedFault> {
    imputation.and_then(|imputation| imputation.value(i)).ok_or_else(|| MixedFault::Null(name.to_owned()))
}

fn read_number(number: NumberType, value: TypedDatum<'_>, name: &str) -> std::result::Result<f32, MixedFault> {
    narrow(number.read(value)).map_err(|fault| MixedFault::Row(number_fault(fault, name.to_owned())))
}
