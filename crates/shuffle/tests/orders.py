#!/usr/bin/env python3
"""Prints the orders frozen in orders.rs, mixer.rs and deal.rs, from the definitions alone: splitmix64.c and
xoshiro256plusplus.c as published (prng.di.unimi.it), the streams as src/permutation.rs documents them, and exact
integers instead of the crate's arithmetic.

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


def pair(n, draws):
    """Independent indices below n and n - 1, of one draw."""
    pairs = n * (n - 1)
    while True:
        scaled = next(draws) * pairs
        if n == 1 or scaled % 2**64 >= 2**64 % pairs:
            return divmod(scaled >> 64, n - 1 or 1)


def below(n, draws):
    """An index below n: the first of a pair."""
    return pair(n, draws)[0]


def in_place(order, draws):
    """Fisher-Yates over what is in the list, two places per draw."""
    for n in range(len(order), 1, -2):
        for place, chosen in zip((n - 1, n - 2), pair(n, draws)):
            order[place], order[chosen] = order[chosen], order[place]
    return order


def shuffled(n, *name):
    return in_place(list(range(n)), stream(*name))


def stratified(blocks, buffers, *name):
    """The blocks of each buffer: one more for the first ones if it does not come out even, then equally many of each
    stratum."""
    draws = stream(*name)
    each, more = divmod(len(blocks), buffers)
    if buffers < 2 or each == 0:
        order = in_place(list(blocks), draws)
        return [order[i : i + 1] for i in range(len(order))] if each == 0 else [order]
    extra, rest = [], []
    for left, block in zip(range(len(blocks), 0, -1), blocks):
        missing = more - len(extra)
        (extra if missing and below(left, draws) < missing else rest).append(block)
    hands = [[block] for block in in_place(extra, draws)] + [[] for _ in range(buffers - more)]
    strata = max(1, each // (1 if buffers >= 10 else -(-16 // buffers)))
    for i in range(strata):
        size = each * (i + 1) // strata - each * i // strata
        stratum, rest = in_place(rest[: size * buffers], draws), rest[size * buffers :]
        for place, hand in enumerate(hands):
            hand += stratum[place * size : (place + 1) * size]
    return [in_place(hand, draws) for hand in hands]


def block_order(blocks, buffers, *name):
    return [block for hand in stratified(range(blocks), buffers, *name) for block in hand]


def fnv1a(order):
    h = 0xCBF29CE484222325
    for byte in b"".join(i.to_bytes(4, "little") for i in order):
        h = ((h ^ byte) * 0x100000001B3) & MASK
    return h


for seed, epoch in (0, 1), (42, 1), (42, 2), (-1, 20), (-(2**63), 2**64 - 1), (2**63 - 1, 3):
    print(f"({seed}, {epoch}, {shuffled(12, b'blocks', seed, epoch, 0)}),")
for seed, epoch, buffers in (0, 1, 4), (42, 1, 4), (42, 2, 3), (-1, 20, 7), (7, 3, 13):
    print(f"({seed}, {epoch}, {buffers}, {block_order(14, buffers, b'blocks', seed, epoch, 0)}),")
for seed, epoch, buffer in (0, 1, 0), (42, 1, 0), (42, 1, 1), (42, 2, 0), (-1, 20, 7), (7, 1, 2**64 - 1):
    print(f"({seed}, {epoch}, {buffer}, {shuffled(11, b'tuples', seed, epoch, buffer)}),")
print(f"{fnv1a(shuffled(100_000, b'tuples', 42, 1, 0)):#x}")
for blocks, buffers in (1000, 10), (333, 2), (4099, 64):
    print(f"({blocks}, {buffers}, {fnv1a(block_order(blocks, buffers, b'blocks', 42, 3, 0)):#x}),")


def sliding_window(tuples, size, seed, epoch):
    """TensorFlow's: a random one of the window makes room for the next."""
    draws, window, order = stream(b"window", seed, epoch, 0), list(range(size)), []
    for tuple_ in range(size, tuples):
        slot = below(size, draws)
        order.append(window[slot])
        window[slot] = tuple_
    return order + in_place(window, draws)


def reservoir(tuples, size, seed, epoch):
    """What algorithm R drops, in that sequence, and what it keeps."""
    draws, kept, dropped = stream(b"mrs", seed, epoch, 0), [], []
    for seen, tuple_ in enumerate(range(tuples), 1):
        if len(kept) < size:
            kept.append(tuple_)
        elif (slot := below(seen, draws)) < size:
            dropped.append(kept[slot])
            kept[slot] = tuple_
        else:
            dropped.append(tuple_)
    return dropped, kept


def mrs(tuples, size, seed, epoch):
    """Each dropped tuple, and one of the reservoir before."""
    dropped, _ = reservoir(tuples, size, seed, epoch)
    if epoch == 1:
        return dropped
    _, kept = reservoir(tuples, size, seed, epoch - 1)
    return [t for i, tuple_ in enumerate(dropped) for t in (tuple_, kept[i % len(kept)])]


def key(purpose, seed, epoch, number):
    """Of a tuple in a sort: an output of SplitMix64, as a signed integer."""
    state = 0
    for word in int.from_bytes(purpose, "little"), seed & MASK, epoch, 0:
        state = splitmix(state ^ word)[1]
    for _ in range(number + 1):
        state, output = splitmix(state)
    return output - 2**64 if output >> 63 else output


def by_key(tuples, purpose, seed, epoch):
    return sorted(range(tuples), key=lambda number: key(purpose, seed, epoch, number))


for seed, epoch in (0, 1), (42, 1), (42, 2), (-1, 5):
    print(f"(Strategy::SlidingWindow, {seed}, {epoch}, &{sliding_window(23, 8, seed, epoch)}),")
for seed, epoch in (0, 1), (42, 1), (42, 2), (-1, 5):
    print(f"(Strategy::Mrs, {seed}, {epoch}, &{mrs(23, 4, seed, epoch)}),")
for seed, epoch in (0, 1), (42, 1), (42, 2):
    print(f"(Strategy::ShuffleOnce, {seed}, {epoch}, &{by_key(23, b'once', seed, 0)}),")
for seed, epoch in (0, 1), (42, 1), (42, 2):
    print(f"(Strategy::EpochShuffle, {seed}, {epoch}, &{by_key(23, b'epoch', seed, epoch)}),")
for seed, epoch, number in (0, 1, 0), (42, 7, 1), (-1, 3, 1000):
    print(f"(Strategy::ShuffleOnce, {seed}, {epoch}, {number}, {key(b'once', seed, 0, number)}),")
    print(f"(Strategy::EpochShuffle, {seed}, {epoch}, {number}, {key(b'epoch', seed, epoch, number)}),")


def dealt(blocks, buffer, processes, seed, epoch):
    """The blocks of each process, a list per buffer: its own blocks are drawn once, and dealt to its buffers by a
    stream of its own."""
    full = -(-blocks // buffer)
    most = -(-blocks // processes)
    room = most if full == 1 else max(1, (-(-blocks // full)) // processes)
    buffers = -(-most // -(-most // -(-most // room)))
    owned = stratified(range(blocks), processes, b"ranks", seed, 0, 0)
    owned += [[] for _ in range(processes - len(owned))]
    hands = [
        stratified(sorted(own), buffers, b"blocks", seed, epoch, process << 32) for process, own in enumerate(owned)
    ]
    return [hand + [[] for _ in range(buffers - len(hand))] for hand in hands]


for blocks, buffer, processes, seed, epoch in (23, 8, 2, 42, 1), (23, 8, 2, 42, 2), (23, 8, 3, -1, 7), (9, 9, 2, 5, 1):
    print(f"(({blocks}, {buffer}, {processes}), ({seed}, {epoch}), {dealt(blocks, buffer, processes, seed, epoch)}),")
