//! A job that reads by itself what the server would have read for it.

use super::inbox::DataSetInfo;
use super::mixing::Rows;
use super::{JobOptions, Opening};
use crate::damaged::prepare;
use crate::dataset::{Held, fingerprint_of};
use predicate::Predicate;
use preparing::Recipe;
use source::{Cancel, Source, SourceError};
use std::sync::{Arc, Mutex, PoisonError};

/// The rows of a job.
pub(super) struct Direct {
    source: Arc<dyn Source>,
    condition: Option<(Predicate, Arc<dyn Source>)>,
    recipe: Recipe,
    info: Arc<DataSetInfo>,
    opening: Opening,
    cancel: Arc<Cancel>,
}

/// What keeps a job's rows as they are when its server has gone.
pub(super) type Holding = Arc<Mutex<Option<Box<dyn Held>>>>;

/// Holds what the server says, unless something is held already. If that fails, the job sees what there is once it
/// needs it.
pub(super) fn hold(holding: &Holding, opening: &Opening, passing: &str) {
    let mut held = holding.lock().unwrap_or_else(PoisonError::into_inner);
    if held.is_none() {
        match opening.opener.hold(passing) {
            Ok(now) => *held = now,
            Err(error) => tracing::debug!(%error, "a job's rows cannot be held"),
        }
    }
}

impl Direct {
    /// Opens the source that the data set is of: by what is held, or as the server that is there says, or again.
    pub(super) fn open(
        options: &JobOptions,
        opening: &Opening,
        info: &Arc<DataSetInfo>,
        holding: &Holding,
        cancel: &Arc<Cancel>,
    ) -> Result<Direct, SourceError> {
        let open = |text: &str| Direct::open_text(text, options, opening, info, cancel);
        let held = {
            let held = holding.lock().unwrap_or_else(PoisonError::into_inner);
            held.as_ref().map(|held| held.source().to_owned())
        };
        let passing = Some(info.passing.clone()).filter(|text| !text.is_empty());
        let same = held.into_iter().chain(passing).find_map(|text| open(&text).ok());
        same.map_or_else(|| open(&info.source), Ok)
    }

    fn open_text(
        text: &str,
        options: &JobOptions,
        opening: &Opening,
        info: &Arc<DataSetInfo>,
        cancel: &Arc<Cancel>,
    ) -> Result<Direct, SourceError> {
        let opened = opening.opener.open(text)?;
        let all = opened.columns((!info.columns.is_empty()).then_some(&info.columns))?;
        let rows: u64 = all.units().iter().map(|unit| unit.rows).sum();
        if rows != info.rows {
            let what = format!("the source has {rows} rows now, and had {} when the job began", info.rows);
            return Err(SourceError::Invalid(what));
        }
        if fingerprint_of(&*all, rows, info.all_elements()) != info.fingerprint {
            let what = "the source is another one now than when the job began: its files or its table have changed";
            return Err(SourceError::Invalid(what.to_owned()));
        }
        let source = if options.columns.is_empty() { all } else { opened.columns(Some(&options.columns))? };
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
            text => Recipe::parse(text).map_err(|error| SourceError::Invalid(format!("prepare: {error}")))?,
        };
        Ok(Direct { source, condition, recipe, info: info.clone(), opening: opening.clone(), cancel: cancel.clone() })
    }

    /// An element, as the server would give it.
    pub(super) fn read(&self, element: u32) -> Result<Rows, String> {
        let rows = self.info.rows_of(element);
        let batch = self.source.read(rows.clone(), &self.cancel).map_err(|error| error.to_string())?;
        let chosen = match &self.condition {
            None => None,
            Some((predicate, source)) => {
                let columns = source.read(rows.clone(), &self.cancel).map_err(|error| error.to_string())?;
                Some(predicate.chosen(&columns).map_err(|error| error.to_string())?)
            }
        };
        let callables = self.opening.callables.as_deref();
        let (batch, damaged) = prepare(&self.recipe, batch, &rows, callables, &self.cancel)?;
        match damaged.why_not(chosen.as_ref()) {
            Some(why) => Err(why.to_owned()),
            None => Ok(Rows { batch, chosen }),
        }
    }
}
