//! The numbers among the features of columns: those of columns of numbers, and the elements of vectors.
//!
//! They are counted among themselves where rows have nothing but numbers, by feature in a model, and by *position*
//! where something stands for NULLs: there a column of categories counts as one.

use super::categories::MixedColumns;
use super::mixed_column::{MixedColumn, MixedKind};
use loss::Standardizer;
use pg::values::number::NumberType;
use std::borrow::Cow;

impl MixedColumns {
    /// Expands a scaling of the columns of numbers to all dimensions but buckets. Categories stay as they are.
    pub fn expand(&self, numbers: &Standardizer) -> Standardizer {
        let mut all =
            Standardizer { mean: allocation::zeros(self.own_dim()), scale: allocation::filled(1.0, self.own_dim()) };
        for (i, place) in self.number_places().enumerate() {
            all.mean[place as usize] = numbers.mean[i];
            all.scale[place as usize] = numbers.scale[i];
        }
        all
    }

    /// The number whose dimension this is.
    pub fn number_at(&self, dimension: usize) -> Option<Cow<'_, str>> {
        let is_it = |c: &&MixedColumn| c.number_places().contains(&(dimension as u32));
        self.columns.iter().find(is_it).map(|column| column.number_name(dimension - column.first as usize))
    }

    /// Of numbers by feature, those that are imputed in each column; 0 for categories.
    pub fn by_position(&self, features: &[f32]) -> Vec<f32> {
        let mut all = allocation::zeros(self.columns.iter().map(MixedColumn::positions).sum());
        for column in &self.columns {
            for (i, place) in column.number_places().enumerate() {
                all[column.position as usize + i] = features.get(place as usize).copied().unwrap_or_default();
            }
        }
        all
    }

    /// Expands numbers to all dimensions but buckets; 0 for categories.
    pub fn expand_numbers(&self, numbers: &[f32]) -> Vec<f32> {
        let mut all = allocation::zeros(self.own_dim());
        self.number_places().zip(numbers).for_each(|(place, number)| all[place as usize] = *number);
        all
    }

    /// The numbers among what is imputed.
    pub fn numbers_of(&self, by_position: &[f32]) -> Vec<f32> {
        let positions = self.columns.iter().flat_map(|c| c.position as usize..c.position as usize + c.numbers());
        allocation::collect(positions.map(|i| by_position.get(i).copied().unwrap_or_default()))
    }

    pub fn number_names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.columns.iter().flat_map(|column| (0..column.numbers()).map(|i| column.number_name(i)))
    }

    /// The columns of numbers, and which of the numbers each is.
    pub fn number_columns(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut before = 0;
        self.columns.iter().filter_map(move |column| {
            let place = before;
            before += column.numbers() as u32;
            matches!(column.kind, MixedKind::Number(_)).then_some((column.name.as_str(), place))
        })
    }

    /// The types of the numbers, as far as they are those of columns or arrays.
    pub fn number_types(&self) -> impl Iterator<Item = Option<NumberType>> {
        self.columns.iter().flat_map(|column| {
            let number = match &column.kind {
                MixedKind::Number(number) => Some(*number),
                MixedKind::Vector(vector) => vector.reader.element(),
                _ => None,
            };
            std::iter::repeat_n(number, column.numbers())
        })
    }

    /// The dimensions of the numbers.
    pub fn number_places(&self) -> impl Iterator<Item = u32> {
        self.columns.iter().flat_map(MixedColumn::number_places)
    }
}
