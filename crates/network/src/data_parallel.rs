//! Steps of networks that learn together with those of other processes.
//!
//! Guarantees: after each step all of them are the same to the bit. What the processes give is added up in their
//! sequence.

use loss::exchange::{Interrupted, OpenExchange, sum};

use super::engine::NetworkEngine;

impl NetworkEngine {
    /// Makes one step of the gradients that are pending in all processes, of `tuples` tuples in all.
    pub(super) fn step_with_replicas(
        &mut self,
        tuples: u32,
        exchange: &mut OpenExchange<'_>,
    ) -> Result<(), Interrupted> {
        if self.rows.len() > 0 {
            self.take_rows();
        }
        if self.rows.is_sparse() {
            self.gather_gradient(exchange)?;
        } else {
            exchange.all_reduce(&mut self.gradient, &mut sum)?;
            // a process without tuples has no gradient of its own, and makes the step of the others
            self.touched = None;
        }
        self.pending = tuples as usize;
        self.step();
        Ok(())
    }

    /// Makes the gradient the sum of those of all processes, of which each gives the features that its tuples have
    /// touched, and all that is behind the first layer's weights.
    fn gather_gradient(&mut self, exchange: &mut OpenExchange<'_>) -> Result<(), Interrupted> {
        let messages = exchange.gather_all(&self.message())?;
        let dim = messages.iter().map(|message| message[0]).max().unwrap_or(0);
        self.grow(dim as usize)?;
        let width = self.layers[0].outputs;
        let first = self.layers[0].weights.end;
        for &input in self.touched.iter().flatten() {
            self.gradient[input as usize * width..][..width].fill(0.0);
        }
        self.gradient[first..].fill(0.0);
        let touched = self.touched.get_or_insert_default();
        for message in &messages {
            let (entries, rest) = message[2..].split_at(message[1] as usize * (1 + width));
            for entry in entries.chunks_exact(1 + width) {
                let input = entry[0] as usize;
                if !std::mem::replace(&mut self.is_touched[input], true) {
                    touched.push(entry[0]);
                }
                add(&mut self.gradient[input * width..][..width], &entry[1..]);
            }
            add(&mut self.gradient[first..], rest);
        }
        Ok(())
    }

    /// Dimensions, how many features were touched, the index and the gradient of each, and the rest of the gradient.
    fn message(&self) -> Vec<u32> {
        let touched = self.touched.as_deref().unwrap_or_default();
        let width = self.layers[0].outputs;
        let mut message = vec![self.dim as u32, touched.len() as u32];
        for &input in touched {
            allocation::push(&mut message, input);
            allocation::append(&mut message, bytemuck::cast_slice(&self.gradient[input as usize * width..][..width]));
        }
        allocation::append(&mut message, bytemuck::cast_slice(&self.gradient[self.layers[0].weights.end..]));
        message
    }
}

fn add(sums: &mut [f32], words: &[u32]) {
    sums.iter_mut().zip(words).for_each(|(sum, word)| *sum += f32::from_bits(*word));
}
