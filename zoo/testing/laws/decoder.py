"""Laws of decoders."""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor

from zoo.interfaces import Decoder, Memory
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, assert_equal, random_memory

_FURTHER = 40
"""Masked states that a batch with a longer source, or a captured graph, has in addition."""


def _targets() -> Tensor:
    return torch.tensor([[1, 3, 2, 6], [1, 5, 5, 4], [1, 2, 6, 3]])


def _memory(config: Configuration) -> Memory:
    parent_values = config.parent_values()
    return random_memory(parent_values["memory_dim"], parent_values["summary_dim"])


def _run_steps(decoder: Decoder, targets: Tensor, source: Memory, sizes: list[int]) -> Tensor:
    state = decoder.start(source, steps=targets.shape[1])
    outputs = []
    for tokens in torch.split(targets, sizes, dim=1):
        logits, state = decoder.step(tokens, state)
        outputs.append(logits)
    return torch.cat(outputs, dim=1)


def step_matches_forward(config: Configuration) -> None:
    """Steps of one or more tokens give the same logits as the forward pass."""
    decoder, source = config.build(), _memory(config)
    expected = decoder(_targets(), source)
    vocab = 7
    assert expected.shape == (3, 4, vocab), f"logits are {list(expected.shape)}, not [B, T, V]"
    for sizes in ([1, 1, 1, 1], [3, 1]):
        assert_close(
            _run_steps(decoder, _targets(), source, sizes),
            expected,
            f"logits in steps of {sizes}",
            1e-7,
        )
    state = decoder.start(source, steps=4)
    after_prompt, state = decoder.process_prompt(_targets()[:, :3], state)
    assert_close(after_prompt, expected[:, 2:3], "logits after a prompt", 1e-7)
    assert_close(
        decoder.step(_targets()[:, 3:], state)[0],
        expected[:, 3:],
        "logits of a step after a prompt",
        1e-7,
    )


def causality(config: Configuration) -> None:
    """The logits at step t do not depend on later tokens."""
    decoder, source = config.build(), _memory(config)
    before = decoder(_targets(), source)
    other = _targets().clone()
    other[:, 2:] = 4
    assert_close(
        decoder(other, source)[:, :2], before[:, :2], "logits before a changed token", 1e-12
    )


def masked_memory(config: Configuration) -> None:
    """Masked states and source tokens of the memory, and further ones, do not change the logits."""
    decoder, source = config.build(), _memory(config)
    states = source.states.masked_fill(~source.mask[..., None], 1e3)
    assert source.tokens is not None
    tokens = source.tokens.masked_fill(~source.mask, 4)
    other = replace(source, states=states, tokens=tokens)
    expected = decoder(_targets(), source)
    assert_equal(decoder(_targets(), other), expected, "a logit")
    longer = replace(
        source,
        states=F.pad(source.states, (0, 0, 0, _FURTHER), value=1e3),
        mask=F.pad(source.mask, (0, _FURTHER)),
        tokens=F.pad(source.tokens, (0, _FURTHER), value=4),
    )
    assert_close(decoder(_targets(), longer), expected, "logits with further masked states", 1e-7)


def state_reordering(config: Configuration) -> None:
    """A repeated and reordered state gives the logits of the selected hypotheses."""
    decoder, source = config.build(), _memory(config)
    _, state = decoder.step(_targets()[:, :2], decoder.start(source, steps=4))
    expected, _ = decoder.step(_targets()[:, 2:3], state)
    doubled = _targets().repeat_interleave(2, dim=0)
    doubled[1::2, 1] = 4  # the second hypothesis of each item took another token
    _, split = decoder.step(doubled[:, :2], decoder.start(source, steps=4).repeat(2))
    reordered = split.reorder(torch.tensor([0, 0, 2, 2, 4, 4]))
    logits, _ = decoder.step(doubled[:, 2:3], reordered)
    assert_close(logits, expected.repeat_interleave(2, dim=0), "logits after reordering", 1e-7)


def segments(config: Configuration) -> None:
    """The logits of several texts in one row are those of each text alone."""
    decoder, source = config.build(), _memory(config)
    if not decoder.supports_segments:
        raise NotApplicable("it does not support segments")
    row = torch.cat([_targets(), _targets().flip(1)[:, 1:]], dim=1)
    numbers = torch.tensor([[1, 1, 1, 1, 2, 2, 2], [1, 2, 2, 2, 2, 2, 3], [4, 4, 4, 7, 7, 7, 0]])
    logits = decoder(row, source, segments=numbers)
    assert logits.shape[:2] == row.shape, f"logits are {list(logits.shape)}, not [B, T, V]"
    for index in range(len(row)):
        for number in sorted(set(numbers[index].tolist())):
            chosen = numbers[index] == number
            text = row[index, chosen].expand(len(row), -1)
            expected = decoder(text, source)[index]
            assert_close(logits[index, chosen], expected, f"logits of segment {number}", 1e-7)


LAWS = (
    Law("step-matches-forward", step_matches_forward),
    Law("causality", causality),
    Law("masked-memory", masked_memory),
    Law("state-reordering", state_reordering),
    Law("segments", segments),
)
