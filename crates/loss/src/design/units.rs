//! What units make of their inputs, and the derivatives of that, many at once.
//!
//! Guarantees: plain arithmetic, so that every instruction set gives the same bits; NaN stays NaN.

use super::Activation;
use crate::math::exp;
use simd::{Chunk, Kernel, Simd};

/// Makes products with weights in units of 1 / `scale` into what the units say.
pub struct Activate<'a> {
    /// None for the last layer, whose numbers stay as they are
    pub activation: Option<Activation>,
    /// a row for each tuple, a column for each unit
    pub numbers: &'a mut [f32],
    /// what the numbers are multiplied by first
    pub scale: f32,
    /// one for each unit
    pub intercepts: &'a [f32],
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Activate { activation, numbers, scale, intercepts } = self;
        match activation {
            None => each(numbers, intercepts, scale, |z| z),
            Some(Activation::Sigmoid) => each(numbers, intercepts, scale, sigmoid),
            Some(Activation::Relu) => each(numbers, intercepts, scale, relu),
            Some(Activation::Tanh) => each(numbers, intercepts, scale, tanh),
        }
    }
}

/// The same for chunks of one tuple's units, and of their intercepts.
#[inline(always)]
pub fn activate_chunks(activation: Activation, numbers: &mut [Chunk], scale: f32, intercepts: &[Chunk]) {
    match activation {
        Activation::Sigmoid => each_chunk(numbers, intercepts, scale, sigmoid),
        Activation::Relu => each_chunk(numbers, intercepts, scale, relu),
        Activation::Tanh => each_chunk(numbers, intercepts, scale, tanh),
    }
}

#[inline(always)]
fn each_chunk(numbers: &mut [Chunk], intercepts: &[Chunk], scale: f32, f: impl Fn(f32) -> f32) {
    for (numbers, intercepts) in numbers.iter_mut().zip(intercepts) {
        numbers.iter_mut().zip(intercepts).for_each(|(z, b)| *z = f(*z * scale + b));
    }
}

#[inline(always)]
fn each(numbers: &mut [f32], intercepts: &[f32], scale: f32, f: impl Fn(f32) -> f32) {
    for row in numbers.chunks_exact_mut(intercepts.len()) {
        row.iter_mut().zip(intercepts).for_each(|(z, b)| *z = f(*z * scale + b));
    }
}

/// Replaces what hidden units say by the derivatives by what they are given, from the derivatives by what they say, in
/// units of 1 / `scale`.
pub struct Derive<'a> {
    /// of the hidden units
    pub activation: Activation,
    /// derivatives by what the units say
    pub gradients: &'a [f32],
    /// what the units say, then the derivatives by what they are given
    pub activations: &'a mut [f32],
    /// the units of the derivatives are 1 / this
    pub scale: f32,
}

impl Kernel for Derive<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        derive(self.activation, self.gradients, self.activations, self.scale);
    }
}

#[inline(always)]
fn derive(activation: Activation, gradients: &[f32], activations: &mut [f32], scale: f32) {
    let each = activations.iter_mut().zip(gradients);
    match activation {
        Activation::Sigmoid => each.for_each(|(a, gradient)| *a = gradient * (scale * (*a * (1.0 - *a)))),
        Activation::Relu => each.for_each(|(a, gradient)| *a = if *a > 0.0 { gradient * scale } else { 0.0 }),
        Activation::Tanh => each.for_each(|(a, gradient)| *a = gradient * (scale * (1.0 - *a * *a))),
    }
}

/// The same for chunks.
#[inline(always)]
pub fn derive_chunks(activation: Activation, gradients: &[Chunk], activations: &mut [Chunk], scale: f32) {
    for (activations, gradients) in activations.iter_mut().zip(gradients) {
        derive(activation, gradients, activations, scale);
    }
}

/// Adds the rows to `sum`.
pub struct AddRows<'a> {
    /// one after the other
    pub rows: &'a [f32],
    /// as long as a row
    pub sum: &'a mut [f32],
}

impl Kernel for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for row in self.rows.chunks_exact(self.sum.len()) {
            self.sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    }
}

/// 1 / (1 + e^(-z)).
#[inline(always)]
pub fn sigmoid(z: f32) -> f32 {
    let e = exp(-z.abs());
    let s = 1.0 / (1.0 + e);
    if z < 0.0 { e * s } else { s }
}

#[inline(always)]
fn relu(z: f32) -> f32 {
    if z < 0.0 { 0.0 } else { z }
}

#[inline(always)]
fn tanh(z: f32) -> f32 {
    let e = exp(-2.0 * z.abs());
    ((1.0 - e) / (1.0 + e)).copysign(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_within_2e_7_of_their_functions() {
        for i in -200_000..200_000 {
            let z = i as f32 / 4096.0;
            let of = f64::from(z);
            assert!((f64::from(sigmoid(z)) - 1.0 / (1.0 + (-of).exp())).abs() < 2e-7, "{z}");
            assert!((f64::from(tanh(z)) - of.tanh()).abs() < 2e-7, "{z}");
        }
        assert_eq!([sigmoid(1e30), sigmoid(-1e30), tanh(1e30), tanh(-1e30)], [1.0, 0.0, 1.0, -1.0]);
        assert_eq!([relu(-1.0), relu(0.0), relu(2.5)], [0.0, 0.0, 2.5]);
        assert!(sigmoid(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && relu(f32::NAN).is_nan());
    }
}
