//! Which blocks share a buffer: stratified sampling.
//!
//! The CorgiPile paper draws the blocks of a buffer simply at random. Here the table is cut into *strata*, stretches of
//! consecutive blocks, and every buffer draws the same number of blocks from each stratum. So whatever changes slowly
//! along the table, first of all the share of a class where tuples are sorted, is nearly the same in every buffer.
//!
//! It guarantees that each block is equally likely to be in any place of the order, at the table's ends too. It also
//! guarantees that no order of the table, however regular, is mixed noticeably worse than by the paper's draw. Of a
//! stratum of `w` blocks that are dealt at random, the variance of what a buffer gets is at most `w / (w - 1)` times
//! that of a simple draw of as many blocks (Cochran, Sampling Techniques, 1977, section 5.6): the deviation grows by 5%
//! with 10 blocks, by 3% with 16. There is no gain without that loss. The variances along the axes of all possible
//! orders add up to the same sum for every draw that treats all blocks alike.
//!
//! It prevents resonance. Draws that are regular themselves, such as one block of every run of as many as there are
//! buffers with nearly the same places from run to run, put all blocks of a kind into one buffer where classes
//! alternate with the same period: days, weeks, loads that take turns.

use crate::random::{PER_PAUSE, below, shuffle, shuffle_pausing};
use rand_xoshiro::Xoshiro256PlusPlus;

/// From this many buffers on, a stratum is one block for each of them.
/// Narrow strata mix what changes along the table best.
const BUFFERS_OF_NARROW_STRATA: usize = 10;

/// Blocks of a stratum, at least, for fewer buffers. These are larger, and have many strata all the same.
const WIDE_STRATUM: usize = 16;

/// The blocks in the order in which they are read: those of the first buffer, those of the second, and so on. The
/// blocks must come in natural order. The first `blocks % buffers` buffers have a block more than the others.
pub(crate) fn stratified(
    rng: &mut Xoshiro256PlusPlus,
    mut blocks: Vec<u32>,
    buffers: usize,
    pause: &mut impl FnMut(),
) -> Vec<u32> {
    let each = blocks.len() / buffers.max(1);
    if buffers < 2 || each == 0 {
        shuffle_pausing(rng, &mut blocks, pause);
        return blocks;
    }
    let more = blocks.len() % buffers;
    let room = |i| allocation::with_capacity(each + usize::from(i < more));
    let mut dealt: Vec<Vec<u32>> = allocation::collect((0..buffers).map(room));
    // What does not come out even is drawn first, from the whole table: no place of it is different from any other.
    let mut extra = draw_out(rng, &mut blocks, more, pause);
    shuffle(rng, &mut extra);
    dealt.iter_mut().zip(&extra).for_each(|(buffer, block)| buffer.push(*block));
    let strata = (each / per_stratum(buffers)).max(1);
    let mut rest = &mut blocks[..];
    let mut since_pause = 0;
    for i in 0..strata {
        let of_each = each * (i + 1) / strata - each * i / strata;
        let (stratum, behind) = rest.split_at_mut(of_each * buffers);
        rest = behind;
        shuffle_pausing(rng, stratum, pause);
        for (buffer, drawn) in dealt.iter_mut().zip(stratum.chunks_exact(of_each)) {
            buffer.extend_from_slice(drawn);
        }
        since_pause += stratum.len();
        if since_pause >= PER_PAUSE {
            since_pause = 0;
            pause();
        }
    }
    for buffer in &mut dealt {
        shuffle_pausing(rng, buffer, pause);
    }
    blocks.clear(); // their memory is enough for the order
    for part in dealt.iter().flat_map(|buffer| buffer.chunks(PER_PAUSE)) {
        blocks.extend_from_slice(part);
        pause();
    }
    blocks
}

/// How many blocks of a stratum each of `buffers` buffers gets, at least.
fn per_stratum(buffers: usize) -> usize {
    if buffers >= BUFFERS_OF_NARROW_STRATA { 1 } else { WIDE_STRATUM.div_ceil(buffers) }
}

/// Removes `wanted` of the blocks, any set of this many with equal probability, and returns them in their sequence.
fn draw_out(rng: &mut Xoshiro256PlusPlus, blocks: &mut Vec<u32>, wanted: usize, pause: &mut impl FnMut()) -> Vec<u32> {
    let mut drawn = allocation::with_capacity(wanted);
    let mut left = blocks.len();
    blocks.retain(|block| {
        let missing = wanted - drawn.len();
        let goes = missing > 0 && below(rng, left) < missing;
        if goes {
            drawn.push(*block);
        }
        left -= 1;
        if left.is_multiple_of(PER_PAUSE) {
            pause();
        }
        !goes
    });
    drawn
}
