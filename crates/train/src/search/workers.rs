//! The worker processes of a search.
//!
//! The leader makes all choices that depend on the rows. Then every process reads all rows, as the leader would alone,
//! for the models that it was dealt. The leader trains and stores the best point once the workers have ended.

use super::super::processes::{Asked, Part, Processes};
use super::course::Course;
use super::epochs::Runner;
use super::team::Team;
use decode::OwnedSpec;
use errors::{OrRaise, Result};
use options::shuffling::Shuffling;
use pg::process::parallel::{Worker, WorkerKind};
use scan::Buffers;
use scan::worker_rows::read;
use sgd::most_processes;
use std::time::Duration;
use tuples::Batch;

/// Workers that train some of the models of a search.
pub const KIND: WorkerKind = WorkerKind { name: c"corgipile search", main: |worker| work(worker).or_raise() };

/// Starts the workers of this many processes, if they are to be had, before the first epoch, which is the next. Gives
/// the leader's place among them. Reports if there are fewer than were asked for. `batch` is empty afterwards.
pub fn launch(
    asked: u32,
    course: &Course,
    (spec, shuffling): (OwnedSpec, &Shuffling),
    buffers: &mut Buffers,
    batch: &mut Batch,
) -> Result<(Option<Processes>, Team)> {
    let few = "more processes would have nothing to do";
    let wanted = Asked { kind: KIND.name, processes: asked, spec, shuffling, divides: false, few };
    let plan = |buffers: &Buffers, batch: &Batch| {
        let folds = course.turns().next().unwrap_or_default();
        let most = most_processes(&course.loads(folds, batch, buffers.decoder.labels().outputs()));
        Ok((u32::try_from(most).unwrap_or(u32::MAX), Some(course)))
    };
    let tell = |processes: u32, why: String| {
        pg::notice(
            format!("the search runs in {processes} of {asked} processes: {why}"),
            "The result is the same with any number of workers.",
        );
    };
    let launched = Processes::launch(wanted, (buffers, batch), plan, &[], tell)?;
    Ok(match launched {
        Some((processes, _)) => {
            let team = Team::new(processes.all_gather(), processes.rank);
            (Some(processes), team)
        }
        None => (None, Team::alone()),
    })
}

fn work(worker: Worker) -> Result<()> {
    let Some((mut part, all_gather)) = Part::join(&worker)? else { return Ok(()) };
    let course: Course = read(worker.data(1));
    let (team, batch) = (&mut Team::new(all_gather, part.rank), &mut Batch::dense(0));
    let mut runner = Runner { course: &course, team, buffers: &mut part.buffers, batch, compute: Duration::ZERO };
    for folds in course.turns() {
        runner.run(folds)?;
    }
    part.end(&worker);
    Ok(())
}
