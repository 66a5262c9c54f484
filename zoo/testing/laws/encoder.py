"""The laws of encoders."""

from __future__ import annotations

from torch import Tensor

from zoo.interfaces import Memory
from zoo.testing.law import Law
from zoo.testing.laws.tensors import noise, ragged, same, untouched
from zoo.testing.subject import Subject

_LENGTHS = (5, 1, 3)


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


LAWS = (
    Law("declared-form", declared_form),
    Law("padding-invariance", padding_invariance),
    Law("inert-padding", inert_padding),
)
