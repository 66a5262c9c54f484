"""Base class of the importers: config fields in both directions, a map, a round-trip check."""

from __future__ import annotations

import json
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch

from zoo import ZooError, ZooWarning, load_spec
from zoo.plugin import Importer, TensorReader
from zoo_huggingface.canonical import spec_differences
from zoo_huggingface.chat_files import read_chat_template
from zoo_huggingface.config_fields import (
    ConfigField,
    RequiredValue,
    config_error,
    get_mapping,
    get_path,
    set_path,
)
from zoo_huggingface.config_keys import (
    ADDED_KEYS,
    COMMON_IGNORED_KEYS,
    DROPPED_KEYS,
    check_keys,
    forbid_quantized,
    read_defaults,
    read_small_config,
)
from zoo_huggingface.generation import (
    GENERATION_KEYS,
    generated_vocab,
    generation_spec,
    generation_values,
    warn_of_settings,
)
from zoo_huggingface.generation_export import export_generation
from zoo_huggingface.generation_keys import GENERATION_FILE
from zoo_huggingface.original_outputs import original_outputs
from zoo_huggingface.preprocessor_files import preprocessor_files, read_preprocessor
from zoo_huggingface.shared_tensors import check_copies, is_same
from zoo_huggingface.token_filters import generates_padding
from zoo_huggingface.tokenizer_files import read_padding_id

MAPS = Path(__file__).parent / "maps"

Config = Mapping[str, Any]
_GENERATING = ("language-model", "seq2seq")


class Architecture(Importer):
    """One model type of transformers: a spec template and the config fields that fill it.

    Fields are read in both directions. Subclasses override `update_spec` (config to spec) and
    `update_config` (spec to config) for everything else.
    """

    model_classes: ClassVar[tuple[str, ...]]
    """The supported classes of transformers; an export names the first."""
    template: ClassVar[Mapping[str, Any]]
    fields: ClassVar[Sequence[ConfigField]]
    required_values: ClassVar[Sequence[RequiredValue]] = ()
    embedding_key: ClassVar[str] = ""
    """The name of the embedding table in the weights."""
    tied_weight_names: ClassVar[tuple[str, ...]] = ()
    """Names of possible copies of the embedding table; only the first, the output, may differ."""
    copies: ClassVar[Mapping[str, str]] = {}
    """Names of possible copies of other tensors, and the tensor that each must equal."""
    used_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the config that methods read, in addition to `fields` and `required_values`."""
    ignored_keys: ClassVar[Mapping[str, str]] = {}
    """Keys of the config that do not change the outputs, and the reason."""
    harmless_values: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    """Values of other keys that do not change the outputs; their other values are rejected."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """Other names of config keys; both must have the same value."""
    generates: ClassVar[bool] = False
    """Whether `generate` of transformers supports the model."""
    generates_padding: ClassVar[bool] = True
    """Whether the padding token is generated as any other token. It is not where transformers gives
    it no position, since further tokens would have other logits."""
    start_keys: ClassVar[tuple[str, ...]] = ()
    """Keys of the config that the generation config overrides, as it does the end token."""
    dim_path: ClassVar[str] = "model.source.dim"
    """Path of the width of the states; the first that is set of several, separated by spaces."""
    padding_path: ClassVar[str] = "model.source.padding"
    unchecked_spec_paths: ClassVar[tuple[str, ...]] = ()
    """Paths of a spec that a config does not contain, so the round-trip check ignores them."""

    preprocessor_kind: ClassVar[str] = ""
    """``image`` or ``audio`` if ``preprocessor_config.json`` describes the model's input."""
    image_processor: ClassVar[str] = "ViT"
    """Image processor of the architecture, if the file does not name one."""

    @property
    def test_config(self) -> Config | None:
        small = read_small_config(self.name)
        named = {"model_type": self.name, "architectures": [self.model_classes[0]]}
        return {**named, **small} if small else None

    @cached_property
    def _defaults(self) -> Mapping[str, Any]:
        return read_defaults(self.name)

    def default(self, key: str) -> Any:
        """Return the default of a key of the config in transformers."""
        return self._defaults.get(key)

    def matches(self, config: Config) -> bool:
        return config.get("model_type") == self.name

    def map(self, config: Config) -> Path | dict[str, Any]:
        return MAPS / f"{self.name}.yaml"

    def extend_config(self, config: Config, folder: Path, weights: TensorReader) -> Config:
        """Return the config with whether the output has its own table."""
        untied = not self.is_tied(config)
        for name in self.tied_weight_names:
            if name not in weights.metas:
                continue
            if not is_same(weights, name, self.embedding_key):
                if name != self.tied_weight_names[0]:
                    raise ZooError(
                        f"'{name}' differs from '{self.embedding_key}'; they should be shared"
                    )
                untied = True
        check_copies(weights, self.copies)
        return {**config, "untied": untied}

    def read_folder(self, config: Config, folder: Path, ignore: Collection[str] = ()) -> Config:
        """Return the config with the generation config and the preprocessor of the folder."""
        self.check_required(config)
        result = {key: value for key, value in config.items() if key not in ADDED_KEYS}
        self._check_modules(folder)
        result |= self._read_generation(folder, config, ignore)
        if self.preprocessor_kind:
            result |= read_preprocessor(folder, self.preprocessor_kind, self.image_processor)
        return {**result, **read_padding_id(folder)}

    def _read_generation(
        self, folder: Path, config: Config, ignore: Collection[str]
    ) -> dict[str, Any]:
        """Return what the generation config of a folder adds to a config."""
        if not self.generates:
            return {}
        values = generation_values(folder, config, self.start_keys, ignore)
        warn_of_settings(values["generation"])
        return values

    def chat_template(self, folder: Path, config: Config) -> Mapping[str, Any] | None:
        return read_chat_template(folder) if self.generates else None

    def original_outputs(
        self, folder: Path, config: Config, spec: Mapping[str, Any]
    ) -> Mapping[str, torch.Tensor]:
        names = config.get("architectures") or [self.model_classes[0]]
        model_class = next((name for name in names if name in self.model_classes), "")
        return original_outputs(folder, model_class or self.model_classes[0], spec)

    def spec(self, config: Config) -> dict[str, Any]:
        # A copy through JSON: parts that the template shares become separate.
        spec: dict[str, Any] = json.loads(json.dumps(self.template))
        spec |= {"zoo": 1, "name": self.name}
        self.fill_spec(spec, config)
        if "preprocessor" in config:
            sections = spec.setdefault("preprocessing", {})
            sections["source"] = dict(get_mapping(config, "preprocessor"))
        generation = get_mapping(config, "generation")
        if "generation" in config:
            spec |= self.generation_sections(spec, generation)
        if spec["model"]["type"] in _GENERATING:
            pad, eos = self.special_tokens(spec)
            if self.generates_padding and generates_padding(generation, pad=pad, eos=eos):
                spec["model"]["generates_padding"] = True
        for side in ("encoder", "decoder"):
            attention = get_path(spec, f"model.{side}.attention")
            if attention and attention["heads"] == 1:  # transformers projects one head too
                attention["project"] = "qkv"
        return spec

    def fill_spec(self, spec: dict[str, Any], config: Config) -> None:
        """Check a config and set its values in a spec."""
        self._validate_config(config)
        for field in self.fields:
            value = field.read(config)
            for path in field.paths.split():
                set_path(spec, path, value)
        self.set_padding(spec, config)
        self.update_spec(spec, config)

    def config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        model_type = str(get_path(spec, "model.type")).rpartition(":")[2]
        if model_type not in self.model_types:
            supported = " or ".join(f"'{name}'" for name in self.model_types)
            raise ZooError(
                f"model.type is '{model_type}', but an export to {self.name} needs {supported}"
            )
        config = self.fill_config(spec, original)
        self._check_roundtrip(spec, {**config, **self.implicit_config(spec)})
        return config

    def fill_config(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        """Return the config of a resolved spec, given the one that was imported."""
        dropped = {*DROPPED_KEYS, *self.aliases}
        config = {key: value for key, value in original.items() if key not in dropped}
        config |= {"model_type": self.name, "architectures": [self.model_classes[0]]}
        for required in self.required_values:
            if required.key in config or required.key in self._defaults:
                config[required.key] = required.value
        for field in self.exported_fields(spec):
            path = field.paths.split()[0]
            value = get_path(spec, path) if field.default is None else self.require(spec, path)
            config[field.key] = field.write(value, original.get(field.key))
        self.update_config(config, spec)
        return config

    def files(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        return preprocessor_files(spec) if self.preprocessor_kind else {}

    def exported_files(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        files = self.files(spec)
        model_type = str(get_path(spec, "model.type")).rpartition(":")[2]
        if self.generates and model_type in _GENERATING:
            files[GENERATION_FILE] = self._exported_generation(spec, original)
        return files

    def _exported_generation(self, spec: Mapping[str, Any], original: Config) -> dict[str, Any]:
        """Return the imported generation config, with the sampler and the filters of a spec."""
        pad, eos = self.special_tokens(spec)
        generation = dict(get_mapping(original, "generation"))
        if not self._has_sections(spec, generation):
            generation = export_generation(generation, spec, eos=eos)
            if not self._has_sections(spec, generation):
                warnings.warn(
                    f"{GENERATION_FILE}: it cannot contain all of the sampler and the filters of "
                    "the model; transformers may generate other texts",
                    ZooWarning,
                    stacklevel=2,
                )
        generation["eos_token_id"] = eos[0] if len(eos) == 1 else eos or None
        if pad is not None:
            generation["pad_token_id"] = pad
        for key in self.start_keys:
            generation[key] = get_path(spec, "model.bos")
        is_banned = self.generates_padding and get_path(spec, "model.generates_padding") is False
        if is_banned and generates_padding(generation, pad=pad, eos=eos):
            generation["bad_words_ids"] = [*(generation.get("bad_words_ids") or []), [pad]]
        return generation

    def _has_sections(self, spec: Mapping[str, Any], generation: Mapping[str, Any]) -> bool:
        """Whether a generation config gives the sampler and the filters of a resolved spec."""
        if "sampler" not in spec:  # an export of weights only
            return True
        base = {"zoo": 1, "name": self.name, "model": spec["model"]}
        sections = self.generation_sections(spec, generation)
        ours, theirs = (
            load_spec({**base, **each}, importer=self).resolve()
            for each in ({k: spec[k] for k in ("sampler", "filters") if k in spec}, sections)
        )
        return all(ours.get(key) == theirs.get(key) for key in ("sampler", "filters"))

    @property
    def model_types(self) -> tuple[str, ...]:
        """The models of the zoo that can be exported."""
        return (self.template["model"]["type"],)

    def exported_fields(self, spec: Mapping[str, Any]) -> Sequence[ConfigField]:
        """Return the fields that an export of a spec writes."""
        return self.fields

    def require(self, spec: Mapping[str, Any], path: str) -> Any:
        """Return the value at a path of a spec; raise ZooError if it is not set."""
        value = get_path(spec, path)
        if value is None:
            raise ZooError(f"{path} is not set, but an export to {self.name} needs it")
        return value

    def is_tied(self, config: Config) -> bool:
        """Return whether the output shares the embedding table according to a config."""
        return True

    def implicit_config(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return what `extend_config` would add to the config of an export."""
        return {}

    def set_padding(self, spec: dict[str, Any], config: Config) -> None:
        """Set the padding token of the tokenizer, if it is known; by default it must be equal."""
        padding = config.get("tokenizer_padding")
        expected = get_path(spec, self.padding_path)
        if padding is not None and expected is not None and padding != expected:
            raise config_error(
                "pad_token_id", expected, f"but the padding token of the tokenizer is {padding}"
            )

    def update_spec(self, spec: dict[str, Any], config: Config) -> None:
        """Set the values of a spec that `fields` do not cover."""

    def update_config(self, config: dict[str, Any], spec: Mapping[str, Any]) -> None:
        """Set the values of a config that `fields` do not cover."""

    def check_required(self, config: Config) -> None:
        """Raise ZooError if a key has another value than the required one."""
        for required in self.required_values:
            required.check(config)

    def _validate_config(self, config: Config) -> None:
        classes = config.get("architectures") or [self.model_classes[0]]
        if not isinstance(classes, list) or not any(c in classes for c in self.model_classes):
            supported = ", ".join(self.model_classes)
            raise config_error("architectures", classes, f"supported values: {supported}")
        forbid_quantized(config)
        self.check_required(config)
        for alias, key in self.aliases.items():
            if alias in config and config[alias] != config.get(key):
                raise config_error(alias, config[alias], f"it should equal '{key}'")
        check_keys(self.name, config, self.known_keys, self._defaults, self.harmless_values)

    @property
    def config_keys(self) -> set[str]:
        return {*(field.key for field in self.fields), *self.used_keys}

    @property
    def known_keys(self) -> set[str]:
        """The keys of a config that the importer uses, requires or ignores."""
        checked = {field.key for field in self.fields}
        checked |= {required.key for required in self.required_values}
        named = {*self.used_keys, *self.ignored_keys, *self.aliases, *ADDED_KEYS}
        always = {"architectures", "quantization_config", *COMMON_IGNORED_KEYS}
        return checked | named | always | GENERATION_KEYS

    def generation_sections(
        self, spec: Mapping[str, Any], generation: Mapping[str, Any], *, prompt: int = 1
    ) -> dict[str, Any]:
        """Return the sections `sampler` and `filters` of a generation config.

        Args:
            prompt: the number of tokens before the first selected one, for models with a source.
        """
        pad, eos = self.special_tokens(spec)
        return generation_spec(
            generation,
            pad=pad,
            eos=eos,
            prompt=prompt if "source" in spec["model"] else None,
            vocab=generated_vocab(spec),
        )

    def special_tokens(self, spec: Mapping[str, Any]) -> tuple[int | None, list[int]]:
        """Return the padding token and the end tokens of the texts that a model generates."""
        path = self.padding_path if "source" in spec["model"] else "model.embedding.padding"
        eos = get_path(spec, "model.eos")
        ends = eos if isinstance(eos, list) else [] if eos is None else [eos]
        return get_path(spec, path), ends

    def _check_modules(self, folder: Path) -> None:
        """Raise ZooError for a folder of sentence-transformers, unless it is supported."""
        if (folder / "modules.json").is_file():
            raise ZooError(
                f"modules.json: the folder is a sentence encoder of sentence-transformers, which "
                f"the importer '{self.name}' does not support; import its model from a copy of the "
                "folder without this file"
            )

    def _check_roundtrip(self, spec: Mapping[str, Any], config: Config) -> None:
        """Raise ZooError unless importing the config gives the same spec."""
        # The spec of an older file lacks options that were added since.
        specs = ({"zoo": 1, "name": self.name, "model": spec["model"]}, self.spec(config))
        ours, theirs = (load_spec(each, importer=self).resolve() for each in specs)
        for path, our_value, their_value in spec_differences(ours, theirs, self.dim_path):
            if path not in self.unchecked_spec_paths:
                raise ZooError(
                    f"{path} is {our_value!r}, but {self.name} in transformers has {their_value!r}"
                )
