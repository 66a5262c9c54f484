"""What a generation is asked for, checked before the decoder hears of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Decoder, Memory
from zoo.interfaces.embedding import ends_of


@dataclass(frozen=True)
class Setting:
    """The prompts and the ends.

    Decoders know no padding, so items of unequal prompts begin together at the shortest and the
    longer prompts are then forced on their items, token by token.

    Shapes:
        prefix [B, P], as long as the shortest prompt; rest [B, F], what follows it in the longer
        ones; forced [B], how much of ``rest`` is an item's own.
    """

    prefix: Tensor
    rest: Tensor
    forced: Tensor
    ends: tuple[int, ...]
    pad: int
    max_length: int

    @property
    def steps(self) -> int:
        """How many tokens are chosen or forced for each item, at the most."""
        return self.rest.shape[1] + self.max_length

    @property
    def columns(self) -> int:
        return self.prefix.shape[1] + self.steps

    def within(self, vocab: int) -> None:
        """ZooError if a token named here is none of the vocabulary's."""
        named = [("pad", self.pad), *(("eos", end) for end in self.ends)]
        for name, token in named:
            if token >= vocab:
                raise ZooError(f"{name} is {token}, outside the vocabulary of {vocab}")
        for part in (self.prefix, self.rest):
            if part.numel() and int(part.max()) >= vocab:
                raise ZooError(
                    f"the prompt has token {int(part.max())}, outside the vocabulary of {vocab}"
                )


def setting(
    decoder: Decoder,
    memory: Memory,
    *,
    bos: int,
    eos: int | Collection[int],
    pad: int,
    max_length: int,
    prompt: Tensor | None,
    lengths: Tensor | None = None,
) -> Setting:
    """The setting, or ZooError with what is wrong with it."""
    if max_length < 1:
        raise ZooError(f"max_length is {max_length}; it must be at least 1")
    ends = tuple(sorted(set(ends_of(eos))))
    for name, token in (("bos", bos), ("pad", pad), *(("eos", end) for end in ends)):
        if token < 0:
            raise ZooError(f"{name} is {token}; a token is a number from 0")
    B, device = memory.states.shape[0], memory.states.device
    if prompt is None:
        prompt = torch.full((B, 1), bos, dtype=torch.long, device=device)
        lengths = torch.ones(B, dtype=torch.long, device=device)
        shortest = longest = 1
    else:
        prompt = prompt.to(device)
        _refuse_no_tokens(prompt, B)
        real = _unpadded(prompt, bos, pad) if lengths is None else _told(lengths, prompt)
        lengths = _filled(real)
        shortest, longest = (int(lengths.min()), int(lengths.max())) if B else (1, 1)
    made = Setting(
        prompt[:, :shortest],
        prompt[:, shortest:longest],
        lengths - shortest,
        ends,
        pad,
        max_length,
    )
    vocab = _vocabulary(decoder)
    if vocab is not None:
        made.within(vocab)
    return made


def _refuse_no_tokens(prompt: Tensor, B: int) -> None:
    if prompt.dim() != 2 or prompt.shape[0] != B or prompt.is_floating_point():
        raise ZooError(
            f"the prompt is {prompt.dtype} {list(prompt.shape)}; "
            f"it must be token numbers [B, P], one row for each of {B} items"
        )
    if prompt.numel() and int(prompt.min()) < 0:
        raise ZooError(f"the prompt has token {int(prompt.min())}; a token is a number from 0")


def _unpadded(prompt: Tensor, bos: int, pad: int) -> Tensor:
    """Where the padding of each row begins."""
    if not prompt.shape[1]:
        return prompt.new_zeros(prompt.shape[0])
    places = torch.arange(1, prompt.shape[1] + 1, device=prompt.device)
    lengths = (places * (prompt != pad)).amax(dim=1)
    return lengths.clamp(min=1) if bos == pad else lengths  # a start token looks like padding


def _told(lengths: Tensor, prompt: Tensor) -> Tensor:
    B, P = prompt.shape
    if lengths.shape != (B,) or lengths.dtype != torch.long:
        raise ZooError(
            f"lengths are {lengths.dtype} {list(lengths.shape)}; "
            f"they must be whole numbers [B], one for each of {B} items"
        )
    if B and int(lengths.max()) > P:
        raise ZooError(f"a length of {int(lengths.max())} is told of prompts of {P} tokens")
    return lengths.to(prompt.device)


def _filled(lengths: Tensor) -> Tensor:
    if lengths.numel() and int(lengths.min()) < 1:
        item = int(lengths.argmin())
        raise ZooError(f"the prompt of item {item} is empty; it must have one token at least")
    return lengths


def _vocabulary(decoder: Decoder) -> int | None:
    """How many symbols the decoder reads, where its embedding says so."""
    vocab = getattr(getattr(decoder, "embedding", None), "vocab", None)
    return vocab if isinstance(vocab, int) else None


def answers(tokens: Tensor, given: Setting, ends: Tensor) -> Tensor:
    """tokens [B, N, columns] -> what follows each prompt [B, N, T], padded, T the longest."""
    columns = tokens.shape[-1]
    start = given.prefix.shape[1] + given.forced[:, None, None]  # [B, 1, 1]
    at = start + torch.arange(given.max_length, device=tokens.device)  # [B, 1, max_length]
    said = tokens.gather(2, at.clamp(max=columns - 1).expand(-1, tokens.shape[1], -1))
    said = said.masked_fill(at >= columns, given.pad)
    is_end = (said[..., None] == ends).any(dim=-1)
    before = is_end.cumsum(dim=-1) - is_end.long()  # how many end tokens stand before
    real = (before == 0) & (is_end | (said != given.pad))
    places = torch.arange(1, given.max_length + 1, device=tokens.device)
    longest = int((real.flatten(0, 1).any(dim=0) * places).max())
    return said[..., : max(longest, 1)]


def pauses(steps: int, every: int) -> Iterator[tuple[int, bool]]:
    """The steps, each with whether the host should look how things stand after it."""
    for step in range(steps):
        yield step, step % every == every - 1 or step == steps - 1
