"""What a model attended to on one input, independent of how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor

ViewKind = Literal["self", "cross", "pooling", "edges", "glimpses", "memory", "ctc"]
"""What a module attends to:

- ``self``: the positions of a sequence or image, to each other;
- ``cross``: the steps of the output, to the positions of an input;
- ``pooling``: learned queries, to the positions of an input;
- ``edges``: the nodes of a graph, along its edges;
- ``glimpses``: steps, to the pixels of an image;
- ``memory``: steps or hops, to the slots of a memory or to facts;
- ``ctc``: frames, to the symbols, with the posterior of each.
"""
KIND_NAMES: Mapping[ViewKind, str] = {
    "self": "self-attention",
    "cross": "cross-attention",
    "pooling": "attention pooling",
    "edges": "edges of a graph",
    "glimpses": "glimpses",
    "memory": "memory",
    "ctc": "posteriors of frames",
}


@dataclass(frozen=True)
class Axis:
    """Positions that attend or are attended to.

    Args:
        name: what the positions are, such as "source" or "output".
        labels: the text of each position, such as its token.
        grid: height and width if the positions are those of an image or a feature map, by rows;
            labels before them (a class token) are not part of the grid.
    """

    name: str
    labels: Sequence[str]
    grid: tuple[int, int] | None = None


@dataclass(frozen=True)
class Equation:
    """A component of an attention module: what it computes, by its own documentation.

    Args:
        kind, name: the component, such as "scorer" and "additive".
        text: its equation, as in its docstring.
        paper: the paper it cites.
        parameters: its parameters in the resolved spec that are not defaults.
    """

    kind: str
    name: str
    text: str
    paper: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class LayerView:
    """The weights of one attention module, of all its heads.

    Args:
        path: the module's path in the model, such as "decoder.blocks.0.cross"; a module that is
            called for several layers has a view for each, such as "encoder.block.attention#2".
        kind: what is shown.
        weights: [H, T, S] in float32; over the edges of a graph [H, E].
        rows, columns: the T positions that attend, and the S that are attended to; for edges, both
            are the nodes.
        equations: scorer, alignment and what else computes the weights.
        chosen: the column of each row that is on the chosen path [T]; None if there is no path.
    """

    path: str
    kind: ViewKind
    weights: Tensor
    rows: Axis
    columns: Axis
    equations: Sequence[Equation] = ()
    chosen: Tensor | None = None


@dataclass(frozen=True, eq=False)
class View:
    """Everything that is shown of one input of one model.

    Args:
        model: the name of the model.
        inputs: each input as it was given, by its role: {"source": "A casa ."}.
        output: the generated or forced output as text; of a classifier, the most likely class and
            its probability; None for models without one.
        layers: one view for each attention module, in the order of the model.
        spec: the resolved spec.
        provenance: what is needed to compute the view again: reference and hash of the model,
            version of the zoo, providers of the components, sampler, length.
        images: pixels [H, W, 3] as uint8 by role, for overlays.
        edges: target and source node of each edge [2, E], for graphs.
    """

    model: str
    inputs: Mapping[str, Any]
    output: str | None
    layers: Sequence[LayerView]
    spec: Mapping[str, Any]
    provenance: Mapping[str, Any]
    images: Mapping[str, Tensor] = field(default_factory=dict)
    edges: Tensor | None = None


def choose_layers(view: View) -> list[str]:
    """Return the paths of the layers that are shown if none are chosen: the last one to an input,
    or else the last one of each kind."""
    last = {layer.kind: layer.path for layer in view.layers}
    shown = [last["cross"]] if "cross" in last else []
    return shown or list(last.values())
