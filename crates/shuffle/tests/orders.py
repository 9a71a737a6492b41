#!/usr/bin/env python3
"""Prints the orders frozen in orders.rs, from the definitions alone: splitmix64.c and xoshiro256plusplus.c as published
(prng.di.unimi.it), the streams as src/permutation.rs documents them, and exact integers instead of the crate's arithmetic.

    python3 crates/shuffle/tests/orders.py
"""

MASK = 2**64 - 1


def splitmix(state):
    """Next state and output."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return state, z ^ z >> 31


def rotl(x, k):
    return (x << k | x >> 64 - k) & MASK


def stream(purpose, seed, epoch, ordinal):
    """The draws of a stream."""
    key = 0
    for word in int.from_bytes(purpose, "little"), seed & MASK, epoch, ordinal:
        key = splitmix(key ^ word)[1]
    s = []
    for _ in range(4):
        key, output = splitmix(key)
        s.append(output)
    while True:
        yield (rotl((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)


def shuffled(n, *name):
    """Fisher-Yates over 0..n, two places per draw."""
    order, draws = list(range(n)), stream(*name)
    while n >= 2:
        pairs = n * (n - 1)
        scaled = next(draws) * pairs
        if scaled % 2**64 < 2**64 % pairs:
            continue
        i, j = divmod(scaled >> 64, n - 1)
        order[n - 1], order[i] = order[i], order[n - 1]
        order[n - 2], order[j] = order[j], order[n - 2]
        n -= 2
    return order


def spread(blocks, buffers, *name):
    """Deals runs of `buffers` contiguous blocks to the buffers, one each, from a random one of the first on."""
    draws = stream(*name)

    def pair(n):
        while True:
            scaled = next(draws) * n * (n - 1)
            if scaled % 2**64 >= 2**64 % (n * (n - 1)):
                return divmod(scaled >> 64, n - 1)

    def shuffle(order):
        for n in range(len(order), 1, -2):
            for place, chosen in zip((n - 1, n - 2), pair(n)):
                order[place], order[chosen] = order[chosen], order[place]
        return order

    start = pair(buffers)[0]
    end = blocks - (blocks - start) % buffers
    hands = [[] for _ in range(buffers)]
    ends = shuffle(list(range(buffers)))
    for place, block in enumerate([*range(start), *range(end, blocks)]):
        hands[ends[place % buffers]].append(block)
    deal = shuffle(list(range(buffers)))
    for at in range(start, end, buffers):
        for place, hand in enumerate(deal):
            hands[hand].append(at + place)
        i, j = pair(buffers)[0], pair(buffers)[0]
        deal[i], deal[j] = deal[j], deal[i]
    hands.sort(key=lambda hand: -len(hand))
    return [block for hand in hands for block in shuffle(hand)]


def fnv1a(order):
    h = 0xCBF29CE484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in order):
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


for seed, epoch in (0, 1), (42, 1), (42, 2), (-1, 20), (-(2**63), 2**64 - 1), (2**63 - 1, 3):
    print(f"({seed}, {epoch}, {shuffled(12, b'blocks', seed, epoch, 0)}),")
for seed, epoch, buffers in (0, 1, 4), (42, 1, 4), (42, 2, 3), (-1, 20, 7), (7, 3, 13):
    print(f"({seed}, {epoch}, {buffers}, {spread(14, buffers, b'blocks', seed, epoch, 0)}),")
for seed, epoch, buffer in (0, 1, 0), (42, 1, 0), (42, 1, 1), (42, 2, 0), (-1, 20, 7), (7, 1, 2**64 - 1):
    print(f"({seed}, {epoch}, {buffer}, {shuffled(11, b'tuples', seed, epoch, buffer)}),")
print(f"{fnv1a(shuffled(100_000, b'tuples', 42, 1, 0)):#x}")
