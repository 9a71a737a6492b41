"""The sums and functions of a model, in the arithmetic of the database.

Guarantees: every number of type real is rounded as in the extension, and sums are added in the same order, so that
decisions are bit-identical to those in SQL. This prevents different predictions for decisions close to 0. With
`exact=False`, sums are left to BLAS: faster, but different in the last digits.

A dense sum of products is computed in chunks of 16 features: chunk i goes to sum i mod 4, and the lanes are added at
the end. A sparse one is computed in entries: entry i goes to sum i mod 4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Places = NDArray[np.int64]

_LANES, _SUMS = 16, 4

#: Numbers that a step of a batch holds at once.
_AT_ONCE = 1 << 18


def dense_products(features: Floats, weights: Floats, exact: bool = True) -> Floats:
    """The product of each row of features with each row of weights: rows by outputs."""
    rows, width = features.shape
    outputs = weights.shape[0]
    if not exact:
        return features @ weights.T
    chunks = width // _LANES + 1
    padded = np.zeros((outputs, chunks * _LANES), np.float32)
    padded[:, :width] = weights
    lanes = padded.reshape(outputs, chunks, _LANES)
    out = np.empty((rows, outputs), np.float32)
    step = max(1, _AT_ONCE // (outputs * _LANES))
    for first in range(0, rows, step):
        some = features[first : first + step]
        row = np.zeros((len(some), chunks * _LANES), np.float32)
        row[:, :width] = some
        out[first : first + step] = _products_of_chunks(row.reshape(len(some), chunks, _LANES), lanes)
    return out


def _products_of_chunks(rows: Floats, weights: Floats) -> Floats:
    sums = np.zeros((_SUMS, len(rows), len(weights), _LANES), np.float32)
    for i in range(rows.shape[1]):
        sums[i % _SUMS] += weights[None, :, i, :] * rows[:, None, i, :]
    lanes = (sums[0] + sums[1]) + (sums[2] + sums[3])
    eight = lanes[..., :8] + lanes[..., 8:]
    four = eight[..., :4] + eight[..., 4:]
    return (four[..., 0] + four[..., 2]) + (four[..., 1] + four[..., 3])


def sparse_products(indices: Places, values: Floats, weights: Floats) -> Floats:
    """The same for entries, as many columns of them as the longest row has; shorter ones end in zeros at index 0."""
    by_feature = np.ascontiguousarray(weights.T)
    outputs = weights.shape[0]
    out = np.empty((len(indices), outputs), np.float32)
    step = max(1, _AT_ONCE // outputs)
    for first in range(0, len(indices), step):
        some, of = indices[first : first + step], values[first : first + step]
        sums = np.zeros((_SUMS, len(some), outputs), np.float32)
        for i in range(some.shape[1]):
            sums[i % _SUMS] += by_feature[some[:, i]] * of[:, i, None]
        out[first : first + step] = (sums[0] + sums[1]) + (sums[2] + sums[3])
    return out


def standardized(values: Floats, mean: Doubles, scale: Doubles, clip: np.float32 | None) -> Floats:
    """(value - mean) / scale, cut off at as many deviations."""
    with np.errstate(over="ignore"):
        scaled = ((values.astype(np.float64) - mean) * (1.0 / scale)).astype(np.float32)
    return scaled if clip is None else np.clip(scaled, -clip, clip)


def signed_log(values: Floats) -> Floats:
    """sign(x) ln(1 + |x|), by the series of the extension, which is the same on every machine."""
    x = values.astype(np.float64)
    x_abs = np.abs(x)
    y = 1.0 + x_abs
    rest = x_abs - (y - 1.0)
    least = np.int64(0x3FE6A09E667F3BCD)  # the bits of the root of 1/2
    shifted = y.view(np.int64) + (np.int64(0x3FF0000000000000) - least)
    exponent = ((shifted >> 52) - 1023).astype(np.float64)
    m = ((shifted & np.int64((1 << 52) - 1)) + least).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = np.full_like(z, 1.0 / 19.0)
    for n in (17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        series = series * z + 1.0 / n
    logs = exponent * 0.6931471805599453 + 2.0 * s * series + rest / y
    return np.copysign(logs, x).astype(np.float32)


def _exp(x: Floats) -> Floats:
    """e^x of an x of at most 0, in reals."""
    f = np.float32
    rounded = x * f(1.44269504088896340736) + f(12582912.0)
    n = rounded - f(12582912.0)
    r = (x - n * f(0.6933594)) - n * f(-2.1219444e-4)
    tail = f(1.0) / f(120.0) + r * (f(1.0) / f(720.0) + r * (f(1.0) / f(5040.0)))
    series = f(1.0) + (r + (r * r) * (f(0.5) + r * (f(1.0) / f(6.0) + r * (f(1.0) / f(24.0) + r * tail))))
    bits = (rounded.view(np.uint32) << np.uint32(23)) + np.uint32(0x3F800000)
    return np.where(x < f(-87.0), f(0.0), series * bits.view(np.float32))


def _sigmoid(z: Floats) -> Floats:
    e = _exp(-np.abs(z))
    s = np.float32(1.0) / (np.float32(1.0) + e)
    return np.where(z < 0, e * s, s)


def _relu(z: Floats) -> Floats:
    return np.where(z < 0, np.float32(0.0), z)


def _tanh(z: Floats) -> Floats:
    e = _exp(np.float32(-2.0) * np.abs(z))
    return np.copysign((np.float32(1.0) - e) / (np.float32(1.0) + e), z)


#: What hidden units make of their inputs.
ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"sigmoid": _sigmoid, "relu": _relu, "tanh": _tanh}


def probability(z: Doubles) -> Doubles:
    """1 / (1 + e^(-z)), precise in its tails."""
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e / (1.0 + e), 1.0 / (1.0 + e))


def softmax(z: Doubles) -> Doubles:
    """e^(z_k) over the sum of all, row by row."""
    return _normalized(z)


def separate_sigmoids(z: Doubles) -> Doubles:
    """1 / (1 + e^(-z_k)) over the sum of all, row by row."""
    return _normalized(-(np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))))


def _normalized(logs: Doubles) -> Doubles:
    powers = np.exp(logs - logs.max(axis=1, keepdims=True))
    # one class after the other, as the extension adds them up
    total = np.add.accumulate(powers, axis=1)[:, -1:]
    return powers / total
