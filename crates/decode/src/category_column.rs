//! A column of which each category is a feature, as long as there are not too many of them.

use super::imputation::Imputation;
use errors::limits::{MAX_CATEGORIES, MAX_CATEGORIES_BYTES, MAX_TEXT_BYTES, ONE_HOT_BYTES};
use errors::{RowFault, excerpt};
use model::{CategoryNames, Coding};
use options::rows::Unseen;
use pg::executor::query::Column;
use pg::values::distinct::Distinct;
use pg::values::record::category_text;
use pg::values::typed::TypedDatum;
use pgrx::pg_sys::Oid;

/// What a model knows of its columns of categories, and what to do with others.
pub type KnownCategories<'a> = (&'a [(String, Coding)], Unseen);

/// Why a row has no entries.
pub enum MixedFault {
    /// this column is NULL
    Null(String),
    /// the same, of vectors whose length is not known yet
    NoLength,
    Row(Box<RowFault>),
}

pub struct CategoryColumn {
    type_oid: Oid,
    values: Distinct,
    /// by value, its place among the column's categories
    places: Vec<u32>,
    /// their text, by place, once they are known; and whether NULLs are one of them
    pub names: CategoryNames,
    pub state: CategoryState,
    /// by value, in how many rows a pass has met it that finds the categories; and NULLs
    met: Vec<u64>,
    met_nulls: u64,
    /// bytes of the values that were found
    bytes: usize,
    /// how many categories it may have before it is to be hashed; None if it never is
    limit: Option<usize>,
    has_too_many: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CategoryState {
    /// they are being found
    Open,
    /// a pass over the same rows has found them all
    Prepared,
    /// they are those of a model that predicts; what to do with others
    Model(Unseen),
    /// they are those of a model whose training is continued
    Continued,
}

type Place = std::result::Result<Option<u32>, MixedFault>;

impl CategoryColumn {
    /// A column whose categories are still to be found, or are those of a model. With more than `limit` of them it is
    /// to be hashed.
    pub fn new(column: &Column, known: Option<KnownCategories>, limit: Option<usize>) -> CategoryColumn {
        let mut new = CategoryColumn {
            type_oid: column.type_oid,
            values: Distinct::new(column.type_oid, column.collation),
            places: Vec::new(),
            names: CategoryNames::default(),
            state: CategoryState::Open,
            met: Vec::new(),
            met_nulls: 0,
            bytes: 0,
            limit,
            has_too_many: false,
        };
        if let Some((known, unseen)) = known {
            let coding = known.iter().find(|(name, _)| *name == column.name).map(|(_, coding)| coding.clone());
            if let Some(Coding::OneHot(names)) = coding {
                new.set_names(names);
            }
            new.state = CategoryState::Model(unseen);
        }
        new
    }

    /// Makes these the categories, by place.
    pub fn set_names(&mut self, names: CategoryNames) {
        for (place, name) in names.values.iter().enumerate() {
            // a text that is no value of the type, such as an enum's label that was dropped, will not be met
            if let Some((_, false)) = self.values.add_text(name) {
                self.places.push(place as u32);
            }
        }
        self.names = names;
    }

    /// A pass that finds the categories has met a value, of this provisional place.
    #[inline]
    pub fn count(&mut self, place: Option<u32>) {
        let place = place.unwrap_or_default() as usize;
        if place >= self.met.len() {
            allocation::resize(&mut self.met, place + 1, 0);
        }
        self.met[place] += 1;
    }

    #[cold]
    pub fn count_null(&mut self) {
        self.met_nulls += 1;
    }

    /// How many NULLs were met that are not one of the model's categories, and were ignored; None if NULL is one.
    pub fn ignored_nulls(&self) -> Option<u64> {
        (!self.names.has_null).then_some(self.met_nulls)
    }

    /// In how many rows the pass has met each category, by place, and how many NULLs.
    pub fn counts(&self) -> (Vec<u64>, u64) {
        let mut counts: Vec<u64> = allocation::zeros(self.names.len());
        // where the categories are those of a model, their places were final when they were counted
        let is_final = self.state == CategoryState::Continued;
        for (i, (place, count)) in self.places.iter().zip(&self.met).enumerate() {
            counts[if is_final { i } else { *place as usize }] = *count;
        }
        if let (true, Some(last)) = (self.names.has_null, counts.last_mut()) {
            *last = self.met_nulls;
        }
        (counts, self.met_nulls)
    }

    /// Has it more categories than it may have before it is to be hashed?
    #[inline]
    pub fn has_too_many(&self) -> bool {
        self.has_too_many
    }

    /// Which of the column's categories this is; None if it is to be ignored.
    #[inline]
    pub fn place(&mut self, value: TypedDatum<'_>, column: &str) -> Place {
        match self.values.find_again(value) {
            Some(i) => Ok(Some(self.places[i])),
            None => self.unseen(value, column).map_err(|fault| MixedFault::Row(Box::new(fault))),
        }
    }

    /// Which of the column's categories a NULL is, in column `i`; None if it is to be ignored.
    #[cold]
    pub fn place_of_null(&mut self, imputation: Option<&mut Imputation>, i: usize, column: &str) -> Place {
        let Some(imputation) = imputation else { return Err(MixedFault::Null(column.to_owned())) };
        self.names.has_null |= self.state == CategoryState::Open;
        let value = || "NULL".to_owned();
        let fault = match self.state {
            _ if self.names.has_null => {
                imputation.met(i);
                return Ok(Some(self.names.values.len() as u32));
            }
            CategoryState::Model(Unseen::Zero) => {
                self.met_nulls += 1;
                return Ok(None);
            }
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
        match self.limit {
            // even to hash it takes several copies
            _ if size > ONE_HOT_BYTES => return Err(RowFault::CategoryTooLong(column.to_owned(), size)),
            Some(limit) => self.has_too_many |= i >= limit || self.bytes > ONE_HOT_BYTES || size > MAX_TEXT_BYTES,
            None if size > MAX_TEXT_BYTES => return Err(RowFault::CategoryTooLong(column.to_owned(), size)),
            None if i == MAX_CATEGORIES || self.bytes > MAX_CATEGORIES_BYTES => {
                return Err(RowFault::TooManyCategories { column: column.to_owned(), categories: i });
            }
            None => {}
        }
        allocation::push(&mut self.places, i as u32);
        Ok(Some(i as u32))
    }

    /// The categories that were found so far, as text, and whether NULLs are one.
    pub fn found(&self) -> (Vec<String>, bool) {
        (allocation::collect((0..self.values.len()).map(|i| self.values.text(i))), self.names.has_null)
    }

    /// Meets the categories that another process has found in the same column.
    pub fn unite(&mut self, (found, has_null): (&[String], bool), column: &str) -> std::result::Result<(), RowFault> {
        self.names.has_null |= has_null;
        for text in found {
            if let Some((i, false)) = self.values.add_text(text) {
                self.check_new(i, column)?;
            }
        }
        Ok(())
    }

    /// All rows have been read: no other categories will come.
    pub fn close(&mut self) {
        if self.state != CategoryState::Open {
            return;
        }
        let order = self.values.sorted();
        for (place, i) in order.iter().enumerate() {
            self.places[*i as usize] = place as u32;
            self.names.values.push(category_text(self.type_oid, self.values.text(*i as usize)));
        }
        self.state = CategoryState::Prepared;
    }
}
