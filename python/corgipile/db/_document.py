"""A model as the JSON that `corgipile_export` returns: read, checked, and written unchanged.

Guarantees: an inconsistent document is refused with the name of the key, so that no prediction is made with numbers of
another meaning. docs/reference/model-format.md describes the format.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks import called

VERSION = 1
#: models that predict numbers, without hidden layers: linear, and what the option `loss` makes of it
LINEAR_REGRESSIONS = ("linear", "poisson", "quantile", "epsilon_insensitive", "huber")
#: those that have no probabilities of their own, though they tell classes apart; the first of two classes
SVMS = ("svm", "svm_one_vs_rest", "squared_hinge", "squared_hinge_one_vs_rest")
BINARY_SVMS = ("svm", "squared_hinge")
KINDS = ("logistic", "svm", "linear", "softmax", *LINEAR_REGRESSIONS[1:], *SVMS[1:], "mlp", "mlp_regression")
REGRESSIONS = (*LINEAR_REGRESSIONS, "mlp_regression")
#: those whose decision is the logarithm of what they predict
LOGARITHMIC = ("poisson",)
NETWORKS = ("mlp", "mlp_regression")
_KEYS = frozenset(
    (
        *("corgipile_model", "name", "model", "source", "label", "label_type", "classes", "features", "feature_kind"),
        *("categories", "index_base", "hidden_layer_sizes", "activation", "output", "weights", "intercepts"),
        *("feature_mean", "feature_scale", "feature_fill", "hyperparameters", "skipped", "imputed"),
        *("preparation_seconds", "shuffle_bytes", "history", "calibration_rows", "calibration_scores", "profile"),
        *("sigmoid_slopes", "sigmoid_offsets"),
    )
)


@dataclass(frozen=True)
class Categories:
    """The values of a column, by their places, and whether NULLs are a category behind them."""

    places: dict[str, int]
    has_null: bool

    @property
    def width(self) -> int:
        return len(self.places) + self.has_null


@dataclass(frozen=True)
class Vector:
    """A column of vectors of this many numbers, next to other columns."""

    width: int


@dataclass(frozen=True)
class Words:
    """A column of a tsvector or of arrays of text, whose words are hashed into this many buckets."""

    buckets: int


#: A column is a number (None), has vectors, categories or words, or is hashed into this many buckets.
Column = None | Vector | Categories | Words | int


@dataclass(frozen=True)
class Layer:
    weights: NDArray[np.float32]
    intercepts: NDArray[np.float32]


def width_of(column: Column) -> int:
    """How many features a column has of its own: of what is hashed, none."""
    if column is None:
        return 1
    return column.width if isinstance(column, Vector | Categories) else 0


def _buckets_of(column: Column) -> int:
    return column.buckets if isinstance(column, Words) else column if isinstance(column, int) else 0


class Document:
    """The parts of a model's document, of types that can be computed with."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        if not isinstance(document, Mapping):
            what = "must be a dictionary, as corgipile_export and Model.to_dict give it"
            raise TypeError(f"document: {what}, not {called(document)}")
        self.raw = dict(document)
        self._check_keys()
        self.kind: str = self._one_of("model", KINDS)
        self.label: str = self._text("label")
        self.label_type: str = self._text("label_type")
        self.features: list[str] = self._texts("features")
        self.feature_kind: str = self._one_of("feature_kind", ("array", "columns", "sparse"))
        self.is_regression = self.kind in REGRESSIONS
        self.classes: list[str] = [] if self.is_regression else self._texts("classes")
        if not self.is_regression and len(self.classes) < 2:
            raise self._invalid("classes", "has less than two elements")
        for key in ("name", "source"):
            if self.raw.get(key) is not None:
                self._text(key)
        if not isinstance(self.raw.get("history") or [], list):
            raise self._invalid("history", "is not an array")
        self.index_base: int | None = self.raw.get("index_base")
        self._check_places()
        self.columns = self._columns()
        self.buckets = next((count for count in map(_buckets_of, self.columns) if count), 0)
        self.layers = self._layers()
        self.width = self.layers[0].weights.shape[1]
        if self.feature_kind == "columns" and self.own_features + self.buckets != self.width:
            known = self.own_features + self.buckets
            raise self._invalid(
                "weights", f"has numbers for {self.width} features, but there are {known} features and categories"
            )
        self._read_scaling()
        self._read_sigmoids()
        self._read_policies()

    @property
    def own_features(self) -> int:
        """How many features there are but those of buckets."""
        return sum(map(width_of, self.columns))

    def _check_keys(self) -> None:
        version = self.raw.get("corgipile_model")
        if version is None:
            raise ValueError("the document is not a model: key 'corgipile_model' is missing")
        if version != VERSION:
            raise self._invalid("corgipile_model", f"is {version}, an unknown version: only {VERSION} is read")
        unknown = sorted(map(str, self.raw.keys() - _KEYS))
        if unknown:
            raise self._invalid(unknown[0], "is unknown")

    def _check_places(self) -> None:
        kind, count, base = self.feature_kind, len(self.features), self.index_base
        fits = {
            "array": count == 1 and base is None,
            "columns": count >= 1 and base is None,
            "sparse": (count == 2 and base in (0, 1)) or (count == 1 and base == 1),
        }
        if not fits[kind]:
            raise self._invalid("feature_kind", f"is {kind!r}, which does not fit features and index_base")

    def _columns(self) -> list[Column]:
        categories = self.raw.get("categories") or {}
        if not isinstance(categories, Mapping):
            raise self._invalid("categories", "is not an object")
        strangers = [name for name in categories if name not in self.features]
        if strangers or (categories and self.feature_kind != "columns"):
            raise self._invalid("categories", "does not fit features")
        if self.feature_kind != "columns":
            return []
        columns = [self._column(categories.get(name)) for name in self.features]
        if len({_buckets_of(column) for column in columns} - {0}) > 1:
            raise self._invalid("categories", "has different numbers of buckets")
        return columns

    def _column(self, coding: Any) -> Column:
        if coding is None:
            return None
        if isinstance(coding, Mapping):
            key = "elements" if "elements" in coding else "buckets"
            count, of = coding.get(key), coding.get("of") if key == "buckets" else None
            is_known = of in (None, "lexemes", "elements") and len(coding) == 1 + (of is not None)
            if not isinstance(count, int) or isinstance(count, bool) or count < 1 or not is_known:
                raise self._invalid("categories", "has no number of buckets or elements from 1")
            return Vector(count) if key == "elements" else Words(count) if of else count
        values: list[Any] = list(coding) if isinstance(coding, list) else [None, None]
        has_null = bool(values) and values[-1] is None
        texts = values[:-1] if has_null else values
        places = {text: place for place, text in enumerate(texts) if isinstance(text, str)}
        if len(places) < len(texts) or not values:
            raise self._invalid("categories", "has a column that is not an array of different texts, with a null last")
        return Categories(places, has_null)

    def _layers(self) -> list[Layer]:
        weights, intercepts = self._floats("weights", "<f4"), self._floats("intercepts", "<f4")
        if weights is None or intercepts is None:
            raise self._invalid("weights" if weights is None else "intercepts", "is missing")
        hidden = self._hidden() if self.kind in NETWORKS else []
        outputs = self._outputs()
        if len(intercepts) != sum(hidden) + outputs:
            raise self._invalid("intercepts", f"has {len(intercepts)} numbers, but must have {sum(hidden) + outputs}")
        units = [*hidden, outputs]
        behind = sum(a * b for a, b in pairwise(units))
        width, rest = divmod(len(weights) - behind, units[0])
        if width < 1 or rest:
            raise self._invalid("weights", f"has {len(weights)} numbers, which are not as many for each feature")
        layers, inputs = [], width
        for size in units:
            own, weights = weights[: size * inputs], weights[size * inputs :]
            own_intercepts, intercepts = intercepts[:size], intercepts[size:]
            layers.append(Layer(own.reshape(size, inputs), own_intercepts))
            inputs = size
        return layers

    def _hidden(self) -> list[int]:
        hidden = self.raw.get("hidden_layer_sizes")
        is_size = lambda size: isinstance(size, int) and size > 0  # noqa: E731
        if not isinstance(hidden, list) or not 1 <= len(hidden) <= 16 or not all(map(is_size, hidden)):
            raise self._invalid("hidden_layer_sizes", "is no array of 1 to 16 positive integers")
        return hidden

    def _outputs(self) -> int:
        self.activation = self.output = None
        if self.kind in NETWORKS:
            self.activation = self._one_of("activation", ("sigmoid", "relu", "tanh"))
            self.output = self._one_of("output", ("identity",) if self.is_regression else ("sigmoid", "softmax"))
        if self.is_regression or self.kind in ("logistic", *BINARY_SVMS):
            if not self.is_regression and len(self.classes) != 2:
                raise self._invalid("classes", f"has {len(self.classes)} elements, and must have 2 for {self.kind}")
            return 1
        return 1 if self.output == "sigmoid" and len(self.classes) == 2 else len(self.classes)

    def _read_scaling(self) -> None:
        self.mean, self.scale = self._floats("feature_mean", "<f8"), self._floats("feature_scale", "<f8")
        self.fill = self._floats("feature_fill", "<f4")
        if (self.mean is None) != (self.scale is None):
            raise self._invalid("feature_mean" if self.mean is None else "feature_scale", "is missing")
        expected = self.width - self.buckets
        for key, numbers in (("feature_mean", self.mean), ("feature_scale", self.scale), ("feature_fill", self.fill)):
            if numbers is not None and len(numbers) != expected:
                raise self._invalid(key, f"has {len(numbers)} numbers, but the model {expected} features")
        if self.scale is not None and (self.scale <= 0).any():
            raise self._invalid("feature_scale", "has a number that is not above 0")

    def _read_sigmoids(self) -> None:
        keys = ("sigmoid_slopes", "sigmoid_offsets")
        slopes, offsets = (self._floats(key, "<f8") for key in keys)
        if (slopes is None) != (offsets is None):
            raise self._invalid(keys[0] if slopes is None else keys[1], "is missing")
        outputs = len(self.layers[-1].intercepts)
        for key, numbers in zip(keys, (slopes, offsets), strict=True):
            if numbers is not None and (self.kind not in SVMS or len(numbers) != outputs):
                raise self._invalid(key, "does not fit the model")
        #: slopes and offsets of an SVM that was trained with probabilities, one of each for every output
        self.sigmoids = None if slopes is None or offsets is None else (slopes, offsets)

    def _read_policies(self) -> None:
        parameters = self.raw.get("hyperparameters") or {}
        if not isinstance(parameters, Mapping):
            raise self._invalid("hyperparameters", "is not an object")
        self.hyperparameters: dict[str, Any] = dict(parameters)
        self.nulls: str = self._word(parameters, "nulls")
        self.handle_unknown: str = self._word(parameters, "handle_unknown")
        clip = parameters.get("winsorize", "none")
        is_number = isinstance(clip, int | float) and not isinstance(clip, bool)
        if clip not in ("none", "auto", None) and not (is_number and 0 < clip <= np.finfo(np.float32).max):
            raise self._invalid("hyperparameters", "has a winsorize that is not a number above 0")
        self.clip = np.float32(clip) if is_number else None
        transform = parameters.get("transform", "none")
        self.logs: set[str] | bool = False
        if transform == "log":
            self.logs = True
        elif isinstance(transform, Mapping):
            names = transform.get("log", [])
            if not isinstance(names, list) or any(name not in self.features for name in names):
                raise self._invalid("hyperparameters", "has a transform of columns that are no features")
            self.logs = set(names)

    def _word(self, parameters: Mapping[str, Any], name: str) -> str:
        word = parameters.get(name, "error")
        if not isinstance(word, str):
            raise self._invalid("hyperparameters", f"has {name} that is not a string")
        return word

    def _floats(self, key: str, kind: str) -> NDArray[Any] | None:
        value = self.raw.get(key)
        if value is None:
            return None
        try:
            if isinstance(value, str):
                numbers = np.frombuffer(base64.b64decode(value, validate=True), dtype=kind)
            else:
                numbers = np.array(value, dtype=kind)
        except (ValueError, TypeError, binascii.Error):
            raise self._invalid(key, "is neither base64 nor an array of numbers") from None
        if numbers.ndim != 1 or not np.isfinite(numbers).all():
            raise self._invalid(key, "has numbers that are not finite, or is not a plain array")
        return numbers.astype(kind[1:], copy=False)

    def _text(self, key: str) -> str:
        value = self.raw.get(key)
        if not isinstance(value, str):
            raise self._invalid(key, "is missing" if value is None else "is not a string")
        return value

    def _texts(self, key: str) -> list[str]:
        value = self.raw.get(key)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self._invalid(key, "is missing" if value is None else "is not an array of texts")
        return value

    def _one_of(self, key: str, words: tuple[str, ...]) -> str:
        word = self._text(key)
        if word not in words:
            raise self._invalid(key, f"is {word!r}, and must be one of {', '.join(words)}")
        return word

    @staticmethod
    def _invalid(key: str, reason: str) -> ValueError:
        return ValueError(f"key {key!r} of the model {reason}")
