//! What a call of corgipile_train() asks for, once its arguments are understood.

use super::call::{TrainArguments, integer, invalid, model_kind, refused};
use super::chosen::{Keep, Options, Point, Rate, Validation};
use super::columns::{OtherColumns, check_columns, check_features, check_fold_column};
use super::folds::{FoldSpec, FoldsBy};
use super::grid::{self, Base};
use super::loader::Loader;
use super::loss::Loss;
use super::model_name::{MAX_NAME_BYTES, check_name};
use super::nodes::Nodes;
use super::objective::Objective;
use super::row_groups::RowGroupSpec;
use super::rows::By;
use super::search::{Score, SearchArguments, SearchSpec};
use super::shuffling::Shuffling;
use super::{defaults, entry, parse, table, trials};
use choices::Choice;
use errors::limits::MAX_WEIGHTS;
use errors::{ArgumentError, Result, TrainingError};
use loss::{Extent, Hyperparameters, ModelKind, Output, Penalized, Schedule, Solver};
use serde_json::{Map, Value, json};
use sgd::Stopping;
use shuffle::Geometry;

/// Features of a model for which Newton's method is chosen: its time grows with their square. A model of each group has
/// an eighth.
const MOST_FOR_NEWTON: usize = 256;

/// What is to be trained.
#[derive(Clone)]
pub struct Request {
    pub source: String,
    pub label: String,
    /// None: to be found in the source
    pub features: Option<Vec<String>>,
    pub kind: ModelKind,
    pub open: Open,
    /// what is to be trained with: at least one point
    pub points: Vec<Point>,
    pub row_groups: RowGroupSpec,
    pub shuffling: Shuffling,
    pub name: Option<String>,
    pub options: Options,
    pub loader: Loader,
    /// processes that are to train together
    pub workers: u32,
    /// the training that is continued
    pub resume: Option<WarmStart>,
    /// how the best of the points is found, if only that one is to be stored
    pub search: Option<SearchSpec>,
}

/// What the labels decide about a model.
#[derive(Clone, Copy, PartialEq)]
pub enum Open {
    Nothing,
    /// whether it has more than two classes
    Classes,
    /// whether the network predicts a class or a number
    Objective,
}

/// A training that is continued, as far as it changes what is trained.
#[derive(Debug, Clone, Copy)]
pub struct WarmStart {
    pub model_id: i64,
    /// epochs that were trained before
    pub epochs: u32,
    /// was the source read together with other sessions?
    pub shared: bool,
}

impl Request {
    /// Checks what can be checked without looking at the source. `resume` is what argument `warm_start` stands for; who
    /// has found it has given the arguments what they left open.
    pub fn new(arguments: TrainArguments, resume: Option<WarmStart>) -> Result<Request> {
        Request::read(arguments, resume, None, true)
    }

    /// The same for a call of corgipile_search().
    pub fn for_search(arguments: TrainArguments, search: &SearchArguments) -> Result<Request> {
        let refuse = |argument, hint| Err(refused(argument, "corgipile_search() does not accept it", hint));
        if arguments.says("warm_start").is_some() {
            let hint = "A model trained on all rows cannot be evaluated on a part of them: leave it out.";
            return refuse("warm_start", hint);
        }
        if arguments.says("group_by").is_some() {
            let hint = "The search finds one point for all rows. Use a query that selects one group as \
                        source, and pass the result to corgipile_train().";
            return refuse("group_by", hint);
        }
        Request::read(arguments, None, Some(search), true)
    }

    /// The same for a training that cannot look at the tuples before: what is not given has its default.
    pub fn without_choices(arguments: TrainArguments) -> Result<Request> {
        Request::read(arguments, None, None, false)
    }

    fn read(
        mut arguments: TrainArguments,
        resume: Option<WarmStart>,
        search: Option<&SearchArguments>,
        automatic: bool,
    ) -> Result<Request> {
        let source = arguments.source.take().ok_or(ArgumentError::NullArgument("source"))?;
        let seed_is_given = arguments.says("seed").is_some();
        let label: String = arguments.take("label").unwrap_or_default();
        let kind = model_kind(arguments.take("model"))?;
        let max_epochs = arguments.take("max_epochs").map(|given| integer("max_epochs", given)).transpose()?;
        let name: Option<String> = arguments.take("name");
        name.as_deref().map_or(Ok(()), check_name)?;
        let mut workers = integer("workers", arguments.take("workers").unwrap_or_default())?;
        let mut grid: Option<Value> = arguments.take("grid");
        let mut seed = arguments.take("seed");
        if let Some(search) = search {
            let seed = *seed.get_or_insert_with(pg::random_seed);
            let given = |name: &str| arguments.says(name).is_some();
            let solver = arguments.text("solver").and_then(Solver::named).unwrap_or_default();
            grid = Some(trials::points(grid, search.trials, &given, (kind, solver), seed)?);
        }
        let [shuffle, block_size, buffer_size, group_by, loader] =
            ["shuffle", "block_size", "buffer_size", "group_by", "prefetch"].map(|name| arguments.take(name));
        // JSON has no NaN, nor infinities
        let sample = arguments
            .take::<Value>("sample")
            .map(|sample| sample.as_f64().or_else(|| sample.as_str()?.parse().ok()).unwrap_or(f64::NAN));
        let features: Option<Vec<Option<String>>> = arguments.take("features");
        let (pages_per_block, has_open_model) = (arguments.pages_per_block, arguments.has_open_model);
        let options = arguments.into_options();
        let open = match kind {
            _ if has_open_model => Open::Classes,
            ModelKind::Mlp if resume.is_none() && !decides_objective(&options, grid.as_ref()) => Open::Objective,
            _ => Open::Nothing,
        };
        let kind = parse::with_objective(kind, &options);
        let base = Base { options, kind, max_epochs, automatic };
        let (options, mut points) = grid::points(base, grid)?;
        check_epochs(&points, resume)?;
        let features = features.map(|features| check_features(features, &label)).transpose()?;
        check_columns(&label, features.as_deref(), &options, group_by.as_deref())?;
        let shuffling = Shuffling::parse(shuffle, seed, block_size, buffer_size)?;
        let shuffling = shuffling.with_sample(sample)?.with_share(options.shared_scan)?;
        let shuffling = Shuffling { pages_per_block, seed_is_given, ..shuffling };
        for design in points.iter_mut().filter_map(|point| point.hyperparameters.design.as_mut()) {
            design.seed = shuffling.seed;
        }
        let hold_out = options.validation().map(|validation| validation.hold_out(shuffling.seed));
        let mut row_groups = RowGroupSpec { group: group_by, hold_out, ..RowGroupSpec::default() };
        let search = match search {
            Some(search) => {
                // the best point is trained as by corgipile_train() without workers
                let of_search = std::mem::replace(&mut workers, 1);
                let (spec, of_search) = search.read(&options, shuffling.seed, of_search)?;
                check_fold_column(of_search.folds.as_ref(), &label, features.as_deref())?;
                row_groups = of_search;
                Some(spec)
            }
            None => None,
        };
        let request = Request {
            source,
            label,
            features,
            kind,
            open,
            points,
            row_groups,
            shuffling,
            name,
            options,
            loader: self::loader(loader)?,
            workers,
            resume,
            search,
        };
        request.check_solver()?;
        request.check_workers()?;
        request.check_row_groups()?;
        request.check_search()?;
        Ok(request)
    }

    /// Refuses epochs in which rows come twice or not at all: the sums of Newton's method are those of all rows.
    fn check_solver(&self) -> Result<()> {
        let strategy = self.shuffling.strategy;
        if self.first_point().hyperparameters.solver == Solver::Newton && !strategy.permutes() {
            let reason =
                format!("solver \"newton\" needs each row once per epoch, but {strategy} repeats or skips some");
            let hint = "Leave it out: the order of rows does not matter to this solver.";
            return Err(refused("shuffle", reason, hint));
        }
        Ok(())
    }

    /// Refuses what several processes cannot do together.
    fn check_workers(&self) -> Result<()> {
        if self.workers == 1 {
            return Ok(());
        }
        if !self.shuffling.strategy.supports_workers() {
            return Err(TrainingError::NotByWorkers(self.shuffling.strategy.name()).into());
        }
        if self.points.iter().any(Point::averages_networks) {
            return Err(TrainingError::NotSynchronized("hidden layers and batch_size 1").into());
        }
        Ok(())
    }

    /// Refuses parts that a strategy cannot make, and names that are too long for the models of parts and points.
    fn check_row_groups(&self) -> Result<()> {
        let strategy = self.shuffling.strategy;
        if !self.row_groups.is_empty() && !strategy.supports_groups() {
            return Err(TrainingError::NotInGroups(strategy.name()).into());
        }
        if matches!(self.options.validation(), Some(Validation::Fraction { by: By::Block, .. }))
            && strategy.sorts_each_epoch()
        {
            let reason = "must be \"row\" with shuffle strategy epoch_shuffle, whose blocks change in each epoch";
            return Err(entry::invalid("validation_by", reason));
        }
        self.check_unseen_group()?;
        match &self.name {
            Some(name) if name.len() > MAX_PREFIX_BYTES && self.adds_to_name() => Err(invalid(
                "name",
                format!("it has more than {MAX_PREFIX_BYTES} bytes, the limit with several models"),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses what a search cannot do.
    fn check_search(&self) -> Result<()> {
        let averages = |point: &Point| point.hyperparameters.schedule.averages();
        if self.search.is_some() && self.points.iter().any(averages) {
            let reason = "must not be \"theorem1\" in corgipile_search(), whose folds have no buffers of their own";
            return Err(entry::invalid("schedule", reason));
        }
        if self.search.is_some() && self.options.probability {
            let reason = "cannot be used in corgipile_search(), which trains its best point on all rows: \
                          pass that point to corgipile_train()";
            return Err(entry::invalid("probability", reason));
        }
        Ok(())
    }

    /// Settles the folds of a search, once it is known what the model is and how rows come: `copied` rows of a table,
    /// with this OID, do not say where they stand.
    pub fn settle_search(&mut self, has_mini_batches: bool, copied: Option<u32>) -> Result<()> {
        let Some(search) = &mut self.search else { return Ok(()) };
        if let Some(folds) = &mut self.row_groups.folds {
            folds.reads_place = copied.filter(|_| !has_mini_batches && matches!(folds.by, FoldsBy::Row { .. }));
        }
        search.settle(self.kind, has_mini_batches, &mut self.row_groups)?;
        let number = |point: &Point| point.hyperparameters.loss_number;
        if search.score() == Score::Loss && self.points.iter().any(|point| number(point) != number(&self.points[0])) {
            let reason = "its points have different losses, which cannot be compared";
            return Err(refused("grid", reason, "Run a search for each quantile or loss_epsilon."));
        }
        Ok(())
    }

    /// Only this point is left, to be trained on all rows for this many epochs at most.
    pub fn keep_point(&mut self, i: usize, epochs: Option<u32>) {
        let mut point = self.points.swap_remove(i);
        point.says = None;
        if let Some(epochs) = epochs {
            (point.max_epochs, point.stopping, self.options.keep) = (epochs, None, Keep::Last);
        }
        self.points = vec![point];
        self.row_groups = RowGroupSpec::default();
        let Options { validation_fraction, validation_by, validation_column, .. } = &mut self.options;
        (*validation_fraction, *validation_by, *validation_column) = (None, By::Row, None);
        self.search = None;
    }

    /// Is something added to the name of the call to make that of a model?
    fn adds_to_name(&self) -> bool {
        self.search.is_none() && (self.row_groups.group.is_some() || self.first_point().says.is_some())
    }

    /// The columns that are neither label nor features.
    pub fn other_columns(&self) -> OtherColumns<'_> {
        let names = self.options.weight.as_deref().into_iter().chain(self.row_groups.columns()).collect();
        OtherColumns { names, time: self.row_groups.folds.as_ref().and_then(FoldSpec::time) }
    }

    pub fn trains_several(&self) -> bool {
        self.points.len() > 1 || self.row_groups.group.is_some()
    }

    /// Is a learning rate to be chosen by the tuples?
    pub fn has_open_rate(&self) -> bool {
        self.points.iter().any(|point| point.rate == Rate::Open)
    }

    pub fn has_chosen_rate(&self) -> bool {
        self.points.iter().any(|point| point.rate == Rate::Chosen)
    }

    pub fn predict_numbers(&mut self) {
        (self.kind, self.open) = (Objective::Regression.network(), Open::Nothing);
        for point in &mut self.points {
            let Hyperparameters { kind, design, schedule, .. } = &mut point.hyperparameters;
            *kind = self.kind;
            design.iter_mut().for_each(|design| design.output = Some(Output::Identity));
            if let (Schedule::Exponential { decay }, true) = (schedule, point.has_open_decay) {
                *decay = defaults::decay(self.kind);
            }
        }
    }

    /// The model that it is if there are more than two classes, if it may be another then: an SVM is one for each of
    /// them.
    pub fn kind_of_many(&self) -> Option<ModelKind> {
        if self.open == Open::Classes { Some(ModelKind::Softmax) } else { self.kind.one_vs_rest() }
    }

    /// May its penalty be chosen? That is where it has one model: what suits all groups, or each point of a grid, is
    /// not known.
    pub fn has_open_penalty(&self) -> bool {
        let is_one = self.row_groups.group.is_none() && self.search.is_none() && self.resume.is_none();
        matches!(self.points.as_slice(), [point] if is_one && point.has_open_penalty)
    }

    /// There are more than two classes.
    pub fn tell_many_apart(&mut self) {
        self.kind = self.kind_of_many().unwrap_or(self.kind);
        self.points.iter_mut().for_each(|point| point.hyperparameters.kind = self.kind);
    }

    /// Newton's method trains the models for which that is open, if they have few enough features. True if it trains
    /// one that could be another's.
    pub fn choose_solver(&mut self, features: usize) -> bool {
        let fits = self.suits_newton(features);
        let mut chosen = false;
        for point in self.points.iter_mut().filter(|point| point.has_open_solver) {
            point.has_open_solver = false;
            if fits && point.rate == Rate::Open {
                point.take_newton();
                chosen = true;
            }
        }
        chosen
    }

    /// Is Newton's method what suits models of this many features, where the solver is open?
    pub fn suits_newton(&self, features: usize) -> bool {
        // a Hessian of each group
        let most = if self.row_groups.group.is_some() { MOST_FOR_NEWTON / 8 } else { MOST_FOR_NEWTON };
        let of_one = Hyperparameters { solver: Solver::Newton, ..self.first_point().hyperparameters };
        let fits = self.points.len().saturating_mul(of_one.weights(features, 1)) <= MAX_WEIGHTS;
        fits && (1..=most).contains(&features) && self.shuffling.strategy.permutes()
    }

    /// Chooses sizes of mini-batches, and learning rates and epochs that are open, for such data
    /// with this mean of |x|², and this one of the targets.
    pub fn choose(&mut self, data: Extent, mean_square: f64, mean_target: Option<f64>) {
        for point in self.points.iter_mut().filter(|point| point.has_open_batch_size) {
            point.has_open_batch_size = false;
            let epochs = self.options.planned_epochs.unwrap_or(point.max_epochs);
            point.hyperparameters = point.hyperparameters.with_automatic_batch_size(epochs, data.tuples);
        }
        for point in self.points.iter_mut().filter(|point| point.rate == Rate::Open) {
            point.choose_rate(data, mean_square, mean_target);
        }
    }

    /// Several processes train: networks, which cannot be averaged, have mini-batches of several tuples.
    pub fn train_together(&mut self) {
        for point in self.points.iter_mut().filter(|point| point.averages_networks()) {
            point.hyperparameters.batch_size = 2;
        }
    }

    /// Are epochs to be chosen by the tuples?
    pub fn has_open_epochs(&self) -> bool {
        self.points.iter().any(|point| point.has_open_epochs)
    }

    /// The most epochs that a point takes.
    pub fn max_epochs(&self) -> u32 {
        self.points.iter().map(|point| point.max_epochs).max().unwrap_or_default()
    }

    pub fn first_epoch(&self) -> u32 {
        self.resume.map_or(1, |resume| resume.epochs + 1)
    }

    /// The number of the last one, if nothing stops them before.
    pub fn last_epoch(&self) -> u32 {
        (self.first_epoch() - 1).saturating_add(self.max_epochs())
    }

    pub fn first_point(&self) -> &Point {
        &self.points[0]
    }

    /// May rows of other servers be fetched here?
    pub fn nodes_may_be_off(&self) -> bool {
        !matches!(self.options.servers, Nodes::Servers(_))
    }

    /// Is the source read together with other sessions, or was it in the training that goes on?
    pub fn shares(&self) -> bool {
        self.shuffling.share.is_some() || self.resume.is_some_and(|resume| resume.shared)
    }

    /// What it takes to train the same model again.
    pub fn record(&self, point: &Point) -> Map<String, Value> {
        let hyper = &point.hyperparameters;
        let mut record = self.options.record();
        let mut put = |name: &str, value: Value| drop(record.insert(name.to_owned(), value));
        let before = self.resume.map_or(0, |resume| resume.epochs);
        put("max_epochs", json!(before.saturating_add(point.max_epochs)));
        put("shuffle", json!(self.shuffling.strategy.name()));
        put("seed", json!(self.shuffling.seed));
        put("l1", json!(hyper.l1));
        put("l2", json!(hyper.l2));
        if hyper.l2 > 0.0 && hyper.l2_on == Penalized::Categories {
            put("l2_on", json!(hyper.l2_on));
        }
        self.resume.iter().for_each(|resume| put("warm_start", json!(resume.model_id)));
        Loss::of(self.kind).iter().for_each(|loss| put("loss", json!(loss)));
        self.kind.loss_number().iter().for_each(|number| put(number.name, json!(hyper.loss_number)));
        if let Some(Stopping { tolerance, patience }) = point.stopping {
            put("tolerance", json!(tolerance));
            put("patience", json!(patience));
        }
        if let Some(design) = &hyper.design {
            put("objective", json!(Objective::of(self.kind)));
            put("hidden_layer_sizes", json!(design.hidden));
            put("activation", json!(design.activation));
            design.output.iter().for_each(|output| put("output", json!(output)));
        }
        if hyper.solver == Solver::Newton {
            put("solver", json!(hyper.solver));
            return record;
        }
        put("schedule", json!(hyper.schedule.name()));
        hyper.schedule.parameters().for_each(|(parameter, value)| put(parameter.name, json!(value)));
        put("optimizer", json!(hyper.optimizer.name()));
        hyper.optimizer.parameters().for_each(|(parameter, value)| put(parameter.name, json!(value)));
        // the rates of theorem1 follow from a, if that is given
        if !matches!(hyper.schedule, Schedule::Theorem1 { a: Some(_), .. }) {
            put("learning_rate", json!(hyper.learning_rate));
        }
        if hyper.batch_size < Hyperparameters::WHOLE_MINI_BATCHES {
            put("batch_size", json!(hyper.batch_size));
        }
        if hyper.design.is_none() {
            put("bounded_steps", json!(hyper.bounded));
            put("averaging", json!(hyper.averaging));
        }
        record
    }

    /// What it takes to train the same model again, how the source was read, and by how many processes.
    pub fn to_json(&self, point: &Point, geometry: Geometry, processes: u32) -> Map<String, Value> {
        let Shuffling { block_size, buffer_size, sample, .. } = &self.shuffling;
        let mut record = self.record(point);
        let mut put = |name: &str, value: Value| drop(record.insert(name.to_owned(), value));
        put("workers", json!(processes));
        put("block_size", json!(block_size.to_string()));
        put("buffer_size", json!(buffer_size.to_string()));
        put("pages_per_block", json!(geometry.pages_per_block));
        put("buffer_blocks", json!(geometry.buffer_blocks));
        sample.iter().for_each(|sample| put("sample", json!(sample)));
        if self.shares() {
            put("shared_scan", json!(true));
        }
        record
    }
}

/// Do the options say what a network predicts? What is about classes does.
fn decides_objective(options: &Map<String, Value>, grid: Option<&Value>) -> bool {
    let says = ["objective", "output", "class_weight"].into_iter().any(|key| options.contains_key(key));
    let in_grid = match grid {
        Some(Value::Object(axes)) => axes.contains_key("output"),
        Some(Value::Array(points)) => points.iter().any(|point| point.get("output").is_some()),
        _ => false,
    };
    says || in_grid
}

/// Where buffers are to be filled.
fn loader(given: Option<String>) -> Result<Loader> {
    let given = given.unwrap_or_default();
    Loader::named(&given)
        .ok_or_else(|| ArgumentError::UnknownWord { key: "prefetch", given, known: Loader::names() }.into())
}

/// All epochs of a model together are limited, too.
fn check_epochs(points: &[Point], resume: Option<WarmStart>) -> Result<()> {
    let before = resume.map_or(0, |resume| resume.epochs);
    let (_, most) = table::limits("max_epochs");
    match points.iter().map(|point| point.max_epochs).find(|more| u64::from(*more) + u64::from(before) > most) {
        Some(more) => Err(invalid("max_epochs", format!("{more} epochs after {before} are more than {most}"))),
        None => Ok(()),
    }
}

/// Bytes that the name of several models may have: what is added takes the other half.
const MAX_PREFIX_BYTES: usize = MAX_NAME_BYTES / 2 - 16;
