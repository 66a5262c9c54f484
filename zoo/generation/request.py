"""What a generation is asked for, checked before the decoder hears of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Decoder, Memory
from zoo.interfaces.embedding import to_eos_ids


@dataclass(frozen=True)
class DecodeRequest:
    """The prompts and the ends.

    Decoders know no padding, so items of unequal prompts begin together at the shortest and the
    longer prompts are then forced on their items, token by token.

    Shapes:
        prefix [B, P], as long as the shortest prompt; rest [B, F], what follows it in the longer
        ones; forced [B], how much of ``rest`` is an item's own.
    """

    prefix: Tensor
    suffix: Tensor
    forced_lengths: Tensor
    eos_ids: tuple[int, ...]
    pad: int
    max_length: int

    @property
    def steps(self) -> int:
        """How many tokens are chosen or forced for each item, at the most."""
        return self.suffix.shape[1] + self.max_length

    @property
    def total_length(self) -> int:
        return self.prefix.shape[1] + self.steps

    def validate_vocab(self, vocab: int) -> None:
        """ZooError if a token named here is none of the vocabulary's."""
        named = [("pad", self.pad), *(("eos", end) for end in self.eos_ids)]
        for name, token in named:
            if token >= vocab:
                raise ZooError(f"{name} is {token}, outside the vocabulary of {vocab}")
        for part in (self.prefix, self.suffix):
            if part.numel() and int(part.max()) >= vocab:
                raise ZooError(
                    f"the prompt has token {int(part.max())}, outside the vocabulary of {vocab}"
                )


def build_request(
    decoder: Decoder,
    memory: Memory,
    *,
    bos: int,
    eos: int | Collection[int],
    pad: int,
    max_length: int,
    prompt: Tensor | None,
    lengths: Tensor | None = None,
) -> DecodeRequest:
    """The setting, or ZooError with what is wrong with it."""
    if max_length < 1:
        raise ZooError(f"max_length is {max_length}; it must be at least 1")
    eos_ids = tuple(sorted(set(to_eos_ids(eos))))
    for name, token in (("bos", bos), ("pad", pad), *(("eos", end) for end in eos_ids)):
        if token < 0:
            raise ZooError(f"{name} is {token}; a token is a number from 0")
    B, device = memory.states.shape[0], memory.states.device
    if prompt is None:
        prompt = torch.full((B, 1), bos, dtype=torch.long, device=device)
        lengths = torch.ones(B, dtype=torch.long, device=device)
        shortest = longest = 1
    else:
        prompt = prompt.to(device)
        _validate_prompt(prompt, B)
        real = (
            _infer_lengths(prompt, bos, pad)
            if lengths is None
            else _validate_lengths(lengths, prompt)
        )
        lengths = _require_nonempty(real)
        shortest, longest = (int(lengths.min()), int(lengths.max())) if B else (1, 1)
    made = DecodeRequest(
        prompt[:, :shortest],
        prompt[:, shortest:longest],
        lengths - shortest,
        eos_ids,
        pad,
        max_length,
    )
    vocab = _vocab_size(decoder)
    if vocab is not None:
        made.validate_vocab(vocab)
    return made


def _validate_prompt(prompt: Tensor, B: int) -> None:
    if prompt.dim() != 2 or prompt.shape[0] != B or prompt.is_floating_point():
        raise ZooError(
            f"the prompt is {prompt.dtype} {list(prompt.shape)}; "
            f"it must be token numbers [B, P], one row for each of {B} items"
        )
    if prompt.numel() and int(prompt.min()) < 0:
        raise ZooError(f"the prompt has token {int(prompt.min())}; a token is a number from 0")


def _infer_lengths(prompt: Tensor, bos: int, pad: int) -> Tensor:
    """Where the padding of each row begins."""
    if not prompt.shape[1]:
        return prompt.new_zeros(prompt.shape[0])
    places = torch.arange(1, prompt.shape[1] + 1, device=prompt.device)
    lengths = (places * (prompt != pad)).amax(dim=1)
    return lengths.clamp(min=1) if bos == pad else lengths  # a start token looks like padding


def _validate_lengths(lengths: Tensor, prompt: Tensor) -> Tensor:
    B, P = prompt.shape
    if lengths.shape != (B,) or lengths.dtype != torch.long:
        raise ZooError(
            f"lengths are {lengths.dtype} {list(lengths.shape)}; "
            f"they must be whole numbers [B], one for each of {B} items"
        )
    if B and int(lengths.max()) > P:
        raise ZooError(f"a length of {int(lengths.max())} is told of prompts of {P} tokens")
    return lengths.to(prompt.device)


def _require_nonempty(lengths: Tensor) -> Tensor:
    if lengths.numel() and int(lengths.min()) < 1:
        item = int(lengths.argmin())
        raise ZooError(f"the prompt of item {item} is empty; it must have one token at least")
    return lengths


def _vocab_size(decoder: Decoder) -> int | None:
    """How many symbols the decoder reads, where its embedding says so."""
    vocab = getattr(getattr(decoder, "embedding", None), "vocab", None)
    return vocab if isinstance(vocab, int) else None


def strip_prompts(tokens: Tensor, request: DecodeRequest, eos_ids: Tensor) -> Tensor:
    """tokens [B, N, columns] -> what follows each prompt [B, N, T], padded, T the longest."""
    total_length = tokens.shape[-1]
    start = request.prefix.shape[1] + request.forced_lengths[:, None, None]  # [B, 1, 1]
    at = start + torch.arange(request.max_length, device=tokens.device)  # [B, 1, max_length]
    generated = tokens.gather(2, at.clamp(max=total_length - 1).expand(-1, tokens.shape[1], -1))
    generated = generated.masked_fill(at >= total_length, request.pad)
    is_end = (generated[..., None] == eos_ids).any(dim=-1)
    before = is_end.cumsum(dim=-1) - is_end.long()  # how many end tokens stand before
    real = (before == 0) & (is_end | (generated != request.pad))
    places = torch.arange(1, request.max_length + 1, device=tokens.device)
    longest = int((real.flatten(0, 1).any(dim=0) * places).max())
    return generated[..., : max(longest, 1)]


def sync_points(steps: int, sync_every: int) -> Iterator[tuple[int, bool]]:
    """The steps, each with whether the host should look how things stand after it."""
    for step in range(steps):
        yield step, step % sync_every == sync_every - 1 or step == steps - 1
