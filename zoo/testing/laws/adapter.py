"""Laws of adapters, on a small model with modules of each type."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from zoo.adapters import find_adapters, use_adapters
from zoo.adapters.attachment import ADAPTERS
from zoo.adapters.merging import merge_layers
from zoo.artifact import load, save
from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.spec.composition import compose
from zoo.testing.adapted import AdaptedModel
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, assert_equal, example_batch

_NAME = "tested"


def _compose(config: Configuration, *, adapted: bool = True) -> Model:
    """Return the small model with the adapter, in float64 and evaluation mode, on the default
    device; it is composed on the CPU."""
    registry = config.registry.with_components([AdaptedModel], plugin="zoo-testing")
    spec = {"zoo": 1, "name": "adapted", "model": "zoo-testing:adapted"}
    if adapted:
        spec["adapters"] = {_NAME: config.data}
    device = torch.get_default_device()
    with torch.device("cpu"):
        model = compose(spec, registry=registry, dtype=torch.float64)
    return model.to(device).eval()


def _trained(config: Configuration) -> Model:
    """Return the model with other values of the parameters of the adapter."""
    model = _compose(config)
    generator = torch.Generator("cpu").manual_seed(1)
    with torch.no_grad(), torch.device("cpu"):
        for parameter in find_adapters(model)[_NAME].parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.add_(noise.to(parameter))
    return model


def _logits(model: Model) -> Tensor:
    with torch.device("cpu"):
        batch = example_batch(model)
    device = next(model.parameters()).device
    logits: Tensor = model({key: tensor.to(device) for key, tensor in batch.items()}).logits
    return logits


def _trainable(model: Model) -> set[str]:
    """Return the names of the parameters that require gradients."""
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


def untrained_changes_nothing(config: Configuration) -> None:
    """With its initial values it does not change the outputs of the model, except for rounding."""
    plain, adapted = _compose(config, adapted=False), _compose(config)
    # Initial values are computed in float32.
    assert_close(_logits(adapted), _logits(plain), "the outputs with an untrained adapter", 1e-6)


def used_parameters(config: Configuration) -> None:
    """It has parameters, and each of them changes the outputs of the model."""
    model = _trained(config)
    loss = _logits(model).square().sum()
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    assert named, "it has no parameters"
    gradients = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)
    for (name, _), gradient in zip(named, gradients, strict=True):
        used = gradient is not None and bool(gradient.ne(0).any())
        assert used, f"{name} does not change the outputs"


def merged_equals_applied(config: Configuration) -> None:
    """The model with the adapter merged has the outputs of the adapted model, or merging raises
    ZooError."""
    model = _trained(config)
    applied = _logits(model)
    try:
        merge_layers(model)
    except ZooError as error:
        raise NotApplicable(str(error)) from None
    assert not find_adapters(model), "the merged model has an adapter"
    assert_close(_logits(model), applied, "the outputs of the merged model")


def only_adapter_gradients(config: Configuration) -> None:
    """Only its parameters get gradients; those of the model are frozen and do not change."""
    model = _trained(config).train()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    torch.autograd.backward(_logits(model).square().sum())
    found = {name for name, p in model.named_parameters() if p.grad is not None}
    own = {name for name, _ in model.named_parameters() if name.startswith(f"{ADAPTERS}.")}
    assert found <= own, f"{sorted(found - own)[:1]} of the model has a gradient"
    assert own == _trainable(model), (
        "a parameter of the adapter is frozen, or one of the model is not"
    )
    for name, parameter in model.named_parameters():
        assert_equal(parameter.detach(), before[name], name)


def exact_saving(config: Configuration) -> None:
    """Saving and loading the adapted model is bit-exact, and its own parameters stay frozen."""
    model = _trained(config)
    registry = config.registry.with_components([AdaptedModel], plugin="zoo-testing")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        save(model, path)
        with torch.device("cpu"):
            loaded = load(path, registry=registry)
        loaded = loaded.to(next(model.parameters()).device)
        stored = {name: t.clone() for name, t in loaded.state_dict().items()}
        outputs = _logits(loaded)
    for name, tensor in model.state_dict().items():
        assert_equal(stored[name], tensor, name)
    assert _trainable(loaded) == _trainable(model), "other parameters require gradients"
    assert_equal(outputs, _logits(model), "the outputs of the loaded model")


def independent_copies(config: Configuration) -> None:
    """A copy of the model has a separate adapter, and switched off it changes nothing."""
    model = _trained(config)
    before = _logits(model)
    copied = copy.deepcopy(model)
    use_adapters(copied)
    assert_close(_logits(copied), _logits(_compose(config, adapted=False)), "the outputs without")
    with torch.no_grad():
        for parameter in find_adapters(copied)[_NAME].parameters():
            parameter.zero_()
    assert_equal(_logits(model), before, "the outputs of the model after a change of its copy")


LAWS = (
    Law("untrained-changes-nothing", untrained_changes_nothing),
    Law("used-parameters", used_parameters),
    Law("merged-equals-applied", merged_equals_applied),
    Law("only-adapter-gradients", only_adapter_gradients),
    Law("exact-saving", exact_saving),
    Law("independent-copies", independent_copies),
)
