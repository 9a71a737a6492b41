//! Weights that the penalty l1 holds at 0, which are 0 in the stored model: the rows that the models have learned from
//! are read once more after the last epoch.
//!
//! The state of the training stays that of its trainer, so that a warm start goes on as if nothing had been stored.

use super::group_order::Rows;
use super::learners::{Learner, Learners};
use super::validation::{EndedEpoch, read_again};
use errors::Result;
use loss::ModelParameters;
use options::request::Request;
use pg::check_for_interrupts;
use sgd::Zeros;

/// Memory for the sums of models that are added up at once, while the source is read.
const MEMORY: usize = 256 << 20;

/// Rows that a model adds up at once.
const PER_SUM: usize = 4096;

/// Whether some model may have weights that should be 0 and are not. A model of the training that is continued is
/// stored as it is.
pub fn may_be_missing(request: &Request, continues: bool, learners: &Learners) -> bool {
    learners.trained().any(|learner| may_miss(request, continues, learner))
}

fn may_miss(request: &Request, continues: bool, learner: &Learner) -> bool {
    Zeros::may_be_missing(&learner.trainer) && !(continues && learner.keeps_earlier(request))
}

/// Finds the weights that should be 0 in all models that are to be stored, by reading the epoch once more.
pub fn find(request: &Request, continues: bool, learners: &mut Learners, mut rows: EndedEpoch<'_>) -> Result<()> {
    let mut waiting: Vec<&mut Learner> =
        learners.trained_mut().filter(|learner| may_miss(request, continues, learner)).collect();
    while !waiting.is_empty() {
        let mut sums: Vec<(usize, Zeros)> = Vec::new();
        let mut bytes = 0;
        for learner in &mut waiting {
            let model = learner.final_model()?;
            bytes += Zeros::bytes(model.weights.len());
            if bytes > MEMORY && !sums.is_empty() {
                break;
            }
            sums.push((learner.group, Zeros::new(&learner.trainer, model, learner.final_loss_number())?));
        }
        add_up(&mut sums, rows.again())?;
        let models: Vec<ModelParameters> = sums.into_iter().map(|(_, zeros)| zeros.cut()).collect();
        let found = models.len();
        waiting.drain(..found).zip(models).for_each(|(learner, model)| learner.set_zeros(model));
    }
    Ok(())
}

/// Adds up the gradients of models, which are in ascending sequence of their groups.
fn add_up(sums: &mut [(usize, Zeros)], rows: EndedEpoch<'_>) -> Result<()> {
    debug_assert!(sums.is_sorted_by_key(|(group, _)| *group), "models by group");
    read_again(rows, Rows::Learned, |group, _, batch, places| {
        let first = sums.partition_point(|(of, _)| *of < group);
        for places in places.chunks(PER_SUM) {
            for (_, zeros) in sums[first..].iter_mut().take_while(|(of, _)| *of == group) {
                check_for_interrupts();
                zeros.add(batch, places)?;
            }
        }
        Ok(())
    })
}
