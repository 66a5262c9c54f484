"""Validation and layout of prompts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from zoo.errors import ZooError
from zoo.interfaces import Decoder, GenerationInputs


@dataclass(frozen=True)
class PromptBatch:
    """Validated prompts and special tokens.

    Decoders do not accept padded prompts. The first P tokens of all prompts, P the length of the
    shortest one, are processed in parallel; the remaining tokens are forced, one step at a time.

    Shapes:
        prefix [B, P]: the first tokens; suffix [B, F]: the
        remaining tokens; forced_lengths [B]: the number of tokens of each item in ``suffix``.
    """

    prefix: Tensor
    suffix: Tensor
    forced_lengths: Tensor
    eos_ids: tuple[int, ...]
    pad: int
    max_length: int
    selects_pad: bool
    """Whether the padding token can be selected."""

    @property
    def steps(self) -> int:
        """Maximum number of tokens selected or forced for each item."""
        return self.suffix.shape[1] + self.max_length

    @property
    def total_length(self) -> int:
        return self.prefix.shape[1] + self.steps

    def forced_tokens(self, cur_len: int) -> Tensor:
        """Return the prompt tokens [B, 1] at column ``cur_len``; the last ones after the suffix."""
        step = min(cur_len - self.prefix.shape[1], self.suffix.shape[1] - 1)
        return self.suffix[:, step, None]

    def validate_vocab(self, vocab: int, tokens: Tensor | None = None) -> None:
        """Raise ZooError if a token is out of range for the vocabulary.

        Args:
            tokens: the prompts on the CPU, if they are there.
        """
        out_of_range = f"out of range for a vocabulary of {vocab} tokens"
        for name, token in [("pad", self.pad), *(("eos", end) for end in self.eos_ids)]:
            if token >= vocab:
                raise ZooError(f"{name} is {token}, {out_of_range}")
        for part in (self.prefix, self.suffix) if tokens is None else (tokens,):
            if part.numel() and int(part.max()) >= vocab:
                raise ZooError(f"prompt contains token {int(part.max())}, {out_of_range}")


def build_prompts(inputs: GenerationInputs, max_length: int) -> PromptBatch:
    """Return the prompts of a batch, or raise ZooError if they are not valid."""
    memory, prompt, bos, pad = inputs.memory, inputs.prompt, inputs.bos, inputs.pad
    eos_ids = tuple(sorted(set(inputs.eos_ids)))
    for name, token in (("bos", bos), ("pad", pad), *(("eos", end) for end in eos_ids)):
        if token < 0:
            raise ZooError(f"{name} is {token}; token IDs must be at least 0")
    B, device = memory.states.shape[0], memory.states.device
    shortest = longest = 1
    if prompt is None:
        prompt = torch.full((B, 1), bos, dtype=torch.long, device=device)
        on_host = torch.full((1, 1), bos, device="cpu")
    else:
        on_host, prompt = prompt.cpu(), prompt.to(device)  # each value that is read is awaited
        _validate_prompt(on_host, B)
        lengths = (
            _infer_lengths(on_host, bos, pad)
            if inputs.lengths is None
            else _validate_lengths(inputs.lengths.cpu(), on_host)
        )
        counts = lengths.tolist() or [1]
        shortest, longest = min(counts), max(counts)
        if shortest < 1:
            item = counts.index(shortest)
            raise ZooError(f"prompt of item {item} is empty; expected at least one token")
    if shortest == longest:
        forced = torch.zeros(B, dtype=torch.long, device=device)  # not copied to the device
    else:
        forced = (lengths - shortest).to(device)
    prefix, suffix = prompt[:, :shortest], prompt[:, shortest:longest]
    selects_pad = inputs.generates_padding or pad in eos_ids
    prompts = PromptBatch(prefix, suffix, forced, eos_ids, pad, max_length, selects_pad)
    vocab = vocab_size(inputs.decoder)
    if vocab is not None:
        prompts.validate_vocab(vocab, on_host)
    return prompts


def _validate_prompt(prompt: Tensor, B: int) -> None:
    if prompt.dim() != 2 or prompt.shape[0] != B or prompt.is_floating_point():
        raise ZooError(
            f"prompt has dtype {prompt.dtype} and shape {list(prompt.shape)}; "
            f"expected token IDs of shape [B, P] with B = {B}"
        )
    if prompt.numel() and int(prompt.min()) < 0:
        raise ZooError(f"prompt contains token {int(prompt.min())}; token IDs must be at least 0")


def _infer_lengths(prompt: Tensor, bos: int, pad: int) -> Tensor:
    """Return the length of each row without its padding."""
    if not prompt.shape[1]:
        return prompt.new_zeros(prompt.shape[0])
    positions = torch.arange(1, prompt.shape[1] + 1, device=prompt.device)
    lengths = (positions * (prompt != pad)).amax(dim=1)
    return lengths.clamp(min=1) if bos == pad else lengths  # the first token is not padding


def _validate_lengths(lengths: Tensor, prompt: Tensor) -> Tensor:
    B, P = prompt.shape
    if lengths.shape != (B,) or lengths.dtype != torch.long:
        raise ZooError(
            f"lengths has dtype {lengths.dtype} and shape {list(lengths.shape)}; "
            f"expected torch.int64 and [{B}]"
        )
    if B and int(lengths.max()) > P:
        raise ZooError(f"lengths contains {int(lengths.max())}, but prompts have {P} columns")
    return lengths


def vocab_size(decoder: Decoder) -> int | None:
    """Return the vocabulary size of the decoder's embedding, if it has one."""
    vocab = getattr(getattr(decoder, "embedding", None), "vocab", None)
    return vocab if isinstance(vocab, int) else None


def strip_prompts(tokens: Tensor, prompts: PromptBatch) -> Tensor:
    """Return the tokens after each prompt: [B, N, total_length] -> [B, N, T], padded."""
    generated = tokens[..., prompts.prefix.shape[1] :]
    if prompts.suffix.shape[1]:
        generated = _shift_left(generated, prompts.forced_lengths, prompts.pad)
    if generated.shape[-1] == 1 or not prompts.eos_ids:  # without an end, nothing is padded
        return generated[..., : prompts.max_length].clone()  # the next call may overwrite a loop's
    values = generated[..., : prompts.max_length].cpu().numpy()  # small operations
    is_end = np.zeros(values.shape, dtype=bool)
    for end in prompts.eos_ids:
        is_end |= values == end
    ends_before = is_end.cumsum(axis=-1) - is_end
    valid = (ends_before == 0) & (is_end | (values != prompts.pad) | prompts.selects_pad)
    columns = np.flatnonzero(valid.any(axis=(0, 1)))
    length = int(columns[-1]) + 1 if columns.size else 1
    return generated[..., :length].clone()


def _shift_left(tokens: Tensor, shifts: Tensor, pad: int) -> Tensor:
    """Return tokens [B, N, T] without the first ``shifts`` [B] of each item, padded."""
    T = tokens.shape[-1]
    index = shifts[:, None, None] + torch.arange(T, device=tokens.device)  # [B, 1, T]
    shifted = tokens.gather(2, index.clamp(max=T - 1).expand_as(tokens))
    return shifted.masked_fill(index >= T, pad)
