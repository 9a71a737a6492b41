//! Notices that arise in several places, and those of what a decoder has counted.

use super::mixed_column::MixedKind;
use super::{Decoder, FeatureColumns};
use errors::{NAMED, some_of};
use std::ops::Range;

/// Tells of which features NULLs were imputed since the epoch began, if any were.
pub fn notice_imputed(decoder: &Decoder) {
    let Some(imputation) = decoder.imputation().filter(|imputation| imputation.counts().rows > 0) else { return };
    let counts = imputation.counts();
    let values = imputation.values().unwrap_or_default();
    let rows = decoder.decoded();
    let feature = |(i, nulls): (usize, &u64)| {
        let (name, has_categories) = named(decoder.features(), i);
        match values.get(i).filter(|_| !has_categories) {
            None => format!("{name} ({nulls}, a category of their own)"),
            Some(_) if *nulls == rows => format!("{name} (all of them, 0)"),
            Some(mean) => format!("{name} ({nulls}, the mean {mean})"),
        }
    };
    let is_single = |i: usize| !vectors(decoder.features()).any(|(_, places)| places.contains(&i));
    let features = counts.features.iter().enumerate().filter(|(i, nulls)| **nulls > 0 && is_single(*i)).map(feature);
    let vectors = vectors(decoder.features()).filter_map(|(name, places)| {
        let nulls = counts.features.get(places.start..places.end.min(counts.features.len()))?.iter().max()?;
        (*nulls > 0).then(|| format!("{name} ({nulls}, the means of its elements)"))
    });
    let features: Vec<String> = features.chain(vectors).collect();
    let more = if features.len() > NAMED { " features" } else { "" };
    pg::notice(
        format!("NULLs are imputed in {}: {}{more}", share(counts.rows, rows), some_of(&features)),
        "Predictions impute in the same way. Option nulls can be \"skip\" or \"error\" instead.",
    );
}

/// Tells how many rows are left out because of NULLs, and of how many in all, if any are.
pub fn notice_left_out(decoder: &Decoder, others: u64) {
    let left_out = decoder.skipped();
    if left_out > 0 {
        let rows = share(left_out, left_out + others);
        pg::notice(format!("{rows} are left out because they have NULLs"), None);
    }
}

/// Tells how many values were cut off in the rows that were read since the epoch began, if any were.
pub fn notice_clipped(decoder: &Decoder) {
    if let (Some(deviations), values @ 1..) = (decoder.clip(), decoder.clipped()) {
        let rows = decoder.decoded();
        pg::notice(
            format!(
                "values more than {deviations} standard deviations from the mean of their feature are clipped: \
                 {values} in {rows} rows"
            ),
            "Predictions do the same. Option winsorize can be another number of deviations, or \"none\".",
        );
    }
}

/// The share of rows with something that the model has not seen from which on it is a warning: the model says little
/// about such rows.
const MANY_UNSEEN: f64 = 0.1;

/// Tells in how many of the rows that were read there is something that the model has not seen, if there is. Where
/// there are many, a column rarely has the same value twice, and teaches nothing about other rows.
pub fn notice_unseen(decoder: &Decoder) {
    let (unseen, rows) = (decoder.unseen(), decoder.decoded());
    if unseen == 0 {
        return;
    }
    let share_of_rows = share(unseen, rows);
    if unseen as f64 >= MANY_UNSEEN * rows as f64 {
        pg::warning(
            format!("{share_of_rows} have categories or indices that the model was not trained on"),
            "They count as none of the known ones. A column whose values do not recur, such as a key or a time, is no \
             feature: leave it out. corgipile_columns() shows how many distinct values columns have.",
        );
    } else {
        pg::notice(
            format!("{share_of_rows} have categories or indices that the model was not trained on"),
            "They count as none of the known ones; with handle_unknown => 'error' they are an error.",
        );
    }
}

fn share(rows: u64, of: u64) -> String {
    match 100.0 * rows as f64 / of.max(1) as f64 {
        percent if percent < 0.05 => format!("{rows} of {of} rows (less than 0.1%)"),
        percent => format!("{rows} of {of} rows ({percent:.1}%)"),
    }
}

/// Reports features that are combinations of others, or nearly; the condition number is at least this.
pub fn notice_collinear(features: &[String], condition: f64) {
    if !features.is_empty() {
        pg::notice(
            format!(
                "features are nearly linear combinations of others (condition number {condition:.0e} or more): {}",
                some_of(features)
            ),
            "The weights of these features, and of the ones they depend on, cannot be interpreted. Leave features out, \
             or train with an l2, such as 0.001.",
        );
    }
}

/// Reports that a seed does not fix the order of the rows.
pub fn notice_open_order() {
    pg::notice(
        "rows are read in the order of another extension's scan: the same seed may give another model",
        "To fix their order, use a query with ORDER BY over unique columns as source, or copy the rows into a table.",
    );
}

/// The vectors next to other columns, and where what is imputed in them is counted.
fn vectors(features: &FeatureColumns) -> impl Iterator<Item = (&str, Range<usize>)> {
    let columns = if let FeatureColumns::Mixed(columns) = features { columns.columns() } else { &[] };
    let vectors = columns.iter().filter(|column| matches!(column.kind, MixedKind::Vector(_)));
    vectors.map(|column| (column.name.as_str(), column.position as usize..column.position as usize + column.numbers()))
}

/// A feature as the user knows it, and whether it is a column of categories; those of vectors are not asked for.
fn named(features: &FeatureColumns, i: usize) -> (String, bool) {
    match features {
        FeatureColumns::Mixed(columns) => {
            let column = columns
                .columns()
                .iter()
                .find(|column| column.position as usize == i && !matches!(column.kind, MixedKind::Vector(_)));
            column.map(|column| (column.name.clone(), !column.has_numbers())).unwrap_or_default()
        }
        features => (features.name(i), false),
    }
}
