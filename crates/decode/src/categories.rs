//! Columns of numbers and of categories: the latter one-hot, a dimension per category, or hashed.
//!
//! The categories are found in a pass of their own, after which their dimensions follow the type's order. A column with
//! too many of them is hashed from then on, and those that were found are forgotten: memory stays bounded. Nothing else
//! that the pass measures depends on categories, whose dimensions it does not know yet. Rows are sparse: they have an
//! entry per number, 0 or not, one for each category, and one for each bucket. Buckets come last, and all hashed
//! columns share them.

use super::category_column::{CategoryColumn, CategoryState, KnownCategories, MixedFault};
use super::columns::number_fault;
use super::hashed::{HashRule, HashedText, suitable_buckets};
use super::imputation::Imputation;
use errors::RowFault;
use loss::{ModelKind, Standardizer};
use model::{Buckets, Coding};
use options::rows::{Hashing, ToHash};
use pg::executor::query::Column;
use pg::tuples::row::Row;
use pg::values::number::{NumberType, narrow};
use pg::values::typed::TypedDatum;
use sgd::profile::FeatureProfile;
use tuples::count_buckets;

pub struct MixedColumns {
    columns: Vec<MixedColumn>,
    /// dimensions of all columns, without buckets
    own_dim: u32,
    /// that hashed columns share, if there are some
    buckets: u32,
    /// the kind of the model whose buckets are to suit it
    chooses_for: Option<ModelKind>,
    /// entries of a row, and its buckets
    entries: Vec<(u32, f32)>,
    row_buckets: Vec<u32>,
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
    Category(HashedText, Box<CategoryColumn>),
    Hashed(HashedText),
}

impl MixedColumns {
    /// Columns with a number type hold numbers, the others categories. The categories are still to be found, or are
    /// those of a model, which knows what it has hashed.
    pub fn new(
        columns: &[(&Column, Option<NumberType>)],
        known: Option<KnownCategories>,
        rule: HashRule,
    ) -> MixedColumns {
        let hashed_by_model = |name: &str| {
            let coding = known.and_then(|(known, _)| known.iter().find(|(column, _)| column == name));
            coding.and_then(|(_, coding)| if let Coding::Hashed(hashed) = coding { Some(hashed.buckets) } else { None })
        };
        let limit = rule.limit();
        let kind = |column: &Column, number: Option<NumberType>| match number {
            Some(number) => MixedKind::Number(number),
            None if hashed_by_model(&column.name).is_some() || (known.is_none() && rule.names(&column.name)) => {
                MixedKind::Hashed(HashedText::new(column))
            }
            None => MixedKind::Category(HashedText::new(column), Box::new(CategoryColumn::new(column, known, limit))),
        };
        let buckets = columns.iter().find_map(|(column, _)| hashed_by_model(&column.name));
        let column = |(column, number): &(&Column, Option<NumberType>)| MixedColumn {
            name: column.name.clone(),
            first: 0,
            kind: kind(column, *number),
        };
        let mut mixed = MixedColumns {
            columns: columns.iter().map(column).collect(),
            own_dim: 0,
            buckets: buckets.or(rule.hashing.buckets).unwrap_or_else(|| suitable_buckets(rule.kind, 1)),
            chooses_for: rule.hashing.buckets.is_none().then_some(rule.kind),
            entries: Vec::new(),
            row_buckets: Vec::new(),
            has_unseen: false,
        };
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
        self.own_dim = first;
    }

    /// Dimensions of all columns.
    pub fn dim(&self) -> usize {
        self.own_dim() + if self.hashed().next().is_some() { self.buckets as usize } else { 0 }
    }

    /// The same without buckets, which are neither scaled nor filled.
    pub fn own_dim(&self) -> usize {
        self.own_dim as usize
    }

    fn hashed(&self) -> impl Iterator<Item = &MixedColumn> {
        self.columns.iter().filter(|column| matches!(column.kind, MixedKind::Hashed(_)))
    }

    /// Which columns are hashed, and into how many buckets, as option `hash` says it.
    pub fn hashing(&self) -> Hashing {
        let columns: Vec<String> = self.hashed().map(|column| column.name.clone()).collect();
        match columns.is_empty() {
            true => Hashing { buckets: None, columns: ToHash::Nothing },
            false => Hashing { buckets: Some(self.buckets), columns: ToHash::These(columns) },
        }
    }

    /// Columns of numbers.
    pub fn numbers(&self) -> usize {
        self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).count()
    }

    /// Must categories be found before anything can be learned?
    pub fn need_preparation(&self) -> bool {
        self.columns.iter().any(|c| matches!(&c.kind, MixedKind::Category(_, c) if c.state == CategoryState::Open))
    }

    /// All rows have been read: no other categories will come. The model has this many outputs.
    pub fn close(&mut self, outputs: usize) {
        for column in &mut self.columns {
            if let MixedKind::Category(_, categories) = &mut column.kind {
                categories.close();
            }
        }
        if let Some(kind) = self.chooses_for {
            self.buckets = suitable_buckets(kind, outputs);
        }
        self.number();
    }

    /// Takes over what was found in another process, of each column of categories.
    pub fn adopt(&mut self, codings: &[Coding]) {
        let columns = self.columns.iter_mut().filter(|column| !matches!(column.kind, MixedKind::Number(_)));
        for (column, coding) in columns.zip(codings) {
            match (&mut column.kind, coding) {
                (MixedKind::Category(_, categories), Coding::OneHot(names)) => {
                    categories.set_names(names.clone());
                    categories.state = CategoryState::Prepared;
                }
                (_, Coding::Hashed(Buckets { buckets })) => {
                    column.hash();
                    self.buckets = *buckets;
                }
                (MixedKind::Number(_) | MixedKind::Hashed(_), Coding::OneHot(_)) => {}
            }
        }
        self.number();
    }

    /// What was found so far in each column of categories; None of one that is hashed.
    pub fn found(&self) -> Vec<Option<(Vec<String>, bool)>> {
        let of_column = |column: &MixedColumn| match &column.kind {
            MixedKind::Number(_) => None,
            MixedKind::Category(_, categories) => Some(Some(categories.found())),
            MixedKind::Hashed(_) => Some(None),
        };
        self.columns.iter().filter_map(of_column).collect()
    }

    /// Meets what another process has found in the same columns.
    pub fn unite(&mut self, found: &[Option<(Vec<String>, bool)>]) -> std::result::Result<(), RowFault> {
        let columns = self.columns.iter_mut().filter(|column| !matches!(column.kind, MixedKind::Number(_)));
        for (column, found) in columns.zip(found) {
            match (&mut column.kind, found) {
                (MixedKind::Category(_, categories), Some(found)) => {
                    categories.unite(found, &column.name)?;
                    if categories.has_too_many() {
                        column.hash();
                    }
                }
                _ => column.hash(),
            }
        }
        Ok(())
    }

    /// The categories that were adopted are those of a model whose training is continued.
    pub fn close_by_model(&mut self) {
        for column in &mut self.columns {
            if let MixedKind::Category(_, categories) = &mut column.kind {
                categories.state = CategoryState::Continued;
            }
        }
    }

    /// The categories of the columns that have some, in the columns' sequence.
    pub fn categories(&self) -> Vec<(String, Coding)> {
        let of_column = |column: &MixedColumn| {
            let coding = match &column.kind {
                MixedKind::Category(_, categories) => Coding::OneHot(categories.names.clone()),
                MixedKind::Hashed(_) => Coding::Hashed(Buckets { buckets: self.buckets }),
                MixedKind::Number(_) => return None,
            };
            Some((column.name.clone(), coding))
        };
        self.columns.iter().filter_map(of_column).collect()
    }

    /// Expands a scaling of the columns of numbers to all dimensions but buckets. Categories stay as they are.
    pub fn expand(&self, numbers: &Standardizer) -> Standardizer {
        let mut all =
            Standardizer { mean: allocation::zeros(self.own_dim()), scale: allocation::filled(1.0, self.own_dim()) };
        let places = self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.first as usize);
        for (i, place) in places.enumerate() {
            all.mean[place] = numbers.mean[i];
            all.scale[place] = numbers.scale[i];
        }
        all
    }

    /// The column of numbers whose dimension this is.
    pub fn number_at(&self, dimension: usize) -> Option<&str> {
        let is_it = |c: &&MixedColumn| c.first as usize == dimension && matches!(c.kind, MixedKind::Number(_));
        self.columns.iter().find(is_it).map(|column| column.name.as_str())
    }

    /// Of numbers by feature, those of each column; 0 for categories.
    pub fn by_column(&self, features: &[f32]) -> Vec<f32> {
        let of_column = |column: &MixedColumn| match column.kind {
            MixedKind::Number(_) => features.get(column.first as usize).copied().unwrap_or_default(),
            MixedKind::Category(..) | MixedKind::Hashed(_) => 0.0,
        };
        self.columns.iter().map(of_column).collect()
    }

    /// Expands numbers of the columns of numbers to all dimensions but buckets; 0 for categories.
    pub fn expand_numbers(&self, numbers: &[f32]) -> Vec<f32> {
        let mut all = allocation::zeros(self.own_dim());
        let places = self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.first as usize);
        places.zip(numbers).for_each(|(place, number)| all[place] = *number);
        all
    }

    pub fn numbers_of(&self, by_column: &[f32]) -> Vec<f32> {
        let columns = self.columns.iter().zip(by_column);
        columns.filter(|(c, _)| matches!(c.kind, MixedKind::Number(_))).map(|(_, number)| *number).collect()
    }

    /// What a pass has met, column by column, with these of the columns of numbers; None if it has not counted
    /// categories. `nulls` are counted by column.
    pub fn profile(&self, numbers: Vec<FeatureProfile>, rows: u64, nulls: &[u64]) -> Option<Vec<FeatureProfile>> {
        let mut numbers = numbers.into_iter();
        let rows = rows.max(1) as f64;
        let of_column = |(i, column): (usize, &MixedColumn)| match &column.kind {
            MixedKind::Number(_) => numbers.next(),
            MixedKind::Category(_, categories) => {
                let (counts, nulls) = categories.counts();
                let met = counts.iter().sum::<u64>() as f64;
                let missing = nulls as f64 / met.max(1.0);
                (met > 0.0).then(|| FeatureProfile { missing, counts, ..FeatureProfile::default() })
            }
            MixedKind::Hashed(_) => {
                let missing = (nulls.get(i).copied().unwrap_or_default() as f64 / rows).min(1.0);
                Some(FeatureProfile { missing, ..FeatureProfile::default() })
            }
        };
        self.columns.iter().enumerate().map(of_column).collect()
    }

    /// Of column `i`, the NULLs that were met and ignored, as the model has no such category; None if it has one, or
    /// the column has no categories.
    pub fn ignored_nulls(&self, i: usize) -> Option<u64> {
        self.columns.get(i).and_then(|column| match &column.kind {
            MixedKind::Category(_, categories) => categories.ignored_nulls(),
            MixedKind::Number(_) | MixedKind::Hashed(_) => None,
        })
    }

    /// The columns of numbers.
    pub fn number_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.name.as_str())
    }

    /// The types of the columns of numbers.
    pub fn number_types(&self) -> impl Iterator<Item = NumberType> {
        self.columns.iter().filter_map(|c| if let MixedKind::Number(number) = c.kind { Some(number) } else { None })
    }

    /// The dimensions of the columns of numbers.
    pub fn number_places(&self) -> impl Iterator<Item = u32> {
        self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Number(_))).map(|c| c.first)
    }

    /// Each column, and whether it has categories.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.name.as_str(), !matches!(column.kind, MixedKind::Number(_))))
    }

    /// Has the row that was read last a category that is not one of those that are known?
    #[inline]
    pub fn has_unseen(&self) -> bool {
        self.has_unseen
    }

    /// Registers the categories of a row whose features begin with column `first`, and reads its numbers. A column that
    /// has too many categories then is hashed.
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
                MixedKind::Category(_, categories) => {
                    match value {
                        Some(value) => {
                            let place = categories.place(value, &column.name)?;
                            categories.count(place);
                        }
                        None => {
                            categories.place_of_null(imputation.as_deref_mut(), i, &column.name)?;
                            categories.count_null();
                        }
                    }
                    if categories.has_too_many() {
                        column.hash();
                    }
                }
                MixedKind::Hashed(_) if value.is_none() => meet_null(imputation.as_deref_mut(), i, &column.name)?,
                MixedKind::Hashed(_) => {}
            }
        }
        Ok(())
    }

    /// The entries of a row whose features begin with column `first`, by ascending dimension.
    pub fn read(
        &mut self,
        row: Row<'_>,
        first: usize,
        mut imputation: Option<&mut Imputation>,
    ) -> std::result::Result<&[(u32, f32)], MixedFault> {
        self.entries.clear();
        self.row_buckets.clear();
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
                MixedKind::Hashed(text) => {
                    if value.is_none() {
                        meet_null(imputation.as_deref_mut(), i, &column.name)?;
                    }
                    self.row_buckets.push(text.bucket(value, self.buckets));
                }
                MixedKind::Category(_, categories) => {
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
        let MixedColumns { entries, row_buckets, own_dim, .. } = self;
        count_buckets(row_buckets, |bucket, count| entries.push((*own_dim + bucket, count)));
        Ok(&self.entries)
    }
}

impl MixedColumn {
    fn dim(&self) -> usize {
        match &self.kind {
            MixedKind::Number(_) => 1,
            MixedKind::Category(_, categories) => categories.names.len(),
            MixedKind::Hashed(_) => 0,
        }
    }

    /// Makes a column of categories one that is hashed.
    #[cold]
    fn hash(&mut self) {
        if let MixedKind::Category(text, _) = self.kind {
            self.kind = MixedKind::Hashed(text);
        }
    }
}

/// What stands for a NULL in column `i`, which has numbers.
#[cold]
fn null_number(imputation: Option<&mut Imputation>, i: usize, name: &str) -> std::result::Result<f32, MixedFault> {
    imputation.and_then(|imputation| imputation.value(i)).ok_or_else(|| MixedFault::Null(name.to_owned()))
}

/// Column `i`, which is hashed, is NULL: a value of its own.
#[cold]
fn meet_null(imputation: Option<&mut Imputation>, i: usize, name: &str) -> std::result::Result<(), MixedFault> {
    imputation.map(|imputation| imputation.met(i)).ok_or_else(|| MixedFault::Null(name.to_owned()))
}

fn read_number(number: NumberType, value: TypedDatum<'_>, name: &str) -> std::result::Result<f32, MixedFault> {
    narrow(number.read(value)).map_err(|fault| MixedFault::Row(number_fault(fault, name.to_owned())))
}
