"""Text in, text out: a model, its tokenizers, a sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from zoo.errors import SpecError, ZooError
from zoo.generation import stream as stream_tokens
from zoo.generation.tokenizer import Tokenizer
from zoo.interfaces import Filter, Model, Sampler
from zoo.interfaces.embedding import to_eos_ids
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.document import document_from_data
from zoo.spec.reader import SpecReader

ComponentSpec = str | Mapping[str, Any]
"""A part as a spec names it: ``"beam"``, or ``{"type": "beam", "width": 4}``."""


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis: its tokens up to the end, its text where there is a tokenizer, its score."""

    tokens: list[int]
    score: float
    text: str | None = None


def generate(
    model: Model,
    inputs: Sequence[str] | Sequence[Sequence[int]],
    *,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: ComponentRegistry | None = None,
) -> list[list[Hypothesis]]:
    """What the model says to each text or list of token ids, best hypothesis first.

    The sampler and filters are those of the model's spec if none are named.
    """
    chosen, filter_list = _build_sampler_and_filters(model, sampler, filters, registry)
    batch = _encode_batch(model, inputs)
    decoded = model.eval().generate(
        batch,
        chosen,
        max_length=max_length,
        generator=_make_generator(model, seed),
        filters=filter_list,
    )
    tokenizer = _get_tokenizer(model, "target")
    return [
        [
            _to_hypothesis(tokens, score, model, tokenizer)
            for tokens, score in zip(rows, scores, strict=True)
            if score != float("-inf")
        ]
        for rows, scores in zip(decoded.tokens.tolist(), decoded.scores.tolist(), strict=True)
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
    """What the model says to one text, piece by piece as it comes; can be left at any time."""
    chosen, filter_list = _build_sampler_and_filters(model, sampler, filters, registry)
    generation_inputs = model.eval().prepare_generation(_encode_batch(model, [text]))  # type: ignore[arg-type]
    tokenizer = _get_tokenizer(model, "target")
    steps = stream_tokens(
        generation_inputs.decoder,
        generation_inputs.memory,
        chosen,
        bos=generation_inputs.bos,
        eos=generation_inputs.eos,
        pad=generation_inputs.pad,
        prompt=generation_inputs.prompt,
        lengths=generation_inputs.lengths,
        max_length=max_length,
        generator=_make_generator(model, seed),
        filters=filter_list,
    )
    generated: list[int] = []
    shown = ""
    for tokens in steps:
        token = int(tokens[0, 0])
        if token in generation_inputs.eos_ids:
            return
        generated.append(token)
        whole = tokenizer.decode(generated) if tokenizer else " ".join(map(str, generated))
        if not whole.endswith("\ufffd"):  # a symbol of several tokens is not complete yet
            yield whole[len(shown) :]
            shown = whole


def _to_hypothesis(
    tokens: list[int], score: float, model: Model, tokenizer: Tokenizer | None
) -> Hypothesis:
    eos_ids = to_eos_ids(getattr(model, "eos", ()))
    generated = list(takewhile(lambda token: token not in eos_ids, tokens))
    return Hypothesis(generated, score, tokenizer.decode(generated) if tokenizer else None)


def _build_sampler_and_filters(
    model: Model,
    sampler: ComponentSpec | Sampler | None,
    filters: Sequence[ComponentSpec | Filter] | None,
    registry: ComponentRegistry | None,
) -> tuple[Sampler, list[Filter]]:
    if model.generation_input is None:
        raise ZooError(f"model '{model.name}' does not generate")
    spec = model.spec or {}
    wanted = sampler if sampler is not None else spec.get("sampler")
    filter_list = filters if filters is not None else spec.get("filters", ())
    if wanted is None:
        raise ZooError("neither the model's spec nor the call names a sampler, for example greedy")
    built: Sampler = _build(Sampler, wanted, "sampler", registry)
    return built, [
        _build(Filter, part, f"filters[{i}]", registry) for i, part in enumerate(filter_list)
    ]


def _build(kind: Any, part: Any, label: str, registry: ComponentRegistry | None) -> Any:
    if isinstance(part, kind):
        return part
    data = dict(part) if isinstance(part, Mapping) else part
    reader = SpecReader(document_from_data(data), registry or default_registry())
    blueprint = reader.part(kind, data, (label,))
    if blueprint is None or reader.problems:
        raise SpecError(reader.problems)
    return blueprint.build()


def _encode_batch(
    model: Model, inputs: Sequence[str] | Sequence[Sequence[int]]
) -> dict[str, Tensor]:
    """Texts or ids as the model reads them: [B, S], padded on the right."""
    if not inputs:
        raise ZooError("there is nothing to answer: no text was given")
    assert model.generation_input is not None  # _choosers refused it
    side = "source" if model.generation_input == "source" else "target"
    table, vocab_size = model.get_embedding(side), model.vocab_size(side)
    if not vocab_size:
        raise ZooError(
            f"model '{model.name}' reads no tokens but what its embedding '{table.name}' takes; "
            "give it a batch of that by model.generate"
        )
    if isinstance(inputs[0], str):
        tokenizer = _get_tokenizer(model, side)
        if tokenizer is None:
            raise ZooError(
                "this model carries no tokenizer, so it takes token ids; "
                "`--tokenizer FILE` of zoo compose and zoo import gives it one"
            )
        rows = tokenizer.encode(inputs)  # type: ignore[arg-type]
    else:
        rows = [[int(token) for token in row] for row in inputs]
    if model.generation_input == "prompt":
        rows = [_prepend_bos(row, getattr(model, "bos", None)) for row in rows]
    for number, row in enumerate(rows, 1):
        if not row:
            raise ZooError(f"text {number} is empty; there is nothing to read")
        strange = [token for token in row if not 0 <= token < vocab_size]
        if strange:
            raise ZooError(
                f"text {number} has the token {strange[0]}, outside the vocabulary of {vocab_size:,}"
            )
    longest = max(len(row) for row in rows)
    padded = [row + [table.padding or 0] * (longest - len(row)) for row in rows]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    batch = {model.generation_input: torch.tensor(padded, device=device)}
    if table.padding is None and any(len(row) < longest for row in rows):
        if model.generation_input != "prompt":
            raise ZooError("this model knows no padding, so texts must be of one length")
        real = [[place < len(row) for place in range(longest)] for row in rows]
        batch["mask"] = torch.tensor(real, device=device)
    return batch


def _prepend_bos(row: list[int], bos: int | None) -> list[int]:
    """The prompt with its start symbol, unless a tokenizer has put it there."""
    return row if bos is None or row[:1] == [bos] else [bos, *row]


def _get_tokenizer(model: Model, side: str) -> Tokenizer | None:
    text = (model.tokenizer or {}).get(side)
    return None if text is None else Tokenizer(text)


def _make_generator(model: Model, seed: int | None) -> torch.Generator | None:
    if seed is None:
        return None
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return torch.Generator(device).manual_seed(seed)
