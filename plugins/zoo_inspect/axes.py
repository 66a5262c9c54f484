"""The axes of attention weights: what their positions are called."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from zoo.data.tokenizer import Tokenizer
from zoo.generation.raw_inputs import read_value
from zoo.generation.text_inputs import get_tokenizer
from zoo.interfaces import Model
from zoo_inspect.dimensions import Dims
from zoo_inspect.passes import PROMPT, TARGET, Pass
from zoo_inspect.pixels import is_image
from zoo_inspect.view import Axis

STEP, QUERY, SLOT = "step", "query", "slot"
"""Names of axes that do not depend on the input."""
_WORD_START = ("Ġ", "▁")
_MAX_BYTES = 8
"""Largest number of tokens that are parts of one character."""
_MAX_EXTRA = 8
"""Largest number of positions before those of an image, such as a class token."""


@dataclass(frozen=True)
class Positions:
    """The positions along dimensions of a key of the batch.

    Args:
        name: the name of the axis.
        dims: the dimensions.
        read: the label of each position that is read; None if they have only numbers.
        written: for an output, the label of the position that is predicted at each step.
        seconds: the duration, if the positions are points in time.
        image: height and width, if the positions are parts of an image.
        grid: height and width, if the labels are those of a grid.
    """

    name: str
    dims: Dims
    read: Sequence[str] | None = None
    written: Sequence[str] | None = None
    seconds: float | None = None
    image: tuple[int, int] | None = None
    grid: tuple[int, int] | None = None


def find_positions(model: Model, looked_at: Pass) -> list[Positions]:
    """Return the positions of each key of the batch, those with labels first."""
    schema = model.batch_schema() or {}
    found = [
        each
        for key, dims in ((k, schema[k].dims) for k in looked_at.batch if k in schema)
        if dims is not None and len(dims) > 1
        for each in _key_positions(model, looked_at, key, dims)
    ]
    return sorted(found, key=lambda each: each.read is None)


def make_axis(positions: Sequence[Positions], dims: Dims, size: int, *, written: bool) -> Axis:
    """Return the axis of a size that depends on these dimensions of the batch.

    Args:
        written: whether the positions of an output are called by the tokens that are predicted
            there, and not by those that are read.
    """
    for each in sorted(positions, key=lambda each: each.dims != dims):
        if each.image is not None and (dims & each.dims or not dims):
            grid = _find_grid(size, each.image)
            if grid is not None:
                extra = numbers("extra", size - math.prod(grid))
                cells = [f"{y}, {x}" for y in range(grid[0]) for x in range(grid[1])]
                return Axis(each.name, [*extra, *cells], grid)
        if dims & each.dims:
            return Axis(each.name, _fit(each, size, written=written), each.grid)
    return Axis(QUERY if size == 1 else SLOT, numbers("", size))


def _fit(positions: Positions, size: int, *, written: bool) -> list[str]:
    """Return one label for each of `size` positions; positions that are added come first."""
    if positions.seconds is not None:
        return [f"{(i + 0.5) * positions.seconds / size:.2f} s" for i in range(size)]
    labels = positions.written if written and positions.written else positions.read
    if labels is None or size < len(labels) - 1:
        return numbers("", size)
    labels = labels[-size:] if written else labels[:size]
    return [*numbers("extra", size - len(labels)), *labels]


def _key_positions(
    model: Model, looked_at: Pass, key: str, dims: tuple[str | int, ...]
) -> Iterator[Positions]:
    tensor, preprocessor = looked_at.batch[key], looked_at.preprocessors.get(key)
    named = [d for d in dims[1:] if isinstance(d, str)]
    every, first = frozenset(named), frozenset(named[:1])
    if is_image(looked_at, key):
        yield Positions(key, every, image=(tensor.shape[-2], tensor.shape[-1]))
        return
    is_target = key == TARGET
    if tensor.is_floating_point() or (is_target and not looked_at.reads_target):
        seconds = None
        if preprocessor is not None and preprocessor.content == "audio":
            samples, rate = read_value(preprocessor, looked_at.inputs[key])
            seconds = len(samples) / rate
        yield Positions(key, first, seconds=seconds)
        return
    ids = tensor[0] if tensor.dim() == len(dims) else tensor[0, ..., 0]  # without segments
    if tensor.dtype == torch.bool:
        return
    tokenizer = get_tokenizer(model, key) or get_tokenizer(model, "source")
    labels = token_labels(tokenizer, ids.flatten().tolist())
    if is_target:
        name = "text" if model.generation_input == PROMPT else "output"
        yield Positions(name, first, labels[:-1], labels[1:])
    elif len(named) == 1:
        yield Positions(key, first, labels)
    elif len(named) == 2 and ids.dim() == 2:  # sentences of words, or a grid of tokens
        pad, (H, W) = (model.batch_schema() or {})[key].pad, ids.shape
        words = [[labels[i * W + j] for j in range(W) if ids[i, j] != pad] for i in range(H)]
        yield Positions(key, first, [" ".join(row) for row in words])
        yield Positions(key, every, labels, grid=(H, W))


def token_labels(tokenizer: Tokenizer | None, ids: Sequence[int]) -> list[str]:
    """Return the text of each token, as `token_label`; the tokens of bytes have the character that
    they are parts of, such as "é 1/2"."""
    labels = [token_label(tokenizer, number) for number in ids]
    first = 0
    while tokenizer is not None and first < len(ids):
        count = _find_character(tokenizer, ids[first : first + _MAX_BYTES])
        if count > 1:
            text = tokenizer.decode(ids[first : first + count]).strip()
            mark = "▁" if labels[first].startswith(_WORD_START) else ""
            labels[first : first + count] = [
                f"{mark if part == 1 else ''}{text} {part}/{count}" for part in range(1, count + 1)
            ]
        first += max(count, 1)
    return labels


def _find_character(tokenizer: Tokenizer, ids: Sequence[int]) -> int:
    """Return the number of tokens, at the start, whose bytes are whole characters together; 0 if
    there is none."""
    texts = (tokenizer.decode(ids[:count]) for count in range(1, len(ids) + 1))
    return next((count for count, text in enumerate(texts, 1) if "\ufffd" not in text), 0)


def token_label(tokenizer: Tokenizer | None, number: int) -> str:
    """Return the text of a token; its ID without a tokenizer.

    Tokens of bytes are decoded, if they are whole characters; "▁" is the start of a word.
    """
    token = None if tokenizer is None else tokenizer.backend.id_to_token(number)
    if tokenizer is None or token is None:
        return str(number)
    starts_word = token.startswith(_WORD_START)
    text = tokenizer.decode([number]).strip()
    if "\ufffd" in text or not (text or starts_word):
        return str(token)
    return ("▁" if starts_word else "") + text


def _find_grid(size: int, image: tuple[int, int]) -> tuple[int, int] | None:
    """Return height and width of a grid with the aspect of an image, and at most a few positions
    before it; None if there is none."""
    ratio = image[0] / image[1]
    rounded = None
    for extra in range(min(_MAX_EXTRA, size - 1) + 1):
        height = round(math.sqrt((size - extra) * ratio))
        width = (size - extra) // max(height, 1)
        if height * width == size - extra and abs(height - width * ratio) < 0.5:
            if height * image[1] == width * image[0]:
                return height, width
            rounded = rounded or (height, width)
    return rounded


def numbers(prefix: str, count: int) -> list[str]:
    """Return numbers from 1, after a prefix."""
    return [f"{prefix} {number}".strip() for number in range(1, count + 1)]
