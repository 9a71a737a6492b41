//! corgipile_importance(): by how much a model's score drops when a column's values are permuted among the rows.

use super::model_functions::model_and_source;
use errors::{ArgumentError, OrRaise, Result, TrainingError};
use model::Policies;
use options::shuffling::Shuffling;
use pg::call::function::Call;
use pg::check_for_interrupts;
use pgrx::prelude::*;
use scan::Buffers;
use sgd::Importance;
use shuffle::Strategy;
use train::like;
use train::model_rows::{ModelRows, tell_of_rows};
use tuples::{Batch, TupleSource};

#[pg_extern(sql = false)]
fn corgipile_importance(call: Call<'_>) {
    let rows = importance(call).or_raise().into_iter();
    call.return_rows(rows.map(|(feature, importance, deviation, effect)| {
        [feature.into(), importance.into(), deviation.into(), effect.into()]
    }));
}

type Row = (String, f64, f64, Option<f64>);

struct Asked {
    repeats: i32,
    seed: i64,
    max_rows: i32,
}

/// Bytes of decoded rows that are looked at: each permutation makes a copy of them.
const MAX_BYTES: usize = 128 << 20;

impl Asked {
    fn of_call(call: Call<'_>) -> Asked {
        let (repeats, seed, max_rows) = (call.get(2), call.get(3), call.get(4));
        Asked { repeats: repeats.unwrap_or(5), seed: seed.unwrap_or(0), max_rows: max_rows.unwrap_or(100_000) }
    }

    fn check(&self) -> Result<()> {
        let out_of_range = [("repeats", self.repeats, 1..=10_000), ("max_rows", self.max_rows, 2..=10_000_000)];
        match out_of_range.into_iter().find(|(_, given, range)| !range.contains(given)) {
            Some((argument, given, range)) => {
                let reason = format!("{given} is not between {} and {}", range.start(), range.end());
                Err(ArgumentError::InvalidArgument { argument, reason, hint: None }.into())
            }
            None => Ok(()),
        }
    }
}

fn importance(call: Call<'_>) -> Result<Vec<Row>> {
    let (model, source) = model_and_source(call)?;
    let asked = Asked::of_call(call);
    asked.check()?;
    // blocks in random order, of which the first are a sample
    let shuffling = Shuffling { strategy: Strategy::BlockOnly, seed: asked.seed, first_epoch: 1, ..Shuffling::none() };
    let reading = ModelRows { shuffling, ..ModelRows::plain(Policies::of_model(&model)) };
    let mut buffers = reading.open(&model, &source)?;
    if buffers.decoder.has_mini_batches() {
        return Err(TrainingError::NotOnCompressed("corgipile_importance()").into());
    }
    let rows = sample(&mut buffers, asked.max_rows as usize)?;
    let skipped = tell_of_rows(&buffers.into_decoder());
    if rows.is_empty() {
        return Err(TrainingError::no_rows("judge features on", skipped).into());
    }
    let linear = model.linear().to_model();
    let importance = Importance::new(model.kind, &linear, &rows);
    let of_column = |(name, features)| {
        check_for_interrupts();
        let drop = importance.drop_of(&features, asked.repeats as u32, asked.seed as u64)?;
        Ok((name, drop.mean, drop.deviation, importance.effect_of(&features)))
    };
    model.weights_by_column().into_iter().map(of_column).collect()
}

/// Copies the first rows, as many as were asked for and there is room for.
fn sample(buffers: &mut Buffers, most: usize) -> Result<Batch> {
    let mut batch = Batch::dense(0);
    let mut rows: Option<Batch> = None;
    while buffers.next_batch(&mut batch)? {
        check_for_interrupts();
        let rows = rows.get_or_insert_with(|| like(&batch));
        for &place in batch.order() {
            if rows.len() == most || rows.bytes() > MAX_BYTES {
                pg::notice(
                    format!("{} rows are used, from blocks drawn at random", rows.len()),
                    "Set max_rows to use more or fewer.",
                );
                return Ok(std::mem::replace(rows, Batch::dense(0)));
            }
            rows.push_copy(&batch, place as usize)?;
        }
    }
    Ok(rows.unwrap_or_else(|| Batch::dense(0)))
}
