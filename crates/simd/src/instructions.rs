//! What an instruction set can do, and what is to be compiled for each of them.

/// Lanes of a chunk.
pub const LANES: usize = 16;

/// As many floats as one step of a kernel handles: one AVX-512 register, or two of AVX2.
pub type Chunk = [f32; LANES];

/// Lanes of f64 in a chunk's place.
pub const DOUBLES: usize = LANES / 2;

/// As many doubles as lie in the registers of a chunk.
pub type Doubles = [f64; DOUBLES];

/// The arithmetic of an instruction set. Lane by lane but for the sums; no operation reorders others.
pub trait Simd: Copy {
    /// A chunk in registers.
    type Vector: Copy;

    /// As many bits of doubles in registers.
    type DoubleVector: Copy;

    /// How many chunks its registers hold.
    const REGISTERS: usize;

    /// The chunk, in registers.
    fn load(self, chunk: &Chunk) -> Self::Vector;
    /// The chunk, in memory.
    fn store(self, vector: Self::Vector, chunk: &mut Chunk);
    /// The same number in all lanes.
    fn splat(self, number: f32) -> Self::Vector;
    /// The doubles, in registers.
    fn load_doubles(self, doubles: &Doubles) -> Self::DoubleVector;
    /// The doubles, in memory.
    fn store_doubles(self, vector: Self::DoubleVector, doubles: &mut Doubles);
    /// The same double in all lanes.
    fn splat_double(self, number: f64) -> Self::DoubleVector;
    /// sum + a * b of doubles, rounded once.
    fn fma_doubles(self, a: Self::DoubleVector, b: Self::DoubleVector, sum: Self::DoubleVector) -> Self::DoubleVector;
    /// a + b.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// a * b.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// sum + a * b, rounded once.
    fn fma(self, a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector;
    /// The same for single numbers.
    fn fma_one(self, a: f32, b: f32, sum: f32) -> f32;
    /// 1 if a < b or one of them is NaN, else 0; without a branch, which would be guessed wrongly too often.
    fn one_if_less(self, a: f32, b: f32) -> f32;
    /// The sum of the lanes, folded in halves: first lane i with lane i + 8, in the end the first two.
    fn sum(self, vector: Self::Vector) -> f32;
    /// Four vectors, of each a quarter: its lanes folded in halves as in [`sum`](Simd::sum), until there are four.
    fn quarters(self, vectors: [Self::Vector; 4]) -> Self::Vector;
    /// The sums of the sixteen [`quarters`](Simd::quarters) of four vectors, one after the other: each the same as
    /// [`sum`](Simd::sum).
    fn sums_of_quarters(self, vectors: [Self::Vector; 4]) -> Self::Vector;
    /// a if a > b, else b: also where one of them is NaN.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The greatest lane; any number if a lane is NaN.
    fn greatest(self, vector: Self::Vector) -> f32;
    /// How many lanes are at least `bound`.
    fn count_from(self, vector: Self::Vector, bound: f32) -> u32;
    /// The vector, but 0 where `x` is less than `bound`.
    fn zero_below(self, vector: Self::Vector, x: Self::Vector, bound: f32) -> Self::Vector;
    /// 2^n of n from -126 to 127, given n + 1.5 * 2^23, in whose lowest bits n is.
    fn two_to(self, shifted: Self::Vector) -> Self::Vector;

    /// Runs a kernel as a function of its own, so that it is compiled once for this instruction set, from however many
    /// places it is called: for what takes much longer than a call.
    fn call<K: Kernel>(self, kernel: K) -> K::Output;

    /// The sums of three vectors at once, each the same as [`sum`](Simd::sum).
    #[inline(always)]
    fn sums(self, vectors: [Self::Vector; 3]) -> [f32; 3] {
        [self.sum(vectors[0]), self.sum(vectors[1]), self.sum(vectors[2])]
    }

    /// The sums of four vectors at once, each the same as [`sum`](Simd::sum).
    #[inline(always)]
    fn four_sums(self, vectors: [Self::Vector; 4]) -> [f32; 4] {
        vectors.map(|vector| self.sum(vector))
    }

    /// (vector - mean) * factor, computed in doubles and rounded once.
    #[inline(always)]
    fn standardize(self, vector: Self::Vector, mean: &[f64; LANES], factor: &[f64; LANES]) -> Self::Vector {
        let mut chunk = [0.0; LANES];
        self.store(vector, &mut chunk);
        let lane = |lane: usize| ((f64::from(chunk[lane]) - mean[lane]) * factor[lane]) as f32;
        self.load(&std::array::from_fn(lane))
    }

    /// sum + a * b, rounded twice.
    #[inline(always)]
    fn mul_add(self, a: Self::Vector, b: Self::Vector, sum: Self::Vector) -> Self::Vector {
        self.add(sum, self.mul(a, b))
    }
}

/// A loop to be compiled for every instruction set. `run` and all it calls must be `#[inline(always)]`, or they would
/// be compiled for the least of them only.
pub trait Kernel {
    /// What the loop computes.
    type Output;

    /// Runs it.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}
