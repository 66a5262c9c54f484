"""What all architectures share: settings read both ways, a map, and that nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch

from zoo import ZooError, load_spec
from zoo.plugin import Importer, TensorReader
from zoo_huggingface.canonical import canonical, differences
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    at,
    config_error,
    put,
    read_json,
)

MAPS = Path(__file__).parent / "maps"
_ADDED_KEYS = ("untied", "sentence")
"""What `extend_config` adds to a config; files beside it say so."""
_DROPPED_KEYS = (
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "dtype",
    "torch_dtype",
    *_ADDED_KEYS,
)
"""What an export does not take from the config that a model came with."""

_GENERATION_CONFIG = "generation_config.json"

Config = Mapping[str, Any]


class Architecture(Importer):
    """One model type: a template of a spec, and the settings that fill it.

    Settings are read in both directions. What an architecture says in a way of its own goes
    into `to_spec` (config to spec) and `words` (spec to config).
    """

    heads: ClassVar[tuple[str, ...]]
    """The classes of transformers that it takes; the first is what an export names."""
    template: ClassVar[Mapping[str, Any]]
    settings: ClassVar[Sequence[ConfigField]]
    only: ClassVar[Sequence[RequiredValue]] = ()
    table: ClassVar[str] = ""
    """Their name of the embedding table, where a copy of it may be stored as something else."""
    tied_weight_names: ClassVar[tuple[str, ...]] = ()
    """Names under which the table is stored again; the first is the output's, if not tied."""
    dim: ClassVar[str] = "model.source.dim"
    ignored_paths: ClassVar[tuple[str, ...]] = ()
    """Paths of a spec that a config need not say."""

    def matches(self, config: Config) -> bool:
        return config.get("model_type") == self.name

    def map(self, config: Config) -> Path | dict[str, Any]:
        return MAPS / f"{self.name}.yaml"

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        """The config, how texts end, and whether the output has a table of its own."""
        untied = not self.ties(config)
        for name in self.tied_weight_names:
            if name not in weights.metas:
                continue
            if self.table not in weights.metas:
                raise ZooError(f"'{name}' is in the file, but not the table '{self.table}'")
            if not torch.equal(weights.read(name), weights.read(self.table)):
                if name != self.tied_weight_names[0]:
                    raise ZooError(f"'{name}' is another table than '{self.table}'; one is shared")
                untied = True
        kept = {k: v for k, v in config.items() if k not in _ADDED_KEYS}
        return {**kept, **_read_eos_token_id(folder / _GENERATION_CONFIG), "untied": untied}

    def spec(self, config: Config) -> dict[str, Any]:
        self._validate_config(config)
        # Through text, so that parts which the template shares become parts of their own.
        made: dict[str, Any] = json.loads(json.dumps(self.template))
        made |= {"zoo": 1, "name": self.name}
        for setting in self.settings:
            value = setting.read(config)
            for path in setting.paths.split():
                put(made, path, value)
        self.to_spec(made, config)
        for side in ("encoder", "decoder"):
            attention = at(made, f"model.{side}.attention")
            if attention and attention["heads"] == 1:  # projected there too
                attention["project"] = "qkv"
        return made

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        made = {key: value for key, value in original.items() if key not in _DROPPED_KEYS}
        made |= {"model_type": self.name, "architectures": [self.heads[0]]}
        for only in self.only:
            made[only.key] = only.value
        kind = str(at(spec, "model.type")).rpartition(":")[2]
        if kind not in self.kinds:
            raise ZooError(f"a {self.name} of transformers is a {self.kinds[0]}, not a {kind}")
        for setting in self.settings:
            path = setting.paths.split()[0]
            value = at(spec, path) if setting.default is None else self.needed(spec, path)
            made[setting.key] = None if value is None else setting.write(value)
        self.words(made, spec)
        self._check_roundtrip(spec, {**made, **self.implicit_config(spec)})
        return made

    @property
    def kinds(self) -> tuple[str, ...]:
        """The models of the zoo that it can be."""
        return (self.template["model"]["type"],)

    def needed(self, spec: Mapping[str, Any], path: str) -> Any:
        """What stands in a spec, or ZooError if nothing does."""
        value = at(spec, path)
        if value is None:
            raise ZooError(f"{path} is not set, but a {self.name} of transformers has it")
        return value

    def ties(self, config: Config) -> bool:
        """Whether a config says that the output shares the embedding's table."""
        return True

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """What `extend_config` would find in an export of this spec."""
        return {}

    def to_spec(self, made: dict[str, Any], config: Config) -> None:
        """Put into a spec what no setting says."""

    def words(self, made: dict[str, Any], spec: Mapping[str, Any]) -> None:
        """Put into a config what no setting says."""

    def _validate_config(self, config: Config) -> None:
        named = config.get("architectures") or [self.heads[0]]
        if not isinstance(named, list) or not any(head in named for head in self.heads):
            raise config_error("architectures", named, f"the zoo takes {', '.join(self.heads)}")
        if config.get("quantization_config"):
            raise config_error(
                "quantization_config", config["quantization_config"], "weights must be plain"
            )
        for only in self.only:
            only.check(config)

    def _check_roundtrip(self, spec: Mapping[str, Any], made: Config) -> None:
        """A config says all of a spec if it leads back to it."""
        again = load_spec(self.spec(made)).resolve()
        here, there = (canonical(one["model"], at(one, self.dim)) for one in (spec, again))
        for path, ours, theirs in differences(here, there):
            if path not in self.ignored_paths:
                raise ZooError(
                    f"{path} is {ours!r}, but a {self.name} of transformers would have {theirs!r}"
                )


def _read_eos_token_id(path: Path) -> dict[str, Any]:
    """The end symbols that transformers generates by, which may be more than the config's."""
    generation_config = read_json(path) if path.is_file() else None
    ends = generation_config.get("eos_token_id") if isinstance(generation_config, dict) else None
    return {} if ends is None else {"eos_token_id": ends}
