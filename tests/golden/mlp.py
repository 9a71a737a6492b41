"""What scikit-learn's MLPClassifier makes of rows that the test makes with the same formulas in SQL, by plain
mini-batch gradient descent from the weights that corgipile begins with, which are drawn here anew as its documentation
says.

Writes mlp.json beside itself: target/study-venv/bin/python tests/golden/mlp.py
"""

import json
import pathlib
import warnings

import numpy as np
from sklearn.neural_network import MLPClassifier

warnings.simplefilter("ignore")
MASK = (1 << 64) - 1
SEED, BATCH, EPOCHS = 11, 10, 4

i = np.arange(1, 61)
x = np.stack([(i * 37 % 101) / 64 - 0.75, (i * 53 % 97) / 64 - 0.75, (i * 11 % 13) / 8 - 0.75], axis=1)
many, two = i * 29 % 4, (i * 29 % 7 > 3).astype(int)


def mix(state):
    """The output of SplitMix64 in this state."""
    z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


GAMMA = 0x9E3779B97F4A7C15


def rotate(v, k):
    return (v << k | v >> 64 - k) & MASK


def stream(*words):
    """Xoshiro256++ of the stream with this name."""
    key = 0
    for word in words:
        key = mix((key ^ word) + GAMMA & MASK)
    s = [mix(key + k * GAMMA & MASK) for k in range(1, 5)]
    while True:
        yield (rotate(s[0] + s[3] & MASK, 23) + s[0]) & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate(s[3], 45)


def glorot(layer, inputs, outputs):
    bound = (6 / (inputs + outputs)) ** 0.5
    rows = []
    for j in range(inputs):
        draws = stream(int.from_bytes(b"weights\0", "little"), SEED, layer, j)
        rows.append([bound * (2 * ((next(draws) >> 40) + 0.5) / 2**24 - 1) for _ in range(outputs)])
    return np.float32(rows).astype(np.float64)


def train(label, hidden, activation, rate, l2):
    model = MLPClassifier(
        hidden,
        activation=activation,
        solver="sgd",
        alpha=l2 * BATCH,
        batch_size=BATCH,
        momentum=0,
        nesterovs_momentum=False,
        learning_rate_init=rate,
        shuffle=False,
    )
    model.partial_fit(x, label, classes=np.unique(label))
    sizes = [3, *hidden, model.coefs_[-1].shape[1]]
    for layer, (weights, intercepts) in enumerate(zip(model.coefs_, model.intercepts_)):
        weights[:] = glorot(layer, sizes[layer], sizes[layer + 1])
        intercepts[:] = 0
    first = flat(model.coefs_)
    for _ in range(EPOCHS):
        model.partial_fit(x, label)
    return {
        "first": first,
        "weights": flat(model.coefs_),
        "intercepts": np.concatenate(model.intercepts_).tolist(),
        "probabilities": model.predict_proba(x).tolist(),
        "predicted": model.predict(x).tolist(),
    }


def flat(coefs):
    """Layer after layer, each output by output."""
    return np.concatenate([weights.T.ravel() for weights in coefs]).tolist()


golden = {
    "sigmoid": train(many, (5, 4), "logistic", 1.0, 0),
    "tanh": train(many, (6,), "tanh", 0.3, 0.01),
    "relu": train(two, (4, 3, 2), "relu", 0.2, 0),
    "binary": train(two, (5,), "logistic", 1.0, 0.02),
}
pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(golden, indent=1) + "\n")
