"""Special tokens of models and tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zoo.errors import ZooError, truncate
from zoo.interfaces import Model
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
