//! What was fitted to a model's decisions on rows that it has not learned from, in a row of the table.

use super::table::ModelRow;
use crate::options::entry::Models;
use sgd::ModelKind;
use sgd::conformal::Calibration;
use sgd::platt::Sigmoids;

/// The scores of rows that were held out of training; or what is wrong with them.
pub(super) fn calibration(row: &ModelRow) -> std::result::Result<Option<Calibration>, &'static str> {
    const FIT: &str = "calibration_rows and calibration_scores do not fit each other";
    match (row.get::<i64>(c"calibration_rows"), row.floats::<f64>(c"calibration_scores")) {
        (None, None) => Ok(None),
        (Some(rows), Some(Some(scores))) => {
            let rows = u64::try_from(rows).map_err(|_| FIT)?;
            Calibration::new(rows, scores).map(Some).map_err(|_| FIT)
        }
        _ => Err(FIT),
    }
}

/// The sigmoids of a model of so many outputs; or what is wrong with them.
pub(super) fn sigmoids(
    row: &ModelRow,
    kind: ModelKind,
    outputs: usize,
) -> std::result::Result<Option<Sigmoids>, &'static str> {
    match (row.floats::<f64>(c"sigmoid_slopes"), row.floats::<f64>(c"sigmoid_offsets")) {
        (None, None) => Ok(None),
        (Some(Some(slopes)), Some(Some(offsets)))
            if Models::WithoutProbabilities.include(kind) && slopes.len() == outputs =>
        {
            Sigmoids::new(&slopes, &offsets).map(Some).ok_or(SIGMOIDS)
        }
        _ => Err(SIGMOIDS),
    }
}

const SIGMOIDS: &str = "sigmoid_slopes and sigmoid_offsets do not fit the model";
