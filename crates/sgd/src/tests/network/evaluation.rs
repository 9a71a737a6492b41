//! What networks learn, and how they are judged.

use choices::Choice;
use sgd_tests::{Noise, decision};

use super::super::mini_batches::mini_batches_of;
use super::*;
use crate::Evaluation;

#[test]
fn a_network_learns_what_no_linear_model_can() {
    let tuples: Vec<(f32, Vec<f32>, f32)> =
        [(0.0, [0.0, 0.0]), (1.0, [0.0, 1.0]), (1.0, [1.0, 0.0]), (0.0, [1.0, 1.0])]
            .map(|(y, x)| (y, x.to_vec(), 1.0))
            .to_vec();
    for &(_, activation) in Activation::ALL {
        for output in Output::OF_CLASSES {
            let hyper = Hyperparameters { learning_rate: 0.5, batch_size: 4, ..hyper(&[8], activation, output) };
            let mut trainer = Trainer::new(hyper, 2, 2, false).unwrap();
            train(&mut trainer, &dense(&tuples), 4000);
            let mut evaluation = Evaluation::new(ModelKind::Mlp);
            evaluation.add(&trainer.model().unwrap(), &dense(&tuples));
            assert_eq!(evaluation.accuracy(), Some(1.0), "{activation:?} {output:?}");
            assert!(evaluation.loss() < 0.1 && evaluation.log_loss() == evaluation.loss(), "{}", evaluation.loss());
        }
    }
}

#[test]
fn what_is_judged_is_what_is_decided_dense_or_sparse() {
    for (output, classes) in OUTPUTS.into_iter().filter(|(output, _)| output.has_classes()) {
        let tuples = tuples(60, 7, classes, 2);
        let mut trainer = Trainer::new(hyper(&[6, 4], Activation::Relu, output), 7, classes, false).unwrap();
        train(&mut trainer, &dense(&tuples), 2);
        let model = trainer.model().unwrap();
        let (book, network) = (Book::new(&model), model.network.unwrap());
        let weights: f64 = tuples.iter().map(|(.., weight)| f64::from(*weight)).sum();
        for batch in [dense(&tuples), sparse(&tuples)] {
            let mut evaluation = Evaluation::new(ModelKind::Mlp);
            let mut shown = Vec::new();
            evaluation.add_and_show(&model, &batch, |decisions, y| shown.push((decisions.to_vec(), y)));
            let (mut correct, mut log_loss) = (0.0, 0.0);
            for ((decisions, y), (label, x, weight)) in shown.iter().zip(&tuples) {
                let mut own = vec![0.0; model.outputs];
                if batch.is_sparse() {
                    let (i, v): (Vec<u32>, Vec<f32>) = (0..).zip(x).filter(|(_, x)| **x != 0.0).unzip();
                    model.decisions_sparse(&i, &v, &mut own);
                } else {
                    model.decisions(x, &mut own);
                }
                assert_eq!((decisions, *y), (&own, f64::from(*label)));
                let mut p = vec![0.0; classes];
                network.probabilities(&own, &mut p);
                log_loss -= f64::from(*weight) * p[*y as usize].ln() / weights;
                let class = (0..classes).fold(0, |best, k| if p[k] > p[best] { k } else { best });
                correct += f64::from(u8::from(class == *y as usize)) / 60.0;
            }
            let loss = tuples.iter().map(|(y, x, w)| f64::from(*w) * book.loss(x, *y)).sum::<f64>() / weights;
            assert!((evaluation.loss() - loss).abs() < 1e-5, "{} {loss}", evaluation.loss());
            assert!((evaluation.log_loss() - log_loss).abs() < 1e-9, "{} {log_loss}", evaluation.log_loss());
            assert!((evaluation.accuracy().unwrap() - correct).abs() < 1e-9);
        }
        let mut evaluation = Evaluation::new(ModelKind::Mlp);
        evaluation.add(&model, &mini_batches_of(&dense(&tuples), 25));
        let loss = tuples.iter().map(|(y, x, w)| f64::from(*w) * book.loss(x, *y)).sum::<f64>() / weights;
        assert!((evaluation.loss() - loss).abs() < 1e-5, "{} {loss}", evaluation.loss());
        assert_eq!(evaluation.tuples(), 60);
    }
}

#[test]
fn a_network_learns_a_function_that_is_not_linear_and_is_judged_by_its_errors() {
    let mut noise = Noise::new(5);
    let mut tuple = || {
        let x = [noise.next(), noise.next()];
        (x[0] * x[1] + 2.0, x.to_vec(), 1.0)
    };
    let tuples: Vec<_> = (0..400).map(|_| tuple()).collect();
    for &(_, activation) in Activation::ALL {
        let hyper = hyper(&[30], activation, Output::Identity);
        let hyper = Hyperparameters { learning_rate: 0.005, batch_size: 4, optimizer: Optimizer::ADAM, ..hyper };
        let mut trainer = Trainer::new(hyper, 2, 1, false).unwrap();
        train(&mut trainer, &dense(&tuples), 400);
        let model = trainer.model().unwrap();
        let errors: Vec<f64> = tuples.iter().map(|(y, x, _)| f64::from(decision(&model, x)) - f64::from(*y)).collect();
        for batch in [dense(&tuples), sparse(&tuples)] {
            let mut evaluation = Evaluation::new(ModelKind::MlpRegression);
            evaluation.add(&model, &batch);
            let squares = errors.iter().map(|e| e * e).sum::<f64>();
            let mean = tuples.iter().map(|(y, _, _)| f64::from(*y)).sum::<f64>() / 400.0;
            let spread = tuples.iter().map(|(y, _, _)| (f64::from(*y) - mean).powi(2)).sum::<f64>();
            let close = |a: Option<f64>, b: f64| assert!((a.unwrap() - b).abs() < 1e-4, "{a:?} {b} {activation:?}");
            close(evaluation.r2(), 1.0 - squares / spread);
            close(evaluation.rmse(), (squares / 400.0).sqrt());
            close(evaluation.mae(), errors.iter().map(|e| e.abs()).sum::<f64>() / 400.0);
            assert!(
                evaluation.r2() > Some(0.9) && evaluation.accuracy().is_none(),
                "{activation:?} {:?}",
                evaluation.r2()
            );
        }
    }
}

#[test]
fn too_large_a_rate_is_an_error() {
    let tuples = tuples(30, 5, 2, 2);
    let hyper = Hyperparameters { learning_rate: 1e30, ..hyper(&[4, 4], Activation::Relu, Output::Softmax) };
    let mut trainer = Trainer::new(hyper, 5, 2, false).unwrap();
    let diverged = (0..20).find_map(|_| {
        trainer.begin_epoch();
        trainer.learn(&dense(&tuples), 0..30).unwrap();
        trainer.end_epoch().err()
    });
    assert!(diverged.is_some());
}
