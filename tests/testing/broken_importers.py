"""Importers that violate a law, and the valid one they are based on."""

import json
from typing import Any

from zoo import ZooError
from zoo.plugin import Importer

CONFIG = {"model_type": "tiny", "vocab": 11, "dim": 4}


class TinyImporter(Importer):
    """Language model without hidden layers."""

    name = "tiny"
    test_config = CONFIG

    def matches(self, config: Any) -> bool:
        return config.get("model_type") == "tiny"

    def spec(self, config: Any) -> dict[str, Any]:
        for key in ("vocab", "dim"):
            if type(config.get(key)) is not int:
                raise ZooError(f"'{key}' should be an integer")
        embedding = {"type": "token", "vocab": config["vocab"], "dim": config["dim"]}
        decoder = {"type": "plain-rnn", "cell": "rnn", "hidden": config["dim"], "init": "zeros"}
        model = {"type": "language-model", "embedding": embedding, "decoder": decoder}
        return {"zoo": 1, "name": "tiny", "model": model}

    def map(self, config: Any) -> dict[str, Any]:
        words = "{p:weight_ih|weight_hh|bias_ih|bias_hh}"
        return {
            "zoo": 1,
            "rename": {
                "embedding.table.weight": "table",
                f"decoder.cells.cells.0.{words}": f"rnn.{words}",
                "decoder.out.{p:weight|bias}": "out.{p:weight|bias}",
            },
        }

    def config(self, spec: Any, original: Any) -> dict[str, Any]:
        embedding = spec["model"]["embedding"]
        return {"model_type": "tiny", "vocab": embedding["vocab"], "dim": embedding["dim"]}


class Undocumented(TinyImporter):
    """language model"""


class MatchesEverything(TinyImporter):
    """Matches every config."""

    def matches(self, config: Any) -> bool:
        return True


class RaisesOnOthers(TinyImporter):
    """Raises for a config without a model type."""

    def matches(self, config: Any) -> bool:
        return bool(config["model_type"] == "tiny")


class WithoutTestConfig(TinyImporter):
    """Has no test_config."""

    test_config = None


class InvalidSpec(TinyImporter):
    """Returns a spec with an unknown key."""

    def spec(self, config: Any) -> dict[str, Any]:
        return {**super().spec(config), "layers": 2}


class ChangesConfig(TinyImporter):
    """Changes its config."""

    def spec(self, config: Any) -> dict[str, Any]:
        spec = super().spec(config)
        config["seen"] = True
        return spec


class UnnamedKey(TinyImporter):
    """Raises a message without the key."""

    def spec(self, config: Any) -> dict[str, Any]:
        try:
            return super().spec(config)
        except ZooError:
            raise ZooError("the config is not valid") from None


class RaisesOtherErrors(TinyImporter):
    """Raises another exception for an invalid value."""

    def spec(self, config: Any) -> dict[str, Any]:
        return super().spec({**config, "vocab": config["vocab"] + 0})


class AcceptsAnything(TinyImporter):
    """Copies a value into the spec without reading it."""

    def spec(self, config: Any) -> dict[str, Any]:
        spec = super().spec({**config, "vocab": 11})
        spec["description"] = json.dumps(config["vocab"])
        return spec


class IncompleteMap(TinyImporter):
    """Has a map without the output."""

    def map(self, config: Any) -> dict[str, Any]:
        read = super().map(config)
        del read["rename"]["decoder.out.{p:weight|bias}"]
        return read


class DropsUnknownTensors(TinyImporter):
    """Has a map that drops the tensors of other models."""

    def map(self, config: Any) -> dict[str, Any]:
        return {**super().map(config), "drop": [{"name": "tensor.of.another.model"}]}


class LosesConfig(TinyImporter):
    """Exports another vocabulary."""

    def config(self, spec: Any, original: Any) -> dict[str, Any]:
        return {**super().config(spec, original), "vocab": 12}


# (law, broken importer, valid importer)
BROKEN = [
    ("documented", Undocumented, TinyImporter),
    ("matches-own-config", MatchesEverything, TinyImporter),
    ("matches-own-config", RaisesOnOthers, TinyImporter),
    ("matches-own-config", WithoutTestConfig, TinyImporter),
    ("valid-spec", InvalidSpec, TinyImporter),
    ("valid-spec", ChangesConfig, TinyImporter),
    ("invalid-values", UnnamedKey, TinyImporter),
    ("invalid-values", RaisesOtherErrors, TinyImporter),
    ("invalid-values", AcceptsAnything, TinyImporter),
    ("complete-map", IncompleteMap, TinyImporter),
    ("complete-map", DropsUnknownTensors, TinyImporter),
    ("config-round-trip", LosesConfig, TinyImporter),
]
