//! Steps and averages of the replicas of one training, each of which learns from tuples of its own in another process.
//!
//! Guarantees: after each call all replicas are the same to the bit, but for the room that they have. What the
//! processes give is added up in their sequence. A feature that another process has touched is brought up to date
//! before the step, as if one of its tuples had been learned from here.

use loss::exchange::{Interrupted, OpenExchange, mean, sum};

use super::arrays::{Arrays, weights_of};
use super::engine::ReferenceEngine;
use super::lazy;
use super::state::{END, Progress, StepsTaken, TrainerState};
use super::training::MakeStep;

impl ReferenceEngine {
    /// Makes one step of the gradients that are pending in all processes, of `tuples` tuples in all.
    pub(super) fn step_with_replicas(
        &mut self,
        tuples: u32,
        exchange: &mut OpenExchange<'_>,
    ) -> Result<(), Interrupted> {
        if self.training.state.sparse {
            self.gather_gradient(exchange)?;
        } else {
            self.sum_gradient(exchange)?;
        }
        let level = self.training.level;
        let (state, mut arrays) = self.training.split();
        state.now.pending = tuples;
        level.run(MakeStep { state, arrays: &mut arrays });
        Ok(())
    }

    /// Makes the pending gradient the sum of those of all processes.
    fn sum_gradient(&mut self, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let mut message = std::mem::take(&mut self.message);
        let (state, Arrays { gradient, intercepts, .. }) = self.training.split();
        message.clear();
        allocation::append(&mut message, gradient);
        allocation::append(&mut message, intercepts.gradient);
        allocation::push(&mut message, state.now.squares as f32);
        exchange.all_reduce(&mut message, &mut sum)?;
        let (weights, rest) = message.split_at(gradient.len());
        let (of_intercepts, squares) = rest.split_at(intercepts.gradient.len());
        gradient.copy_from_slice(weights);
        intercepts.gradient.copy_from_slice(of_intercepts);
        state.now.squares = squares.iter().copied().map(f64::from).sum();
        self.message = message;
        Ok(())
    }

    /// The same of sparse tuples: each process gives the features that its tuples have touched.
    fn gather_gradient(&mut self, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let (state, mut arrays) = self.training.split();
        let message = take_gradient(state, &mut arrays);
        let messages = exchange.gather_all(&message)?;
        let dim = messages.iter().map(|message| message[0]).max().unwrap_or(0);
        self.make_room(dim as usize)?;
        let (state, mut arrays) = self.training.split();
        let outputs = state.now.outputs as usize;
        state.now.squares = 0.0;
        for message in &messages {
            let (of_intercepts, entries) = message[2..].split_at(outputs);
            state.now.squares += f64::from(f32::from_bits(message[1]));
            add(arrays.intercepts.gradient, of_intercepts);
            let entries = entries.chunks_exact(1 + outputs);
            if state.is_lazy() {
                lazy::bring_up_to_date(state, &mut arrays, entries.clone().map(|entry| entry[0] as usize));
            }
            for entry in entries {
                let next = &mut arrays.next[entry[0] as usize];
                if *next == 0 {
                    *next = state.now.touched;
                    state.now.touched = entry[0] + 1;
                }
                add(weights_of(arrays.gradient, state, entry[0] as usize), &entry[1..]);
            }
        }
        Ok(())
    }

    /// Makes parameters and moments the mean of those of all processes, each with its share.
    /// There is no pending gradient.
    pub(super) fn average_with_replicas(
        &mut self,
        shares: &[f64],
        exchange: &mut OpenExchange<'_>,
    ) -> Result<(), Interrupted> {
        self.training.flush();
        let (state, arrays) = self.training.split();
        // before the first round, no matter who is stopped there begins again
        let scale = std::mem::replace(&mut state.now.scale, 1.0);
        state.now.l1_applied *= scale;
        arrays.weights.iter_mut().for_each(|w| *w *= scale as f32);
        self.agree(exchange, shares)?;
        let (state, mut arrays) = self.training.split();
        let (used, sparse) = (state.now.dim as usize * state.now.outputs as usize, state.sparse);
        lazy::mark_l1_applied(state, &mut arrays);
        let intercepts = arrays.intercepts;
        for numbers in [arrays.weights, arrays.first, arrays.second] {
            let used = if sparse { used.min(numbers.len()) } else { numbers.len() };
            reduce(exchange, &mut numbers[..used], shares)?;
        }
        for numbers in [intercepts.values, intercepts.first, intercepts.second] {
            reduce(exchange, numbers, shares)?;
        }
        Ok(())
    }

    /// Makes dimensions and the count of steps those of the one that has most of them, and what l1 has taken the mean.
    fn agree(&mut self, exchange: &mut OpenExchange<'_>, shares: &[f64]) -> Result<(), Interrupted> {
        let now = &mut self.training.state.now;
        let Progress { dim, taken: StepsTaken { steps, unbiased: [first, second] }, l1_applied, .. } = *now;
        let mine = [dim, steps, first.to_bits(), second.to_bits(), l1_applied.to_bits()];
        let all = exchange.gather_all(bytemuck::cast_slice(&mine))?;
        let numbers = all.iter().filter_map(|words| bytemuck::try_pod_read_unaligned(bytemuck::cast_slice(words)).ok());
        let mut most = dim;
        now.l1_applied = 0.0;
        for ([dim, steps, first, second, applied], share) in numbers.collect::<Vec<[u64; 5]>>().into_iter().zip(shares)
        {
            most = most.max(dim);
            now.l1_applied += share * f64::from_bits(applied);
            if steps > now.taken.steps {
                now.taken = StepsTaken { steps, unbiased: [f64::from_bits(first), f64::from_bits(second)] };
            }
        }
        self.make_room(most as usize)?;
        Ok(())
    }
}

/// Nothing is no reason to wait for each other.
fn reduce(exchange: &mut OpenExchange<'_>, numbers: &mut [f32], shares: &[f64]) -> Result<(), Interrupted> {
    if numbers.is_empty() { Ok(()) } else { exchange.all_reduce(numbers, &mut mean(shares)) }
}

/// The pending gradient of sparse tuples, which is then 0: dimensions, the squares of the rows' lengths, intercepts,
/// and, for each feature that was touched, its index and its gradient by each output.
fn take_gradient(state: &mut TrainerState, arrays: &mut Arrays) -> Vec<u32> {
    let mut message = vec![u32::try_from(state.now.dim).unwrap_or(u32::MAX), (state.now.squares as f32).to_bits()];
    allocation::append(&mut message, bytemuck::cast_slice(arrays.intercepts.gradient));
    arrays.intercepts.gradient.fill(0.0);
    let mut touched = std::mem::replace(&mut state.now.touched, END);
    while touched != END {
        let j = touched - 1;
        allocation::push(&mut message, j);
        let gradient = weights_of(arrays.gradient, state, j as usize);
        allocation::append(&mut message, bytemuck::cast_slice(gradient));
        gradient.fill(0.0);
        touched = std::mem::take(&mut arrays.next[j as usize]);
    }
    message
}

fn add(sums: &mut [f32], words: &[u32]) {
    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += f32::from_bits(*word));
}
