"""Preprocessors that violate a law, and the valid one they are based on."""

from itertools import count

import numpy as np

from zoo.plugin import TensorSchema
from zoo.testing.tiny_preprocessor import TinyPreprocessor


class OtherKey(TinyPreprocessor):
    def transform(self, key, array, rng):
        return {"other": array}


class OtherDtype(TinyPreprocessor):
    def encode(self, value):
        return super().encode(value).astype(np.float32)


class OtherShape(TinyPreprocessor):
    def encode(self, value):
        return super().encode(value)[None]


class OtherSize(TinyPreprocessor):
    def outputs(self, key):
        return {key: TensorSchema(("B", 99), "integer")}


class IdsOutOfRange(TinyPreprocessor):
    def encode(self, value):
        return super().encode(value) + 5

    def transform(self, key, array, rng):
        return {key: array}


class RandomEncoding(TinyPreprocessor):
    calls = count()

    def encode(self, value):
        return super().encode(value) + next(self.calls) % 2


class ChangesValue(TinyPreprocessor):
    def encode(self, value):
        if not isinstance(value, list):
            return super().encode(value)
        array = super().encode("".join(value))
        value.clear()
        return array

    def example(self, rng):
        return list(super().example(rng))


class LosesStateInPickle(TinyPreprocessor):
    def __getstate__(self):
        return {**self.__dict__, "alphabet": "cba"}


class WrongBatch(TinyPreprocessor):
    def encode_many(self, values):
        return [self.encode(value) for value in reversed(values)]


class FewerArrays(TinyPreprocessor):
    def encode_many(self, values):
        return super().encode_many(values)[1:]


class UnseededTransform(TinyPreprocessor):
    calls = count()

    def transform(self, key, array, rng):
        return {key: array * 0 + next(self.calls)}


class ChangesArray(TinyPreprocessor):
    def transform(self, key, array, rng):
        array[:] = 0
        return {key: array}


class OtherTransforms(TinyPreprocessor):
    def transform_many(self, key, arrays, rngs):
        return {key: [array * 0 for array in arrays]}


class UnknownParameter(TinyPreprocessor):
    def fit(self, values):
        return {"letters": "abc"}


class InvalidParameter(TinyPreprocessor):
    def fit(self, values):
        return {"alphabet": 3}


class FitDependsOnOrder(TinyPreprocessor):
    def fit(self, values):
        return {"alphabet": "".join(dict.fromkeys("".join(values)))}


class FitsTooLittle(TinyPreprocessor):
    def fit(self, values):
        return {"alphabet": "a"}


class OtherStoredText(TinyPreprocessor):
    def stored(self):
        return self.alphabet[::-1]


class AcceptsEverything(TinyPreprocessor):
    def encode(self, value):
        return super().encode(value if isinstance(value, str) else "")


# (law, broken component, valid component)
BROKEN = [
    ("declared-outputs", OtherKey, TinyPreprocessor),
    ("declared-outputs", OtherDtype, TinyPreprocessor),
    ("declared-outputs", OtherShape, TinyPreprocessor),
    ("declared-outputs", OtherSize, TinyPreprocessor),
    ("declared-outputs", IdsOutOfRange, TinyPreprocessor),
    ("repeatable-encoding", RandomEncoding, TinyPreprocessor),
    ("repeatable-encoding", ChangesValue, TinyPreprocessor),
    ("repeatable-encoding", LosesStateInPickle, TinyPreprocessor),
    ("batched-encoding", WrongBatch, TinyPreprocessor),
    ("batched-encoding", FewerArrays, TinyPreprocessor),
    ("seeded-transform", UnseededTransform, TinyPreprocessor),
    ("seeded-transform", ChangesArray, TinyPreprocessor),
    ("seeded-transform", OtherTransforms, TinyPreprocessor),
    ("fitted-parameters", UnknownParameter, TinyPreprocessor),
    ("fitted-parameters", InvalidParameter, TinyPreprocessor),
    ("fitted-parameters", FitDependsOnOrder, TinyPreprocessor),
    ("fitted-parameters", FitsTooLittle, TinyPreprocessor),
    ("stored-text", OtherStoredText, TinyPreprocessor),
    ("rejects-other-types", AcceptsEverything, TinyPreprocessor),
]
