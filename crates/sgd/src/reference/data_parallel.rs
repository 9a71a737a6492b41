//! Steps and averages of the replicas of one training, each of which learns from tuples of its own in another process.
//!
//! Guarantees: after each call all replicas are the same to the bit, but for the room that they have. What the processes
//! give is added up in their sequence. A feature that another process has touched is brought up to date before the step,
//! as if one of its tuples had been learned from here.

use super::arrays::Arrays;
use super::sparse::weights_of;
use super::state::{END, TrainerState};
use super::{General, Memory, arrays, dense, grow, lazy, sparse};
use crate::exchange::{Exchange, mean, sum};
use crate::kernels::{Kernel, Simd};

impl General {
    /// Makes one step of the gradients that are pending in all processes, of `tuples` tuples in all.
    pub(crate) fn step_together<E: Exchange>(&mut self, tuples: u32, exchange: &mut E) -> Result<(), E::Error> {
        if self.head.sparse() {
            self.gather_gradient(exchange)?;
        } else {
            self.sum_gradient(exchange)?;
        }
        let General { head, memory, level, .. } = self;
        head.pending = tuples;
        let arrays = arrays(head, memory.as_mut());
        level.run(Step { head, arrays });
        Ok(())
    }

    /// Makes the pending gradient the sum of those of all processes.
    fn sum_gradient<E: Exchange>(&mut self, exchange: &mut E) -> Result<(), E::Error> {
        let mut message = std::mem::take(&mut self.message);
        let Arrays { gradient, intercepts, .. } = arrays(&self.head, self.memory.as_mut());
        message.clear();
        message.extend_from_slice(gradient);
        message.extend_from_slice(intercepts.gradient);
        exchange.all_reduce(&mut message, &mut sum)?;
        let (weights, rest) = message.split_at(gradient.len());
        gradient.copy_from_slice(weights);
        intercepts.gradient.copy_from_slice(rest);
        self.message = message;
        Ok(())
    }

    /// The same of sparse tuples: each process gives the features that its tuples have touched.
    fn gather_gradient<E: Exchange>(&mut self, exchange: &mut E) -> Result<(), E::Error> {
        let mut own = arrays(&self.head, self.memory.as_mut());
        let message = take_gradient(&mut self.head, &mut own);
        let messages = exchange.gather_all(&message)?;
        let dim = messages.iter().map(|message| message[0]).max().unwrap_or(0);
        self.make_room(dim as usize)?;
        let General { head, memory, .. } = self;
        let outputs = head.outputs as usize;
        let mut arrays = arrays(head, memory.as_mut());
        for message in &messages {
            let (of_intercepts, entries) = message[1..].split_at(outputs);
            add(arrays.intercepts.gradient, of_intercepts);
            let entries = entries.chunks_exact(1 + outputs);
            if head.is_lazy() {
                lazy::bring_up_to_date(head, &mut arrays, entries.clone().map(|entry| entry[0] as usize));
            }
            for entry in entries {
                let next = &mut arrays.next[entry[0] as usize];
                if *next == 0 {
                    *next = head.touched;
                    head.touched = entry[0] + 1;
                }
                add(weights_of(arrays.gradient, head, entry[0] as usize), &entry[1..]);
            }
        }
        Ok(())
    }

    /// Makes parameters and moments the mean of those of all processes, each with its share. There is no pending gradient.
    pub(crate) fn average_together<E: Exchange>(&mut self, shares: &[f64], exchange: &mut E) -> Result<(), E::Error> {
        self.apply_pending();
        let scale = self.head.scale as f32;
        self.head.taken *= self.head.scale;
        self.head.scale = 1.0;
        self.agree(exchange, shares)?;
        let used = self.head.dim as usize * self.head.outputs as usize;
        let sparse = self.head.sparse();
        let mut arrays = arrays(&self.head, self.memory.as_mut());
        lazy::pay_all(&self.head, &mut arrays);
        arrays.weights.iter_mut().for_each(|w| *w *= scale);
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

    /// Makes dimensions and the count of steps those of whoever has most of them, and what l1 has taken the mean.
    fn agree<E: Exchange>(&mut self, exchange: &mut E, shares: &[f64]) -> Result<(), E::Error> {
        let TrainerState { dim, steps, unbiased: [first, second], taken, .. } = self.head;
        let mine = [dim, steps, first.to_bits(), second.to_bits(), taken.to_bits()];
        let all = exchange.gather_all(bytemuck::cast_slice(&mine))?;
        let numbers = all.iter().filter_map(|words| bytemuck::try_pod_read_unaligned(bytemuck::cast_slice(words)).ok());
        let mut most = dim;
        self.head.taken = 0.0;
        for ([dim, steps, first, second, taken], share) in numbers.collect::<Vec<[u64; 5]>>().into_iter().zip(shares) {
            most = most.max(dim);
            self.head.taken += share * f64::from_bits(taken);
            if steps > self.head.steps {
                self.head.steps = steps;
                self.head.unbiased = [f64::from_bits(first), f64::from_bits(second)];
            }
        }
        self.make_room(most as usize)?;
        Ok(())
    }

    fn make_room(&mut self, dim: usize) -> Result<(), tuples::OutOfMemory> {
        if let Some(moved) = grow(&mut self.head, self.memory.floats(), dim, Memory::zeros)? {
            self.memory = moved;
        }
        Ok(())
    }
}

/// Makes the step of the pending gradient, and nothing else.
struct Step<'a> {
    head: &'a mut TrainerState,
    arrays: Arrays<'a>,
}

impl Kernel for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Step { head, mut arrays } = self;
        match head.sparse() {
            true => sparse::step(head, &mut arrays),
            false => dense::step(head, &mut arrays),
        }
    }
}

/// Nothing is no reason to wait for each other.
fn reduce<E: Exchange>(exchange: &mut E, numbers: &mut [f32], shares: &[f64]) -> Result<(), E::Error> {
    if numbers.is_empty() { Ok(()) } else { exchange.all_reduce(numbers, &mut mean(shares)) }
}

/// The pending gradient of sparse tuples, which is then 0: dimensions, intercepts, and, for each feature that was
/// touched, its index and its gradient by each output.
fn take_gradient(head: &mut TrainerState, arrays: &mut Arrays) -> Vec<u32> {
    let mut message = vec![u32::try_from(head.dim).unwrap_or(u32::MAX)];
    message.extend_from_slice(bytemuck::cast_slice(arrays.intercepts.gradient));
    arrays.intercepts.gradient.fill(0.0);
    let mut touched = std::mem::replace(&mut head.touched, END);
    while touched != END {
        let j = touched - 1;
        message.push(j);
        let gradient = weights_of(arrays.gradient, head, j as usize);
        message.extend_from_slice(bytemuck::cast_slice(gradient));
        gradient.fill(0.0);
        touched = std::mem::take(&mut arrays.next[j as usize]);
    }
    message
}

fn add(sums: &mut [f32], words: &[u32]) {
    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += f32::from_bits(*word));
}
