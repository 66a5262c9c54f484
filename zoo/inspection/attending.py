"""`zoo.attend`: what a model attends to on one input.

Notation: B batch, H heads, T rows, S columns, E edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.attention import recording
from zoo.errors import ZooError
from zoo.generation.pipeline import ComponentSpec
from zoo.generation.text_inputs import get_tokenizer
from zoo.hub.models import Source, load
from zoo.inspection.axes import Positions, find_positions, make_axis
from zoo.inspection.dimensions import Dependence, Log, find_dependence
from zoo.inspection.equations import find_equations
from zoo.inspection.passes import TARGET, OutputOptions, Pass, prepare_pass
from zoo.inspection.provenance import describe_provenance
from zoo.inspection.view import Axis, LayerView, View, ViewKind
from zoo.interfaces import Filter, Model, Sampler
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.registry.component_registry import ComponentRegistry


def attend(
    model: Model | Source,
    inputs: Any,
    *,
    output: str | Sequence[int] | None = None,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int | None = None,
    seed: int | None = None,
    device: str | torch.device = "cpu",
    registry: ComponentRegistry | None = None,
) -> View:
    """Return what a model attends to on one input, in evaluation mode.

    A model with a source generates its output; the weights are those of the winning hypothesis. A
    language model shows its prompt, and what it generates if ``sampler``, ``max_length`` or
    ``seed`` is given.

    Args:
        model: a model, or what `zoo.load` takes.
        inputs: one input as `zoo.generate` or `zoo.predict` take it: a text, token IDs, a file or
            an array; for a model with several inputs, a mapping of key to value.
        output: the output, as text or token IDs, instead of a generated one.
        sampler, filters, prompt, seed: as those of `zoo.generate`.
        max_length: maximum number of generated tokens; 64 if None.
        device: where a model that is named is loaded.

    Raises:
        ZooError: if the model has no attention, or the input cannot be used.
    """
    loaded = model if isinstance(model, Model) else load(model, device=device, registry=registry)
    options = OutputOptions(
        output=output,
        sampler=sampler,
        filters=filters,
        prompt=prompt,
        max_length=max_length,
        seed=seed,
    )
    looked_at = prepare_pass(loaded, inputs, options, registry)
    layers = _view_layers(loaded, looked_at)
    if not layers:
        raise ZooError(
            f"model '{loaded.name}' computes no attention weights on this input, so there is "
            "nothing to show"
        )
    tokenizer = get_tokenizer(loaded, TARGET)
    tokens = looked_at.output
    text = None if tokens is None else " ".join(map(str, tokens))
    if tokens is not None and tokenizer is not None:
        text = tokenizer.decode(tokens)
    return View(
        model=str((loaded.spec or {}).get("name") or loaded.name),
        inputs=looked_at.inputs,
        output=text,
        layers=layers,
        spec=loaded.spec or {},
        provenance=describe_provenance(loaded, model, looked_at, options),
    )


def _view_layers(model: Model, looked_at: Pass) -> list[LayerView]:
    log = record_pass(model, looked_at.batch)
    schema = model.batch_schema() or {}
    dependence = find_dependence(log, partial(record_pass, model), schema, looked_at.batch)
    positions = find_positions(model, looked_at)
    layers = []
    for path, calls in log.items():
        if not calls:
            continue
        equations = find_equations(model, path)
        for name, weights, own in _join_calls(path, calls, dependence[path]):
            kind, rows, columns = _classify(positions, weights, own)
            layers.append(LayerView(name, kind, weights, rows, columns, equations))
    return layers


@torch.no_grad()
def record_pass(model: Model, batch: Mapping[str, Tensor]) -> Log:
    """Return the weights of all attention modules in a forward pass, in evaluation mode."""
    with evaluation_mode(model), recording(model) as log:
        model(batch)
    return log


def _join_calls(
    path: str, calls: Sequence[Tensor], dependence: Dependence
) -> Iterator[tuple[str, Tensor, Dependence]]:
    """Yield the weights [H, T, S] of a module.

    Calls with one row each are the steps of a recurrence, which are joined. Calls with rows of
    their own are those of several layers that share the module.
    """
    weights = [call[0].float().cpu() for call in calls]
    is_step = all(each.dim() == 3 and each.shape[1] == 1 for each in weights)
    if is_step and not dependence.sizes[0]:
        S = max(each.shape[2] for each in weights)
        joined = torch.cat([F.pad(each, (0, S - each.shape[2])) for each in weights], dim=1)
        yield path, joined, dependence
        return
    for number, each in enumerate(weights, 1):
        name = path if len(weights) == 1 else f"{path}#{number}"
        yield name, each, Dependence(frozenset(), dependence.sizes)


def _classify(
    positions: Sequence[Positions], weights: Tensor, dependence: Dependence
) -> tuple[ViewKind, Axis, Axis]:
    """Return what weights [H, T, S] show, with their axes."""
    _, T, S = weights.shape
    rows_dims = dependence.calls | dependence.sizes[0]
    columns_dims = dependence.sizes[1]
    columns = make_axis(positions, columns_dims, S, written=False)
    is_self = rows_dims == columns_dims and T == S
    rows = make_axis(positions, rows_dims, T, written=not is_self)
    if is_self and rows_dims | columns_dims:
        return "self", rows, columns
    return "cross", rows, columns
