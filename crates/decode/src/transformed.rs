//! Which numbers of a row are taken by their logarithms.
//!
//! Columns of numbers are counted among themselves, because the dimensions of columns of categories are known only
//! after the preparation pass, whose rows have nothing but the numbers.

use super::features::FeatureColumns;
use errors::{ArgumentError, Result, TrainingError};
use loss::LogTransform;
use options::rows::Transform;
use serde::{Deserialize, Serialize};

/// Which numbers are taken by their logarithms.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub enum Transformed {
    #[default]
    Nothing,
    All,
    /// these columns of numbers, ascending
    Numbers(Vec<u32>),
}

impl Transformed {
    /// What was said of these features; nothing yet if it is to be chosen.
    pub fn new(transform: Option<&Transform>, features: &FeatureColumns) -> Result<Transformed> {
        let given = match transform {
            None | Some(Transform::Automatic | Transform::None) => return Ok(Transformed::Nothing),
            Some(given) => given,
        };
        if let FeatureColumns::Compressed(_) = features {
            return Err(TrainingError::NotOnCompressed("the option transform").into());
        }
        let Transform::These(columns) = given else { return Ok(Transformed::All) };
        let numbers = features.number_columns().unwrap_or_default();
        let place = |column: &String| -> Result<u32> {
            let place = numbers.iter().find(|(number, _)| number == column).map(|(_, place)| *place);
            place.ok_or_else(|| {
                let reason = format!("names column \"{column}\", which is not a numeric feature");
                ArgumentError::InvalidOption { key: "transform".into(), reason }.into()
            })
        };
        let mut places = columns.iter().map(place).collect::<Result<Vec<u32>>>()?;
        places.sort_unstable();
        places.dedup();
        Ok(Transformed::Numbers(places))
    }

    /// The transform of rows that have the columns of numbers alone, or arrays.
    pub fn of_numbers(&self) -> Option<LogTransform> {
        match self {
            Transformed::Nothing => None,
            Transformed::All => Some(LogTransform::All),
            Transformed::Numbers(places) => Some(LogTransform::Features(places.clone())),
        }
    }

    /// The numbers that it is said of; None if features are no columns, or nothing was said.
    pub fn said_of(&self, features: &FeatureColumns) -> Option<Vec<u32>> {
        if !features.are_columns() {
            return None;
        }
        match self {
            Transformed::Nothing => None,
            Transformed::All => Some((0..features.dense_dim()? as u32).collect()),
            Transformed::Numbers(places) => Some(places.clone()),
        }
    }

    pub fn of_tuples(&self, features: &FeatureColumns) -> Option<LogTransform> {
        let (FeatureColumns::Mixed(columns), Some(of_numbers)) = (features, self.of_numbers()) else {
            return self.of_numbers();
        };
        let places = (0..).zip(columns.number_places()).filter(|(i, _)| of_numbers.contains(*i));
        Some(LogTransform::Features(places.map(|(_, place)| place).collect()))
    }

    /// As option `transform` says it.
    pub fn to_option(&self, features: &FeatureColumns) -> Transform {
        match (self, features.number_names()) {
            (Transformed::Nothing, _) => Transform::None,
            (Transformed::Numbers(places), Some(names)) => {
                Transform::These(places.iter().map(|place| names[*place as usize].clone().into_owned()).collect())
            }
            _ => Transform::Log,
        }
    }
}
