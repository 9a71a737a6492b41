//! A search, from the first look at the source to the stored model.

use super::super::explain::explain as explain_training;
use super::super::learners::{check_hessian, check_network};
use super::super::model_choice::source_and_model;
use super::super::phases::{Phase, Phases};
use super::super::processes::Processes;
use super::super::training::Training;
use super::candidates::Candidates;
use super::course::Course;
use super::epochs::Runner;
use super::ranking::{SearchRow, rank};
use super::team::Team;
use super::workers;
use choices::Choice;
use decode::{DecoderSpec, OwnedSpec};
use errors::limits::MAX_WEIGHTS;
use errors::{Result, TrainingError, some_of};
use options::call::TrainArguments;
use options::chosen::Keep;
use options::explain::explain_processes;
use options::request::Request;
use options::rows::Standardize;
use options::search::{Score, SearchArguments, SearchSpec};
use pg::executor::custom_scan::Flags;
use pg::executor::explain::Explain;
use pg::snapshot::Snapshot;
use scan::progress::Progress;
use scan::scan_control::ScanControl;
use std::ffi::c_int;
use std::time::Duration;
use tuples::Batch;

/// A search. It is opened, run once, and closed.
pub struct Search {
    training: Training,
    spec: SearchSpec,
    points: usize,
    processes: Option<u32>,
    outcome: Option<Vec<SearchRow>>,
}

/// Models of all points on all folds that learn at a time.
const MAX_SIDE_BY_SIDE: usize = 10_000;

impl Search {
    /// Plans and starts the read of the source. From then on its privileges are checked and its rows are fixed.
    pub fn open(
        mut arguments: TrainArguments,
        own: &SearchArguments,
        reads: (Snapshot<'_>, c_int, Flags),
    ) -> Result<Search> {
        let phases = Phases::begin();
        if !reads.2.explain_only() {
            // before a sample is read
            model::check_can_store("corgipile_search()");
        }
        let source = source_and_model(&mut arguments, reads.2)?;
        let request = Request::for_search(arguments, own)?;
        let training = Training::open_request((request, source), None, reads, phases)?;
        let Some(spec) = training.request.search.clone() else { panic!("a request for a search has what it takes") };
        Ok(Search { points: training.request.points.len(), training, spec, processes: None, outcome: None })
    }

    /// A row per point, the best first. The first call searches, trains and stores the model.
    pub fn rows(&mut self) -> Result<&[SearchRow]> {
        if self.outcome.is_none() {
            model::check_can_store("corgipile_search()");
            self.outcome = Some(self.search()?);
        }
        Ok(self.outcome.as_deref().unwrap_or_default())
    }

    /// Ends the read of the source.
    pub fn close(self) {
        self.training.close();
    }

    /// What EXPLAIN shows of it, and of the training that it is, and in the end that of the best point.
    pub fn explain(&self, explain: Explain) {
        explain.text(c"Folds", &self.spec.folds);
        explain.integer(c"Points", self.points as i64);
        explain.text(c"Score", self.spec.score().name());
        explain_processes(explain, self.spec.workers, self.processes.filter(|_| explain.analyze()));
        if let Some(best) = self.outcome.as_ref().and_then(|rows| rows.first()).filter(|_| explain.analyze()) {
            explain.text(c"Best Point", &serde_json::Value::Object(best.grid_point.clone()).to_string());
            best.score().into_iter().for_each(|score| explain.float(c"Best Score", score, 6));
        }
        explain_training(&self.training, explain);
    }

    fn search(&mut self) -> Result<Vec<SearchRow>> {
        let mut batch = Batch::dense(0);
        self.training.tell_why_here();
        let shown = Progress::begin(self.training.source.relation, 1, self.training.request.last_epoch());
        let prepared = self.training.prepare(&mut batch)?;
        let at_once = self.folds_at_once(&mut batch)?;
        let course = Course::new(&self.training.request, self.spec.rule, at_once);
        let mut rows: Vec<SearchRow> = self.rows_of_points();
        self.search_all_folds(&course, &mut batch, &mut rows)?;
        self.warn_of_diverged(&rows)?;
        self.tell_of_undefined(&rows);
        rank(&mut rows, self.spec.score());
        self.training.phases.end(Phase::Epochs);
        drop(shown);
        // all that is left is to train the best point
        let watches = self.watches(rows[0].point);
        self.training.request.keep_point(rows[0].point, watches.then_some(rows[0].epochs));
        let _shown = Progress::begin(self.training.source.relation, 1, self.training.request.last_epoch());
        self.training.buffers.decoder.begin_epoch();
        self.training.buffers.control(&ScanControl::epoch(1));
        let history = self.training.learn_and_store(&mut batch, prepared)?;
        rows[0].model_id = history.first().map(|row| row.model_id);
        self.training.summary.rows = Some(history);
        Ok(rows)
    }

    /// Do the rows held out decide how many epochs this point takes?
    fn watches(&self, point: usize) -> bool {
        let request = &self.training.request;
        request.points[point].stopping.is_some() || request.options.keep == Keep::Best
    }

    fn rows_of_points(&self) -> Vec<SearchRow> {
        let folds = self.spec.rule.folds() as usize;
        let points = self.training.request.points.iter().enumerate();
        points.map(|(i, point)| SearchRow::new(i, point.says.clone().unwrap_or_default(), folds)).collect()
    }

    /// As many folds as have room in memory together.
    fn folds_at_once(&mut self, batch: &mut Batch) -> Result<u32> {
        let mut dim = self.training.buffers.decoder.extent().features;
        if dim == 0 {
            self.training.buffers.peek(batch)?;
            dim = batch.dim();
            *batch = Batch::dense(0);
        }
        let Training { request, buffers, .. } = &self.training;
        let outputs = buffers.decoder.labels().outputs();
        for point in &request.points {
            check_network(&point.hyperparameters, dim, outputs)?;
            check_hessian(&point.hyperparameters, dim)?;
        }
        let weights = request.points.iter().map(|point| point.hyperparameters.weights(dim, outputs));
        let (models, weights) = (request.points.len(), weights.fold(0_usize, usize::saturating_add));
        let (folds, room) = (self.spec.rule.folds(), (MAX_SIDE_BY_SIDE / models).min(MAX_WEIGHTS / weights.max(1)));
        match u32::try_from(room).unwrap_or(u32::MAX) {
            0 => Err(TrainingError::TooManyModels { models, dim }.into()),
            room if room < folds => {
                pg::notice(
                    format!(
                        "{room} of {folds} folds are trained at a time: the models of all points on all folds \
                         are too many or too large"
                    ),
                    "The source is read again for each turn. Use fewer points or folds to train all at a time.",
                );
                Ok(room)
            }
            _ => Ok(folds),
        }
    }

    /// Trains and evaluates all points on all folds, in as many processes as are asked for and to be had.
    fn search_all_folds(&mut self, course: &Course, batch: &mut Batch, rows: &mut [SearchRow]) -> Result<()> {
        let (workers, mut team) = self.launch_workers(course, batch)?;
        for folds in course.turns() {
            let buffers = &mut self.training.buffers;
            let mut runner = Runner { course, team: &mut team, buffers, batch, compute: Duration::ZERO };
            let candidates = runner.run(folds)?;
            self.training.phases.compute += runner.compute;
            self.take(&candidates, rows);
        }
        workers.into_iter().for_each(|workers| workers.finish(&mut self.training.buffers));
        self.training.seen.skipped_rows_reported = true;
        Ok(())
    }

    /// Starts workers, if some were asked for and can be had, and gives the leader's place among them.
    fn launch_workers(&mut self, course: &Course, batch: &mut Batch) -> Result<(Option<Processes>, Team)> {
        let asked = self.spec.workers;
        if asked == 1 {
            return Ok((None, Team::alone()));
        }
        let Training { request, source, buffers, .. } = &mut self.training;
        let spec = OwnedSpec::new(&DecoderSpec::of_request(request, &source.features), &source.columns);
        let (workers, team) = workers::launch(asked, course, (spec, &request.shuffling), buffers, batch)?;
        self.processes = Some(team.rank().processes);
        Ok((workers, team))
    }

    /// Takes what came of all points on some folds.
    fn take(&self, candidates: &Candidates, rows: &mut [SearchRow]) {
        let mut epochs = vec![(0, 0); self.points];
        for candidate in candidates.iter() {
            let row = &mut rows[candidate.point];
            let score = candidate.result.map(|result| match self.spec.score() {
                Score::Loss => result.loss,
                Score::Accuracy | Score::R2 => result.score,
            });
            row.scores[candidate.fold as usize] = score.filter(|score| !score.is_nan());
            row.losses[candidate.fold as usize] = candidate.result.map(|result| result.loss);
            let (sum, count) = &mut epochs[candidate.point];
            (*sum, *count) = (*sum + u64::from(candidate.epochs), *count + 1);
        }
        for (row, (sum, count)) in rows.iter_mut().zip(epochs) {
            // of several turns the last counts: they differ by little
            row.epochs = (sum as f64 / f64::from(count.max(1))).round().max(1.0) as u32;
        }
    }

    /// Tells which points have diverged on a fold, and fails if all of them have.
    fn warn_of_diverged(&self, rows: &[SearchRow]) -> Result<()> {
        let diverged: Vec<&SearchRow> = rows.iter().filter(|row| row.loss().is_none()).collect();
        if diverged.len() == rows.len() {
            let standardized = self.training.request.options.standardize != Standardize::None;
            let epoch = rows.iter().map(|row| row.epochs).max().unwrap_or_default();
            return Err(TrainingError::Diverged { epoch, standardized }.into());
        }
        if !diverged.is_empty() {
            let points = diverged.iter().map(|row| serde_json::Value::Object(row.grid_point.clone()).to_string());
            let points: Vec<String> = points.collect();
            pg::warning(
                format!("{} of {} points diverged: {}", points.len(), rows.len(), some_of(&points)),
                "They are ranked last. Use smaller learning rates.",
            );
        }
        Ok(())
    }

    /// Tells of folds whose labels are all the same, which leave R² undefined and the loss to rank points by.
    fn tell_of_undefined(&self, rows: &[SearchRow]) {
        let Some(row) = rows.iter().find(|row| row.loss().is_some()) else { return };
        let folds = row.scores.iter().filter(|score| score.is_none()).count();
        if folds > 0 {
            let of = row.scores.len();
            pg::notice(
                format!(
                    "R2 is not defined in {folds} of {of} folds, whose labels are all the same: points are ranked by their loss"
                ),
                "Use fewer folds: each then has more rows.",
            );
        }
    }
}
