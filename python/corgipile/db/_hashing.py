"""XXH3 with 64 bits, which assigns values of hashed columns to buckets.

Guarantees: the hash of xxHash 0.8 for every length and seed, so that a model uses the same buckets here and in the
database. It is written in plain Python because predictions should need nothing but numpy.
"""

from __future__ import annotations

from struct import unpack_from

_MASK = (1 << 64) - 1

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_PRIME32_1, _PRIME32_2, _PRIME32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_PRIME64_1, _PRIME64_2, _PRIME64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_PRIME64_4, _PRIME64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_PRIME_MX1, _PRIME_MX2 = 0x165667919E3779F9, 0x9FB21C651E98DF25

_STRIPE, _STRIPES_PER_BLOCK = 64, 16


def xxh3_64(data: bytes, seed: int = 0) -> int:
    """The hash of `data`."""
    length = len(data)
    if length <= 16:
        return _up_to_16(data, length, seed)
    if length <= 240:
        return _up_to_240(data, length, seed)
    return _long(data, length, seed)


def bucket(column: str, value: str | None, buckets: int) -> int:
    """The bucket, from 0, of a column's value, or of a missing one."""
    seed = xxh3_64(column.encode())
    return (seed if value is None else xxh3_64(value.encode(), seed)) % buckets


def _u32(data: bytes, at: int) -> int:
    return unpack_from("<I", data, at)[0]


def _u64(data: bytes, at: int) -> int:
    return unpack_from("<Q", data, at)[0]


def _swapped(number: int, length: int) -> int:
    return int.from_bytes(number.to_bytes(length, "little"), "big")


def _rotated(number: int, by: int) -> int:
    return ((number << by) | (number >> (64 - by))) & _MASK


def _folded(a: int, b: int) -> int:
    product = a * b
    return (product ^ (product >> 64)) & _MASK


def _avalanche(h: int) -> int:
    h &= _MASK
    h ^= h >> 37
    h = h * _PRIME_MX1 & _MASK
    return h ^ (h >> 32)


def _avalanche_of_xxh64(h: int) -> int:
    h ^= h >> 33
    h = h * _PRIME64_2 & _MASK
    h ^= h >> 29
    h = h * _PRIME64_3 & _MASK
    return h ^ (h >> 32)


def _up_to_16(data: bytes, length: int, seed: int) -> int:
    if length > 8:
        low = _u64(data, 0) ^ ((_u64(_SECRET, 24) ^ _u64(_SECRET, 32)) + seed & _MASK)
        high = _u64(data, length - 8) ^ ((_u64(_SECRET, 40) ^ _u64(_SECRET, 48)) - seed & _MASK)
        return _avalanche(length + _swapped(low, 8) + high + _folded(low, high))
    if length >= 4:
        seed ^= _swapped(seed & 0xFFFFFFFF, 4) << 32
        flip = (_u64(_SECRET, 8) ^ _u64(_SECRET, 16)) - seed & _MASK
        h = (_u32(data, length - 4) + (_u32(data, 0) << 32)) ^ flip
        h ^= _rotated(h, 49) ^ _rotated(h, 24)
        h = h * _PRIME_MX2 & _MASK
        h ^= (h >> 35) + length
        h = h * _PRIME_MX2 & _MASK
        return h ^ (h >> 28)
    if length > 0:
        combined = (data[0] << 16) | (data[length >> 1] << 24) | data[length - 1] | (length << 8)
        return _avalanche_of_xxh64(combined ^ ((_u32(_SECRET, 0) ^ _u32(_SECRET, 4)) + seed & _MASK))
    return _avalanche_of_xxh64(seed ^ _u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mixed(data: bytes, at: int, secret_at: int, seed: int) -> int:
    low = _u64(data, at) ^ (_u64(_SECRET, secret_at) + seed & _MASK)
    high = _u64(data, at + 8) ^ (_u64(_SECRET, secret_at + 8) - seed & _MASK)
    return _folded(low, high)


def _up_to_240(data: bytes, length: int, seed: int) -> int:
    sum_ = length * _PRIME64_1
    if length <= 128:
        for i in reversed(range((length - 1) // 32 + 1)):
            sum_ += _mixed(data, 16 * i, 32 * i, seed)
            sum_ += _mixed(data, length - 16 * (i + 1), 32 * i + 16, seed)
        return _avalanche(sum_)
    for i in range(8):
        sum_ += _mixed(data, 16 * i, 16 * i, seed)
    rest = _mixed(data, length - 16, 136 - 17, seed)
    for i in range(8, length // 16):
        rest += _mixed(data, 16 * i, 16 * (i - 8) + 3, seed)
    return _avalanche(_avalanche(sum_) + rest)


def _seeded_secret(seed: int) -> bytes:
    words = [_u64(_SECRET, at) + (seed if at % 16 == 0 else -seed) & _MASK for at in range(0, 192, 8)]
    return b"".join(word.to_bytes(8, "little") for word in words)


def _long(data: bytes, length: int, seed: int) -> int:
    secret = _seeded_secret(seed)
    sums = [_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3, _PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1]
    last = len(secret) - _STRIPE
    for stripe in range((length - 1) // _STRIPE):
        in_block = stripe % _STRIPES_PER_BLOCK
        _accumulate(sums, data, stripe * _STRIPE, secret, 8 * in_block)
        if in_block == _STRIPES_PER_BLOCK - 1:
            for i, s in enumerate(sums):
                sums[i] = (s ^ (s >> 47) ^ _u64(secret, last + 8 * i)) * _PRIME32_1 & _MASK
    _accumulate(sums, data, length - _STRIPE, secret, last - 7)
    h = length * _PRIME64_1
    for i in range(4):
        keys = _u64(secret, 11 + 16 * i), _u64(secret, 19 + 16 * i)
        h += _folded(sums[2 * i] ^ keys[0], sums[2 * i + 1] ^ keys[1])
    return _avalanche(h)


def _accumulate(sums: list[int], data: bytes, at: int, secret: bytes, secret_at: int) -> None:
    values = unpack_from("<8Q", data, at)
    keys = unpack_from("<8Q", secret, secret_at)
    for i in range(8):
        key = values[i] ^ keys[i]
        sums[i ^ 1] = sums[i ^ 1] + values[i] & _MASK
        sums[i] = sums[i] + (key & 0xFFFFFFFF) * (key >> 32) & _MASK
