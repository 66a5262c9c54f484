"""Laws of importers, on their `test_config`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from zoo.artifact.weights import named_tensors
from zoo.errors import SpecError, ZooError
from zoo.interfaces.importer import Importer
from zoo.interfaces.tensors import TensorMeta
from zoo.spec.composition import attach_metadata, build_on_meta, validate_spec
from zoo.testing.configuration import ImporterConfiguration
from zoo.testing.law import Law, NotApplicable
from zoo_exchange.mapping import TensorMap, plan_tensors, read_map
from zoo_exchange.mapping.planner import TensorMetas

_OTHER_CONFIGS: tuple[Mapping[str, Any], ...] = (
    {},
    {"model_type": None},
    {"model_type": 7},
    {"model_type": ["a", "list"]},
    {"model_type": "no-such-model-type"},
)
_UNKNOWN_TENSOR = "tensor.of.another.model"
_INVALID = {"not": ["a", "valid", "value"]}


def _config(case: ImporterConfiguration) -> dict[str, Any]:
    assert case.importer.test_config is not None, "test_config is not set"
    return dict(case.importer.test_config)


def _model(importer: Importer, config: Mapping[str, Any]) -> Any:
    """Return the model of a config on the meta device."""
    spec = validate_spec(importer.spec(config), importer=importer)
    return attach_metadata(build_on_meta(spec), spec)


def documented(case: ImporterConfiguration) -> None:
    """The docstring begins with a sentence."""
    text = inspect.getdoc(type(case.importer)) or ""
    first = " ".join(text.split("\n\n")[0].split())
    assert first.endswith("."), f"the first paragraph of the docstring is not a sentence: {first!r}"


def matches_own_config(case: ImporterConfiguration) -> None:
    """The importer matches its test_config, and no config of another or no model type."""
    importer = case.importer
    assert importer.matches(_config(case)), "it does not match its test_config"
    for other in _OTHER_CONFIGS:
        assert not importer.matches(other), f"it matches the config {other}"


def valid_spec(case: ImporterConfiguration) -> None:
    """The spec of the test_config passes a check, and the config is not changed."""
    config = _config(case)
    _model(case.importer, config)
    assert config == case.importer.test_config, "spec changes the config"


def invalid_values(case: ImporterConfiguration) -> None:
    """An invalid value of a key raises a ZooError that names the key, unless the key is ignored."""
    importer, config = case.importer, _config(case)
    expected = importer.spec(config)
    for key in config:
        if key == "model_type":
            continue
        found, message = None, ""
        try:
            found = importer.spec({**config, key: _INVALID})
        except ZooError as error:
            message = str(error)
        except Exception as error:
            raise AssertionError(
                f"an invalid '{key}' raises {type(error).__name__}, not ZooError"
            ) from error
        assert found in (None, expected), f"an invalid '{key}' is accepted"
        assert found or key in message, f"the message about '{key}' does not name it: {message}"


def complete_map(case: ImporterConfiguration) -> None:
    """The map uses every tensor of a file once, sets every parameter once, and rejects others."""
    importer, config = case.importer, _config(case)
    model = _model(importer, config)
    tensor_map = read_map(importer.map(config), spec=model.spec)
    ours = {name: TensorMeta.of(tensor) for name, tensor in named_tensors(model).items()}
    try:
        theirs = plan_tensors(tensor_map.inverse(), ours, None).targets
    except SpecError as error:
        if type(importer).config is Importer.config:
            raise NotApplicable(f"its map has no inverse, and it has no export: {error}") from None
        raise
    plan_tensors(tensor_map, theirs, ours)
    unknown = {**theirs, _UNKNOWN_TENSOR: TensorMeta((2, 3), torch.float32)}
    message = _planning_error(tensor_map, unknown, ours)
    assert _UNKNOWN_TENSOR in message, f"an unknown tensor, '{_UNKNOWN_TENSOR}', is accepted"


def _planning_error(tensor_map: TensorMap, sources: TensorMetas, targets: TensorMetas) -> str:
    try:
        plan_tensors(tensor_map, sources, targets)
    except SpecError as error:
        return str(error)
    return ""


def config_round_trip(case: ImporterConfiguration) -> None:
    """The config of an export gives the spec that was exported."""
    importer, config = case.importer, _config(case)
    if type(importer).config is Importer.config:
        raise NotApplicable("it does not support export")
    spec = _model(importer, config).spec
    exported = importer.config(spec, config)
    again = _model(importer, {**config, **exported}).spec
    assert again["model"] == spec["model"], "the exported config gives another spec"


LAWS = (
    Law("documented", documented),
    Law("matches-own-config", matches_own_config),
    Law("valid-spec", valid_spec),
    Law("invalid-values", invalid_values),
    Law("complete-map", complete_map),
    Law("config-round-trip", config_round_trip),
)
