//! What is told of rows with NULLs, of values far out, and of what a model has not seen.

use super::decoder::{Decoder, FeatureColumns};
use crate::errors::{FilledFeature, Notice};
use pg::report_notice;

/// Tells of which features NULLs were imputed since the epoch began, if any were.
pub fn notice_imputed(decoder: &Decoder) {
    let Some(imputation) = decoder.imputation().filter(|imputation| imputation.counts().rows > 0) else { return };
    let counts = imputation.counts();
    let values = imputation.values().unwrap_or_default();
    let rows = decoder.decoded();
    let feature = |(i, nulls): (usize, &u64)| {
        let (name, has_categories) = named(decoder.features(), i);
        let value = values.get(i).copied().filter(|_| !has_categories);
        FilledFeature { name, nulls: *nulls, value, is_empty: *nulls == rows }
    };
    let features = counts.features.iter().enumerate().filter(|(_, nulls)| **nulls > 0).map(feature).collect();
    report_notice(Notice::Imputed { rows: counts.rows, of: rows, features });
}

/// Tells how many rows are left out because of NULLs beside so many that are not, if any are.
pub fn notice_left_out(decoder: &Decoder, others: u64) {
    let left_out = decoder.skipped();
    if left_out > 0 {
        report_notice(Notice::LeftOut { rows: left_out, of: left_out + others });
    }
}

/// Tells how many values were cut off in the rows that were read since the epoch began, if any were.
pub fn notice_clipped(decoder: &Decoder) {
    if let (Some(deviations), values @ 1..) = (decoder.clip(), decoder.clipped()) {
        report_notice(Notice::Clipped { deviations, values, rows: decoder.decoded() });
    }
}

/// Tells in how many of the rows that were read there is something that the model has not seen, if there is.
pub fn notice_unseen(decoder: &Decoder) {
    if decoder.unseen() > 0 {
        report_notice(Notice::Unseen { rows: decoder.unseen(), of: decoder.decoded() });
    }
}

/// A feature as the user knows it, and whether it is a column of categories.
fn named(features: &FeatureColumns, i: usize) -> (String, bool) {
    match features {
        FeatureColumns::Mixed(columns) => {
            columns.names().nth(i).map(|(name, has_categories)| (name.to_owned(), has_categories)).unwrap_or_default()
        }
        features => (features.name(i), false),
    }
}
