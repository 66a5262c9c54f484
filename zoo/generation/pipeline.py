"""Text generation: a model with its tokenizers, a sampler and filters."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from zoo.acceleration import accelerate
from zoo.data.preprocessing import build_preprocessors
from zoo.data.tokenizer import Tokenizer
from zoo.errors import SpecError, ZooError, truncate
from zoo.generation.loop import stream_tokens
from zoo.generation.raw_inputs import encode_examples, model_device, to_list
from zoo.generation.request import DecodeRequest
from zoo.interfaces import Filter, GenerationInputs, Model, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.interfaces.evaluation_mode import evaluation_mode
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


def generate(
    model: Model,
    inputs: Sequence[Any],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> list[list[Hypothesis]]:
    """Generate from texts, lists of token IDs, images or audio, in evaluation mode.

    Args:
        inputs: source texts, or prompts to continue, depending on the model; with a preprocessor
            for images or audio, paths of files, arrays of uint8 [H, W, C], or (samples, rate).
        sampler: the sampler of the model's spec if None.
        filters: the filters of the model's spec if None.
        max_length: maximum number of new tokens, including the end token.
        seed: random seed of the sampler.

    Returns:
        The hypotheses of each input, best first.
    """
    request = _build_request(model, sampler, filters, max_length, seed, registry)
    accelerate(model, registry=registry)
    batch = _encode_batch(model, inputs, registry)
    with evaluation_mode(model):
        output = model.generate(
            batch,
            request.sampler,
            max_length=request.max_length,
            generator=request.generator,
            filters=request.filters,
        )
    eos_ids = to_eos_ids(model.eos)
    tokenizer = _get_tokenizer(model, "target")
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
    text: str | Sequence[int],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> Iterator[str]:
    """Return an iterator over pieces of the text that `generate` returns, as they are generated.

    The arguments are those of `generate`, with one text or list of token IDs. Without a tokenizer
    the pieces are token IDs, separated by spaces.
    """
    request = _build_request(model, sampler, filters, max_length, seed, registry)
    accelerate(model, registry=registry)
    batch = _encode_batch(model, [text], registry)
    with evaluation_mode(model), torch.no_grad():
        inputs = model.prepare_generation(batch)
    steps = stream_tokens(inputs, request)
    return _decode_pieces(_tokens_before_end(model, inputs, steps), _get_tokenizer(model, "target"))


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
    generated = list(takewhile(lambda token: token not in eos_ids, tokens))
    return Hypothesis(generated, score, tokenizer.decode(generated) if tokenizer else None)


def _build_request(
    model: Model,
    sampler: ComponentSpec | Sampler | None,
    filters: Sequence[ComponentSpec | Filter] | None,
    max_length: int,
    seed: int | None,
    registry: ComponentRegistry | None,
) -> DecodeRequest:
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
        sampler=accelerate(_build_component(Sampler, sampler, "sampler", registry)),
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


def _encode_batch(
    model: Model, inputs: Sequence[Any], registry: ComponentRegistry | None
) -> dict[str, Tensor]:
    """Return a batch of token IDs [B, S], padded on the right, or of images or audio."""
    preprocessors = build_preprocessors(model, registry=registry)
    preprocessor = preprocessors.get("source" if model.generation_input == "source" else "target")
    if preprocessor is not None and preprocessor.content != "text":
        examples = [{"source": value} for value in to_list(inputs)]
        return encode_examples(model, {"source": preprocessor}, examples)
    if isinstance(inputs, str) or not all(isinstance(row, Iterable) for row in inputs):
        found = truncate(repr(inputs), 80)
        raise ZooError(f"inputs is {found}; expected a list of texts, or of lists of token IDs")
    if not inputs:
        raise ZooError("inputs is empty; expected at least one text or list of token IDs")
    assert model.generation_input is not None  # checked by _build_request
    side = "source" if model.generation_input == "source" else "target"
    embedding, vocab_size = model.get_embedding(side), model.vocab_size(side)
    if not vocab_size:
        raise ZooError(
            f"model '{model.name}' does not take tokens (its {side} embedding is "
            f"'{embedding.name}') and has no preprocessor for '{side}'; add it to the section "
            "'preprocessing' of the spec, or call model.generate with a batch of tensors"
        )
    if isinstance(inputs[0], str) and preprocessor is not None:
        rows = [row.tolist() for row in preprocessor.encode_many(inputs)]
        if model.generation_input == "source":
            rows = [_add_tokens(row, model) for row in rows]
    elif isinstance(inputs[0], str):
        tokenizer = _get_tokenizer(model, side)
        if tokenizer is None:
            raise ZooError(
                f"model '{model.name}' has no tokenizer; pass token IDs (command line: --ids), or "
                "add a tokenizer with the option --tokenizer of zoo compose or zoo import"
            )
        rows = tokenizer.encode(inputs)
    else:
        rows = [_to_ids(row, number) for number, row in enumerate(inputs, 1)]
    if model.generation_input == "prompt":
        rows = [_prepend_bos(row, model.bos) for row in rows]
    for number, row in enumerate(rows, 1):
        if not row:
            raise ZooError(f"input {number} is empty; expected at least one token")
        invalid = [token for token in row if not 0 <= token < vocab_size]
        if invalid:
            raise ZooError(
                f"input {number} contains token ID {invalid[0]}, out of range for a vocabulary of "
                f"{vocab_size:,} tokens"
            )
    longest = max(len(row) for row in rows)
    padded = [row + [embedding.padding or 0] * (longest - len(row)) for row in rows]
    device = model_device(model)
    batch = {model.generation_input: torch.tensor(padded, device=device)}
    if embedding.padding is None and any(len(row) < longest for row in rows):
        if model.generation_input != "prompt":
            raise ZooError(
                f"model '{model.name}' has no padding token, so all inputs must have the same "
                f"length, but lengths are {sorted({len(row) for row in rows})}"
            )
        mask = [[position < len(row) for position in range(longest)] for row in rows]
        batch["mask"] = torch.tensor(mask, device=device)
    return batch


def _to_ids(row: Iterable[Any], number: int) -> list[int]:
    try:
        return [operator.index(token) for token in row]
    except TypeError:
        found = truncate(repr(row), 80)
        raise ZooError(f"input {number} is {found}; expected a list of token IDs") from None


def _add_tokens(row: list[int], model: Model) -> list[int]:
    """Return the tokens of a source with the start and end tokens of its schema."""
    schema = (model.batch_schema() or {})["source"]
    return [*schema.prefix, *row, *schema.suffix] if row else row


def _prepend_bos(row: list[int], bos: int | None) -> list[int]:
    """Return the prompt with its start token, which the tokenizer may have added already."""
    return row if bos is None or row[:1] == [bos] else [bos, *row]


def _get_tokenizer(model: Model, side: str) -> Tokenizer | None:
    text = (model.tokenizer or {}).get(side)
    return None if text is None else Tokenizer(text)


def _make_generator(model: Model, seed: int | None) -> torch.Generator | None:
    if seed is None:
        return None
    return torch.Generator(model_device(model)).manual_seed(resolve_seed(seed))
