"""The one generation loop that all samplers and decoders share."""

from __future__ import annotations

import torch

from zoo.errors import ZooError
from zoo.interfaces import Decoded, Decoder, Memory, Sampler


@torch.no_grad()
def decode(
    decoder: Decoder,
    memory: Memory,
    sampler: Sampler,
    *,
    bos: int,
    eos: int,
    pad: int,
    max_length: int,
    generator: torch.Generator | None = None,
) -> Decoded:
    """Let the decoder speak, the sampler choose, until every hypothesis has ended.

    Args:
        bos: token that starts a sequence; eos: that ends it; pad: that fills it after its end.
        max_length: tokens at the most, the end token included.

    Shapes:
        B items of memory -> tokens [B, W, T] and scores [B, W], W the sampler's width.
    """
    if max_length < 1:
        raise ZooError(f"max_length is {max_length}; it must be at least 1")
    B, W = memory.states.shape[0], sampler.width
    device = memory.states.device
    state = decoder.start(memory, steps=max_length).repeat(W)
    last = torch.full((B, W), bos, dtype=torch.long, device=device)
    # The W hypotheses of an item start alike: all but the first are out of the race.
    scores = torch.full((B, W), float("-inf"), device=device)
    scores[:, 0] = 0.0
    finished = torch.zeros(B, W, dtype=torch.bool, device=device)
    tokens = torch.empty(B, W, 0, dtype=torch.long, device=device)
    rows = torch.arange(B, device=device)[:, None] * W
    for _ in range(max_length):
        logits, state = decoder.step(last.reshape(B * W, 1), state)
        logprobs = logits[:, -1].float().log_softmax(dim=-1).view(B, W, -1)
        ended = torch.full_like(logprobs, float("-inf"))
        ended[..., pad] = 0.0
        if pad != eos:
            logprobs[..., pad] = float("-inf")  # padding comes after the end, never before
        logprobs = torch.where(finished[..., None], ended, logprobs)
        chosen = sampler.select(logprobs, scores, generator)
        state = state.reorder((rows + chosen.parents).flatten())
        tokens = torch.cat(
            [
                tokens.gather(1, chosen.parents[..., None].expand_as(tokens)),
                chosen.tokens[..., None],
            ],
            dim=-1,
        )
        finished = finished.gather(1, chosen.parents) | (chosen.tokens == eos)
        last, scores = chosen.tokens, chosen.scores
        if bool(finished.all()):
            break
    return Decoded(tokens, scores)
