"""Laws of encoders."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.interfaces import Encoder, Memory
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, assert_equal, length_mask, randn

_LENGTHS = (5, 1, 3)

# Edges (source, target) of a graph of each length. The first has two components, with self-loops
# so that inputs have an effect after many layers.
_EDGES = (((0, 0), (0, 1), (2, 1), (3, 3), (3, 4)), (), ((0, 1), (1, 2)))


def _memory_tensors(memory: Memory) -> dict[str, Tensor]:
    return {"states": memory.states, "summary": memory.summary, **memory.carry}


def memory_shape(config: Configuration) -> None:
    """Memory has the sizes and the final state that the encoder declares."""
    encoder = config.build()
    mask = length_mask(_LENGTHS)
    memory = encoder(randn(3, 5, config.parent_values()["input_dim"]), mask)
    assert memory.states.shape == (3, 5, encoder.output_dim), "states are not [B, S, output_dim]"
    assert memory.summary.shape == (3, encoder.summary_dim), "summary is not [B, summary_dim]"
    assert_equal(memory.mask, mask, "the mask")
    found = {key: tuple(value.shape) for key, value in memory.carry.items()}
    declared = {key: (3, *form) for key, form in encoder.carry.items()}
    assert found == declared, f"carry is {found}, declared {declared}"


def padding_invariance(config: Configuration) -> None:
    """Padding does not change the memory of an item."""
    encoder = config.build()
    inputs, mask = randn(3, 5, config.parent_values()["input_dim"]), length_mask(_LENGTHS)
    together = encoder(inputs, mask)
    for item, length in enumerate(_LENGTHS):
        alone = encoder(inputs[item : item + 1, :length], mask[item : item + 1, :length])
        for name, expected in _memory_tensors(alone).items():
            actual = _memory_tensors(together)[name][item : item + 1]
            actual = actual[:, :length] if name == "states" else actual
            assert_close(actual, expected, f"{name} of an item of length {length}")


def inert_padding(config: Configuration) -> None:
    """Values at masked positions do not change the memory, except for rounding."""
    encoder = config.build()
    inputs, mask = randn(3, 5, config.parent_values()["input_dim"]), length_mask(_LENGTHS)
    before = _memory_tensors(encoder(inputs, mask))
    after = _memory_tensors(encoder(inputs.masked_fill(~mask[..., None], 1e6), mask))
    for name, value in before.items():
        assert not value.isnan().any(), f"{name} has NaN"
        valid = mask if name == "states" else slice(None)
        # An expert multiplies its tokens together, and rounding depends on how many there are.
        assert_close(after[name][valid], value[valid], name, tolerance=1e-13)


def node_permutation(config: Configuration) -> None:
    """For encoders of graphs: permuting the nodes permutes the states, the order of edges has no
    effect, and padding does not change the states of a graph."""
    encoder = _graph_encoder(config)
    inputs, mask = randn(3, 5, config.parent_values()["input_dim"]), length_mask(_LENGTHS)
    edges = _edge_tensor()
    together = encoder(inputs, mask, edges)
    assert_close(
        encoder(inputs, mask, edges.flip(1)).states, together.states, "states of shuffled edges"
    )
    for item, length in enumerate(_LENGTHS):
        one, valid = inputs[item : item + 1, :length], mask[item : item + 1, :length]
        own_edges = edges[item : item + 1, : len(_EDGES[item])]
        alone = encoder(one, valid, own_edges)
        states = together.states[item : item + 1, :length]
        assert_close(states, alone.states, f"states of a graph of {length} nodes")
        assert_close(together.summary[item : item + 1], alone.summary, "the summary of a graph")
        order = torch.arange(length).roll(1)
        permuted = encoder(one[:, order], valid, (own_edges + 1) % length)
        assert_close(permuted.states, alone.states[:, order], "states of permuted nodes")
        assert_close(permuted.summary, alone.summary, "the summary of permuted nodes")


def edge_locality(config: Configuration) -> None:
    """For encoders of graphs: the state of a node depends only on nodes with an edge to it."""
    encoder = _graph_encoder(config)
    inputs, mask, edges = (
        randn(1, 5, config.parent_values()["input_dim"]),
        length_mask([5]),
        _edge_tensor()[:1],
    )
    before = encoder(inputs, mask, edges).states
    for target, others, changed in ((1, (2, 3, 4), 0), (4, (0, 1, 2), 3)):
        inputs_after = inputs.clone()
        inputs_after[:, changed] += 1.0
        after = encoder(inputs_after, mask, edges).states
        assert not torch.equal(after[:, target], before[:, target]), (
            f"node {target} does not depend on node {changed}, which has an edge to it"
        )
        assert_close(
            after[:, others],
            before[:, others],
            f"states of nodes {others} without an edge from {changed}",
        )


def _graph_encoder(config: Configuration) -> Encoder:
    encoder: Encoder = config.build()
    if not encoder.accepts_edges:
        raise NotApplicable("it does not accept edges")
    return encoder


def _edge_tensor() -> Tensor:
    """Return the padded edges of the three graphs, [3, 5, 2]."""
    return torch.tensor([[*edges, *[(-1, -1)] * (5 - len(edges))] for edges in _EDGES])


LAWS = (
    Law("memory-shape", memory_shape),
    Law("padding-invariance", padding_invariance),
    Law("inert-padding", inert_padding),
    Law("node-permutation", node_permutation),
    Law("edge-locality", edge_locality),
)
