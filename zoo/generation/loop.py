"""Decoding loop: decoder step, filters, sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from zoo.device.packed_linear import PackedWeights
from zoo.errors import ZooError
from zoo.generation.compaction import Compaction
from zoo.generation.end_flags import EndFlags
from zoo.generation.kept_steps import captured_steps
from zoo.generation.prompts import PromptBatch, build_prompts, strip_prompts, vocab_size
from zoo.generation.recorded_calls import Inspected, call_recorded, inspect_module
from zoo.generation.request import DecodeRequest
from zoo.generation.search import Progress, advance, init_search
from zoo.generation.tensors_by_name import (
    flatten_memory,
    flatten_state,
    unflatten_memory,
    unflatten_state,
)
from zoo.interfaces import Decoder, FrameSampler, GenerationInputs, GenerationOutput, Sampler

SYNC_EVERY = 8
"""Steps between two synchronisations with an asynchronous device."""


@torch.no_grad()
def decode(inputs: GenerationInputs, request: DecodeRequest) -> GenerationOutput:
    """Generate until every hypothesis has ended or has ``request.max_length`` tokens.

    The padding token is never selected before the end token, unless it is an end token itself.

    Shapes:
        B items of memory -> tokens [B, N, T] without the prompt and scores [B, N], best first;
        N is the number of hypotheses that the sampler returns.
    """
    prompts = _validate(inputs, request)
    sync_every = 1 if inputs.memory.states.device.type == "cpu" else SYNC_EVERY
    packed, decoder = PackedWeights(), inputs.decoder
    inspected = inspect_module(decoder, inputs.memory.states.device)
    first = _first_step(inputs, request, prompts, packed, inspected)
    compaction = Compaction(request.sampler, first)
    for progress in _checked_steps(
        decoder, request, first, packed, sync_every, compaction, inspected
    ):
        last = progress
    tokens, scores = compaction.finish(last)
    _require_finite_score(scores)
    return GenerationOutput(strip_prompts(tokens, prompts, last.search.task.eos_ids), scores)


def stream_tokens(inputs: GenerationInputs, request: DecodeRequest) -> Iterator[Tensor]:
    """Return an iterator over the tokens of `decode`, [B, 1] per step, as they are selected.

    The iterator yields padding for an item after its end token. If prompts differ in length,
    items with a longer prompt yield padding until their prompt is consumed.
    """
    prompts = _validate(inputs, request)
    sampler = request.sampler
    if sampler.width != 1 or type(sampler).finish is not Sampler.finish:
        raise ZooError(
            f"sampler '{sampler.name}' (width {sampler.width}) cannot stream: its output is known "
            "only after the last step; use a sampler with one hypothesis, for example greedy"
        )
    return _stream_steps(inputs, request, prompts)


@torch.no_grad()
def _stream_steps(
    inputs: GenerationInputs, request: DecodeRequest, prompts: PromptBatch
) -> Iterator[Tensor]:
    packed = PackedWeights()
    first = _first_step(inputs, request, prompts, packed)
    for progress in _checked_steps(inputs.decoder, request, first, packed, sync_every=1):
        search = progress.search
        _require_finite_score(search.scores)
        yield search.last_tokens().masked_fill(search.num_generated[:, None] <= 1, prompts.pad)


def _first_step(
    inputs: GenerationInputs,
    request: DecodeRequest,
    prompts: PromptBatch,
    packed: PackedWeights,
    inspected: Inspected | None = None,
) -> Progress:
    """Process the common part of the prompts and select the first tokens."""
    decoder, W = inputs.decoder, request.sampler.width
    given = flatten_memory(inputs.memory) | {"prefix": prompts.prefix}
    with packed.use():
        tensors = call_recorded(
            decoder, _process_prompts, given, prompts.total_length - 1, inspected=inspected
        )
    logits, state = tensors.pop("logits"), unflatten_state(tensors)
    if logits.shape[-1] != vocab_size(decoder):
        prompts.validate_vocab(logits.shape[-1])
    search = init_search(request.sampler, prompts, logits.shape[-1])
    if W > 1:
        state = state.repeat(W)
    invalid = torch.zeros((), dtype=torch.bool, device=logits.device)
    progress = Progress(prompts, search, state, invalid)
    return advance(progress, logits.expand(-1, W, -1), state, request)


def _process_prompts(
    decoder: Decoder, inputs: Mapping[str, Tensor], steps: int
) -> dict[str, Tensor]:
    """Return the state after the prompts and the logits [B, 1, V] of the next tokens."""
    state = decoder.start(unflatten_memory(inputs), steps=steps)
    logits, state = decoder.step(inputs["prefix"], state)
    return flatten_state(state) | {"logits": logits[:, -1:]}


def _checked_steps(
    decoder: Decoder,
    request: DecodeRequest,
    progress: Progress,
    packed: PackedWeights,
    sync_every: int,
    compaction: Compaction | None = None,
    inspected: Inspected | None = None,
) -> Iterator[Progress]:
    """Yield the progress after each step, from the first one on, until all items are done."""
    flags, total = EndFlags(lag=sync_every > 1), progress.prompts.steps
    steps = _further_steps(decoder, request, progress, packed, inspected)
    for step in range(1, total + 1):
        progress = progress if step == 1 else next(steps)
        ended = step == total
        if ended or step % sync_every == 0:
            all_done = request.sampler.done(progress.search)
            done = flags.read(progress.invalid, all_done, step, wait=ended)
            ended = ended or (done is not None and all(done))
            reduced = None
            if compaction is not None and done is not None and not ended:
                reduced = compaction.reduce(progress, done, total - step)
            if reduced is not None:
                progress, flags = reduced, EndFlags(lag=sync_every > 1)
                steps = _further_steps(decoder, request, progress, packed, inspected)
        yield progress
        if ended:
            return


def _further_steps(
    decoder: Decoder,
    request: DecodeRequest,
    progress: Progress,
    packed: PackedWeights,
    inspected: Inspected | None = None,
) -> Iterator[Progress]:
    """Yield the progress after each further step; has no end."""
    captured = captured_steps(decoder, request, progress, inspected)
    if captured is not None:
        yield from captured.run(request, progress)
    W = request.sampler.width
    while True:
        last_tokens = progress.search.last_tokens().reshape(-1, 1)
        with packed.use():
            logits, state = decoder.step(last_tokens, progress.state)
        logits = logits[:, -1].reshape(-1, W, progress.search.task.vocab)
        progress = advance(progress, logits, state, request)
        yield progress


def _validate(inputs: GenerationInputs, request: DecodeRequest) -> PromptBatch:
    """Return the validated prompts, or raise ZooError if the inputs or the request are invalid."""
    sampler, generator, device = request.sampler, request.generator, inputs.memory.states.device
    if isinstance(sampler, FrameSampler):
        raise ZooError(
            f"sampler '{sampler.name}' decodes all frames in parallel, but a decoder generates one "
            "token at a time; use a token sampler, for example greedy or beam"
        )
    if generator is not None and generator.device.type != device.type:
        raise ZooError(
            f"generator is on {generator.device}, but the model is on {device}; "
            f"create it with torch.Generator('{device.type}')"
        )
    return build_prompts(inputs, request.max_length)


def _require_finite_score(scores: Tensor) -> None:
    """Raise ZooError if an item has no hypothesis with a finite score."""
    impossible = scores[:, 0].isneginf()
    if bool(impossible.any()):
        item = int(impossible.int().argmax())
        raise ZooError(
            f"no valid next token for item {item} (all logits are -inf); "
            "check the decoder and the filters"
        )
