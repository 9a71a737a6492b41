//! The models that learn from the same tuples side by side: for each group one, or one for each point of a grid.

use super::epoch_row::EpochRow;
use super::learn::learn_side_by_side;
use decode::Decoder;
use decode::notices::notice_collinear;
use errors::limits::MAX_MODELS;
use errors::limits::MAX_WEIGHTS;
use errors::{Result, TrainingError};
use loss::{Hyperparameters, ModelKind, ModelParameters, Solver};
use options::chosen::{Keep, Point};
use options::request::Request;
use options::rows::Standardize;
use pg::check_for_interrupts;
use scan::progress;
use sgd::platt::Sigmoids;
use sgd::{Losses, Trainer};
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use tuples::Batch;

/// One of the models, and its history.
pub struct Learner {
    pub group: usize,
    pub point: usize,
    pub trainer: Trainer,
    pub history: Vec<EpochRow>,
    pub losses: Losses,
    /// what its decisions say of probabilities, if that was fitted
    pub sigmoids: Option<Sigmoids>,
    /// rows of each class that are held out
    pub held_out: Vec<u64>,
    /// the model of the best epoch, if that is to be kept, and the number of its loss
    best: Option<(ModelParameters, f64)>,
    /// the model to be stored, if the penalty l1 has weights of it be 0
    with_zeros: Option<ModelParameters>,
    state: LearnerState,
    /// would more epochs change nothing, or has it stopped because they made nothing better?
    pub has_stopped: bool,
}

/// A model that is to be evaluated on the held out tuples of its group.
pub struct GroupModel {
    pub group: usize,
    pub model: ModelParameters,
    /// of its loss, in the units of the targets that are learned from
    pub loss_number: f64,
}

impl GroupModel {
    pub fn new(group: usize, trainer: &Trainer) -> Result<GroupModel> {
        Ok(GroupModel { group, model: trainer.model()?, loss_number: trainer.loss_number() })
    }
}

/// Result of evaluating a model on the held out tuples of its group.
#[derive(Debug, Clone, Copy)]
pub struct HeldOutResult {
    /// infinite if a decision is beyond `real`
    pub loss: f64,
    /// accuracy, or R²
    pub score: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LearnerState {
    Learning,
    Done,
    Diverged,
}

/// All models of a call, by group, then by point.
#[derive(Default)]
pub struct Learners {
    /// of each group, one per point, or none if the group has no tuples to learn from
    groups: Vec<Vec<Learner>>,
    /// of all groups
    models: usize,
    /// epochs of all models, whose rows are kept until the end
    rows: usize,
    /// epochs of all models that nothing stops before their last one
    to_come: usize,
}

/// Epochs of all models of a call: their rows take up to 1 GB until they are stored.
const MAX_ROWS: usize = (1 << 30) / size_of::<EpochRow>();

impl Learners {
    pub fn learning(&mut self) -> impl Iterator<Item = &mut Learner> {
        self.all_mut().filter(|learner| learner.learns())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Learner> {
        self.groups.iter_mut().flatten()
    }

    /// Those that are to be stored.
    pub fn trained(&self) -> impl Iterator<Item = &Learner> {
        self.groups.iter().flatten().filter(|learner| learner.state != LearnerState::Diverged)
    }

    /// The same, to be changed.
    pub fn trained_mut(&mut self) -> impl Iterator<Item = &mut Learner> {
        self.all_mut().filter(|learner| learner.state != LearnerState::Diverged)
    }

    /// The models to be stored.
    pub fn into_trained(self) -> impl Iterator<Item = Learner> {
        self.groups.into_iter().flatten().filter(|learner| learner.state != LearnerState::Diverged)
    }

    pub fn is_empty(&self) -> bool {
        self.groups.iter().all(Vec::is_empty)
    }

    /// Warns of models that a solver was to bring to their optimum, and has not.
    pub fn warn_of_unconverged(&self, kind: ModelKind) {
        let all = self.trained().count();
        let unconverged = || self.trained().filter(|learner| learner.trainer.has_converged() == Some(false));
        let is_separated = |learner: &Learner| match learner.history.as_slice() {
            // once it is near its least value, Newton's steps do not make a loss smaller by such a part
            [.., before, last] => last.accuracy > Some(0.99) && last.loss < 0.8 * before.loss,
            _ => false,
        };
        match unconverged().count() {
            0 => {}
            models => {
                let which = if all == 1 { "the model has".into() } else { format!("{models} of {all} models have") };
                let (why, hint) = match (unconverged().any(is_separated), kind.is_classifier()) {
                    (true, _) => (
                        ": perfect separation, the coefficients diverge",
                        "Use an l2, such as 0.001, for finite weights; without it the model predicts well, but its \
                         weights cannot be interpreted.",
                    ),
                    (false, true) => (
                        "",
                        "Train more epochs, for example with warm_start. If the loss no longer decreases, some features separate \
                         the classes perfectly: use an l2.",
                    ),
                    (false, false) => (
                        "",
                        "Train more epochs, for example with warm_start. If the loss no longer decreases, a category \
                         has only labels of 0: use an l2.",
                    ),
                };
                pg::warning(format!("{which} not converged{why}"), hint);
            }
        }
    }

    /// Has every model ended its training?
    pub fn are_done(&self) -> bool {
        self.groups.iter().flatten().all(|learner| learner.state != LearnerState::Learning)
    }

    fn add(&mut self, learner: Learner) {
        if self.groups.len() <= learner.group {
            self.groups.resize_with(learner.group + 1, Vec::new);
        }
        self.groups[learner.group].push(learner);
        self.models += 1;
    }

    /// Models of groups that have turned out to have nothing to learn from are not.
    pub fn drop_untaught(&mut self) {
        self.groups.iter_mut().for_each(|group| group.retain(|learner| learner.trainer.tuples() > 0));
    }

    pub fn begin_epoch(&mut self) {
        self.learning().for_each(|learner| learner.trainer.begin_epoch());
    }

    /// The models of a group learn from the tuples at these places of the batch's order. `new` makes the trainer of a
    /// point, in its epoch, and gives the losses of the epochs before.
    pub fn learn(
        &mut self,
        request: &Request,
        outputs: usize,
        batch: &Batch,
        (group, places): (usize, Range<usize>),
        new: impl Fn(&Point) -> Result<(Trainer, Losses)>,
    ) -> Result<()> {
        let is_new = self.groups.get(group).is_none_or(Vec::is_empty);
        // before there is any memory for them, and again as sparse rows get longer
        self.check_size(request, batch.dim(), outputs, usize::from(is_new))?;
        if is_new {
            self.add_group(request, group, new)?;
        }
        let learners = &mut self.groups[group];
        let tuples = batch.tuples_in(places.clone());
        for learner in learners.iter_mut().filter(|learner| learner.learns()) {
            learner.trainer.begin_buffer(tuples, batch, places.clone())?;
        }
        let learning = learners.iter_mut().filter(|learner| learner.learns());
        let mut trainers: Vec<&mut Trainer> = learning.map(|learner| &mut learner.trainer).collect();
        learn_side_by_side(&mut trainers, batch, outputs, places)?;
        for learner in learners.iter_mut().filter(|learner| learner.learns()) {
            if let Err(diverged) = learner.trainer.check() {
                learner.diverged(request, diverged)?;
            }
        }
        Ok(())
    }

    /// Checks whether there can be this many models of this many features. New groups add some.
    pub fn check_size(&self, request: &Request, dim: usize, outputs: usize, new_groups: usize) -> Result<()> {
        let models = self.models.saturating_add(new_groups.saturating_mul(request.points.len()));
        let points = request.points.iter().map(|point| &point.hyperparameters);
        check_models(points, models, (dim, outputs))
    }

    /// Adds a learner for each point of a group that has its first tuples.
    pub fn add_group(
        &mut self,
        request: &Request,
        group: usize,
        mut new: impl FnMut(&Point) -> Result<(Trainer, Losses)>,
    ) -> Result<()> {
        // what is known to come is refused now, and not after hours
        let to_come = request.points.iter().filter(|point| point.stopping.is_none());
        let of_group = to_come.map(|point| point.max_epochs as usize).sum::<usize>();
        self.to_come = self.to_come.saturating_add(of_group);
        check_history(self.to_come)?;
        for (i, point) in request.points.iter().enumerate() {
            let (trainer, losses) = new(point)?;
            self.add(Learner { losses, ..Learner::new(group, i, trainer) });
            check_for_interrupts();
        }
        Ok(())
    }

    /// Reports features that others determine, or nearly, in any of the models.
    pub fn warn_of_collinear(&self, decoder: &Decoder) -> Result<()> {
        let (mut features, mut condition) = (BTreeSet::new(), 1.0_f64);
        for learner in self.trained() {
            let found = learner.trainer.collinear(decoder.standardizer())?;
            features.extend(found.features);
            condition = condition.max(found.condition);
        }
        let features: Vec<String> = features.into_iter().filter_map(|i| decoder.features().number_at(i)).collect();
        notice_collinear(&features, condition);
        Ok(())
    }

    /// Ends an epoch that has taken so long, and a full shuffle before it. A loss is to be multiplied by `unit`.
    pub fn end_epoch(&mut self, request: &Request, unit: f64, elapsed: Duration, shuffle: Duration) -> Result<()> {
        let (mut least, mut ended) = (f64::INFINITY, 0);
        for learner in self.learning() {
            match learner.trainer.finish_epoch() {
                Ok(report) => {
                    least = least.min(report.loss * unit);
                    learner.history.push(EpochRow::new(report, unit, elapsed, shuffle));
                    ended += 1;
                }
                Err(diverged) => learner.diverged(request, diverged)?,
            }
        }
        progress::loss(least);
        self.rows += ended;
        check_history(self.rows)?;
        self.check_some_are_left(request)
    }

    fn check_some_are_left(&self, request: &Request) -> Result<()> {
        let all = || self.groups.iter().flatten();
        match all().map(|learner| learner.trainer.epoch()).max() {
            Some(epoch) if all().all(|learner| learner.state == LearnerState::Diverged) => {
                Err(TrainingError::Diverged { epoch, standardized: is_standardized(request) }.into())
            }
            _ => Ok(()),
        }
    }

    /// The models that have just ended an epoch.
    pub fn models(&mut self) -> Result<Vec<GroupModel>> {
        self.learning().map(|learner| GroupModel::new(learner.group, &learner.trainer)).collect()
    }

    /// Takes the result of each of the [models](Learners::models), or None if nothing is held out, and decides which
    /// of them learn on.
    pub fn take_results(
        &mut self,
        request: &Request,
        first: u32,
        mut results: impl Iterator<Item = Option<HeldOutResult>>,
        names: &dyn Fn(usize, usize) -> Option<String>,
    ) -> Result<()> {
        for learner in self.learning() {
            learner.take_result(request, first, results.next().flatten(), names)?;
        }
        self.check_some_are_left(request)
    }
}

/// Are features scaled, as far as the user has a say in it?
fn is_standardized(request: &Request) -> bool {
    request.options.standardize != Standardize::None
}

/// Refuses to keep the rows of this many epochs that there may be no memory for them.
fn check_history(rows: usize) -> Result<()> {
    if rows > MAX_ROWS { Err(TrainingError::TooManyEpochs { limit: MAX_ROWS }.into()) } else { Ok(()) }
}

impl Learner {
    /// A model that begins to learn.
    pub fn new(group: usize, point: usize, trainer: Trainer) -> Learner {
        let (history, losses) = (Vec::new(), Losses::default());
        let (sigmoids, held_out, best, with_zeros) = (None, Vec::new(), None, None);
        let (state, has_stopped) = (LearnerState::Learning, false);
        Learner { group, point, trainer, history, losses, sigmoids, held_out, best, with_zeros, state, has_stopped }
    }

    pub fn learns(&self) -> bool {
        self.state == LearnerState::Learning
    }

    fn diverged(&mut self, request: &Request, error: loss::Diverged) -> Result<()> {
        if !request.trains_several() {
            return Err(TrainingError::Diverged { epoch: error.epoch, standardized: is_standardized(request) }.into());
        }
        self.state = LearnerState::Diverged;
        let of = match &request.points[self.point].says {
            Some(says) => format!("the model of grid point {}", serde_json::Value::Object(says.clone())),
            None => "the model of a group".to_owned(),
        };
        pg::warning(
            format!("{of} diverged in epoch {} and is not stored", error.epoch),
            "Training of the other models continues. Try a smaller learning_rate for this one.",
        );
        Ok(())
    }

    /// Takes the result of an epoch, with that on held out tuples if there are some, and decides whether to learn on.
    pub fn take_result(
        &mut self,
        request: &Request,
        first: u32,
        result: Option<HeldOutResult>,
        name: &dyn Fn(usize, usize) -> Option<String>,
    ) -> Result<()> {
        let point = &request.points[self.point];
        if self.trainer.weighs_nothing() {
            return Err(TrainingError::NoWeight.into());
        }
        let Some(row) = self.history.last_mut() else { return Ok(()) };
        if result.is_some_and(|result| !result.loss.is_finite()) {
            let epoch = row.epoch as u32;
            return self.diverged(request, loss::Diverged { epoch });
        }
        row.validation_loss = result.map(|result| result.loss);
        row.validation_score = result.map(|result| result.score);
        let loss = row.deciding_loss();
        let last = first - 1 + point.max_epochs;
        if request.options.verbose {
            let of = name(self.group, self.point).map_or(String::new(), |of| format!(" of {of}"));
            let (epoch, speed) = (row.epoch, row.speed(last, point.stopping.is_some()));
            pg::notice(format!("epoch {epoch} of {last}{of}: {}, {speed}", row.figures()), None);
        }
        let epoch = row.epoch as u32;
        let improved = self.losses.add(loss, point.stopping);
        if improved && request.options.keep == Keep::Best {
            self.best = Some((self.trainer.model()?, self.trainer.loss_number()));
        }
        let has_converged = self.trainer.has_converged() == Some(true);
        self.has_stopped = has_converged || point.stopping.is_some_and(|rule| self.losses.stop(rule));
        if epoch >= last || self.has_stopped {
            self.state = LearnerState::Done;
        }
        Ok(())
    }

    /// Is the model of an epoch before this call to be kept, because none of this call was better?
    pub fn keeps_earlier(&self, request: &Request) -> bool {
        request.options.keep == Keep::Best && self.best.is_none()
    }

    /// A copy of the model that [`Learner::take_model`] gives.
    pub fn final_model(&mut self) -> Result<ModelParameters> {
        match (&self.with_zeros, &self.best) {
            (Some(model), _) | (None, Some((model, _))) => Ok(model.clone()),
            (None, None) => Ok(self.trainer.model()?),
        }
    }

    /// The model to be stored: that of the best epoch if that is to be kept, else that of the last.
    pub fn take_model(&mut self) -> Result<ModelParameters> {
        match (self.with_zeros.take(), self.best.take()) {
            (Some(model), _) | (None, Some((model, _))) => Ok(model),
            (None, None) => Ok(self.trainer.model()?),
        }
    }

    /// Replaces the model to be stored by the same with weights that are 0.
    pub fn set_zeros(&mut self, model: ModelParameters) {
        self.with_zeros = Some(model);
    }

    /// The number of the loss of the model to be stored.
    pub fn final_loss_number(&self) -> f64 {
        self.best.as_ref().map_or_else(|| self.trainer.loss_number(), |(_, number)| *number)
    }
}

/// Checks whether this number of models of `dim` features and `outputs` outputs can be trained like this.
pub fn check_models<'a>(
    points: impl IntoIterator<Item = &'a Hyperparameters>,
    models: usize,
    (dim, outputs): (usize, usize),
) -> Result<()> {
    let mut weights = 0;
    for hyper in points {
        check_network(hyper, dim, outputs)?;
        check_hessian(hyper, dim)?;
        weights = weights.max(hyper.weights(dim, outputs));
    }
    if models > MAX_MODELS || (models > 1 && models.saturating_mul(weights) > MAX_WEIGHTS) {
        return Err(TrainingError::TooManyModels { models, dim }.into());
    }
    Ok(())
}

/// Checks whether Newton's method can train a model of this many features.
pub fn check_hessian(hyper: &Hyperparameters, dim: usize) -> Result<()> {
    if hyper.solver == Solver::Newton && dim > Solver::MAX_FEATURES {
        return Err(TrainingError::HessianTooLarge { dim }.into());
    }
    Ok(())
}

/// Checks whether a network of this many features can be stored.
pub fn check_network(hyper: &Hyperparameters, dim: usize, classes: usize) -> Result<()> {
    match hyper.design.map(|design| design.weights(dim, classes)) {
        Some(weights) if weights > MAX_WEIGHTS => Err(TrainingError::NetworkTooLarge { dim, weights }.into()),
        _ => Ok(()),
    }
}
