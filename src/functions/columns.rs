//! corgipile_columns(): what a training would make of each column of a source, and why.

use choices::Choice;
use decode::column_uses::{ColumnUse, column_uses};
use decode::default_features::{Searched, Takes};
use decode::sample::{ColumnSample, Sample, Values};
use decode::{HashRule, column};
use errors::{OrRaise, Result};
use options::call::TrainArguments;
use options::request::Request;
use options::rows::Hashing;
use pg::call::function::Call;
use pg::catalog::types::type_name;
use pgrx::prelude::*;
use scan::Source;

/// Returns a row for each column of the source.
#[pg_extern(sql = false)]
fn corgipile_columns(call: Call<'_>) {
    columns(call).or_raise();
}

/// Its arguments, in its order.
const ARGUMENTS: [&str; 4] = ["source", "label", "features", "options"];
const EXAMPLE: usize = 40;

fn columns(call: Call<'_>) -> Result<()> {
    let mut arguments = TrainArguments::named(&call.arguments(), &ARGUMENTS)?;
    let (options, names_label) = (arguments.take("options"), arguments.says("label").is_some());
    let request = Request::without_choices(arguments.with_options(options, &ARGUMENTS)?)?;
    let mut source = Source::resolve(&request.source)?;
    if names_label {
        source.column(&request.label)?;
    }
    let given = request.features.as_deref();
    let others = request.other_columns();
    let own = source.columns().to_vec();
    source.add_parts(given.unwrap_or_default());
    given.iter().flat_map(|names| names.iter()).try_for_each(|name| check_feature(&source, name))?;
    let sample = source.sample_all()?;
    let searched = Searched {
        columns: &own,
        from: source.from(),
        relation: source.relation(),
        label: &request.label,
        others: &others,
        takes: Takes::All(Some(&request.options.date_parts)),
        sample: &|| Ok(sample.as_ref()),
    };
    let automatic = Hashing::default();
    let rule = HashRule { kind: request.kind, hashing: request.options.hash.as_ref().unwrap_or(&automatic) };
    let uses = column_uses(given, &searched, rule)?;
    let based_on = sample.as_ref().map(based_on);
    call.return_rows(uses.into_iter().map(|column_use| {
        let ColumnUse { column, facts, role, why, expression } = column_use;
        let sampled = sample.as_ref().and_then(|sample| Some((sample, sample.column(&column.name)?)));
        let null_fraction = sampled.map(|(sample, column)| column.nulls as f64 / sample.rows.max(1) as f64);
        [
            column.name.clone().into(),
            type_name(column.type_oid).into(),
            role.name().into(),
            why.into(),
            null_fraction.into(),
            facts.distinct.map(|known| known.distinct.round() as i64).into(),
            sampled.and_then(|(_, column)| example(column)).into(),
            expression.into(),
            based_on.clone().into(),
        ]
    }));
    Ok(())
}

/// Is there such a column? Signs of default features are checked where they are read.
fn check_feature(source: &Source, name: &str) -> Result<()> {
    let is_sign = name == "*" || name.starts_with('-');
    if is_sign { Ok(()) } else { column(source.columns(), name).map(|_| ()) }
}

/// Which rows were looked at, for people.
fn based_on(sample: &Sample) -> String {
    match sample.describe() {
        None => format!("all {} rows", sample.rows),
        Some(described) => described.trim_start_matches("by ").to_owned(),
    }
}

/// A value of the column, for people.
fn example(column: &ColumnSample) -> Option<String> {
    let text = match &column.values {
        Values::Numbers(numbers) if numbers.counts.values == 0 => return None,
        Values::Numbers(numbers) if numbers.min == numbers.max => number(numbers.min),
        Values::Numbers(numbers) => format!("{} to {}", number(numbers.min), number(numbers.max)),
        Values::Texts(texts) => texts.example.clone()?,
        Values::Times(_, example) | Values::Other(example) => example.clone()?,
    };
    Some(match text.char_indices().nth(EXAMPLE) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    })
}

/// A number in as few digits as its type has.
fn number(number: f64) -> String {
    match number as f32 {
        single if f64::from(single) == number => single.to_string(),
        _ => number.to_string(),
    }
}
