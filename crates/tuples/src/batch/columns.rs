//! What a tuple has besides its row: label, weight, tag, and the label in double precision.

use crate::OutOfMemory;

/// The columns, by place.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) labels: Vec<f32>,
    /// None: all weights are 1
    pub(super) weights: Option<Vec<f32>>,
    /// None: no one wants any
    pub(super) tags: Option<Vec<u32>>,
    /// the labels in double precision; None: no one wants them
    pub(super) exact: Option<Vec<f64>>,
}

impl Columns {
    #[inline]
    pub(super) fn tuple_bytes(&self) -> usize {
        let exact = if self.exact.is_some() { size_of::<f64>() } else { 0 };
        exact + size_of::<f32>() * (1 + usize::from(self.weights.is_some()) + usize::from(self.tags.is_some()))
    }

    /// Tuples that fit into all columns without another allocation.
    #[inline]
    pub(super) fn capacity(&self) -> usize {
        let labels = self.labels.capacity();
        let labels = self.weights.as_ref().map_or(labels, |weights| weights.capacity().min(labels));
        let labels = self.exact.as_ref().map_or(labels, |exact| exact.capacity().min(labels));
        self.tags.as_ref().map_or(labels, |tags| tags.capacity().min(labels))
    }

    /// Makes room for `more` tuples.
    pub(super) fn reserve(&mut self, more: usize, error: OutOfMemory) -> Result<(), OutOfMemory> {
        allocation::try_reserve_exact(&mut self.labels, more).map_err(|_| error)?;
        if let Some(weights) = &mut self.weights {
            allocation::try_reserve_exact(weights, more).map_err(|_| error)?;
        }
        if let Some(tags) = &mut self.tags {
            allocation::try_reserve_exact(tags, more).map_err(|_| error)?;
        }
        if let Some(exact) = &mut self.exact {
            allocation::try_reserve_exact(exact, more).map_err(|_| error)?;
        }
        Ok(())
    }

    /// Appends tuples with this label, weight 1 and tag 0, until there are that many. There is room for them.
    #[inline]
    pub(super) fn extend_to(&mut self, len: usize, label: f32) {
        self.labels.resize(len, label);
        if let Some(weights) = &mut self.weights {
            weights.resize(len, 1.0);
        }
        if let Some(tags) = &mut self.tags {
            tags.resize(len, 0);
        }
        if let Some(exact) = &mut self.exact {
            exact.resize(len, label.into());
        }
    }

    /// Removes the tuples behind the first `len`.
    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.labels.truncate(len);
        if let Some(weights) = &mut self.weights {
            weights.truncate(len);
        }
        if let Some(tags) = &mut self.tags {
            tags.truncate(len);
        }
        if let Some(exact) = &mut self.exact {
            exact.truncate(len);
        }
    }

    /// Puts tuple `from` also where tuple `to` is.
    #[inline]
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        self.labels[to] = self.labels[from];
        if let Some(weights) = &mut self.weights {
            weights[to] = weights[from];
        }
        if let Some(tags) = &mut self.tags {
            tags[to] = tags[from];
        }
        if let Some(exact) = &mut self.exact {
            exact[to] = exact[from];
        }
    }

    /// Makes the columns copies of these, without tags and exact labels.
    pub(super) fn copy_from(&mut self, labels: &[f32], weights: Option<&[f32]>) -> Result<(), OutOfMemory> {
        (self.tags, self.exact) = (None, None);
        copy(&mut self.labels, labels)?;
        self.weights = match (self.weights.take(), weights) {
            (_, None) => None,
            (old, Some(weights)) => {
                let mut copied = old.unwrap_or_default();
                copy(&mut copied, weights)?;
                Some(copied)
            }
        };
        Ok(())
    }
}

/// Makes `to` a copy of `from`.
fn copy<T: Copy>(to: &mut Vec<T>, from: &[T]) -> Result<(), OutOfMemory> {
    to.clear();
    allocation::try_reserve(to, from.len())?;
    to.extend_from_slice(from);
    Ok(())
}
