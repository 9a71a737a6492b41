//! Weights of whole classes: balanced, so that each class has the same weight in all, or listed by label.

use errors::{ArgumentError, Result, TrainingError, excerpt};
use options::rows::ClassWeight;
use pg::catalog::types::type_name;
use pg::executor::query::Column;
use pg::values::distinct::Distinct;

/// The weights of the classes that are met.
pub struct ClassWeights {
    /// None if balanced
    listed: Option<WeightsByLabel>,
}

/// Weights that the user has listed by label.
struct WeightsByLabel {
    labels: Distinct,
    /// by the label's number, each with its name
    entries: Vec<(String, f64)>,
}

impl ClassWeights {
    pub fn new(class_weight: &ClassWeight, column: &Column) -> Result<ClassWeights> {
        let ClassWeight::Given(weights) = class_weight else {
            return Ok(ClassWeights { listed: None });
        };
        let mut labels = Distinct::new(column.type_oid, column.collation);
        let mut entries = Vec::new();
        for (label, weight) in weights {
            match labels.add_text(label) {
                Some((_, false)) => entries.push((label.clone(), *weight)),
                Some((_, true)) => {
                    let reason = format!("names label {} twice", excerpt(label));
                    return Err(ArgumentError::InvalidOption { key: "class_weight".into(), reason }.into());
                }
                None => {
                    let (column, type_name) = (column.name.clone(), type_name(column.type_oid));
                    return Err(TrainingError::LabelValue { column, type_name, value: excerpt(label) }.into());
                }
            }
        }
        Ok(ClassWeights { listed: Some(WeightsByLabel { labels, entries }) })
    }

    /// The weights of classes of these names, 1 where none is listed; None if they are to be balanced.
    pub fn of_classes(&mut self, names: &[String]) -> std::result::Result<Option<Vec<f64>>, &str> {
        let Some(WeightsByLabel { labels, entries }) = &mut self.listed else { return Ok(None) };
        let mut are_met = vec![false; entries.len()];
        let mut of_class = |name: &String| {
            let number = labels.add_text(name).map(|(number, _)| number).filter(|number| *number < entries.len())?;
            are_met[number] = true;
            Some(entries[number].1)
        };
        let weights = names.iter().map(|name| of_class(name).unwrap_or(1.0)).collect();
        match are_met.iter().position(|is_met| !is_met) {
            Some(absent) => Err(&entries[absent].0),
            None => Ok(Some(weights)),
        }
    }
}
