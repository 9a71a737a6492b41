//! Weights of whole classes: balanced, so that each class has the same weight in all, or listed by label.

use crate::errors::{ArgumentError, Result, TrainingError, excerpt};
use crate::options::rows::ClassWeight;
use pg::catalog::types::type_name;
use pg::executor::query::Column;
use pg::values::distinct::Distinct;
use pg::values::typed::TypedDatum;

/// The weights of the classes that are met.
pub struct ClassWeights {
    /// by the number of the class
    weights: Vec<f32>,
    /// None if balanced
    listed: Option<WeightsByLabel>,
}

/// Weights that the user has listed by label.
struct WeightsByLabel {
    labels: Distinct,
    /// by the label's number
    entries: Vec<LabelWeight>,
}

struct LabelWeight {
    label: String,
    weight: f32,
    met: bool,
}

impl LabelWeight {
    /// A class has this label.
    fn meet(&mut self) -> f32 {
        self.met = true;
        self.weight
    }
}

impl ClassWeights {
    /// Weights for the values of this column.
    ///
    /// # Errors
    /// [`TrainingError::LabelValue`] if a label cannot be one of the column's type,
    /// [`ArgumentError::InvalidOption`] if it is listed twice.
    pub fn new(class_weight: &ClassWeight, column: &Column) -> Result<ClassWeights> {
        let ClassWeight::Given(weights) = class_weight else {
            return Ok(ClassWeights { weights: Vec::new(), listed: None });
        };
        let mut labels = Distinct::new(column.type_oid, column.collation);
        let mut entries = Vec::new();
        for (label, weight) in weights {
            match labels.add_text(label) {
                Some((_, false)) => {
                    entries.push(LabelWeight { label: label.clone(), weight: *weight as f32, met: false })
                }
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
        Ok(ClassWeights { weights: Vec::new(), listed: Some(WeightsByLabel { labels, entries }) })
    }

    /// Do the weights depend on how many rows each class has?
    pub fn need_counts(&self) -> bool {
        self.listed.is_none()
    }

    /// The next class was met for the first time.
    pub fn met(&mut self, label: TypedDatum<'_>) {
        let listed = self.listed.as_mut().and_then(|listed| Some(&mut listed.entries[listed.labels.find(label)?]));
        self.weights.push(listed.map_or(1.0, LabelWeight::meet));
    }

    /// The classes, by number, are those of a model, of these names; where rows are counted, their weights are still to
    /// come.
    pub fn meet_known<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        let mut of_name = |name| {
            let listed = self.listed.as_mut()?;
            let (i, _) = listed.labels.add_text(name)?;
            listed.entries.get_mut(i).map(LabelWeight::meet)
        };
        self.weights = names.map(|name| of_name(name).unwrap_or(1.0)).collect();
    }

    /// All rows have been read. `order` has the classes, by when they were met, in their final sequence, and `counts`
    /// their rows by when they were met.
    pub fn close(&mut self, order: &[u32], counts: &[u64]) {
        if self.need_counts() {
            let (rows, classes) =
                (counts.iter().sum::<u64>() as f64, counts.iter().filter(|count| **count > 0).count());
            // a class without rows has nothing to weigh
            let balanced =
                |count: &u64| if *count > 0 { (rows / (classes as f64 * *count as f64)) as f32 } else { 0.0 };
            self.weights = counts.iter().map(balanced).collect();
        }
        self.weights = order.iter().map(|i| self.weights[*i as usize]).collect();
    }

    /// The weight of a class.
    #[inline]
    pub fn of_class(&self, class: usize) -> f32 {
        self.weights[class]
    }

    /// The weights of all classes.
    pub fn all(&self) -> &[f32] {
        &self.weights
    }

    /// Says of each listed label whether it was met.
    pub fn are_met(&self) -> Vec<bool> {
        self.listed.iter().flat_map(|listed| &listed.entries).map(|entry| entry.met).collect()
    }

    /// Takes over the weights of all classes, and which of the listed labels were met.
    pub fn set_all(&mut self, weights: Vec<f32>, met: &[bool]) {
        self.weights = weights;
        let entries = self.listed.iter_mut().flat_map(|listed| &mut listed.entries);
        entries.zip(met).for_each(|(entry, met)| entry.met = *met);
    }

    /// Another process has met these of the listed labels, and a class that was not met here has this weight.
    pub fn unite(&mut self, met: &[bool], new: impl Iterator<Item = f32>) {
        self.weights.extend(new);
        let entries = self.listed.iter_mut().flat_map(|listed| &mut listed.entries);
        entries.zip(met).for_each(|(entry, met)| entry.met |= *met);
    }

    /// A listed label that was not met.
    pub fn not_met(&self) -> Option<&str> {
        let not_met = self.listed.as_ref()?.entries.iter().find(|entry| !entry.met);
        not_met.map(|entry| entry.label.as_str())
    }
}
