"""Padding of the lengths of a batch, so that few shapes are captured."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from zoo.data.padding import MASK, pad_tensor
from zoo.interfaces import BatchSchema, Model, Position
from zoo_fast.training.dry_run import accepts_batch

MULTIPLE = 8
"""Lengths are padded to a multiple of this, which also suits the tensor cores."""

Lengths = dict[str, int]
"""The size of each dimension of token sequences."""
Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class LengthPadding:
    """Pads the lengths of token sequences to a multiple, which does not change the outputs.

    Only dimensions of keys with token IDs are padded, in all keys that have them. A padded length
    is not longer than the positions of the model (`Position.max_positions`, and `switch_lengths`,
    above which longer texts are not padded), and a dry run of the
    model without values finds other limits of its parts: if the model rejects the padded batch,
    or if it cannot be known that it accepts it, the batch keeps its own lengths.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._accepted: list[Lengths] = []
        self._kept: set[Shapes] = set()

    def __call__(self, batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the padded batch; what was found for a shape is kept, because it takes long."""
        shapes = tuple((key, tuple(tensor.shape)) for key, tensor in batch.items())
        if shapes in self._kept:
            return batch
        schema, outputs = self.model.batch_schema() or {}, self.model.output_schema()
        # Padding would not be masked, or would be a candidate.
        unmasked = MASK in schema and MASK not in batch
        if not unmasked and not (outputs and outputs.logits == "candidate"):
            lengths = _padded_lengths(batch, schema, max_positions(self.model))
            padded = {key: _pad(tensor, key, schema, lengths) for key, tensor in batch.items()}
            changed = any(padded[key] is not tensor for key, tensor in batch.items())
            if changed and self._accepts(padded, lengths):
                return padded
        self._kept.add(shapes)
        return batch

    def _accepts(self, batch: Mapping[str, Tensor], lengths: Lengths) -> bool:
        """Whether the model accepts the padded batch, or has accepted a longer one."""
        for longer in self._accepted:
            if all(size <= longer.get(dim, -1) for dim, size in lengths.items()):
                return True
        if accepts_batch(self.model, batch):
            self._accepted.append(lengths)
            return True
        return False


def max_positions(model: Model) -> int | None:
    """Return the smallest number of positions of the parts of a model, or of the tokens of texts
    that are rotated as shorter ones; None if unlimited."""
    parts = [part for part in model.modules() if isinstance(part, Position)]
    limits = [n for part in parts for n in (part.max_positions, *part.switch_lengths)]
    return min((limit for limit in limits if limit is not None), default=None)


def _padded_lengths(
    batch: Mapping[str, Tensor], schema: BatchSchema, max_length: int | None
) -> Lengths:
    """Return the padded size of each dimension of token sequences [B, S]."""
    lengths: Lengths = {}
    for key, field in schema.items():
        if key in batch and field.dtype == "integer" and len(field.dims or ()) == 2:
            _, dim = field.dims or ()
            if isinstance(dim, str):
                shifted = len(field.prefix)  # the inputs are one shorter than from bos to eos
                length = batch[key].shape[1] - shifted
                multiple = -(-length // MULTIPLE) * MULTIPLE
                if max_length is not None:
                    multiple = max(length, min(multiple, max_length))
                lengths.setdefault(dim, multiple + shifted)
    return lengths


def _pad(tensor: Tensor, key: str, schema: BatchSchema, lengths: Lengths) -> Tensor:
    dims = (schema[key].dims or ()) if key in schema else ()
    sizes = [lengths.get(str(dim), size) for dim, size in zip(dims, tensor.shape, strict=False)]
    padded = pad_tensor(tensor, sizes, schema[key].pad) if key in schema else tensor
    return padded.pin_memory() if tensor.is_pinned() else padded
