"""The views of the layers of a model, from recorded weights.

Notation: B batch, H heads, T rows, S columns, E edges, N nodes, V symbols.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.attention import recording
from zoo.errors import ZooError
from zoo.generation.text_inputs import get_tokenizer
from zoo.interfaces import BatchSchema, Model, Outputs
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo_inspect.axes import STEP, Positions, find_positions, make_axis, numbers, token_label
from zoo_inspect.dimensions import Dependence, Dims, Log, find_dependence
from zoo_inspect.equations import find_equations
from zoo_inspect.passes import TARGET, Pass
from zoo_inspect.view import Axis, LayerView, ViewKind

_FIXED: Dims = frozenset()


def view_layers(model: Model, looked_at: Pass) -> tuple[list[LayerView], Any]:
    """Return the view of each attention module that a pass calls, and of heads with frames; and the
    outputs of the pass."""
    log, outputs = record_pass(model, looked_at.batch)
    schema = model.batch_schema() or {}
    dependence = find_dependence(
        log, lambda batch: record_pass(model, batch)[0], schema, looked_at.batch
    )
    positions = find_positions(model, looked_at)
    layers = []
    for path, calls in log.items():
        if not calls:
            continue
        equations = find_equations(model, path)
        for name, weights, is_stepwise in _join_calls(path, calls, dependence[path]):
            if weights.dim() == 2:
                nodes = _nodes(schema, looked_at)
                layers.append(LayerView(name, "edges", weights, nodes, nodes, equations))
                continue
            joined, empty = _join_empty(positions, weights, dependence[path].filled)
            kind, rows, columns = _classify(
                positions, joined, dependence[path], empty, is_stepwise=is_stepwise
            )
            layers.append(LayerView(name, kind, joined, rows, columns, equations))
    return [*layers, *_view_frames(model, outputs, positions)], outputs


@torch.no_grad()
def record_pass(model: Model, batch: Mapping[str, Tensor]) -> tuple[Log, Any]:
    """Return the weights of all attention modules in a forward pass in evaluation mode, and its
    outputs; a vector for a model of vectors."""
    # The targets of a model of vectors are further inputs.
    compute = model if TARGET in batch else getattr(model, "embed", model)
    with evaluation_mode(model), recording(model) as log:
        outputs = compute(batch)
    return log, outputs


def find_edges(
    schema: BatchSchema, batch: Mapping[str, Tensor], layers: Sequence[LayerView]
) -> Tensor | None:
    """Return target and source node of the edges that layers attend along [2, E].

    Edges of a batch are indices into a named dimension, pairs of source and target. Graph
    attention may add a self-loop for each node after them.
    """
    sizes = {layer.weights.shape[1] for layer in layers if layer.kind == "edges"}
    if not sizes:
        return None
    if len(sizes) != 1:
        raise ZooError("the layers of the model attend along different edges, which are not shown")
    listed = batch[_edges_key(schema, batch)][0].T.flip(0)  # [2, E]
    (size,) = sizes
    loops = torch.arange(size - listed.shape[1], device=listed.device).expand(2, -1)
    return torch.cat([listed, loops], dim=1).cpu()


def _edges_key(schema: BatchSchema, batch: Mapping[str, Tensor]) -> str:
    keys = [key for key in batch if key in schema and isinstance(schema[key].below, str)]
    if len(keys) != 1:
        raise ZooError("the edges of the graph do not follow from the batch of the model")
    return keys[0]


def _nodes(schema: BatchSchema, looked_at: Pass) -> Axis:
    """Return the nodes with their names; with numbers from 0 if they have none."""
    batch, names = looked_at.batch, looked_at.nodes
    dim = schema[_edges_key(schema, batch)].below
    count = next(
        tensor.shape[(schema[key].dims or ()).index(dim)]
        for key, tensor in batch.items()
        if dim in (schema[key].dims or ())
    )
    if names is not None and len(names) != count:
        raise ZooError(f"{len(names)} names of nodes were given, but the graph has {count} nodes")
    return Axis("node", list(names or map(str, range(count))))


def _join_calls(
    path: str, calls: Sequence[Tensor], dependence: Dependence
) -> Iterator[tuple[str, Tensor, bool]]:
    """Yield the weights [H, T, S] or [H, E] of a module, and whether rows are steps.

    Calls with one row each are the steps of a recurrence, which are joined. Calls with rows of
    their own are those of several layers that share the module.
    """
    weights = [call[0].float().cpu() for call in calls]
    if not dependence.sizes[0] and all(w.dim() == 3 and w.shape[1] == 1 for w in weights):
        S = max(each.shape[2] for each in weights)
        joined = torch.cat([F.pad(each, (0, S - each.shape[2])) for each in weights], dim=1)
        yield path, joined, len(calls) > 1 or bool(dependence.calls)
        return
    for number, each in enumerate(weights, 1):
        yield path if len(weights) == 1 else f"{path}#{number}", each, False


def _join_empty(
    positions: Sequence[Positions], weights: Tensor, filled: Dims
) -> tuple[Tensor, list[str]]:
    """Return weights [H, T, S] with the sum of the columns after the positions that fill the others
    as the last one, and the label of that column, if there are any."""
    S = weights.shape[2]
    count = next((len(p.read) for p in positions if p.dims == filled and p.read), S)
    if count >= S:
        return weights, []
    empty = weights[..., count:].sum(dim=2, keepdim=True)
    return torch.cat([weights[..., :count], empty], dim=2), [f"{S - count} empty"]


def _classify(
    positions: Sequence[Positions],
    weights: Tensor,
    dependence: Dependence,
    empty: Sequence[str],
    *,
    is_stepwise: bool,
) -> tuple[ViewKind, Axis, Axis]:
    """Return what weights [H, T, S] show, with their axes; `empty` has the label of a last column
    that is not a position of an input."""
    _, T, S = weights.shape
    columns_dims = dependence.sizes[1] or dependence.filled
    rows_dims = dependence.calls if is_stepwise else dependence.sizes[0]
    columns = make_axis(positions, columns_dims, S - len(empty), written=False)
    columns = replace(columns, labels=[*columns.labels, *empty])
    is_self = not is_stepwise and rows_dims == columns_dims and (T == S > 1 or bool(rows_dims))
    if is_self:
        return "self", make_axis(positions, rows_dims, T, written=False), columns
    if rows_dims:
        is_memory = not columns_dims and columns.grid is None
        rows = make_axis(positions, rows_dims, T, written=True)
        return "memory" if is_memory else "cross", rows, columns
    if is_stepwise:
        return "glimpses" if columns.grid else "memory", Axis(STEP, numbers("", T)), columns
    return "pooling", Axis("query", numbers("", T)), columns


def _view_frames(model: Model, outputs: Any, positions: Sequence[Positions]) -> Iterator[LayerView]:
    """Yield the posteriors [1, T, V] of each head whose logits are those of frames."""
    schema = model.output_schema()
    if schema is None or not isinstance(outputs, Outputs):
        return
    heads = {"logits": (schema, outputs)}
    heads |= {
        name: (schema.auxiliary[name], each)
        for name, each in outputs.auxiliary.items()
        if name in schema.auxiliary
    }
    tokenizer = get_tokenizer(model, TARGET)
    for name, (head, found) in heads.items():
        if head.logits != "frame":
            continue
        posteriors = found.logits[:1].float().softmax(dim=-1).cpu()
        _, T, V = posteriors.shape
        symbols = [token_label(tokenizer, number) for number in range(V)]
        if (blank := head.constants.get("blank")) is not None:
            symbols[blank] = "blank"
        source = next((p.dims for p in positions if p.name == model.generation_input), _FIXED)
        path = model.align_frames(found)
        yield LayerView(
            name,
            "ctc",
            posteriors,
            make_axis(positions, source, T, written=False),
            Axis("symbol", symbols),
            find_equations(model, name),
            None if path is None else path[0].cpu(),
        )
