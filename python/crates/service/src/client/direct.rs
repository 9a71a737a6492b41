//! A job that reads by itself what the server would have read for it.

use super::inbox::DataSetInfo;
use super::mixing::Rows;
use super::{JobOptions, Opening};
use crate::dataset::DataSet;
use crate::error::ServiceError;
use predicate::Predicate;
use preparing::Recipe;
use source::{Cancel, Source, SourceError};
use std::sync::Arc;

/// The rows of a job.
pub(super) struct Direct {
    source: Arc<dyn Source>,
    condition: Option<(Predicate, Arc<dyn Source>)>,
    recipe: Recipe,
    info: Arc<DataSetInfo>,
    opening: Opening,
    cancel: Arc<Cancel>,
}

impl Direct {
    /// Opens the source that the data set is of.
    pub(super) fn open(
        options: &JobOptions,
        opening: &Opening,
        info: &Arc<DataSetInfo>,
        cancel: Arc<Cancel>,
    ) -> Result<Direct, SourceError> {
        let opened = opening.opener.open(&info.source)?;
        let data_set = DataSet::new(opened.clone(), info.columns.clone(), &info.element_size)?;
        if data_set.fingerprint() != info.fingerprint {
            let what = "its rows are not those that the server has read: files changed, or a table's snapshot has gone";
            return Err(SourceError::Invalid(what.to_owned()));
        }
        let source = data_set.source(&options.columns)?;
        let condition = if options.filter.trim().is_empty() {
            None
        } else {
            let schema = opened.columns(None)?.schema();
            let predicate = Predicate::parse(options.filter.trim(), &schema)
                .map_err(|error| SourceError::Invalid(format!("where: {error}")))?;
            let of = opened.columns((!predicate.columns().is_empty()).then(|| predicate.columns()))?;
            Some((predicate, of))
        };
        let recipe = match options.recipe.as_str() {
            "" => Recipe::default(),
            text => Recipe::parse(text).map_err(|error| ServiceError::Refused(format!("prepare: {error}")))?,
        };
        Ok(Direct { source, condition, recipe, info: info.clone(), opening: opening.clone(), cancel })
    }

    /// An element, as the server would give it.
    pub(super) fn read(&self, element: u32) -> Result<Rows, String> {
        let rows = self.info.rows_of(element);
        let batch = self.source.read(rows.clone(), &self.cancel).map_err(|error| error.to_string())?;
        let chosen = match &self.condition {
            None => None,
            Some((predicate, source)) => {
                let columns = source.read(rows, &self.cancel).map_err(|error| error.to_string())?;
                Some(predicate.chosen(&columns).map_err(|error| error.to_string())?)
            }
        };
        let callables = self.opening.callables.as_deref();
        let batch = self.recipe.apply(batch, callables, &self.cancel).map_err(|error| error.to_string())?;
        Ok(Rows { batch, chosen })
    }
}
