//! Columns of numbers, vectors, categories and bags of words: categories one-hot, a dimension per category, or hashed.
//!
//! The categories are found in a pass of their own, after which their dimensions follow the type's order. A column with
//! too many of them is hashed from then on, and those that were found are forgotten: memory stays bounded. Nothing else
//! that the pass measures depends on categories, whose dimensions it does not know yet. Rows are sparse if a column has
//! categories or words: they have an entry per number, 0 or not, one for each category, and one for each bucket.
//! Buckets come last, and all hashed columns share them.

use super::bag::Bag;
use super::category_column::{CategoryColumn, CategoryState, KnownCategories, MixedFault};
use super::hashed::{HashRule, HashedText, suitable_buckets};
use super::imputation::Imputation;
use super::mixed_column::{
    BagSquares, FoundColumn, MixedColumn, MixedKind, VectorColumn, bag_fault, meet_null, null_number, read_number,
    vector_fault,
};
use errors::RowFault;
use loss::ModelKind;
use model::{Buckets, Coding, Elements};
use options::rows::{Hashing, ToHash};
use pg::executor::query::Column;
use pg::tuples::row::Row;
use pg::values::array::ArrayFault;
use pg::values::number::NumberType;
use pg::values::vector::VectorReader;
use sgd::profile::FeatureProfile;
use tuples::add_up_buckets;

pub struct MixedColumns {
    pub(super) columns: Vec<MixedColumn>,
    /// dimensions of all columns, without buckets
    own_dim: u32,
    /// that hashed columns share, if there are some
    buckets: u32,
    /// the kind of the model whose buckets are to suit it
    chooses_for: Option<ModelKind>,
    /// entries of a row, and its buckets
    entries: Vec<(u32, f32)>,
    row_buckets: Vec<(u32, f32)>,
    /// room for the numbers of a vector, and for the hashes of a bag
    vector: Vec<f32>,
    hashes: Vec<u64>,
    /// does the row under way have a category that counts as none?
    has_unseen: bool,
}

impl MixedColumns {
    /// Columns with a number type hold numbers, the others vectors, bags or categories. The categories are still to be
    /// found, or are those of a model, which knows what it has hashed.
    pub fn new(
        columns: &[(&Column, Option<NumberType>)],
        known: Option<KnownCategories>,
        rule: HashRule,
    ) -> MixedColumns {
        let coding = |name: &str| {
            known.and_then(|(known, _)| known.iter().find(|(column, _)| column == name)).map(|(_, coding)| coding)
        };
        let buckets_of = |name: &str| match coding(name) {
            Some(Coding::Hashed(hashed)) => Some(hashed.buckets),
            _ => None,
        };
        let kind = |column: &Column, number: Option<NumberType>| {
            if let Some(number) = number {
                return MixedKind::Number(number);
            }
            if let Some(reader) = VectorReader::new(column.type_oid) {
                let of_model = match coding(&column.name) {
                    Some(Coding::Vector(Elements { elements })) => Some(*elements),
                    _ => None,
                };
                return MixedKind::Vector(VectorColumn { reader, len: of_model.or(column.length) });
            }
            if let Some(bag) = Bag::of_column(column) {
                return MixedKind::Bag(bag, BagSquares::default());
            }
            let text = HashedText::new(column);
            match buckets_of(&column.name).is_some() || (known.is_none() && rule.names(&column.name)) {
                true => MixedKind::Hashed(text),
                false => MixedKind::Category(text, Box::new(CategoryColumn::new(column, known, rule.limit()))),
            }
        };
        let column = |(column, number): &(&Column, Option<NumberType>)| MixedColumn {
            name: column.name.clone(),
            first: 0,
            position: 0,
            kind: kind(column, *number),
        };
        let buckets = columns.iter().find_map(|(column, _)| buckets_of(&column.name));
        let mut mixed = MixedColumns {
            columns: columns.iter().map(column).collect(),
            own_dim: 0,
            buckets: buckets.or(rule.hashing.buckets).unwrap_or_else(|| suitable_buckets(rule.kind, 1)),
            chooses_for: rule.hashing.buckets.is_none().then_some(rule.kind),
            entries: Vec::new(),
            row_buckets: Vec::new(),
            vector: Vec::new(),
            hashes: Vec::new(),
            has_unseen: false,
        };
        mixed.number();
        mixed
    }

    /// Gives the columns their dimensions.
    fn number(&mut self) {
        let (mut first, mut position) = (0, 0);
        for column in &mut self.columns {
            (column.first, column.position) = (first, position);
            first += column.dim() as u32;
            position += column.positions() as u32;
        }
        self.own_dim = first;
    }

    /// Are the lengths of all vectors known?
    #[inline]
    pub fn has_lengths(&self) -> bool {
        self.columns.iter().all(|c| !matches!(&c.kind, MixedKind::Vector(VectorColumn { len: None, .. })))
    }

    /// Takes the lengths of vectors that are not known yet from a row whose features begin with column `first`.
    #[cold]
    pub fn learn_lengths(&mut self, row: Row<'_>, first: usize) {
        for (i, column) in self.columns.iter_mut().enumerate() {
            if let MixedKind::Vector(VectorColumn { reader, len: len @ None }) = &mut column.kind {
                *len = row.get(first + i).and_then(|vector| reader.len(vector).ok()).filter(|len| *len > 0);
            }
        }
        self.number();
    }

    /// Why a row has no numbers as long as a length is not known: the first vector is NULL, or none.
    #[cold]
    pub fn no_length(&self, row: Row<'_>, first: usize) -> MixedFault {
        for (i, column) in self.columns.iter().enumerate() {
            if let MixedKind::Vector(VectorColumn { reader, len: None }) = &column.kind {
                return match row.get(first + i) {
                    None => MixedFault::NoLength,
                    Some(vector) => {
                        vector_fault(reader.len(vector).err().unwrap_or(ArrayFault::Length(0)), 0, &column.name)
                    }
                };
            }
        }
        MixedFault::NoLength
    }

    /// Have rows an entry for each number alone, so that they are dense?
    pub fn are_dense(&self) -> bool {
        self.columns.iter().all(MixedColumn::has_numbers)
    }

    /// What the features of a row that are not numbers add to |x|², in the mean of the rows that were met.
    pub fn mean_square_of_others(&self) -> f64 {
        let of_column = |column: &MixedColumn| match &column.kind {
            MixedKind::Number(_) | MixedKind::Vector(_) => 0.0,
            // of each column of categories, a tuple has one feature of 1
            MixedKind::Category(..) | MixedKind::Hashed(_) => 1.0,
            MixedKind::Bag(_, squares) => squares.mean(),
        };
        self.columns.iter().map(of_column).sum()
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
        self.columns.iter().filter(|column| column.is_hashed())
    }

    pub fn bags(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|c| matches!(c.kind, MixedKind::Bag(..))).map(|column| column.name.as_str())
    }

    /// Which columns are hashed, and into how many buckets, as option `hash` says it.
    pub fn hashing(&self) -> Hashing {
        let columns: Vec<String> = self.hashed().map(|column| column.name.clone()).collect();
        match columns.is_empty() {
            true => Hashing { buckets: None, columns: ToHash::Nothing },
            false => Hashing { buckets: Some(self.buckets), columns: ToHash::These(columns) },
        }
    }

    /// How many numbers a row has.
    pub fn numbers(&self) -> usize {
        self.columns.iter().map(MixedColumn::numbers).sum()
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

    /// Takes over what was found in another process, of each column that is no number.
    pub fn adopt(&mut self, codings: &[Coding]) {
        let columns = self.columns.iter_mut().filter(|column| !matches!(column.kind, MixedKind::Number(_)));
        for (column, coding) in columns.zip(codings) {
            match (&mut column.kind, coding) {
                (MixedKind::Category(_, categories), Coding::OneHot(names)) => {
                    categories.set_names(names.clone());
                    categories.state = CategoryState::Prepared;
                }
                (MixedKind::Vector(vector), Coding::Vector(Elements { elements })) => {
                    vector.len = Some(*elements).filter(|len| *len > 0);
                }
                (_, Coding::Hashed(Buckets { buckets, .. })) => {
                    column.hash();
                    self.buckets = *buckets;
                }
                _ => {}
            }
        }
        self.number();
    }

    /// What was found so far in each column that is no number.
    pub fn found(&self) -> Vec<FoundColumn> {
        self.columns.iter().filter_map(MixedColumn::found).collect()
    }

    /// Meets what another process has found in the same columns.
    pub fn unite(&mut self, found: &[FoundColumn]) -> std::result::Result<(), RowFault> {
        let mut columns = self.columns.iter_mut().filter(|column| !matches!(column.kind, MixedKind::Number(_)));
        columns.by_ref().zip(found).try_for_each(|(column, found)| column.unite(found))?;
        self.number();
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

    pub fn has_categories(&self) -> bool {
        self.columns.iter().any(|column| matches!(column.kind, MixedKind::Category(..) | MixedKind::Hashed(_)))
    }

    /// How the values of the columns that are no numbers become features, in the columns' sequence.
    pub fn categories(&self) -> Vec<(String, Coding)> {
        let of_column = |column: &MixedColumn| Some((column.name.clone(), column.coding(self.buckets)?));
        self.columns.iter().filter_map(of_column).collect()
    }

    /// What a pass has met, column by column, with these of the columns of numbers; None if it has not counted
    /// categories. `nulls` are counted by column.
    pub fn profile(&self, numbers: Vec<FeatureProfile>, rows: u64, nulls: &[u64]) -> Option<Vec<FeatureProfile>> {
        let mut numbers = numbers.into_iter();
        let rows = rows.max(1) as f64;
        let mut profile = Vec::new();
        for column in &self.columns {
            match &column.kind {
                MixedKind::Number(_) | MixedKind::Vector(_) => {
                    let before = profile.len();
                    profile.extend(numbers.by_ref().take(column.numbers()));
                    if profile.len() - before < column.numbers() {
                        return None;
                    }
                }
                MixedKind::Category(_, categories) => {
                    let (counts, nulls) = categories.counts();
                    let met = counts.iter().sum::<u64>() as f64;
                    if met == 0.0 {
                        return None;
                    }
                    profile.push(FeatureProfile { missing: nulls as f64 / met, counts, ..FeatureProfile::default() });
                }
                MixedKind::Hashed(_) | MixedKind::Bag(..) => {
                    let nulls = nulls.get(column.position as usize).copied().unwrap_or_default();
                    let missing = (nulls as f64 / rows).min(1.0);
                    profile.push(FeatureProfile { missing, ..FeatureProfile::default() });
                }
            }
        }
        Some(profile)
    }

    /// At position `i`, the NULLs that were met and ignored, as the model has no such category; None if it has one, or
    /// the column has no categories.
    pub fn ignored_nulls(&self, i: usize) -> Option<u64> {
        match &self.columns.iter().find(|column| column.position as usize == i)?.kind {
            MixedKind::Category(_, categories) => categories.ignored_nulls(),
            _ => None,
        }
    }

    /// Each column, and whether it has categories.
    pub fn names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.columns.iter().map(|column| (column.name.as_str(), !column.has_numbers()))
    }

    pub fn columns(&self) -> &[MixedColumn] {
        &self.columns
    }

    /// Has the row that was read last a category that is not one of those that are known?
    #[inline]
    pub fn has_unseen(&self) -> bool {
        self.has_unseen
    }

    /// Registers the categories of a row whose features begin with column `first`, and reads its numbers, all of which
    /// have their lengths. A column that has too many categories then is hashed.
    pub fn prepare(
        &mut self,
        row: Row<'_>,
        first: usize,
        numbers: &mut [f32],
        mut imputation: Option<&mut Imputation>,
    ) -> std::result::Result<(), MixedFault> {
        let mut place = 0;
        for (i, column) in self.columns.iter_mut().enumerate() {
            let (value, position) = (row.get(first + i), column.position as usize);
            match &mut column.kind {
                MixedKind::Number(number) => {
                    numbers[place] = match value {
                        Some(value) => read_number(*number, value, &column.name)?,
                        None => null_number(imputation.as_deref_mut(), position, &column.name)?,
                    };
                    place += 1;
                }
                MixedKind::Vector(vector) => {
                    let out = &mut numbers[place..place + vector.len.unwrap_or_default()];
                    vector.read(value, out, (imputation.as_deref_mut(), position), &column.name)?;
                    place += out.len();
                }
                MixedKind::Category(_, categories) => {
                    match value {
                        Some(value) => {
                            let place = categories.place(value, &column.name)?;
                            categories.count(place);
                        }
                        None => {
                            categories.place_of_null(imputation.as_deref_mut(), position, &column.name)?;
                            categories.count_null();
                        }
                    }
                    if categories.has_too_many() {
                        column.hash();
                    }
                }
                MixedKind::Bag(bag, squares) => {
                    let mut sum = 1.0;
                    match value {
                        Some(value) => {
                            sum = 0.0;
                            let square = |_, value: f32| sum += f64::from(value).powi(2);
                            bag.read(value, &mut self.hashes, square)
                                .map_err(|fault| bag_fault(fault, &column.name))?;
                        }
                        None => meet_null(imputation.as_deref_mut(), position, &column.name)?,
                    }
                    squares.add(sum);
                }
                MixedKind::Hashed(_) if value.is_none() => {
                    meet_null(imputation.as_deref_mut(), position, &column.name)?;
                }
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
            let (value, position) = (row.get(first + i), column.position as usize);
            match &mut column.kind {
                MixedKind::Number(number) => {
                    let number = match value {
                        Some(value) => read_number(*number, value, &column.name)?,
                        None => null_number(imputation.as_deref_mut(), position, &column.name)?,
                    };
                    self.entries.push((column.first, number));
                }
                MixedKind::Vector(vector) => {
                    allocation::resize(&mut self.vector, vector.len.unwrap_or_default(), 0.0);
                    vector.read(value, &mut self.vector, (imputation.as_deref_mut(), position), &column.name)?;
                    self.entries.extend((column.first..).zip(self.vector.iter().copied()));
                }
                MixedKind::Hashed(text) => {
                    if value.is_none() {
                        meet_null(imputation.as_deref_mut(), position, &column.name)?;
                    }
                    self.row_buckets.push((text.bucket(value, self.buckets), 1.0));
                }
                MixedKind::Bag(bag, _) => match value {
                    Some(value) => {
                        let pushed = bag.push(value, self.buckets, &mut self.hashes, &mut self.row_buckets);
                        pushed.map_err(|fault| bag_fault(fault, &column.name))?;
                    }
                    None => {
                        meet_null(imputation.as_deref_mut(), position, &column.name)?;
                        self.row_buckets.push((bag.null(self.buckets), 1.0));
                    }
                },
                MixedKind::Category(_, categories) => {
                    let place = match value {
                        Some(value) => categories.place(value, &column.name)?,
                        None => categories.place_of_null(imputation.as_deref_mut(), position, &column.name)?,
                    };
                    match place {
                        Some(place) => self.entries.push((column.first + place, 1.0)),
                        None => self.has_unseen = true,
                    }
                }
            }
        }
        let MixedColumns { entries, row_buckets, own_dim, .. } = self;
        add_up_buckets(row_buckets, |bucket, sum| entries.push((*own_dim + bucket, sum)));
        Ok(&self.entries)
    }
}
