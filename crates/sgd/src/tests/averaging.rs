//! The mean of the iterates against its definition, and steps that are bounded.

use loss::{Hyperparameters, ModelKind, ModelParameters, Optimizer};
use tuples::Batch;

use super::textbook::{dense, outputs_of, sparse, tuples};
use crate::Trainer;

fn hyper(kind: ModelKind) -> Hyperparameters {
    let learning_rate = 0.05 / kind.curvature().max(1.0);
    Hyperparameters { learning_rate, bounded: true, averaging: true, ..Hyperparameters::new(kind) }
}

/// The model after this many epochs, learned from in pieces that end at these places.
fn train(hyper: Hyperparameters, outputs: usize, batch: &Batch, epochs: u32, cuts: &[usize]) -> ModelParameters {
    let mut trainer = Trainer::new(hyper, batch.dim(), outputs, batch.is_sparse()).unwrap();
    for _ in 0..epochs {
        trainer.begin_epoch();
        let mut from = 0;
        for &cut in cuts.iter().chain([&batch.len()]) {
            trainer.learn(batch, from..cut).unwrap();
            from = cut;
        }
        trainer.end_epoch().unwrap();
    }
    trainer.model().unwrap()
}

fn numbers(model: &ModelParameters) -> impl Iterator<Item = f32> {
    model.weights.iter().chain(&model.intercepts).copied()
}

#[test]
fn the_model_is_the_mean_of_its_iterates_weighted_by_the_cube_of_their_time() {
    for kind in ModelKind::LINEAR {
        let outputs = outputs_of(kind);
        let rows = tuples(kind, 5, outputs, 2000, 3);
        for batch in [dense(&rows, false), sparse(&rows, false)] {
            for (l1, l2, batch_size) in [(0.0, 0.0, 1), (0.001, 0.01, 1), (0.0, 0.01, 7)] {
                let averaged = Hyperparameters { l1, l2, batch_size, ..hyper(kind) };
                let plain = Hyperparameters { averaging: false, ..averaged };
                let mut trainer = Trainer::new(plain, 5, outputs, batch.is_sparse()).unwrap();
                let (mut sum, mut weights) = (vec![0.0; 6 * outputs], 0.0);
                for epoch in 0..2 {
                    trainer.begin_epoch();
                    for i in 0..batch.len() {
                        trainer.learn(&batch, i..i + 1).unwrap();
                        let time = f64::from(epoch * 2000 + i as u32 + 1).powi(3);
                        weights += time;
                        let model = trainer.model().unwrap();
                        sum.iter_mut().zip(numbers(&model)).for_each(|(sum, w)| *sum += time * f64::from(w));
                    }
                    trainer.end_epoch().unwrap();
                }
                let mean = train(averaged, outputs, &batch, 2, &[]);
                let spread: f64 = sum.iter().map(|sum| (sum / weights).abs()).fold(0.0, f64::max);
                for (ours, exact) in numbers(&mean).zip(&sum) {
                    let difference = (f64::from(ours) - exact / weights).abs();
                    // iterates are added now and then: of the tuples between two of them, the last one's counts for all
                    assert!(difference < 0.02 * spread, "{kind} {ours} {} {batch_size}", exact / weights);
                }
            }
        }
    }
}

#[test]
fn the_mean_does_not_depend_on_how_tuples_come() {
    for kind in ModelKind::LINEAR {
        let outputs = outputs_of(kind);
        let rows = tuples(kind, 20, outputs, 700, 9);
        for batch in [dense(&rows, true), sparse(&rows, true)] {
            for batch_size in [1, 6] {
                let hyper = Hyperparameters { batch_size, ..hyper(kind) };
                let at_once = train(hyper, outputs, &batch, 3, &[]);
                assert_eq!(train(hyper, outputs, &batch, 3, &[1, 2, 50, 51, 333]), at_once);
                assert_ne!(train(Hyperparameters { averaging: false, ..hyper }, outputs, &batch, 3, &[]), at_once);
            }
        }
    }
}

#[test]
fn a_training_that_goes_on_comes_to_the_mean_that_it_would_have_come_to_at_once() {
    for kind in ModelKind::LINEAR {
        let outputs = outputs_of(kind);
        let rows = tuples(kind, 20, outputs, 700, 11);
        for batch in [dense(&rows, false), sparse(&rows, false)] {
            let hyper = hyper(kind);
            let epochs = |trainer: &mut Trainer, count| {
                for _ in 0..count {
                    trainer.begin_epoch();
                    trainer.learn(&batch, 0..batch.len()).unwrap();
                    trainer.end_epoch().unwrap();
                }
            };
            let mut first = Trainer::new(hyper, 20, outputs, batch.is_sparse()).unwrap();
            epochs(&mut first, 2);
            let mut second = Trainer::resume(hyper, outputs, batch.is_sparse(), &first.save(Vec::new())).unwrap();
            epochs(&mut second, 3);
            assert_eq!(second.model().unwrap(), train(hyper, outputs, &batch, 5, &[]));
        }
    }
}

#[test]
fn bounded_steps_do_not_diverge_whatever_the_rate_and_the_rows() {
    for kind in ModelKind::LINEAR {
        let outputs = outputs_of(kind);
        let mut rows = tuples(kind, 30, outputs, 500, 13);
        // one in a hundred is a thousand times as long
        rows.iter_mut().step_by(100).for_each(|row| row.features.iter_mut().for_each(|x| *x *= 1000.0));
        for batch in [dense(&rows, true), sparse(&rows, true)] {
            for optimizer in [Optimizer::Sgd, Optimizer::Momentum { beta: 0.5 }] {
                for (batch_size, learning_rate) in [(1, 0.1), (1, 1e6), (20, 0.1), (20, 1e6)] {
                    let hyper = Hyperparameters { learning_rate, batch_size, optimizer, ..hyper(kind) };
                    let model = train(hyper, outputs, &batch, 20, &[]);
                    assert!(model.is_finite());
                    let largest = numbers(&model).fold(0.0, |most: f32, w| most.max(w.abs()));
                    assert!(largest < 1e5, "{kind} {hyper:?} {largest}");
                }
            }
        }
    }
}

#[test]
fn what_cannot_be_bounded_or_averaged_is_refused() {
    let refused = |hyper: Hyperparameters| hyper.validate().unwrap_err().name;
    let linear = hyper(ModelKind::Linear);
    assert_eq!(linear.validate(), Ok(()));
    assert_eq!(refused(Hyperparameters { optimizer: Optimizer::ADAM, ..linear }), "bounded_steps");
    let schedule = loss::Schedule::Theorem1 { mu: 0.1, a: None };
    assert_eq!(refused(Hyperparameters { schedule, ..linear }), "averaging");
    let network = Hyperparameters::new(ModelKind::Mlp);
    assert_eq!(refused(Hyperparameters { bounded: true, ..network }), "bounded_steps");
    assert_eq!(refused(Hyperparameters { averaging: true, ..network }), "averaging");
}
