//! A panel's models against those of trainers that learn by themselves.

use linear::Panel;
use loss::{Hyperparameters, ModelKind, ModelParameters, Solver};
use sgd_tests::noisy_batch;
use simd::Level;
use tuples::Batch;

use crate::Trainer;

const KINDS: [ModelKind; 3] = [ModelKind::Logistic, ModelKind::Svm, ModelKind::Linear];

/// Twenty settings: rates, penalties, bounded or not, averaged or not.
fn settings(kind: ModelKind) -> Vec<Hyperparameters> {
    let setting = |i: usize| Hyperparameters {
        learning_rate: [0.003, 0.03, 0.1, 0.2][i % 4],
        l2: [0.0, 1e-6, 1e-2, 0.3, 2.0][i % 5],
        bounded: i.is_multiple_of(2),
        averaging: i.is_multiple_of(3),
        ..Hyperparameters::new(kind)
    };
    (0..20).map(setting).collect()
}

/// The part of a tuple, of three.
fn part(place: u32) -> u32 {
    place * 7 % 3
}

/// The models of a panel after some epochs, cut into ranges of this many tuples: each setting learns without part 0, 1,
/// 2, and from all of them.
fn panel(kind: ModelKind, batch: &Batch, epochs: u32, cut: usize, level: Level) -> Vec<ModelParameters> {
    let models = (0..4).flat_map(|fold| {
        settings(kind).into_iter().map(move |hyper| (hyper, (0..3).map(|part| part != fold).collect()))
    });
    let mut panel = Panel::new(models.collect(), batch.dim()).unwrap().on(level);
    let parts: Vec<u32> = batch.order().iter().map(|place| part(*place)).collect();
    for _ in 0..epochs {
        panel.begin_epoch();
        for start in (0..parts.len()).step_by(cut) {
            panel.learn(batch, &parts, start..(start + cut).min(parts.len()));
        }
        panel.end_epoch();
    }
    (0..80).map(|i| panel.loss(i).map(|_| panel.model(i)).unwrap()).collect()
}

fn alone(hyper: Hyperparameters, batch: &Batch, epochs: u32, fold: u32) -> ModelParameters {
    let mut own = Batch::new(batch.dim());
    (0..batch.len()).for_each(|i| own.push(batch.label(i)).unwrap().copy_from_slice(batch.features(i)));
    let order: Vec<u32> = batch.order().iter().copied().filter(|place| part(*place) != fold).collect();
    own.set_order(&order).unwrap();
    let mut trainer = Trainer::new(hyper, batch.dim(), 1, false).unwrap();
    for _ in 0..epochs {
        trainer.begin_epoch();
        trainer.learn(&own, 0..order.len()).unwrap();
        trainer.end_epoch().unwrap();
    }
    trainer.model().unwrap()
}

/// The largest difference of two models, by the largest number.
fn difference(a: &ModelParameters, b: &ModelParameters) -> f32 {
    let numbers = |model: &ModelParameters| -> Vec<f32> { [&model.weights[..], &model.intercepts].concat() };
    let (a, b) = (numbers(a), numbers(b));
    let largest = b.iter().fold(1e-3_f32, |largest, x| largest.max(x.abs()));
    a.iter().zip(&b).fold(0.0_f32, |most, (a, b)| most.max((a - b).abs())) / largest
}

#[test]
fn each_model_of_a_panel_is_that_of_a_trainer_by_itself_on_its_parts() {
    for kind in KINDS {
        let batch = noisy_batch(13, 2_000, 5);
        let models = panel(kind, &batch, 3, 2_000, Level::detect());
        for fold in 0..4_u32 {
            for (i, hyper) in settings(kind).into_iter().enumerate() {
                let own = alone(hyper, &batch, 3, fold);
                let model = &models[fold as usize * 20 + i];
                // means of iterates are taken at other times where a part is left out; the hinge has a kink
                let bound = match (kind, hyper.averaging && fold < 3) {
                    (_, true) => 0.15,
                    (ModelKind::Svm, false) => 0.02,
                    (_, false) => 1e-3,
                };
                let found = difference(model, &own);
                assert!(found < bound, "{kind}, fold {fold}, {hyper:?}: {found}");
            }
        }
    }
}

#[test]
fn a_model_depends_neither_on_the_instruction_set_nor_on_how_the_tuples_were_cut() {
    for kind in KINDS {
        let batch = noisy_batch(18, 500, 6);
        let models = panel(kind, &batch, 2, 500, Level::PORTABLE);
        for level in Level::available() {
            for cut in [1, 7, 64, 500] {
                assert_eq!(models, panel(kind, &batch, 2, cut, level), "{kind} {level:?} {cut}");
            }
        }
    }
}

#[test]
fn a_model_that_diverges_is_told_and_the_others_learn_on() {
    let batch = noisy_batch(5, 300, 7);
    let hyper = |learning_rate| Hyperparameters { learning_rate, ..Hyperparameters::new(ModelKind::Linear) };
    let mut panel = Panel::new(vec![(hyper(0.01), vec![true]), (hyper(50.0), vec![true])], 5).unwrap();
    for _ in 0..5 {
        panel.begin_epoch();
        panel.learn(&batch, &vec![0; 300], 0..300);
        panel.end_epoch();
    }
    assert!(panel.loss(0).is_ok() && panel.loss(1).is_err());
    panel.stop(1);
    let before = panel.model(0);
    panel.begin_epoch();
    panel.learn(&batch, &vec![0; 300], 0..300);
    panel.end_epoch();
    assert!(panel.loss(0).is_ok() && panel.model(0) != before);
}

#[test]
fn a_panel_has_no_models_of_newtons_method() {
    let hyper = Hyperparameters::new(ModelKind::Logistic);
    assert!(Panel::supports(&hyper, 28, false));
    assert!(!Panel::supports(&Hyperparameters { solver: Solver::Newton, ..hyper }, 28, false));
}
