"""Laws of autocast: what no parameter affects keeps its precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from zoo.testing.configuration import Configuration
from zoo.testing.law import Law
from zoo.testing.laws.helpers import compose_model, example_batch, make_generator, randn


class _FixedOperations(TorchFunctionMode):
    """Collects the operations that autocast lowers although no parameter affects their inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.lowered: list[str] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        outputs = func(*args, **(kwargs or {}))
        inputs = _floats([args, kwargs or {}])
        name = getattr(func, "__name__", str(func))
        fixed = torch.is_grad_enabled() and inputs and not any(t.requires_grad for t in inputs)
        if fixed and name not in ("to", "type_as", "bfloat16"):
            full = all(tensor.dtype == torch.float32 for tensor in inputs)
            if full and any(tensor.dtype == torch.bfloat16 for tensor in _floats(outputs)):
                self.lowered.append(name)
        return outputs


def _floats(values: Any) -> list[Tensor]:
    leaves = tree_leaves(values)
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and leaf.is_floating_point()]


def _assert_fixed(module: nn.Module, inputs: Any) -> None:
    """Run the module under autocast and check the operations that no parameter affects."""
    device = torch.empty(0).device.type
    with torch.autocast(device, dtype=torch.bfloat16), _FixedOperations() as operations:
        module(inputs)
    found = ", ".join(dict.fromkeys(operations.lowered))
    assert not found, (
        f"autocast computes {found} of inputs that no parameter affects in bfloat16; use "
        "full_precision as the decorator of the computation"
    )


def embedding_preprocessing(config: Configuration) -> None:
    """Autocast does not change what an embedding computes from its inputs without parameters."""
    embedding = config.build(dtype=torch.float32)
    _assert_fixed(embedding, embedding.example(2, 3, make_generator(0)))


def backbone_preprocessing(config: Configuration) -> None:
    """Autocast does not change what a backbone computes from images without parameters."""
    images = randn(3, config.parent_values()["channels"], 32, 32).float()
    _assert_fixed(config.build(dtype=torch.float32), images)


def model_preprocessing(config: Configuration) -> None:
    """Autocast does not change what a model computes from its batch without parameters, in
    training and in evaluation."""
    model = compose_model(config)
    for training in (True, False):
        _assert_fixed(model.train(training), example_batch(model))


NAME = "autocast-preprocessing"
EMBEDDING_LAWS = (Law(NAME, embedding_preprocessing),)
BACKBONE_LAWS = (Law(NAME, backbone_preprocessing),)
MODEL_LAWS = (Law(NAME, model_preprocessing),)
