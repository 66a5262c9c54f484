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
from zoo.interfaces.embedding import ends_of
from zoo.registry.component_registry import Registry, default_registry
from zoo.spec.document import of_data
from zoo.spec.reader import Reader

Part = str | Mapping[str, Any]
"""A part as a spec names it: ``"beam"``, or ``{"type": "beam", "width": 4}``."""


@dataclass(frozen=True)
class Answer:
    """One hypothesis: its tokens up to the end, its text where there is a tokenizer, its score."""

    tokens: list[int]
    score: float
    text: str | None = None


def generate(
    model: Model,
    inputs: Sequence[str] | Sequence[Sequence[int]],
    *,
    sampler: Part | Sampler | None = None,
    filters: Sequence[Part | Filter] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: Registry | None = None,
) -> list[list[Answer]]:
    """What the model says to each text or list of token ids, best hypothesis first.

    The sampler and filters are those of the model's spec if none are named.
    """
    chosen, between = _choosers(model, sampler, filters, registry)
    batch = _batch(model, inputs)
    decoded = model.eval().generate(
        batch, chosen, max_length=max_length, generator=_seeded(model, seed), filters=between
    )
    speaks = _tokenizer(model, "target")
    return [
        [
            _answer(tokens, score, model, speaks)
            for tokens, score in zip(rows, scores, strict=True)
            if score != float("-inf")
        ]
        for rows, scores in zip(decoded.tokens.tolist(), decoded.scores.tolist(), strict=True)
    ]


def stream(
    model: Model,
    text: str | Sequence[int],
    *,
    sampler: Part | Sampler | None = None,
    filters: Sequence[Part | Filter] | None = None,
    max_length: int = 64,
    seed: int | None = None,
    registry: Registry | None = None,
) -> Iterator[str]:
    """What the model says to one text, piece by piece as it comes; can be left at any time."""
    chosen, between = _choosers(model, sampler, filters, registry)
    speech = model.eval().speech(_batch(model, [text]))  # type: ignore[arg-type]
    speaks = _tokenizer(model, "target")
    steps = stream_tokens(
        speech.decoder,
        speech.memory,
        chosen,
        bos=speech.bos,
        eos=speech.eos,
        pad=speech.pad,
        prompt=speech.prompt,
        lengths=speech.lengths,
        max_length=max_length,
        generator=_seeded(model, seed),
        filters=between,
    )
    said: list[int] = []
    shown = ""
    for tokens in steps:
        token = int(tokens[0, 0])
        if token in speech.ends:
            return
        said.append(token)
        whole = speaks.text(said) if speaks else " ".join(map(str, said))
        if not whole.endswith("\ufffd"):  # a symbol of several tokens is not complete yet
            yield whole[len(shown) :]
            shown = whole


def _answer(tokens: list[int], score: float, model: Model, speaks: Tokenizer | None) -> Answer:
    ends = ends_of(getattr(model, "eos", ()))
    said = list(takewhile(lambda token: token not in ends, tokens))
    return Answer(said, score, speaks.text(said) if speaks else None)


def _choosers(
    model: Model,
    sampler: Part | Sampler | None,
    filters: Sequence[Part | Filter] | None,
    registry: Registry | None,
) -> tuple[Sampler, list[Filter]]:
    if model.reads is None:
        raise ZooError(f"model '{model.name}' does not generate")
    spec = model.spec or {}
    wanted = sampler if sampler is not None else spec.get("sampler")
    between = filters if filters is not None else spec.get("filters", ())
    if wanted is None:
        raise ZooError("neither the model's spec nor the call names a sampler, for example greedy")
    built: Sampler = _built(Sampler, wanted, "sampler", registry)
    return built, [
        _built(Filter, part, f"filters[{i}]", registry) for i, part in enumerate(between)
    ]


def _built(kind: Any, part: Any, label: str, registry: Registry | None) -> Any:
    if isinstance(part, kind):
        return part
    data = dict(part) if isinstance(part, Mapping) else part
    reader = Reader(of_data(data), registry or default_registry())
    blueprint = reader.part(kind, data, (label,))
    if blueprint is None or reader.problems:
        raise SpecError(reader.problems)
    return blueprint.build()


def _batch(model: Model, inputs: Sequence[str] | Sequence[Sequence[int]]) -> dict[str, Tensor]:
    """Texts or ids as the model reads them: [B, S], padded on the right."""
    if not inputs:
        raise ZooError("there is nothing to answer: no text was given")
    assert model.reads is not None  # _choosers refused it
    side = "source" if model.reads == "source" else "target"
    table, room = model.embedding_for(side), model.symbols(side)
    if not room:
        raise ZooError(
            f"model '{model.name}' reads no tokens but what its embedding '{table.name}' takes; "
            "give it a batch of that by model.generate"
        )
    if isinstance(inputs[0], str):
        tokenizer = _tokenizer(model, side)
        if tokenizer is None:
            raise ZooError(
                "this model carries no tokenizer, so it takes token ids; "
                "`--tokenizer FILE` of zoo compose and zoo import gives it one"
            )
        rows = tokenizer.ids(inputs)  # type: ignore[arg-type]
    else:
        rows = [[int(token) for token in row] for row in inputs]
    if model.reads == "prompt":
        rows = [_begun(row, getattr(model, "bos", None)) for row in rows]
    for number, row in enumerate(rows, 1):
        if not row:
            raise ZooError(f"text {number} is empty; there is nothing to read")
        strange = [token for token in row if not 0 <= token < room]
        if strange:
            raise ZooError(
                f"text {number} has the token {strange[0]}, outside the vocabulary of {room:,}"
            )
    longest = max(len(row) for row in rows)
    padded = [row + [table.padding or 0] * (longest - len(row)) for row in rows]
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    batch = {model.reads: torch.tensor(padded, device=device)}
    if table.padding is None and any(len(row) < longest for row in rows):
        if model.reads != "prompt":
            raise ZooError("this model knows no padding, so texts must be of one length")
        real = [[place < len(row) for place in range(longest)] for row in rows]
        batch["mask"] = torch.tensor(real, device=device)
    return batch


def _begun(row: list[int], bos: int | None) -> list[int]:
    """The prompt with its start symbol, unless a tokenizer has put it there."""
    return row if bos is None or row[:1] == [bos] else [bos, *row]


def _tokenizer(model: Model, side: str) -> Tokenizer | None:
    text = (model.tokenizer or {}).get(side)
    return None if text is None else Tokenizer(text)


def _seeded(model: Model, seed: int | None) -> torch.Generator | None:
    if seed is None:
        return None
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    return torch.Generator(device).manual_seed(seed)
