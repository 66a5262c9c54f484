"""Views of attention without a model, one for each kind of picture."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo_inspect.view import Axis, Equation, LayerView, View

SCORER = Equation(
    "scorer",
    "additive",
    r"a(q, k) = v^\top \tanh(W q + U k)",
    "Bahdanau et al. 2015",
    {"hidden": 8, "project": True},
)
SOURCE = Axis("source", ["A", "▁casa", "▁é", "▁bonita", "."])
OUTPUT = Axis("output", ["The", "house", "</script><b>&", ""])


def softmax(*shape: int, seed: int = 0, sharpness: float = 2.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(*shape, generator=generator) * sharpness).softmax(-1)


def make_view(*layers: LayerView, **options: object) -> View:
    values = {
        "model": "tiny",
        "inputs": {"source": "A casa é bonita."},
        "output": "The house",
        "spec": {"name": "tiny", "model": {"type": "seq2seq"}},
        "provenance": {"zoo": "0.1.0", "model": {"weights": "0" * 64}},
    }
    return View(layers=layers, **(values | options))


def text_view(layers: int = 2, heads: int = 3) -> View:
    """Self- and cross-attention of tokens."""
    return make_view(
        *(
            LayerView(
                f"encoder.{i}", "self", softmax(heads, 5, 5, seed=i), SOURCE, SOURCE, [SCORER]
            )
            for i in range(layers - 1)
        ),
        LayerView("decoder.cross", "cross", softmax(heads, 4, 5, seed=9), OUTPUT, SOURCE, [SCORER]),
    )


def long_view(layers: int, heads: int, tokens: int) -> View:
    """Self-attention over many tokens, with rows as flat and as sharp as those of real models."""
    axis = Axis("source", [f"token{i}" for i in range(tokens)])
    sharpness = torch.linspace(0.5, 6, layers * heads).view(layers, heads, 1, 1)
    weights = (softmax(layers, heads, tokens, tokens).log() * sharpness / 2).softmax(-1)
    return make_view(
        *(LayerView(f"block.{i}", "self", weights[i], axis, axis) for i in range(layers))
    )


def image_view() -> View:
    """Patches of an image with a class token, glimpses of its pixels, and a pooled image."""
    ramp = torch.linspace(0, 255, 8 * 12 * 3).view(8, 12, 3).to(torch.uint8)
    patches = Axis("source", ["class", *(f"{i}, {j}" for i in range(2) for j in range(3))], (2, 3))
    pixels = Axis("source", [f"{i}, {j}" for i in range(8) for j in range(12)], (8, 12))
    glimpses = torch.zeros(1, 3, 8, 12)
    for step in range(3):
        glimpses[0, step, step : step + 3, 2 * step : 2 * step + 4] = 1 / 12
    steps = Axis("step", ["1", "2", "3"])
    return make_view(
        LayerView("blocks.0", "self", softmax(2, 7, 7), patches, patches),
        LayerView("retina", "glimpses", glimpses.flatten(2), steps, pixels),
        LayerView("pool", "pooling", softmax(1, 1, 7), Axis("query", ["1"]), patches),
        images={"source": ramp},
    )


def graph_view(nodes: int = 9) -> View:
    """A ring with chords and loops; each node attends to its predecessors and itself."""
    target = torch.arange(nodes).repeat(3)
    source = torch.cat([(torch.arange(nodes) + step) % nodes for step in (1, 3, 0)])
    weights = softmax(2, nodes, 3).transpose(1, 2).flatten(1)
    axis = Axis("node", [str(i) for i in range(nodes)])
    layer = LayerView("layers.0", "edges", weights, axis, axis)
    return make_view(layer, edges=torch.stack([target, source]))


def step_view() -> View:
    """Posteriors with a path, and reads of a memory."""
    frames, symbols = Axis("source", [f"0.{i:02} s" for i in range(30)]), ["blank", "a", "b", "c"]
    posteriors = softmax(1, 30, 4, sharpness=4)
    memory = LayerView(
        "reads", "memory", softmax(2, 6, 10), Axis("step", list("abcdef")), Axis("slot", ["?"] * 10)
    )
    ctc = LayerView(
        "logits", "ctc", posteriors, frames, Axis("symbol", symbols), (), posteriors[0].argmax(-1)
    )
    return make_view(ctc, memory, output=None)


VIEWS = {
    "text": text_view,
    "image": image_view,
    "graph": graph_view,
    "large graph": lambda: graph_view(200),
    "steps": step_view,
}
