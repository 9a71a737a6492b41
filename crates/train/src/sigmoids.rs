//! Probabilities of SVMs: sigmoids that are fitted to the decisions for the tuples that are held out, or where these
//! are few, to decisions for all tuples ([`CrossFit`]).
//!
//! Weights of rows count. Those of classes do not, so that the probabilities are those of the rows as they are.

use super::cross_fit::CrossFit;
use super::learners::{Learner, Learners};
use super::resume::Resume;
use super::validation::{ByGroup, EndedEpoch, HeldOut};
use decode::{Decoder, Labels};
use errors::Result;
use loss::{ModelKind, ModelParameters};
use options::request::Request;
use pg::check_for_interrupts;
use sgd::Evaluation;
use sgd::conformal::class_of_label;
use sgd::platt::{HeldOutDecisions, Sigmoids};
use tuples::Batch;

/// Memory for decisions of models that are fitted at once, while the source is read.
const MEMORY: usize = 256 << 20;

/// As much, where they are asked of others, whose answers have them as text.
const MEMORY_OF_ANSWERS: usize = 64 << 20;

/// With fewer rows of a class, or of all others, a notice says so.
const FEW: u64 = 10;

/// A model, and its decisions.
struct Fit {
    group: usize,
    model: ModelParameters,
    outputs: Decided,
}

/// Fits the sigmoids of all models that are to be stored. `rows` is how to read the source once more, if not all that
/// is held out was kept.
pub fn fit(
    request: &Request,
    resume: Option<&Resume>,
    held_out: &HeldOut,
    learners: &mut Learners,
    mut rows: EndedEpoch<'_>,
) -> Result<()> {
    let kind = request.kind;
    let groups = learners.trained().map(|learner| learner.group).collect();
    let mut cross_fit = CrossFit::read(request, &groups, held_out, &mut rows)?;
    let models = models_of((request, resume), learners, rows.buffers.decoder.labels())?;
    let mut told = Told::new(models.len());
    let at_once = if held_out.must_be_read() { models_within(MEMORY, &models) } else { 1 };
    let mut models = models.into_iter().peekable();
    let mut number = 0;
    while models.peek().is_some() {
        let mut fits = fits_of(models.by_ref().take(at_once));
        // where rows are kept, there is one at a time
        let crossed = match (&mut cross_fit, &mut fits.all[..], learners.trained().nth(number)) {
            (Some(cross_fit), [(_, fit)], Some(learner)) => {
                fit.cross((request, resume), cross_fit, learner, &rows.buffers.decoder)?
            }
            _ => false,
        };
        if !crossed {
            fits.show_held_out(held_out, rows.again(), |fit, batch, decoder| fit.add(kind, batch, decoder))?;
        }
        for (_, fit) in fits.all {
            told.take(learners, number, &fit.outputs, crossed);
            number += 1;
        }
    }
    told.report();
    Ok(())
}

/// As [`fit`], by what others hold out: `ask` shows them some models, by group, and gives what they have decided
/// together.
pub fn fit_there(
    (request, resume): (&Request, Option<&Resume>),
    learners: &mut Learners,
    labels: &Labels,
    mut ask: impl FnMut(&[(usize, ModelParameters)]) -> Result<Vec<Decided>>,
) -> Result<()> {
    let models = models_of((request, resume), learners, labels)?;
    let mut told = Told::new(models.len());
    let mut learner = 0;
    for some in models.chunks(models_within(MEMORY_OF_ANSWERS, &models)) {
        for outputs in ask(some)? {
            told.take(learners, learner, &outputs, false);
            learner += 1;
        }
    }
    told.report();
    Ok(())
}

/// What one of several decides for the rows that it holds out, by models of these groups in ascending sequence, after
/// the last epoch.
pub fn decide(
    kind: ModelKind,
    models: Vec<(usize, ModelParameters)>,
    (held_out, rows): (&HeldOut, EndedEpoch<'_>),
) -> Result<Vec<Decided>> {
    let mut fits = fits_of(models.into_iter());
    fits.show_held_out(held_out, rows, |fit, batch, decoder| fit.add(kind, batch, decoder))?;
    Ok(fits.all.into_iter().map(|(_, fit)| fit.outputs).collect())
}

/// Decisions of a model, output by output.
pub type Decided = Vec<HeldOutDecisions>;

/// What the user learns of all models.
struct Told {
    all: usize,
    /// models that all rows were decided for
    crossed: usize,
    /// those with few rows of a class
    few: usize,
    /// the fewest of them, and whether these are all that there are
    least: (u64, bool),
    /// those whose probabilities for a class do not depend on the features
    constant: usize,
}

impl Told {
    fn new(all: usize) -> Told {
        Told { all, crossed: 0, few: 0, least: (u64::MAX, false), constant: 0 }
    }

    /// Gives a learner the sigmoids of these decisions, which are for all rows of its group if they are crossed.
    fn take(&mut self, learners: &mut Learners, learner: usize, outputs: &[HeldOutDecisions], crossed: bool) {
        let sigmoids = Sigmoids::fit(outputs);
        let rows = outputs.iter().flat_map(HeldOutDecisions::rows).min().unwrap_or_default();
        self.least = self.least.min((rows, crossed));
        self.few += usize::from(rows < FEW);
        self.crossed += usize::from(crossed);
        self.constant += usize::from(sigmoids.as_ref().is_some_and(Sigmoids::are_constant));
        if let Some(learner) = learners.trained_mut().nth(learner) {
            learner.sigmoids = sigmoids;
        }
    }

    fn report(self) {
        let Told { all, crossed, few, least: (rows, all_rows), constant } = self;
        let of = |models: usize| if all == 1 { String::new() } else { format!(" of {models} of {all} models") };
        let comma = if all == 1 { "" } else { "," };
        if crossed > 0 {
            let of = of(crossed);
            pg::notice(
                format!(
                    "few rows are held out: probabilities{of} are fitted to all rows by cross-fitting with five folds"
                ),
                "Use validation_column to fit them to held-out rows only.",
            );
        }
        if few > 0 {
            let (of, ending) = (of(few), if rows == 1 { "" } else { "s" });
            let (why, hint) = match all_rows {
                true => (
                    format!("a class has only {rows} row{ending}"),
                    "All rows are already used: add more rows of that class.",
                ),
                false => (
                    format!("only {rows} row{ending} of a class {} held out", if rows == 1 { "is" } else { "are" }),
                    "Use a larger validation_fraction, or validation_column, to hold out more rows.",
                ),
            };
            pg::notice(format!("too few rows for reliable probabilities{comma}{of}: {why}"), hint);
        }
        if constant > 0 {
            let of = of(constant);
            pg::notice(
                format!(
                    "probabilities are the shares of the classes{comma}{of}: the model does not separate a class from the others"
                ),
                "Add features that are related to the label, or more rows of each class.",
            );
        }
    }
}

/// The models that are to be stored, and their groups, in ascending sequence of these.
fn models_of(
    (request, resume): (&Request, Option<&Resume>),
    learners: &mut Learners,
    labels: &Labels,
) -> Result<Vec<(usize, ModelParameters)>> {
    let model = |learner: &mut Learner| Ok((learner.group, model_of(request, resume, learner, labels)?));
    learners.trained_mut().map(model).collect()
}

/// For this many models decisions fit into so much memory at once.
fn models_within(memory: usize, models: &[(usize, ModelParameters)]) -> usize {
    let outputs = models.first().map_or(1, |(_, model)| model.outputs);
    (memory / (outputs * HeldOutDecisions::MAX_BYTES)).max(1)
}

/// The model that is to be stored, as it decides in training.
fn model_of(
    request: &Request,
    resume: Option<&Resume>,
    learner: &mut Learner,
    labels: &Labels,
) -> Result<ModelParameters> {
    let Some(resume) = resume.filter(|_| learner.keeps_earlier(request)) else { return learner.final_model() };
    let mut earlier = resume.stored();
    if labels.classes().is_some_and(|classes| classes.swapped) {
        earlier.negate();
    }
    Ok(earlier)
}

/// Models and their groups, with no decisions so far.
fn fits_of(models: impl Iterator<Item = (usize, ModelParameters)>) -> ByGroup<Fit> {
    let fit = |(group, model): (usize, ModelParameters)| {
        let outputs = vec![HeldOutDecisions::default(); model.outputs];
        (group, Fit { group, model, outputs })
    };
    ByGroup::new(models.map(fit).collect())
}

impl Fit {
    /// Takes the decisions for all rows of the group, each of a model that has not learned from it. False without
    /// any: then those of the model itself are to be taken.
    fn cross(
        &mut self,
        (request, resume): (&Request, Option<&Resume>),
        cross_fit: &mut CrossFit,
        learner: &Learner,
        decoder: &Decoder,
    ) -> Result<bool> {
        let mut outputs = vec![HeldOutDecisions::default(); self.outputs.len()];
        let (kind, group) = (request.kind, self.group);
        let add = |model: &ModelParameters, batch: &Batch| add(&mut outputs, kind, (model, batch), (decoder, group));
        let has_crossed = cross_fit.decide((request, resume), decoder, learner, add)?;
        if has_crossed {
            self.outputs = outputs;
        }
        Ok(has_crossed)
    }

    /// Takes the decisions for all tuples of the batch.
    fn add(&mut self, kind: ModelKind, batch: &Batch, decoder: &Decoder) {
        add(&mut self.outputs, kind, (&self.model, batch), (decoder, self.group));
    }
}

/// Takes the decisions of a model for all tuples of a batch, which are of one group, output by output.
fn add(
    outputs: &mut [HeldOutDecisions],
    kind: ModelKind,
    (model, batch): (&ModelParameters, &Batch),
    (decoder, group): (&Decoder, usize),
) {
    check_for_interrupts();
    let mut weights = weights(batch);
    Evaluation::new(kind).add_and_show(model, batch, |decisions, label| {
        // probabilities are those of the rows, whatever their classes weigh
        let weight = match (weights.next(), decoder.factors()) {
            (Some(weight), Some(factors)) => factors.without_class(group, decoder.labels().class(label as f32), weight),
            _ => 1.0,
        };
        for (output, (decisions_of, decision)) in outputs.iter_mut().zip(decisions).enumerate() {
            let class = class_of_label(kind, label);
            let is_of_class = if kind.is_binary() { class == 1 } else { class == output };
            decisions_of.add(*decision, is_of_class, weight);
        }
    });
}

/// The weights of a batch's tuples, in the sequence in which they lie.
fn weights(batch: &Batch) -> Box<dyn Iterator<Item = f32> + '_> {
    if batch.has_mini_batches() {
        let of_one = |i| {
            let mini_batch = batch.mini_batch(i);
            (0..mini_batch.len()).map(|row| mini_batch.weights().map_or(1.0, |weights| weights[row]))
        };
        return Box::new((0..batch.len()).flat_map(of_one));
    }
    Box::new(batch.weights().unwrap_or_default().iter().copied())
}
