"""Text generation: a model with its tokenizers, a sampler and filters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor

from zoo.acceleration import accelerate
from zoo.acceleration.binding import accelerate_parts
from zoo.data.special_tokens import tokens_before_eos
from zoo.data.tokenizer import Tokenizer
from zoo.errors import InputError, SpecError, ZooError
from zoo.generation.loop import stream_tokens
from zoo.generation.raw_inputs import OneInput, as_inputs, is_one_input, model_device
from zoo.generation.request import DecodeRequest
from zoo.generation.text_inputs import encode_batch, encode_prompt, get_tokenizer
from zoo.interfaces import Filter, GenerationInputs, Model, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.interfaces.evaluation_mode import evaluation_mode
from zoo.interfaces.module_parts import each_part
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_seed
from zoo.spec.document import document_from_data
from zoo.spec.reader import SpecReader

ComponentSpec = str | Mapping[str, Any]
"""A component as in a spec: ``"beam"``, or ``{"type": "beam", "width": 4}``."""


@dataclass(frozen=True)
class Hypothesis:
    """A generated sequence without its end token; text is None without a tokenizer."""

    tokens: list[int]
    score: float
    text: str | None = None


@overload
def generate(
    model: Model,
    inputs: OneInput,
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> list[Hypothesis]: ...


@overload
def generate(
    model: Model,
    inputs: Sequence[Any],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> list[list[Hypothesis]]: ...


def generate(
    model: Model,
    inputs: OneInput | Sequence[Any],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> list[Hypothesis] | list[list[Hypothesis]]:
    """Generate from texts, lists of token IDs, images, audio or messages, in evaluation mode.

    Args:
        inputs: source texts, or prompts to continue, depending on the model; with a preprocessor
            for images or audio, paths of files, arrays of uint8 [H, W, C], or (samples, rate);
            with a chat template, lists of messages ``{"role": "user", "content": "..."}``.
        sampler: the sampler of the model's spec if None.
        filters: the filters of the model's spec if None.
        prompt: the tokens that the outputs of a model with a source start with, for example the
            token of a language; those of the model's spec if None. They are not returned.
        max_length: maximum number of new tokens, including the end token.
        seed: random seed of the sampler.

    Returns:
        The hypotheses of each input, best first; of one text instead of a list, its hypotheses.
    """
    request = build_request(model, sampler, filters, max_length, seed, registry)
    batch = _encode(model, as_inputs(inputs), prompt, registry)
    found = generate_batch(model, batch, request, registry)
    return found[0] if is_one_input(inputs) else found


def generate_batches(
    model: Model,
    inputs: Sequence[Any],
    batch_size: int,
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> Iterator[list[list[Hypothesis]]]:
    """Yield what `generate` returns for a few inputs after the other, so that memory is bounded.

    The random numbers of a batch follow those of the batch before.
    """
    request = build_request(model, sampler, filters, max_length, seed, registry)
    for start in range(0, len(inputs), batch_size):
        try:
            batch = _encode(model, inputs[start : start + batch_size], prompt, registry)
        except InputError as error:
            raise InputError(error.message, start + error.number) from None
        yield generate_batch(model, batch, request, registry)


def generate_batch(
    model: Model,
    batch: Mapping[str, Tensor],
    request: DecodeRequest,
    registry: ComponentRegistry | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each item of a batch, best first."""
    parts = each_part(model)
    accelerate_parts(model, parts, registry=registry)
    with evaluation_mode(model, parts):
        output = model.generate(
            batch,
            request.sampler,
            max_length=request.max_length,
            generator=request.generator,
            filters=request.filters,
        )
    eos_ids = to_eos_ids(model.eos)
    tokenizer = get_tokenizer(model, "target")
    return [
        [
            _to_hypothesis(tokens, score, eos_ids, tokenizer)
            for tokens, score in zip(rows, scores, strict=True)
            if score != float("-inf")
        ]
        for rows, scores in zip(output.tokens.tolist(), output.scores.tolist(), strict=True)
    ]


def stream(
    model: Model,
    text: str | Sequence[int] | Sequence[Mapping[str, Any]],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    prompt: str | Sequence[int] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> Iterator[str]:
    """Return an iterator over pieces of the text that `generate` returns, as they are generated.

    The arguments are those of `generate`, with one text, list of token IDs or of messages. Without
    a tokenizer the pieces are token IDs, separated by spaces.
    """
    request = build_request(model, sampler, filters, max_length, seed, registry)
    accelerate(model, registry=registry)
    batch = _encode(model, [text], prompt, registry)
    with evaluation_mode(model), torch.no_grad():
        inputs = model.prepare_generation(batch)
    steps = stream_tokens(inputs, request)
    return _decode_pieces(_tokens_before_end(model, inputs, steps), get_tokenizer(model, "target"))


def _encode(
    model: Model,
    inputs: Sequence[Any],
    prompt: str | Sequence[int] | None,
    registry: ComponentRegistry | None,
) -> dict[str, Tensor]:
    batch = encode_batch(model, inputs, registry)
    return batch if prompt is None else batch | encode_prompt(model, prompt, len(inputs))


def _tokens_before_end(
    model: Model, inputs: GenerationInputs, steps: Iterator[Tensor]
) -> Iterator[int]:
    """Yield the tokens of the only item; the model is in evaluation mode during each step."""
    while True:
        with evaluation_mode(model):
            tokens = next(steps, None)
        if tokens is None:
            return
        token = int(tokens[0, 0])
        if token in inputs.eos_ids:
            return
        yield token


def _decode_pieces(tokens: Iterator[int], tokenizer: Tokenizer | None) -> Iterator[str]:
    generated: list[int] = []
    yielded = ""
    for token in tokens:
        generated.append(token)
        text = tokenizer.decode(generated) if tokenizer else " ".join(map(str, generated))
        if not text.endswith("\ufffd"):  # an incomplete character of several tokens
            yield text[len(yielded) :]
            yielded = text
    if generated and text != yielded:
        yield text[len(yielded) :]


def _to_hypothesis(
    tokens: list[int], score: float, eos_ids: Collection[int], tokenizer: Tokenizer | None
) -> Hypothesis:
    generated = tokens_before_eos(tokens, eos_ids)
    return Hypothesis(generated, score, tokenizer.decode(generated) if tokenizer else None)


def build_request(
    model: Model,
    sampler: ComponentSpec | Sampler | None,
    filters: Sequence[ComponentSpec | Filter] | None,
    max_length: int,
    seed: int | None,
    registry: ComponentRegistry | None,
) -> DecodeRequest:
    """Return the options of decoding; sampler and filters are those of the spec if None."""
    if model.generation_input is None:
        raise ZooError(f"model '{model.name}' does not support generation")
    spec = model.spec or {}
    sampler = sampler if sampler is not None else spec.get("sampler")
    filters = filters if filters is not None else spec.get("filters", ())
    if sampler is None:
        raise ZooError(
            f"the spec of model '{model.name}' has no sampler; pass one, for example "
            "sampler='greedy' (command line: --sampler greedy)"
        )
    return DecodeRequest(
        sampler=accelerate(
            _build_component(Sampler, sampler, "sampler", registry), registry=registry
        ),
        max_length=max_length,
        filters=[
            _build_component(Filter, part, f"filters[{i}]", registry)
            for i, part in enumerate(filters)
        ],
        generator=_make_generator(model, seed),
    )


def _build_component(
    interface: Any, value: Any, label: str, registry: ComponentRegistry | None
) -> Any:
    if isinstance(value, interface):
        return value
    data = dict(value) if isinstance(value, Mapping) else value
    reader = SpecReader(document_from_data(data), registry or default_registry())
    blueprint = reader.part(interface, data, (label,))
    if blueprint is None or reader.problems:
        raise SpecError(reader.problems)
    return blueprint.build()


def _make_generator(model: Model, seed: int | None) -> torch.Generator | None:
    if seed is None:
        return None
    return torch.Generator(model_device(model)).manual_seed(resolve_seed(seed))
