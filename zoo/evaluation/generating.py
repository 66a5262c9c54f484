"""The predictions of a batch and their references, as metrics take them, also generated ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from torch import Tensor

from zoo.data.preprocessing import build_preprocessors
from zoo.data.special_tokens import remove_eos, tokens_before_eos
from zoo.data.tokenizer import Tokenizer
from zoo.errors import ZooError
from zoo.interfaces import Filter, Model, Outputs, Sampler, full_precision
from zoo.interfaces.contracts import VECTORS, find_targets
from zoo.interfaces.embedding import to_eos_ids

Pairs = tuple[list[Any], list[Any]]
"""Predictions and their references."""


def class_ids(outputs: Outputs) -> Pairs:
    """Return the most probable class and the target at each position of an item."""
    _require_classes(outputs, "token IDs")
    predicted = outputs.logits.argmax(dim=-1)  # [B, T]
    return masked_rows(predicted, outputs.mask), masked_rows(outputs.targets, outputs.mask)


def label_sets(outputs: Outputs) -> Pairs:
    """Return the predicted and the target labels of each position, as lists of label IDs.

    With multi-label targets, labels with a probability above 0.5 are predicted.
    """
    if find_targets(outputs) == "multi-label":
        mask = outputs.mask
        return _label_lists(outputs.logits[mask] > 0), _label_lists(outputs.targets[mask] > 0.5)
    predicted, targets = class_ids(outputs)
    return [[label] for row in predicted for label in row], [[t] for row in targets for t in row]


def values(outputs: Outputs) -> Pairs:
    """Return the predicted and the target numbers of each item, as lists."""
    both = (full_precision(outputs.logits), full_precision(outputs.targets))  # [B, T, V]
    mask = outputs.mask.cpu()
    predicted, targets = (
        [row[valid].flatten().tolist() for row, valid in zip(each.cpu(), mask, strict=True)]
        for each in both
    )
    return predicted, targets


def target_logprobs(outputs: Outputs) -> Pairs:
    """Return the log-probability of each target, and the targets."""
    _require_classes(outputs, "log-probabilities")
    logprobs = full_precision(outputs.logits).log_softmax(dim=-1)  # [B, T, V]
    targets = outputs.targets.clamp(min=0)  # masked targets may be negative
    chosen = logprobs.gather(-1, targets[..., None].long())[..., 0]
    return masked_rows(chosen, outputs.mask), masked_rows(targets, outputs.mask)


def vectors(outputs: Outputs) -> Pairs:
    """Return the vectors of the two texts of each pair."""
    first, second = (full_precision(outputs.extras[name]).tolist() for name in VECTORS)
    return first, second


FROM_OUTPUTS: dict[str, Callable[[Outputs], Pairs]] = {
    "tokens": class_ids,
    "labels": label_sets,
    "values": values,
    "logprobs": target_logprobs,
    "vectors": vectors,
}
"""By `Metric.consumes`: computes what a metric takes from the outputs of a model."""


def target_tokens(outputs: Outputs, eos_ids: Collection[int]) -> list[list[int]]:
    """Return the target tokens of each item, without the end token."""
    mask = outputs.mask if outputs.target_mask is None else outputs.target_mask
    rows = masked_rows(outputs.targets, mask)
    return [remove_eos(row, eos_ids) for row in rows]


def generated_tokens(tokens: list[int], eos_ids: Collection[int], pad: int) -> list[int]:
    """Return a generated row without the end token, what follows it, and padding."""
    found = tokens_before_eos(tokens, eos_ids)
    while found and found[-1] == pad:
        found.pop()
    return found


def masked_rows(values: Tensor, mask: Tensor) -> list[list[Any]]:
    """Return the values [B, T] of each row where mask [B, T] is True."""
    rows = zip(values.cpu(), mask.cpu(), strict=True)
    return [row[valid].tolist() for row, valid in rows]


def _label_lists(selected: Tensor) -> list[list[int]]:
    """Return the indices of the True values in each row [N, V]."""
    return [row.nonzero()[:, 0].tolist() for row in selected.cpu()]


def _require_classes(outputs: Outputs, what: str) -> None:
    if find_targets(outputs) != "class":
        raise ZooError(
            f"{what} need one target per row of logits, but targets are "
            f"{list(outputs.targets.shape)} and logits {list(outputs.logits.shape)}"
        )


class TokenDecoder(Protocol):
    """Converts token IDs to text: a preprocessor or a tokenizer."""

    def decode(self, ids: Sequence[int]) -> str: ...


class Generation:
    """Generates tokens with a model and a sampler."""

    def __init__(
        self, model: Model, sampler: Sampler, filters: Sequence[Filter], max_length: int
    ) -> None:
        self.model = model
        self.sampler = sampler
        self.filters = filters
        self.max_length = max_length
        self.eos_ids = to_eos_ids(model.eos)
        target = (model.batch_schema() or {}).get("target")
        self.pad = 0 if target is None else int(target.pad)

    def tokens(self, batch: Mapping[str, Tensor]) -> list[list[int]]:
        """Return the best hypothesis of each item, without end token and padding."""
        inputs = {key: tensor for key, tensor in batch.items() if key != "target"}
        if self.model.generation_input == "prompt" and "mask" in inputs:
            del inputs["mask"]  # of the targets
            if len(batch["prompt"]) > 1:
                raise ZooError(
                    f"model '{self.model.name}' has no padding token, so prompts of different "
                    "lengths cannot be in one batch; set the batch size to 1 (--batch 1)"
                )
        output = self.model.generate(
            inputs, self.sampler, max_length=self.max_length, filters=self.filters
        )
        return [generated_tokens(row, self.eos_ids, self.pad) for row in output.best()]


def build_generation(
    model: Model, sampler: Sampler | None, filters: Sequence[Filter], max_length: int
) -> Generation | None:
    """Return the generation of a model; None if it does not generate or has no sampler."""
    if model.generation_input is None or sampler is None:
        return None
    return Generation(model, sampler, filters, max_length)


class TextDecoder:
    """Converts predictions to texts, with the preprocessor of ``target`` or the tokenizer.

    They are built at the first use.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def texts(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Return the texts of token IDs."""
        if self._decoder is None:
            raise ZooError(
                f"model '{self.model.name}' has no tokenizer for its outputs, so it generates no "
                "text; add preprocessing.target to its spec, or a tokenizer with the option "
                "--tokenizer of zoo compose or zoo import"
            )
        return [self._decoder.decode(row) for row in tokens]

    def class_names(self, classes: Sequence[Sequence[int]]) -> list[str]:
        """Return the names of class IDs, separated by spaces; the IDs if there are no names."""
        return [" ".join(row) for row in self.name_rows(classes)]

    def name_rows(self, classes: Sequence[Sequence[int]]) -> list[list[str]]:
        """Return the names of class IDs; the IDs if there are no names."""
        return [[self.class_name(each) for each in row] for row in classes]

    def class_name(self, each: int) -> str:
        """Return the name of a class ID; the ID if there are no names."""
        return str(each) if self._decoder is None else self._decoder.decode([each])

    @cached_property
    def _decoder(self) -> TokenDecoder | None:
        preprocessor = build_preprocessors(self.model).get("target")
        text = (self.model.tokenizer or {}).get("target")
        return preprocessor or (None if text is None else Tokenizer(text))
