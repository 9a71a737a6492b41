//! A trainer between two epochs as bytes, and a trainer of such bytes.
//!
//! Guarantees: a trainer that was saved and read learns on as if nothing had happened, bit for bit; of bytes that were
//! not saved by a trainer like it there comes no trainer, and nothing worse. Numbers are little-endian, and
//! [packed](loss::packed).

use loss::bytes::Coder;
use loss::packed::{Packer, unpack};
use loss::{Design, Hyperparameters, ModelKind, ModelParameters, Solver};

use crate::Trainer;
use crate::engines::EngineKind;

/// Says that bytes are a trainer.
const MAGIC: &[u8] = b"cgptrn03";

/// The same of weights that a new training begins with.
const MAGIC_INITIAL: &[u8] = b"cgpini02";

/// Bytes that [`Trainer::resume`] makes a trainer of before its first epoch, in whatever way it is to learn, whose
/// weights are those of this model.
pub fn initial_state(mut model: ModelParameters) -> Vec<u8> {
    let mut packer = Packer::new(Some(MAGIC_INITIAL.to_vec()));
    let mut to = Coder::Write(&mut packer);
    let written = to.value(&mut sizes(&model)).and_then(|()| code_numbers(&mut model, &mut to));
    debug_assert!(written.is_some(), "whatever is written can be");
    packer.finish()
}

/// Why bytes are no trainer that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// They are empty, or one of another size or kind.
    #[error("its training state cannot be read")]
    Malformed,
    /// It was trained in another way.
    #[error("its network has other hidden_layer_sizes, activation or output")]
    OtherWay,
}

impl Trainer {
    /// Everything that learning goes on from, between two epochs: behind what `bytes` has already.
    pub fn save(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.extend_from_slice(MAGIC);
        self.pack(Some(bytes)).finish()
    }

    /// How many bytes [`save`](Trainer::save) writes, which takes about as long; None if they are too many for
    /// [`resume`](Trainer::resume).
    pub fn saved_len(&mut self) -> Option<usize> {
        Some(MAGIC.len() + self.pack(None).count()?)
    }

    fn pack(&mut self, to: Option<Vec<u8>>) -> Packer {
        let mut packer = Packer::new(to);
        let mut to = Coder::Write(&mut packer);
        let mut header = [configuration(&self.hyper, self.sparse), self.engine.room() as u64, self.epoch.into()];
        let written = to.value(&mut header).and_then(|()| self.code(&mut to));
        debug_assert!(written.is_some(), "whatever is written can be");
        packer
    }

    /// Writes or reads the rest behind the header.
    fn code(&mut self, coder: &mut Coder<'_>) -> Option<()> {
        self.engine.code(coder)?;
        self.theorem.as_mut().map_or(Some(()), |theorem| theorem.code(coder))?;
        self.iterates.as_mut().map_or(Some(()), |iterates| iterates.code(coder))?;
        self.mean.as_mut().map_or(Some(()), |mean| mean.code(coder, self.engine.dim()))?;
        if self.hyper.kind.follows_residuals() {
            coder.finite(std::slice::from_mut(&mut self.residual_scale))?;
        }
        (self.residual_scale > 0.0).then_some(())
    }

    /// The trainer that was saved, between two epochs, to go on with these hyperparameters.
    pub fn resume(hyper: Hyperparameters, outputs: usize, sparse: bool, saved: &[u8]) -> Result<Trainer, Unfit> {
        let (is_initial, numbers) = match saved.strip_prefix(MAGIC_INITIAL) {
            Some(initial) => (true, unpack(initial)),
            None => (false, saved.strip_prefix(MAGIC).and_then(unpack)),
        };
        let numbers = numbers.ok_or(Unfit::Malformed)?;
        let mut from = Coder::Read(&numbers);
        if is_initial {
            return Trainer::begin_at(hyper, outputs, sparse, &mut from);
        }
        let mut header = [0; 3];
        from.value(&mut header).ok_or(Unfit::Malformed)?;
        let [written, room, epoch] = header;
        if written != configuration(&hyper, sparse) {
            return Err(Unfit::OtherWay);
        }
        // what the bytes cannot have takes no memory
        let fits = |room: &usize| match hyper.solver {
            Solver::Sgd => hyper.weights(*room, outputs) <= from.left() / size_of::<f32>(),
            Solver::Newton => *room <= Solver::MAX_FEATURES,
        };
        let room = usize::try_from(room).ok().filter(fits).ok_or(Unfit::Malformed)?;
        let mut trainer = Trainer::new(hyper, room, outputs, sparse).map_err(|_| Unfit::Malformed)?;
        trainer.epoch = u32::try_from(epoch).map_err(|_| Unfit::Malformed)?;
        let is_read = trainer.code(&mut from).is_some() && from.left() == 0 && trainer.check().is_ok();
        if is_read { Ok(trainer) } else { Err(Unfit::Malformed) }
    }

    /// A trainer before its first epoch, with the weights that [`initial_state`] has written.
    fn begin_at(hyper: Hyperparameters, outputs: usize, sparse: bool, from: &mut Coder<'_>) -> Result<Trainer, Unfit> {
        let mut written = [0; 4];
        from.value(&mut written).ok_or(Unfit::Malformed)?;
        // what the bytes cannot have takes no memory
        let dim = usize::try_from(written[0]).ok().filter(|dim| *dim <= from.left()).ok_or(Unfit::Malformed)?;
        let mut trainer = Trainer::new(hyper, dim, outputs, sparse).map_err(|_| Unfit::Malformed)?;
        let mut model = trainer.engine.model().map_err(|_| Unfit::Malformed)?;
        if sizes(&model) != written {
            return Err(Unfit::OtherWay);
        }
        code_numbers(&mut model, from).filter(|()| from.left() == 0 && model.is_finite()).ok_or(Unfit::Malformed)?;
        trainer.engine.set_model(&model);
        Ok(trainer)
    }
}

/// What of the hyperparameters decides which numbers there are.
fn configuration(hyper: &Hyperparameters, sparse: bool) -> u64 {
    let optimizer = hyper.optimizer.moments() as u64;
    let kind = ModelKind::ALL.iter().position(|kind| *kind == hyper.kind).unwrap_or_default() as u64;
    let flags = match hyper.design {
        None => [hyper.batch_size > 1, hyper.l1 > 0.0, hyper.has_mean()],
        // neither makes a difference to what a network remembers
        Some(_) => [false; 3],
    };
    let flags = flags.iter().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
    let design = hyper.design.as_ref().map_or(0, |design| u64::from(design.mark()));
    EngineKind::new(hyper, sparse) as u64 | optimizer << 8 | kind << 16 | flags << 24 | design << 32
}

/// Features, outputs and weights of a model, and a number that tells networks apart, unless chance has it otherwise.
fn sizes(model: &ModelParameters) -> [u64; 4] {
    let design = model.network.map_or(0, |network| {
        let output = Some(network.output);
        Design { hidden: network.hidden, activation: network.activation, output, ..Design::default() }.mark()
    });
    [model.dim as u64, model.outputs as u64, model.weights.len() as u64, design.into()]
}

fn code_numbers(model: &mut ModelParameters, coder: &mut Coder<'_>) -> Option<()> {
    coder.slice(&mut model.weights)?;
    coder.slice(&mut model.intercepts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use loss::{Optimizer, Penalized, Schedule, Solver};
    use proptest::prelude::*;
    use tuples::Batch;

    fn batch(kind: ModelKind, dim: usize, sparse: bool) -> Batch {
        let mut batch = if sparse { Batch::sparse() } else { Batch::dense(dim) };
        for i in 0..97usize {
            let label = match kind {
                ModelKind::Mlp | ModelKind::MlpRegression => unreachable!("no linear model"),
                ModelKind::Softmax | ModelKind::SvmOneVsRest | ModelKind::SquaredHingeOneVsRest => (i * 7 % 3) as f32,
                ModelKind::Linear | ModelKind::Quantile | ModelKind::EpsilonInsensitive | ModelKind::Huber => {
                    (i * 31 % 17) as f32 / 8.0 - 1.0
                }
                ModelKind::Poisson => (i * 31 % 17) as f32,
                _ => {
                    if i * 13 % 5 < 2 {
                        1.0
                    } else {
                        -1.0
                    }
                }
            };
            let value = |j: usize| ((i * 37 + j * 11) % 29) as f32 / 16.0 - 0.9;
            if sparse {
                let touched: Vec<usize> = (0..dim).filter(|j| (i + j) % 3 == 0).collect();
                let (indices, values) = batch.push_sparse(label, touched.len()).unwrap();
                for (place, j) in touched.into_iter().enumerate() {
                    (indices[place], values[place]) = (j as u32, value(j));
                }
            } else {
                batch.push(label).unwrap().iter_mut().enumerate().for_each(|(j, x)| *x = value(j));
            }
        }
        batch
    }

    fn epochs(trainer: &mut Trainer, batch: &Batch, count: u32) -> Vec<loss::EpochReport> {
        let epoch = |_| {
            trainer.begin_epoch();
            for places in [0..40, 40..97] {
                trainer.begin_buffer(places.len(), batch, places.clone()).unwrap();
                trainer.learn(batch, places).unwrap();
            }
            trainer.end_epoch().unwrap()
        };
        (0..count).map(epoch).collect()
    }

    fn saved_of(trainer: &mut Trainer) -> Vec<u8> {
        let saved = trainer.save(Vec::new());
        assert_eq!(Some(saved.len()), trainer.saved_len());
        saved
    }

    fn bits(trainer: &Trainer) -> Vec<u32> {
        let model = trainer.model().unwrap();
        model.weights.iter().chain(&model.intercepts).map(|w| w.to_bits()).collect()
    }

    #[test]
    fn a_trainer_that_was_saved_goes_on_bit_for_bit() {
        let schedules = [
            Schedule::Constant,
            Schedule::EXPONENTIAL,
            Schedule::InverseScaling { power: 0.5 },
            Schedule::Theorem1 { mu: 0.01, a: None },
        ];
        for kind in ModelKind::LINEAR {
            for schedule in schedules {
                for optimizer in [Optimizer::Sgd, Optimizer::MOMENTUM, Optimizer::ADAM] {
                    for (batch_size, l1, l2) in
                        [(1, 0.0, 0.0), (1, 0.0, 0.01), (1, 0.001, 0.0), (8, 0.0, 0.0), (8, 0.0001, 0.001)]
                    {
                        for (dim, sparse) in [(5, false), (20, false), (100, false), (33, true)] {
                            let hyper = Hyperparameters {
                                kind,
                                learning_rate: 0.01,
                                schedule,
                                optimizer,
                                batch_size,
                                l1,
                                l2,
                                l2_on: Penalized::All,
                                bounded: false,
                                reach: 1.5,
                                averaging: false,
                                solver: Solver::Sgd,
                                loss_number: Hyperparameters::new(kind).loss_number,
                                design: None,
                            };
                            // the theorem is about losses that bend no more than so much
                            if hyper.validate().is_err_and(|invalid| invalid.name == "schedule") {
                                continue;
                            }
                            let (outputs, batch) =
                                (if kind.has_class_numbers() { 3 } else { 1 }, batch(kind, dim, sparse));
                            let new = || Trainer::new(hyper, dim, outputs, sparse).unwrap();
                            let mut whole = new();
                            let all = epochs(&mut whole, &batch, 4);
                            let mut first = new();
                            let mut reports = epochs(&mut first, &batch, 2);
                            let mut second = Trainer::resume(hyper, outputs, sparse, &saved_of(&mut first)).unwrap();
                            assert_eq!(second.epoch(), 2);
                            reports.append(&mut epochs(&mut second, &batch, 2));
                            assert_eq!(reports, all, "{hyper:?} {dim} {sparse}");
                            assert_eq!(bits(&second), bits(&whole), "{hyper:?} {dim} {sparse}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn features_that_no_row_has_take_no_bytes() {
        let hyper = Hyperparameters { averaging: true, ..Hyperparameters::new(ModelKind::Logistic) };
        let batch = batch(ModelKind::Logistic, 33, true);
        let mut trainer = Trainer::new(hyper, 1_000_000, 1, true).unwrap();
        epochs(&mut trainer, &batch, 1);
        assert!(trainer.engine.room() >= 1_000_000, "weights, and their means");
        assert!(saved_of(&mut trainer).len() < 1000);
        let mut again = Trainer::resume(hyper, 1, true, &saved_of(&mut trainer)).unwrap();
        assert_eq!(epochs(&mut again, &batch, 1), epochs(&mut trainer, &batch, 1));
        assert_eq!(bits(&again), bits(&trainer));
    }

    #[test]
    fn another_way_of_training_is_told_apart_from_nonsense() {
        let hyper = Hyperparameters::new(ModelKind::Logistic);
        let mut trainer = Trainer::new(hyper, 5, 1, false).unwrap();
        epochs(&mut trainer, &batch(ModelKind::Logistic, 5, false), 1);
        let saved = saved_of(&mut trainer);
        let resume = |hyper, bytes: &[u8]| Trainer::resume(hyper, 1, false, bytes).map(|_| ()).unwrap_err();
        assert_eq!(resume(Hyperparameters { optimizer: Optimizer::ADAM, ..hyper }, &saved), Unfit::OtherWay);
        assert_eq!(resume(Hyperparameters { batch_size: 2, ..hyper }, &saved), Unfit::OtherWay);
        assert_eq!(resume(hyper, &saved[..saved.len() - 1]), Unfit::Malformed);
        assert_eq!(resume(hyper, &[&saved[..], &[0]].concat()), Unfit::Malformed);
        assert_eq!(resume(hyper, b""), Unfit::Malformed);
    }

    #[test]
    fn a_training_begins_with_the_weights_of_a_model_in_any_way_it_is_to_learn() {
        let solvers =
            [(Solver::Sgd, Optimizer::Sgd, 1), (Solver::Sgd, Optimizer::ADAM, 8), (Solver::Newton, Optimizer::Sgd, 1)];
        for (kind, outputs) in [(ModelKind::Logistic, 1), (ModelKind::Softmax, 3)] {
            for (solver, optimizer, batch_size) in solvers.into_iter().take(if outputs > 1 { 2 } else { 3 }) {
                for sparse in [false, true] {
                    let hyper = Hyperparameters { solver, optimizer, batch_size, ..Hyperparameters::new(kind) };
                    let mut model = ModelParameters::new(5, outputs);
                    (1..).zip(&mut model.weights).for_each(|(i, w)| *w = i as f32);
                    (1..).zip(&mut model.intercepts).for_each(|(i, b)| *b = -(i as f32));
                    let bytes = initial_state(model.clone());
                    let trainer = Trainer::resume(hyper, outputs, sparse, &bytes).unwrap();
                    assert_eq!((trainer.model().unwrap(), trainer.epoch()), (model, 0), "{hyper:?} {sparse}");
                    let cut = Trainer::resume(hyper, outputs, sparse, &bytes[..bytes.len() - 1]);
                    assert_eq!(cut.map(|_| ()).unwrap_err(), Unfit::Malformed);
                    let other = Trainer::resume(
                        hyper,
                        if outputs > 1 { 4 } else { 1 },
                        sparse,
                        &initial_state(ModelParameters::new(5, 3)),
                    );
                    assert_eq!(other.map(|_| ()).unwrap_err(), Unfit::OtherWay);
                }
            }
        }
    }

    #[test]
    fn a_network_begins_with_the_weights_of_another_of_its_shape() {
        let design = loss::Design { hidden: loss::Hidden::new(&[3, 2]).unwrap(), ..loss::Design::default() };
        let hyper = Hyperparameters { design: Some(design), batch_size: 32, ..Hyperparameters::new(ModelKind::Mlp) };
        let model = Trainer::new(hyper, 4, 3, false).unwrap().model().unwrap();
        let other =
            Hyperparameters { design: Some(loss::Design { seed: 77, ..design }), optimizer: Optimizer::ADAM, ..hyper };
        assert_eq!(Trainer::resume(other, 3, false, &initial_state(model.clone())).unwrap().model().unwrap(), model);
        let wide = loss::Design { hidden: loss::Hidden::new(&[3, 3]).unwrap(), ..design };
        let unfit =
            Trainer::resume(Hyperparameters { design: Some(wide), ..hyper }, 3, false, &initial_state(model.clone()));
        assert_eq!(unfit.map(|_| ()).unwrap_err(), Unfit::OtherWay);
    }

    #[test]
    fn newtons_method_goes_on_over_other_rows_after_it_has_converged() {
        let hyper = Hyperparameters { solver: Solver::Newton, ..Hyperparameters::new(ModelKind::Linear) };
        let rows = |slope: f32, intercept: f32| {
            let mut batch = Batch::dense(1);
            (0..20).for_each(|i| batch.push(slope * i as f32 + intercept).unwrap().copy_from_slice(&[i as f32]));
            batch
        };
        let train = |trainer: &mut Trainer, batch: &Batch| {
            (0..5).for_each(|_| {
                trainer.begin_epoch();
                trainer.begin_buffer(20, batch, 0..20).unwrap();
                trainer.learn(batch, 0..20).unwrap();
                trainer.end_epoch().unwrap();
            });
            trainer.model().unwrap()
        };
        let mut first = Trainer::new(hyper, 1, 1, false).unwrap();
        train(&mut first, &rows(2.0, 0.0));
        assert_eq!(first.has_converged(), Some(true));
        for state in [saved_of(&mut first), initial_state(first.model().unwrap())] {
            let model = train(&mut Trainer::resume(hyper, 1, false, &state).unwrap(), &rows(-3.0, 1.0));
            assert!((model.weights[0] + 3.0).abs() < 1e-5 && (model.intercepts[0] - 1.0).abs() < 1e-4, "{model:?}");
        }
    }

    proptest! {
        #[test]
        fn forged_bytes_do_no_harm(place in 0usize..2000, byte in any::<u8>(), sparse in any::<bool>(), general in any::<bool>()) {
            let optimizer = if general { Optimizer::ADAM } else { Optimizer::Sgd };
            let hyper = Hyperparameters { optimizer, ..Hyperparameters::new(ModelKind::Logistic) };
            let batch = batch(ModelKind::Logistic, 5, sparse);
            let mut trainer = Trainer::new(hyper, 5, 1, sparse).unwrap();
            epochs(&mut trainer, &batch, 1);
            let mut saved = saved_of(&mut trainer);
            let place = place % saved.len();
            saved[place] = byte;
            if let Ok(mut forged) = Trainer::resume(hyper, 1, sparse, &saved)
                && forged.model().unwrap().dim == 5
            {
                forged.begin_epoch();
                forged.begin_buffer(97, &batch, 0..97).unwrap();
                forged.learn(&batch, 0..97).unwrap();
                let _ = forged.end_epoch();
            }
        }
    }
}
