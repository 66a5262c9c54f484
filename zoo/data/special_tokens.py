"""Special tokens: their IDs, and where they are added to and removed from token IDs.

No other module adds or removes start and end tokens. They are added once, when an array of token
IDs is final: after it is encoded, or after its random transform if it has one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np

from zoo.errors import ZooError, truncate
from zoo.interfaces import Array, Arrays, Model, TensorSchema
from zoo.interfaces.embedding import to_eos_ids

if TYPE_CHECKING:
    from zoo.data.tokenizer import Tokenizer

NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("<pad>", "[PAD]"),
    "unk": ("<unk>", "[UNK]"),
    "bos": ("<s>", "<bos>", "[BOS]"),
    "eos": ("</s>", "<eos>", "[EOS]"),
    "mask": ("[MASK]", "<mask>"),
    "cls": ("[CLS]",),
    "sep": ("[SEP]",),
}
"""Names of the special tokens, the one that `zoo.train_tokenizer` uses first."""


def count_special_tokens(field: TensorSchema) -> int:
    """Return the number of start and end tokens that a schema adds."""
    return len(field.prefix) + len(field.suffix)


def add_special_tokens(array: Array, field: TensorSchema) -> Array:
    """Return token IDs [S] with the start and end tokens of a schema; other arrays unchanged."""
    if not count_special_tokens(field):
        return array
    # A small integer type may not hold the IDs that are added.
    dtype = np.dtype(np.int64) if array.dtype.kind in "iu" else array.dtype
    return np.concatenate([field.prefix, array, field.suffix]).astype(dtype)


def add_special_tokens_to_all(arrays: Arrays, field: TensorSchema) -> Arrays:
    """Return the arrays of several examples with the start and end tokens of a schema."""
    if not count_special_tokens(field):
        return arrays
    return [add_special_tokens(array, field) for array in arrays]


def remove_special_tokens(ids: list[int], field: TensorSchema) -> list[int]:
    """Return token IDs without the start and end tokens of a schema, which a tokenizer may add."""
    prefix, suffix = list(field.prefix), list(field.suffix)
    if prefix and ids[: len(prefix)] == prefix:
        ids = ids[len(prefix) :]
    if suffix and ids[-len(suffix) :] == suffix:
        ids = ids[: -len(suffix)]
    return ids


def add_bos(ids: list[int], bos: int | None) -> list[int]:
    """Return a prompt with its start token, which the tokenizer may have added already."""
    return ids if bos is None or ids[:1] == [bos] else [bos, *ids]


def remove_eos(ids: list[int], eos_ids: Collection[int]) -> list[int]:
    """Return the token IDs of a target without the end token."""
    return ids[:-1] if ids and ids[-1] in eos_ids else ids


def tokens_before_eos(ids: Sequence[int], eos_ids: Collection[int]) -> list[int]:
    """Return the generated token IDs before the first end token."""
    return list(takewhile(lambda token: token not in eos_ids, ids))


def special_ids(model: Model, key: str) -> dict[str, int]:
    """Return the IDs that a model uses as padding, start and end token of a key of its batch."""
    side = "source" if key == "source" else "target"
    found: dict[str, int] = {}
    try:
        padding = model.get_embedding(side).padding
    except ZooError:  # the model has other embeddings
        schema = (model.batch_schema() or {}).get(key)
        padding = int(schema.pad) if schema is not None and schema.below else None
    if padding is not None:
        found["pad"] = padding
    if side == "target":
        eos_ids = to_eos_ids(model.eos)
        if eos_ids and eos_ids[0] not in found.values():
            found["eos"] = eos_ids[0]
        if model.bos is not None and model.bos not in found.values():
            found["bos"] = model.bos
    return found


def check_special_tokens(tokenizer: Tokenizer, model: Model, key: str) -> None:
    """Raise ZooError if a tokenizer uses an ID otherwise than the model.

    Special tokens are found by their usual names, such as ``<pad>``. An ID that the model uses as
    padding, start or end token must not be an ordinary token.
    """
    advice = f"make one that fits with: zoo tokenizer train FILE --for SPEC --key {key}"
    special = tokenizer.special_ids()
    accepted = {name for names in NAMES.values() for name in names}
    eos_ids = to_eos_ids(model.eos)
    for role, number in special_ids(model, key).items():
        for name in NAMES[role]:
            found = tokenizer.backend.token_to_id(name)
            if found is not None and found != number and found not in eos_ids:
                raise ZooError(
                    f"token '{name}' has ID {found} in the {key} tokenizer, but the model's {role} "
                    f"token has ID {number}; {advice}"
                )
        token = tokenizer.backend.id_to_token(number)
        if token is not None and number not in special and token not in accepted:
            raise ZooError(
                f"ID {number} is the token {truncate(repr(token), 80)} in the {key} tokenizer, but "
                f"the model uses it as {role} token; {advice}"
            )
