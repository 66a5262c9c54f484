"""Laws of declared batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from zoo.data.collation import collate, prepare_example
from zoo.errors import ZooError
from zoo.interfaces import BatchSchema, Model, TensorSchema
from zoo.interfaces.batch_schema import Sizes, check_batch
from zoo.testing.configuration import Configuration
from zoo.testing.law import Law, NotApplicable
from zoo.testing.laws.helpers import assert_close, compose_model, example_batch, make_generator

_Case = tuple[str, str, Any]
"""A problem, the key that the message must name, and a batch with this problem."""


def input_schema(config: Configuration) -> None:
    """The example has the shape, dtype and range of IDs that `input_schema` declares."""
    embedding = config.build()
    schema = embedding.input_schema()
    if schema == TensorSchema():
        raise NotApplicable("it declares no input_schema")
    batch = {"inputs": embedding.example(3, 5, make_generator(0))}
    try:
        check_batch({"inputs": schema}, batch, "the law")
    except ZooError as error:
        raise AssertionError(f"the example does not fit: {error}") from None


def batch_schema(config: Configuration) -> None:
    """The model declares its batch; the example fits, and each wrong batch raises ZooError.

    The IDs of padding, prefix and suffix are in the range of the key.
    """
    model = compose_model(config).train()
    for inference in (False, True):
        schema = model.batch_schema(inference=inference)
        assert schema is not None, "batch_schema is not declared"
        _check_added_ids(schema)
        run: Callable[[Any], Any] = model
        if inference:

            def run(batch: Any) -> None:
                model.check_batch(batch, inference=True)

        batch = _add_optional(schema, example_batch(model))
        try:
            run(batch)
        except ZooError as error:
            raise AssertionError(f"the example does not fit: {error}") from None
        for problem, key, wrong in _wrong_batches(schema, batch):
            _assert_raises(run, problem, key, wrong)


def calls_without_targets(config: Configuration) -> None:
    """A required key that does not change the outputs is in `loss_only`, and in evaluation mode the
    model computes the same outputs without it."""
    model = compose_model(config)
    batch, other = example_batch(model), model.example(3, 5, make_generator(1))
    expected, checked = _computed(model, batch), False
    for key, field in (model.batch_schema() or {}).items():
        if field.optional or key not in batch or torch.equal(batch[key], other[key]):
            continue
        changed = _computed(model, {**batch, key: other[key]})
        is_input = not _equal(changed, expected)
        if key in model.loss_only:
            assert not is_input, f"'{key}' is in loss_only, but the outputs depend on it"
            rest = {name: tensor for name, tensor in batch.items() if name != key}
            assert _equal(_computed(model, rest), expected), f"the outputs without '{key}' differ"
            checked = True
        else:
            assert is_input, f"the outputs do not depend on '{key}', which is not in loss_only"
    if not checked:
        raise NotApplicable("its outputs depend on all keys")


@torch.no_grad()
def _computed(model: Model, batch: dict[str, Tensor]) -> list[Tensor]:
    """Return the tensors that a model computes from a batch, without its targets."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return list(model(batch).differentiable())


def _equal(found: list[Tensor], expected: list[Tensor]) -> bool:
    return len(found) == len(expected) and all(map(torch.equal, found, expected))


def padding_invariance(config: Configuration) -> None:
    """Examples of different lengths, padded to one batch, have the outputs that each has alone."""
    model = compose_model(config)
    examples = [model.example(1, length, make_generator(length)) for length in (5, 3)]
    schema = model.batch_schema() or {}
    _require_padding(model, schema, examples)
    arrays = [{key: tensor[0].cpu().numpy() for key, tensor in e.items()} for e in examples]
    batch = collate(schema, [prepare_example(schema, example) for example in arrays])
    device = next(iter(examples[0].values())).device
    together = model({key: tensor.to(device) for key, tensor in batch.items()})
    for row, example in enumerate(examples):
        alone = model(example)
        assert_close(
            together.logits[row][together.mask[row]],
            alone.logits[0][alone.mask[0]],
            f"logits of example {row} in a padded batch",
            tolerance=1e-4,
        )


def _require_padding(model: Model, schema: BatchSchema, examples: list[dict[str, Tensor]]) -> None:
    """Raise NotApplicable for models whose examples have one size or depend on each other."""
    shapes = [{key: tensor.shape for key, tensor in example.items()} for example in examples]
    if shapes[0] == shapes[1]:
        raise NotApplicable("its examples have a fixed size")
    outputs = model.output_schema()
    if outputs is not None and (outputs.logits == "candidate" or outputs.samples):
        raise NotApplicable("an example depends on the batch or on samples")
    for key, field in schema.items():
        if field.same_size:
            raise NotApplicable(f"'{key}' has one size in a batch and is not padded")


def _check_added_ids(schema: BatchSchema) -> None:
    for key, field in schema.items():
        added = {"prefix": field.prefix, "suffix": field.suffix, "pad": (field.pad,)}
        for name, ids in added.items():
            high = field.below if isinstance(field.below, int) else float("inf")
            low = float("-inf") if field.minimum is None else field.minimum
            wrong = [value for value in ids if field.below is not None and not low <= value < high]
            assert not wrong, f"{name} of '{key}' contains {wrong[0]}, which is not a valid ID"


def _assert_raises(run: Callable[[Any], Any], problem: str, key: str, batch: Any) -> None:
    raised: Exception | None = None
    try:
        run(batch)
    except Exception as error:
        raised = error
    assert isinstance(raised, ZooError), f"{problem} of '{key}' raises {type(raised).__name__}"
    assert f"'{key}'" in str(raised), f"{problem} of '{key}': the error is {raised}"


def _add_optional(schema: BatchSchema, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the batch with a tensor of ones for each optional key whose sizes are known."""
    sizes: Sizes = {}
    for key, field in schema.items():
        if key in batch and field.dims is not None:
            named = zip(batch[key].shape, field.dims, strict=False)
            sizes.update({dim: (size, key) for size, dim in named if isinstance(dim, str)})
    added = dict(batch)
    for key, field in schema.items():
        dims = [d if isinstance(d, int) else sizes.get(d, (-1,))[0] for d in field.dims or (-1,)]
        if key not in batch and -1 not in dims:
            dtypes = {"integer": torch.long, "bool": torch.bool}
            added[key] = torch.ones(dims, dtype=dtypes.get(field.dtype))
    return added


def _wrong_batches(schema: BatchSchema, batch: dict[str, Tensor]) -> Iterator[_Case]:
    yield "a tensor in place of the batch", next(iter(schema)), next(iter(batch.values()))
    yield "an unknown key", "unknown-key", {**batch, "unknown-key": torch.zeros(1)}
    batch_keys = [key for key, field in schema.items() if key in batch and field.dims is not None]
    for key, field in schema.items():
        if not field.optional:
            yield "absence", key, {other: t for other, t in batch.items() if other != key}
        if key not in batch:
            continue
        yield "a value that is not a tensor", key, {**batch, key: [1, 2]}
        tensor = batch[key]
        if field.below is not None:
            below = tensor.numel() if isinstance(field.below, str) else field.below
            yield "an ID out of range", key, {**batch, key: torch.full_like(tensor, below)}
        if field.dims is not None:
            yield "a wrong number of dimensions", key, {**batch, key: tensor[None, None]}
        if key in batch_keys[1:]:
            yield "another batch size", key, {**batch, key: torch.cat([tensor, tensor])}
    for dim, keys in _named_dims(schema, batch).items():
        empty = {key: tensor.narrow(axis, 0, 0) for key, (tensor, axis) in keys.items()}
        yield f"length {dim} = 0", next(iter(keys)), {**batch, **empty}


def _named_dims(
    schema: BatchSchema, batch: dict[str, Tensor]
) -> dict[str, dict[str, tuple[Tensor, int]]]:
    """Return the tensors of each dimension with a name, except the batch dimension and those that
    may be empty, and the axis of the dimension in each tensor."""
    found: dict[str, dict[str, tuple[Tensor, int]]] = {}
    for key, field in schema.items():
        for axis, dim in enumerate((field.dims or ())[1:], 1):
            if key in batch and isinstance(dim, str) and not field.empty:
                found.setdefault(dim, {})[key] = (batch[key], axis)
    return found


EMBEDDING_LAWS = (Law("input-schema", input_schema),)
MODEL_LAWS = (
    Law("batch-schema", batch_schema),
    Law("calls-without-targets", calls_without_targets),
    Law("padding-invariance", padding_invariance),
)
