"""The mask contract, which scorers and alignments are held to inside an attention."""

from __future__ import annotations

import torch

from zoo.attention import Attention, recording
from zoo.interfaces import Mask
from zoo.testing.laws.tensors import noise, ragged, same, untouched
from zoo.testing.subject import Subject


def obeys_mask(subject: Subject, attention: Attention) -> None:
    """Perturbing a masked or future position changes nothing, on the path that would be taken
    and on the reference path; a row with nothing open gives no NaN."""
    query, memory = noise(2, 3, 8, seed=5), noise(2, 4, 8, seed=6)
    keys = ragged([4, 2])
    other = memory.clone()
    other[1, 2:] = 1e3
    later = memory.clone()
    later[:, 2:] = -1e3
    causal = Mask(causal=True, offset=0)
    for how in ("as it runs", "recorded"):
        with recording(attention) if how == "recorded" else torch.no_grad():
            padded = attention(query, memory, Mask(keys=keys))
            untouched(attention(query, other, Mask(keys=keys)), padded, f"({how}) a padded batch")
            first = attention(query, memory, causal)[:, :2]
            again = attention(query, later, causal)[:, :2]
            untouched(again, first, f"({how}) what comes before a changed future")
            alone = attention(query[1:], memory[1:, :2])
            same(padded[1:], alone, f"({how}) a padded item against the item alone", 1e-7)
            nothing = attention(query, memory, Mask(keys=torch.zeros(2, 4, dtype=torch.bool)))
            assert not nothing.isnan().any(), f"({how}) a row with nothing open gives NaN"
