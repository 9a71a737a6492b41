//! Columns of numbers and of categories, the latter one-hot: a dimension per category.
//!
//! The categories are found in a pass of their own, after which their dimensions follow the type's order. Rows are
//! sparse: they have an entry per number, 0 or not, and one for each category.

use super::columns::number_fault;
use crate::errors::{RowFault, excerpt};
use crate::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_TEXT_BYTES};
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
    /// their text, by place, once they are known
    names: Vec<String>,
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
pub type KnownCategories<'a> = (&'a [(String, Vec<String>)], Unseen);

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
        let mut mixed = MixedColumns { columns: columns.iter().map(column).collect(), entries: Vec::new() };
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
    pub fn adopt(&mut self, categories: &[Vec<String>]) {
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
    pub fn categories(&self) -> Vec<(String, Vec<String>)> {
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

    /// Registers the categories of a row whose features begin with column `first`, and reads its numbers.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub fn prepare(&mut self, row: Row<'_>, first: usize, numbers: &mut [f32]) -> std::result::Result<(), MixedFault> {
        let mut place = 0;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let Some(value) = row.get(first + i) else { return Err(MixedFault::Null(column.name.clone())) };
            match &mut column.kind {
                MixedKind::Number(number) => {
                    numbers[place] = read_number(*number, value, &column.name)?;
                    place += 1;
                }
                MixedKind::Category(categories) => drop(categories.place(value, &column.name)?),
            }
        }
        Ok(())
    }

    /// The entries of a row whose features begin with column `first`, by ascending dimension.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub fn read(&mut self, row: Row<'_>, first: usize) -> std::result::Result<&[(u32, f32)], MixedFault> {
        self.entries.clear();
        for (i, column) in self.columns.iter_mut().enumerate() {
            let Some(value) = row.get(first + i) else { return Err(MixedFault::Null(column.name.clone())) };
            match &mut column.kind {
                MixedKind::Number(number) => {
                    self.entries.push((column.first, read_number(*number, value, &column.name)?));
                }
                MixedKind::Category(categories) => {
                    if let Some(place) = categories.place(value, &column.name)? {
                        self.entries.push((column.first + place, 1.0));
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
        let mut new =
            CategoryColumn { values, places: Vec::new(), names: Vec::new(), state: CategoryState::Open, bytes: 0 };
        if let Some((known, unseen)) = known {
            let names = known.iter().find(|(name, _)| *name == column.name).map(|(_, names)| names.as_slice());
            new.set_names(names.unwrap_or_default().to_vec());
            new.state = CategoryState::Model(unseen);
        }
        new
    }

    /// Makes these the categories, by place.
    fn set_names(&mut self, names: Vec<String>) {
        for (place, name) in names.iter().enumerate() {
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
            self.names.push(self.values.text(*i as usize));
        }
        self.state = CategoryState::Prepared;
    }
}

fn read_number(number: NumberType, value: TypedDatum<'_>, name: &str) -> std::result::Result<f32, MixedFault> {
    narrow(number.read(value)).map_err(|fault| MixedFault::Row(number_fault(fault, name.to_owned())))
}
