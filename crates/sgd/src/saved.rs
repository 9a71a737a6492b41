//! A trainer between two epochs as bytes, and a trainer of such bytes.
//!
//! Guarantees: a trainer that was saved and read learns on as if nothing had happened, bit for bit; of bytes that were
//! not saved by a trainer like it there comes no trainer, and nothing worse. Numbers are little-endian, and
//! [packed](crate::packed); those that an earlier version has written as they are can be read, too.

use std::borrow::Cow;

use bytemuck::{Pod, Zeroable};
use simd::Level;

use crate::average::Theorem1;
use crate::averaging::Averaging;
use crate::bytes::{Reader, Writer};
use crate::engines::EngineKind;
use crate::packed::{Packed, Packer, unpack};
use crate::{Design, Hyperparameters, ModelKind, ModelParameters, Network, Trainer};

/// Says that bytes are a trainer, whose numbers are packed.
const MAGIC: &[u8] = b"cgptrn02";

/// The same of one whose numbers are as they are.
const MAGIC_UNPACKED: &[u8] = b"cgptrn01";

/// The same of weights that a new training begins with.
const MAGIC_INITIAL: &[u8] = b"cgpini01";

/// Bytes that [`Trainer::resume`] makes a trainer of before its first epoch, in whatever way it is to learn, whose
/// weights are those of this model.
pub fn initial_state(model: &ModelParameters) -> Vec<u8> {
    let write = |mut to: Writer| {
        let [dim, outputs, weights] = [model.dim, model.outputs, model.weights.len()].map(|number| number as u64);
        to.numbers(&Initial { dim, outputs, weights, shape: shape(model) });
        to.slice(&model.weights);
        to.slice(&model.intercepts);
        to
    };
    let Writer::Counted(len) = write(Writer::Counted(0)) else { unreachable!("a writer stays what it is") };
    let Writer::Packed(packer) = write(Writer::Packed(Packer::new(Packed::Bytes(MAGIC_INITIAL.to_vec()), len))) else {
        unreachable!("a writer stays what it is")
    };
    let Packed::Bytes(bytes) = packer.finish() else { unreachable!("what packs stays what it is") };
    bytes
}

/// Why bytes are no trainer that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// They are none at all, or one of another size or kind.
    #[error("its training state cannot be read")]
    Malformed,
    /// It was trained in another way.
    #[error("its network has other hidden_layers, activation or output")]
    OtherWay,
}

impl Trainer {
    /// Everything that learning goes on from, between two epochs: behind what `bytes` has already.
    pub fn save(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        bytes.extend_from_slice(MAGIC);
        match self.packed(Packed::Bytes(bytes)) {
            Packed::Bytes(bytes) => bytes,
            Packed::Counted(_) => unreachable!("what packs stays what it is"),
        }
    }

    /// How many bytes [`save`](Trainer::save) writes, which takes about as long.
    pub fn saved_len(&self) -> usize {
        match self.packed(Packed::Counted(MAGIC.len())) {
            Packed::Counted(len) => len,
            Packed::Bytes(_) => unreachable!("what packs stays what it is"),
        }
    }

    /// How many bytes [`resume`](Trainer::resume) makes of them: more of them, but for a few.
    pub fn unpacked_len(&self) -> usize {
        match self.written(Writer::Counted(0)) {
            Writer::Counted(len) => len,
            Writer::Packed(_) => unreachable!("a writer stays what it is"),
        }
    }

    fn packed(&self, to: Packed) -> Packed {
        match self.written(Writer::Packed(Packer::new(to, self.unpacked_len()))) {
            Writer::Packed(packer) => packer.finish(),
            Writer::Counted(_) => unreachable!("a writer stays what it is"),
        }
    }

    fn written(&self, mut to: Writer) -> Writer {
        to.numbers(&Header {
            configuration: configuration(&self.hyper, self.kind),
            dim: self.dim() as u64,
            epoch: self.epoch.into(),
        });
        self.engine.save(&mut to);
        if let Some(theorem) = &self.theorem {
            theorem.save(&mut to);
        }
        if let Some(averaging) = &self.averaging {
            averaging.save(&mut to);
        }
        if self.hyper.kind.follows_residuals() {
            to.numbers(&self.residual_scale);
        }
        to
    }

    /// The trainer that was saved, between two epochs, to go on with these hyperparameters.
    ///
    /// # Errors
    /// [`Unfit`]
    pub fn resume(hyper: Hyperparameters, outputs: usize, sparse: bool, saved: &[u8]) -> Result<Trainer, Unfit> {
        if let Some(initial) = saved.strip_prefix(MAGIC_INITIAL) {
            let numbers = unpack(initial).ok_or(Unfit::Malformed)?;
            return Trainer::begin_at(hyper, outputs, sparse, &mut Reader(&numbers));
        }
        let numbers = match saved.strip_prefix(MAGIC_UNPACKED) {
            Some(numbers) => Cow::Borrowed(numbers),
            None => saved.strip_prefix(MAGIC).and_then(unpack).ok_or(Unfit::Malformed)?.into(),
        };
        let mut from = Reader(&numbers);
        let header: Header = from.numbers().ok_or(Unfit::Malformed)?;
        let dim = usize::try_from(header.dim).map_err(|_| Unfit::Malformed)?;
        let epoch = u32::try_from(header.epoch).map_err(|_| Unfit::Malformed)?;
        // a dimension that the bytes cannot have takes no memory
        if dim > numbers.len() {
            return Err(Unfit::Malformed);
        }
        let kind = EngineKind::new(&hyper, sparse);
        if configuration(&hyper, kind) != header.configuration {
            return Err(Unfit::OtherWay);
        }
        let sizes = [dim, outputs];
        let engine = kind.read(&mut from, hyper, sizes, sparse, Level::detect()).ok_or(Unfit::Malformed)?;
        let theorem = match hyper.schedule.averages() {
            true => Some(Theorem1::read(&mut from, &hyper, sizes).ok_or(Unfit::Malformed)?),
            false => None,
        };
        let averaging = match hyper.averaging {
            true => Some(Averaging::read(&mut from, outputs, sparse).ok_or(Unfit::Malformed)?),
            false => None,
        };
        let mut trainer = Trainer::with_engine(hyper, kind, engine, theorem, epoch);
        trainer.averaging = averaging;
        if hyper.kind.follows_residuals() {
            let scale = from.numbers().filter(|scale: &f64| scale.is_finite() && *scale > 0.0);
            trainer.residual_scale = scale.ok_or(Unfit::Malformed)?;
        }
        if from.left() == 0 && trainer.check().is_ok() { Ok(trainer) } else { Err(Unfit::Malformed) }
    }
}

impl Trainer {
    /// A trainer before its first epoch, with the weights that [`initial_state`] has written.
    fn begin_at(hyper: Hyperparameters, outputs: usize, sparse: bool, from: &mut Reader<'_>) -> Result<Trainer, Unfit> {
        let header: Initial = from.numbers().ok_or(Unfit::Malformed)?;
        let [dim, of_model, weights] = [header.dim, header.outputs, header.weights].map(usize::try_from);
        let (Ok(dim), Ok(of_model), Ok(weights)) = (dim, of_model, weights) else { return Err(Unfit::Malformed) };
        // what the bytes cannot have takes no memory
        if dim > from.left() || of_model > from.left() || weights > from.left() / size_of::<f32>() {
            return Err(Unfit::Malformed);
        }
        let mut trainer = Trainer::new(hyper, dim, outputs, sparse).map_err(|_| Unfit::Malformed)?;
        let mut model = trainer.engine.model().map_err(|_| Unfit::Malformed)?;
        if model.weights.len() != weights || model.outputs != of_model || shape(&model) != header.shape {
            return Err(Unfit::OtherWay);
        }
        from.floats_into(model.weights.iter_mut().chain(&mut model.intercepts)).ok_or(Unfit::Malformed)?;
        if from.left() > 0 || !model.is_finite() {
            return Err(Unfit::Malformed);
        }
        trainer.engine.set_model(&model);
        Ok(trainer)
    }
}

/// What comes first in the weights that a training begins with.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Initial {
    dim: u64,
    outputs: u64,
    weights: u64,
    shape: u64,
}

/// A number that tells networks apart, unless chance has it otherwise; 0 of a linear model.
fn shape(model: &ModelParameters) -> u64 {
    let design = |network: Network| Design {
        hidden: network.hidden,
        activation: network.activation,
        output: Some(network.output),
        ..Design::default()
    };
    model.network.map_or(0, |network| design(network).mark().into())
}

/// What comes first.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Header {
    configuration: u64,
    dim: u64,
    epoch: u64,
}

/// What of the hyperparameters decides which numbers there are, for this engine.
fn configuration(hyper: &Hyperparameters, engine: EngineKind) -> u64 {
    let optimizer = hyper.optimizer.moments() as u64;
    let kind = ModelKind::ALL.iter().position(|kind| *kind == hyper.kind).unwrap_or_default() as u64;
    let flags = match hyper.design {
        None => [hyper.batch_size > 1, hyper.l1 > 0.0, hyper.schedule.averages() || hyper.averaging],
        // neither makes a difference to what a network remembers
        Some(_) => [false; 3],
    };
    let flags = flags.iter().fold(0, |bits, flag| bits << 1 | u64::from(*flag));
    let design = hyper.design.as_ref().map_or(0, |design| u64::from(design.mark()));
    engine as u64 | optimizer << 8 | kind << 16 | flags << 24 | design << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Optimizer, Schedule, Solver};
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

    fn epochs(trainer: &mut Trainer, batch: &Batch, count: u32) -> Vec<crate::EpochReport> {
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

    fn saved_of(trainer: &Trainer) -> Vec<u8> {
        let saved = trainer.save(Vec::new());
        assert_eq!(saved.len(), trainer.saved_len());
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
                            let mut second = Trainer::resume(hyper, outputs, sparse, &saved_of(&first)).unwrap();
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

    /// What version 01 has written: the numbers as they are.
    fn unpacked(saved: &[u8]) -> Vec<u8> {
        [MAGIC_UNPACKED, &unpack(&saved[MAGIC.len()..]).unwrap()].concat()
    }

    #[test]
    fn features_that_no_row_has_take_no_bytes() {
        let hyper = Hyperparameters { averaging: true, ..Hyperparameters::new(ModelKind::Logistic) };
        let batch = batch(ModelKind::Logistic, 33, true);
        let mut trainer = Trainer::new(hyper, 1_000_000, 1, true).unwrap();
        epochs(&mut trainer, &batch, 1);
        assert!(trainer.unpacked_len() > 12_000_000, "weights, and their means");
        assert!(saved_of(&trainer).len() < 1000);
        let mut again = Trainer::resume(hyper, 1, true, &saved_of(&trainer)).unwrap();
        assert_eq!(epochs(&mut again, &batch, 1), epochs(&mut trainer, &batch, 1));
        assert_eq!(bits(&again), bits(&trainer));
    }

    #[test]
    fn what_the_version_before_has_written_goes_on() {
        for (dim, sparse) in [(20, false), (33, true)] {
            let hyper = Hyperparameters { averaging: true, ..Hyperparameters::new(ModelKind::Logistic) };
            let batch = batch(ModelKind::Logistic, dim, sparse);
            let mut trainer = Trainer::new(hyper, dim, 1, sparse).unwrap();
            epochs(&mut trainer, &batch, 2);
            let before = unpacked(&saved_of(&trainer));
            assert_eq!(before.len(), MAGIC.len() + trainer.unpacked_len());
            let mut again = Trainer::resume(hyper, 1, sparse, &before).unwrap();
            assert_eq!(epochs(&mut again, &batch, 2), epochs(&mut trainer, &batch, 2));
            assert_eq!(bits(&again), bits(&trainer));
            let malformed = |bytes: &[u8]| Trainer::resume(hyper, 1, sparse, bytes).map(|_| ()).unwrap_err();
            assert_eq!(malformed(&before[..before.len() - 1]), Unfit::Malformed);
            assert_eq!(malformed(&[&before[..], &[0]].concat()), Unfit::Malformed);
        }
    }

    #[test]
    fn another_way_of_training_is_told_apart_from_nonsense() {
        let hyper = Hyperparameters::new(ModelKind::Logistic);
        let mut trainer = Trainer::new(hyper, 5, 1, false).unwrap();
        epochs(&mut trainer, &batch(ModelKind::Logistic, 5, false), 1);
        let saved = saved_of(&trainer);
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
                    let bytes = initial_state(&model);
                    let trainer = Trainer::resume(hyper, outputs, sparse, &bytes).unwrap();
                    assert_eq!((trainer.model().unwrap(), trainer.epoch()), (model, 0), "{hyper:?} {sparse}");
                    let cut = Trainer::resume(hyper, outputs, sparse, &bytes[..bytes.len() - 1]);
                    assert_eq!(cut.map(|_| ()).unwrap_err(), Unfit::Malformed);
                    let other = Trainer::resume(
                        hyper,
                        if outputs > 1 { 4 } else { 1 },
                        sparse,
                        &initial_state(&ModelParameters::new(5, 3)),
                    );
                    assert_eq!(other.map(|_| ()).unwrap_err(), Unfit::OtherWay);
                }
            }
        }
    }

    #[test]
    fn a_network_begins_with_the_weights_of_another_of_its_shape() {
        let design = crate::Design { hidden: crate::Hidden::new(&[3, 2]).unwrap(), ..crate::Design::default() };
        let hyper = Hyperparameters { design: Some(design), batch_size: 32, ..Hyperparameters::new(ModelKind::Mlp) };
        let model = Trainer::new(hyper, 4, 3, false).unwrap().model().unwrap();
        let other =
            Hyperparameters { design: Some(crate::Design { seed: 77, ..design }), optimizer: Optimizer::ADAM, ..hyper };
        assert_eq!(Trainer::resume(other, 3, false, &initial_state(&model)).unwrap().model().unwrap(), model);
        let wide = crate::Design { hidden: crate::Hidden::new(&[3, 3]).unwrap(), ..design };
        let unfit = Trainer::resume(Hyperparameters { design: Some(wide), ..hyper }, 3, false, &initial_state(&model));
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
        for state in [saved_of(&first), initial_state(&first.model().unwrap())] {
            let model = train(&mut Trainer::resume(hyper, 1, false, &state).unwrap(), &rows(-3.0, 1.0));
            assert!((model.weights[0] + 3.0).abs() < 1e-5 && (model.intercepts[0] - 1.0).abs() < 1e-4, "{model:?}");
        }
    }

    proptest! {
        #[test]
        fn forged_bytes_do_no_harm(place in 0usize..2000, byte in any::<u8>(), sparse in any::<bool>(), general in any::<bool>(), old in any::<bool>()) {
            let optimizer = if general { Optimizer::ADAM } else { Optimizer::Sgd };
            let hyper = Hyperparameters { optimizer, ..Hyperparameters::new(ModelKind::Logistic) };
            let batch = batch(ModelKind::Logistic, 5, sparse);
            let mut trainer = Trainer::new(hyper, 5, 1, sparse).unwrap();
            epochs(&mut trainer, &batch, 1);
            let mut saved = saved_of(&trainer);
            if old {
                saved = unpacked(&saved);
            }
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
