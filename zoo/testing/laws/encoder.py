"""The laws of encoders."""

from __future__ import annotations

import torch
from torch import Tensor

from zoo.interfaces import Encoder, Memory
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.tensors import noise, ragged, same, untouched
from zoo.testing.subject import Subject

_LENGTHS = (5, 1, 3)

# Of a graph of each length, (source, target). The first falls in two; its self-loops keep what
# their nodes say from being lost on the way through many layers.
_EDGES = (((0, 0), (0, 1), (2, 1), (3, 3), (3, 4)), (), ((0, 1), (1, 2)))


def _parts(memory: Memory) -> dict[str, Tensor]:
    return {"states": memory.states, "summary": memory.summary, **memory.carry}


def declared_form(subject: Subject) -> None:
    """Memory has the widths and the carried state that the encoder declares."""
    encoder = subject.part()
    mask = ragged(_LENGTHS)
    memory = encoder(noise(3, 5, subject.given()["input_dim"]), mask)
    assert memory.states.shape == (3, 5, encoder.output_dim), "states are not [B, S, output_dim]"
    assert memory.summary.shape == (3, encoder.summary_dim), "summary is not [B, summary_dim]"
    untouched(memory.mask, mask, "the mask")
    found = {key: tuple(value.shape) for key, value in memory.carry.items()}
    declared = {key: (3, *form) for key, form in encoder.carry.items()}
    assert found == declared, f"carry is {found}, declared {declared}"


def padding_invariance(subject: Subject) -> None:
    """A padded batch equals its items alone."""
    encoder = subject.part()
    inputs, mask = noise(3, 5, subject.given()["input_dim"]), ragged(_LENGTHS)
    together = encoder(inputs, mask)
    for item, length in enumerate(_LENGTHS):
        alone = encoder(inputs[item : item + 1, :length], mask[item : item + 1, :length])
        for name, expected in _parts(alone).items():
            actual = _parts(together)[name][item : item + 1]
            actual = actual[:, :length] if name == "states" else actual
            same(actual, expected, f"{name} of an item of length {length}")


def inert_padding(subject: Subject) -> None:
    """What stands under the mask changes no bit of the memory."""
    encoder = subject.part()
    inputs, mask = noise(3, 5, subject.given()["input_dim"]), ragged(_LENGTHS)
    before = _parts(encoder(inputs, mask))
    after = _parts(encoder(inputs.masked_fill(~mask[..., None], 1e3), mask))
    for name, value in before.items():
        assert not value.isnan().any(), f"{name} has NaN"
        seen = mask if name == "states" else slice(None)
        untouched(after[name][seen], value[seen], name)


def node_permutation(subject: Subject) -> None:
    """Of a relational encoder: permuting the nodes permutes the states, the order of the edges
    does not matter, and a padded batch of graphs equals the graphs alone."""
    encoder = _relational(subject)
    inputs, mask = noise(3, 5, subject.given()["input_dim"]), ragged(_LENGTHS)
    edges = _listed()
    together = encoder(inputs, mask, edges)
    same(encoder(inputs, mask, edges.flip(1)).states, together.states, "states of shuffled edges")
    for item, length in enumerate(_LENGTHS):
        one, all_real = inputs[item : item + 1, :length], mask[item : item + 1, :length]
        few = edges[item : item + 1, : len(_EDGES[item])]
        alone = encoder(one, all_real, few)
        states = together.states[item : item + 1, :length]
        same(states, alone.states, f"states of a graph of {length} nodes")
        same(together.summary[item : item + 1], alone.summary, "the summary of a graph")
        order = torch.arange(length).roll(1)
        moved = encoder(one[:, order], all_real, (few + 1) % length)
        same(moved.states, alone.states[:, order], "states of permuted nodes")
        same(moved.summary, alone.summary, "the summary of permuted nodes")


def edges_only(subject: Subject) -> None:
    """Of a relational encoder: a node hears of those from whom edges lead to it, of no other."""
    encoder = _relational(subject)
    inputs, mask, edges = noise(1, 5, subject.given()["input_dim"]), ragged([5]), _listed()[:1]
    before = encoder(inputs, mask, edges).states
    for heard, deaf, changed in ((1, (2, 3, 4), 0), (4, (0, 1, 2), 3)):
        inputs_after = inputs.clone()
        inputs_after[:, changed] += 1.0
        after = encoder(inputs_after, mask, edges).states
        assert not torch.equal(after[:, heard], before[:, heard]), (
            f"node {heard} does not hear of node {changed}, though an edge leads to it"
        )
        same(after[:, deaf], before[:, deaf], f"states of nodes {deaf}, far from node {changed}")


def _relational(subject: Subject) -> Encoder:
    encoder: Encoder = subject.part()
    if not encoder.relational:
        raise NotApplicable("it reads no edges")
    return encoder


def _listed() -> Tensor:
    """The edges of the three graphs, padded: [3, 5, 2]."""
    return torch.tensor([[*edges, *[(-1, -1)] * (5 - len(edges))] for edges in _EDGES])


LAWS = (
    Law("declared-form", declared_form),
    Law("padding-invariance", padding_invariance),
    Law("inert-padding", inert_padding),
    Law("node-permutation", node_permutation),
    Law("edges-only", edges_only),
)
