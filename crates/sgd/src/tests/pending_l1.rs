//! Penalties that are smaller than what f32 can take from a weight at once, against training in f64 that takes each at
//! its time.

use linear::aggregate::StateMut;
use loss::{Hyperparameters, ModelKind, Optimizer, Schedule};
use sgd_tests::{Noise, sparse_of, textbook_step};
use tuples::Batch;

use super::aggregate::new;
use super::data_parallel::train_synchronized;
use crate::Trainer;

const EPOCHS: u32 = 2_000;
const DIM: usize = 4;

/// Features that a hyperplane separates: weights grow beyond 2, of which f32 cannot take 1e-7.
fn tuples(n: usize) -> Batch {
    let mut batch = Batch::new(DIM);
    let mut noise = Noise::new(21);
    for _ in 0..n {
        let row: Vec<f32> = (0..DIM).map(|_| noise.next()).collect();
        let z: f32 = row.iter().enumerate().map(|(j, x)| x * (j as f32 - 1.2)).sum();
        batch.push(if z > 0.0 { 1.0 } else { -1.0 }).unwrap().copy_from_slice(&row);
    }
    batch
}

/// The weights in the end, trained in f64 as the definition says.
fn oracle(hyper: &Hyperparameters, batch: &Batch) -> Vec<f64> {
    let (mut w, mut v) = (vec![0.0; DIM + 1], vec![0.0; DIM + 1]);
    let mut m = [0.0; DIM + 1];
    let mut t = 0;
    for _ in 0..EPOCHS {
        for rows in (0..batch.len()).collect::<Vec<_>>().chunks(hyper.batch_size as usize) {
            let mut gradient = [0.0; DIM + 1];
            for &i in rows {
                let x: Vec<f64> = batch.features(i).iter().map(|x| f64::from(*x)).chain([1.0]).collect();
                let y = f64::from(batch.label(i));
                let z: f64 = x.iter().zip(&w).map(|(x, w)| x * w).sum();
                let slope = -y / (1.0 + (y * z).exp()) / rows.len() as f64;
                gradient.iter_mut().zip(x).for_each(|(g, x)| *g += slope * x);
            }
            t += 1;
            for j in 0..=DIM {
                let rate = hyper.learning_rate;
                w[j] -= rate * textbook_step(hyper.optimizer, t, [&mut m[j], &mut v[j]], gradient[j]);
                if j < DIM {
                    w[j] = w[j].signum() * (w[j].abs() - rate * hyper.l1).max(0.0);
                }
            }
        }
    }
    w.truncate(DIM);
    w
}

fn train(hyper: Hyperparameters, batch: &Batch, again: bool) -> Vec<f64> {
    let mut trainer = Trainer::new(hyper, DIM, 1, batch.is_sparse()).unwrap();
    for epoch in 0..EPOCHS {
        trainer.begin_epoch();
        trainer.learn(batch, 0..batch.len()).unwrap();
        trainer.end_epoch().unwrap();
        if again && epoch % 100 == 7 {
            trainer = Trainer::resume(hyper, 1, batch.is_sparse(), &trainer.save(Vec::new())).unwrap();
        }
    }
    trainer.model().unwrap().weights.iter().map(|w| f64::from(*w)).collect()
}

fn aggregate(hyper: Hyperparameters, batch: &Batch) -> Vec<f64> {
    let mut bytes = new(hyper, DIM, 1, false).unwrap();
    for _ in 0..EPOCHS {
        let mut state = StateMut::from_bytes(&mut bytes).unwrap();
        for i in 0..batch.len() {
            state.learn_dense(batch.label(i), batch.features(i), 1.0).unwrap();
        }
        state.finish_epoch().unwrap();
    }
    StateMut::from_bytes(&mut bytes).unwrap().model().unwrap().weights.iter().map(|w| f64::from(*w)).collect()
}

fn length(w: &[f64]) -> f64 {
    w.iter().map(|w| w.abs()).sum()
}

/// Checks that the penalty has all of its effect on |w|₁, no matter who trains.
fn check(what: &str, hyper: Hyperparameters, batch: &Batch, ways: &[(&str, &Way)]) {
    let free = Hyperparameters { l1: 0.0, ..hyper };
    let expected = length(&oracle(&free, batch)) - length(&oracle(&hyper, batch));
    for (way, train) in ways {
        let kept = (length(&train(free, batch)) - length(&train(hyper, batch))) / expected;
        println!("{what}, {way}: {kept:.3} of the effect of l1");
        assert!((kept - 1.0).abs() < 0.02, "{what}, {way}: {kept:.3} of the effect of l1");
    }
}

/// From hyperparameters and tuples to weights.
type Way = dyn Fn(Hyperparameters, &Batch) -> Vec<f64>;

fn hyper() -> Hyperparameters {
    let schedule = Schedule::Constant;
    Hyperparameters { l1: 1e-3, learning_rate: 1e-4, schedule, ..Hyperparameters::new(ModelKind::Logistic) }
}

fn as_sparse(batch: &Batch) -> Batch {
    sparse_of((0..batch.len()).map(|i| (batch.label(i), batch.features(i))))
}

fn dense(hyper: Hyperparameters, batch: &Batch) -> Vec<f64> {
    train(hyper, batch, false)
}

fn sparse(hyper: Hyperparameters, batch: &Batch) -> Vec<f64> {
    train(hyper, &as_sparse(batch), false)
}

#[test]
fn a_penalty_below_the_resolution_of_f32_has_all_of_its_effect_in_the_end() {
    check("plain", hyper(), &tuples(200), &[("dense", &dense), ("sparse", &sparse)]);
    let adam = Hyperparameters { optimizer: Optimizer::ADAM, learning_rate: 4e-5, l1: 0.01, ..hyper() };
    for (what, hyper) in [
        ("momentum", Hyperparameters { optimizer: Optimizer::Momentum { beta: 0.5 }, ..hyper() }),
        ("adam", adam),
        ("a batch per epoch", Hyperparameters { learning_rate: 1e-2, batch_size: 100, l1: 1e-5, ..hyper() }),
    ] {
        check(what, hyper, &tuples(100), &[("dense", &dense), ("sparse", &sparse)]);
    }
}

#[test]
fn what_is_owed_outlives_epochs_and_states() {
    let hyper = Hyperparameters { learning_rate: 1e-2, batch_size: 100, l1: 1e-5, ..hyper() };
    let resumed = |hyper, batch: &Batch| train(hyper, batch, true);
    let resumed_sparse = |hyper, batch: &Batch| train(hyper, &as_sparse(batch), true);
    let ways: [(&str, &Way); 3] =
        [("resumed", &resumed), ("resumed, sparse", &resumed_sparse), ("aggregate", &aggregate)];
    check("a batch per epoch", hyper, &tuples(100), &ways);
}

#[test]
fn replicas_owe_what_one_trainer_owes() {
    let weights = |batch: &Batch, hyper| {
        let all = train_synchronized(hyper, batch, 1, 2, EPOCHS);
        assert_eq!(all[0].0, all[1].0, "replicas are the same");
        all[0].0.weights.iter().map(|w| f64::from(*w)).collect()
    };
    let dense = move |hyper, batch: &Batch| weights(batch, hyper);
    let sparse = move |hyper, batch: &Batch| weights(&as_sparse(batch), hyper);
    let hyper = Hyperparameters { learning_rate: 1e-2, batch_size: 100, l1: 1e-5, ..hyper() };
    check("two processes", hyper, &tuples(100), &[("dense", &dense), ("sparse", &sparse)]);
}
