"""Checks that datasets and preprocessors make the batches of a model, without opening files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from zoo.errors import Problem, SpecError, ZooError
from zoo.interfaces import Dataset, Field, Model, Position, Preprocessor, TensorSchema
from zoo.interfaces.batch_schema import SEGMENTS, BatchSchema
from zoo.interfaces.signature import parameters
from zoo.registry.blueprint import Blueprint, BuildNode
from zoo.registry.component_registry import ComponentRegistry
from zoo.spec.spec import Spec
from zoo.spec.training import Batching


def data_problems(spec: Spec, root: BuildNode, registry: ComponentRegistry) -> Iterator[Problem]:
    """Yield the conflicts of preprocessors and datasets with the batch of the model.

    ``root`` has all built parts. A model without a `BatchSchema` is not checked.
    """
    model: Model = root.children[0].part
    with spec.sections.model.report_errors("batch_schema"):
        schema = model.batch_schema()
    if schema is None:
        return
    label = f"model '{spec.sections.model.label}'"
    if SEGMENTS not in schema:
        yield from _packing_problems(root, label)
    yield from _block_problems(root, label)
    datasets = list(_find_datasets(root))
    preprocessing = dict(spec.sections.preprocessing)
    for node in datasets:
        with node.blueprint.report_errors("fields"):
            fields: Mapping[str, Field] = node.part.fields()
        preprocessing |= infer_preprocessing(fields, preprocessing, schema, registry)
    made: dict[str, Mapping[str, TensorSchema]] = {}
    for key, blueprint in preprocessing.items():
        try:
            preprocessor = build_preprocessor(blueprint, key, schema, label)
            with blueprint.report_errors("outputs"):
                made[key] = preprocessor.outputs(key)
        except SpecError as error:
            yield from error.problems
            made[key] = {key: schema[key]} if key in schema else {}  # reported already
    classes = {key: blueprint.cls for key, blueprint in preprocessing.items()}
    for node in datasets:
        yield from dataset_problems(node.blueprint, node.part, schema, classes, made, registry)


def _packing_problems(root: BuildNode, model: str) -> Iterator[Problem]:
    """Yield a problem if rows of several examples are asked for, of a model without segments."""
    for node in root.walk():
        if isinstance(node.part, Batching) and node.part.pack is not None:
            blueprint = node.blueprint
            message = (
                f"{model} does not take rows of several examples: its batch has no '{SEGMENTS}'; "
                "remove 'pack'"
            )
            yield Problem(message, f"{blueprint.path}.pack", blueprint.places.get("pack"))


def _block_problems(root: BuildNode, model: str) -> Iterator[Problem]:
    """Yield a problem if the blocks of a training have more tokens than the model has positions."""
    blocks = [node for node in root.walk() if isinstance(node.part, Batching) and node.part.block]
    limits = {
        node.blueprint.path: node.part.max_positions
        for node in root.children[0].walk()
        if isinstance(node.part, Position) and node.part.max_positions is not None
    }
    for node in blocks if limits else ():
        path = min(limits, key=lambda each: limits[each])
        if (block := node.part.block) > limits[path]:
            message = f"is {block}, but {model} has {limits[path]} positions ({path})"
            blueprint = node.blueprint
            yield Problem(message, f"{blueprint.path}.block", blueprint.places.get("block"))


def _find_datasets(node: BuildNode) -> Iterator[BuildNode]:
    """Yield the datasets that make batches, without those inside of another dataset."""
    if isinstance(node.part, Dataset):
        yield node
        return
    for child in node.children:
        yield from _find_datasets(child)


def infer_preprocessing(
    fields: Mapping[str, Field],
    known: Collection[str],
    schema: BatchSchema,
    registry: ComponentRegistry,
    stored: Collection[str] = (),
) -> dict[str, Blueprint[Preprocessor]]:
    """Return the preprocessors that a spec need not name, because only one fits: it takes the
    content of the field, needs no parameters, and makes what the model takes.

    Args:
        fields: the fields of a dataset.
        known: keys with a preprocessor.
        stored: keys with a stored tokenizer. Several preprocessors can use it: the one is taken
            that makes a complete batch, and of a preprocessor and a variant of it the former.
    """
    found = {}
    for key, field in fields.items():
        if key in schema and key not in known and field.content != "array":
            entries = registry.components(Preprocessor.kind)
            candidates = [
                Blueprint(entry.cls, {}, f"preprocessing.{key}", entry=entry)
                for entry in entries
                if issubclass(entry.cls, Preprocessor) and entry.cls.content == field.content
            ]
            fitting = [each for each in candidates if _makes(each, key, schema[key])]
            if key in stored:
                fitting = _plainest(_completing(fitting, key, {*fields, *known}, schema))
            if len(fitting) == 1:
                found[key] = fitting[0]
    return found


def _completing(
    candidates: Sequence[Blueprint[Preprocessor]],
    key: str,
    available: Collection[str],
    schema: BatchSchema,
) -> list[Blueprint[Preprocessor]]:
    """Return the preprocessors that make the required keys of a batch that are not available, and
    none that are."""
    required = {name for name, field in schema.items() if not field.optional}
    required -= {key, *available}
    found = []
    for candidate in candidates:
        made = candidate.build(schema=schema[key], stored=None).outputs(key).keys() - {key}
        if required <= made and made.isdisjoint(available):
            found.append(candidate)
    return found


def _plainest(candidates: Sequence[Blueprint[Preprocessor]]) -> list[Blueprint[Preprocessor]]:
    """Return the preprocessor of which all others are variants; all if there is none."""
    plain = [one for one in candidates if all(issubclass(o.cls, one.cls) for o in candidates)]
    return plain or list(candidates)


def _makes(blueprint: Blueprint[Preprocessor], key: str, schema: TensorSchema) -> bool:
    """Return whether a preprocessor without parameters makes what the model takes for a key."""
    if any(p.required and not p.from_parent for p in parameters(blueprint.cls)):
        return False
    try:
        made = blueprint.build(schema=schema, stored=None).outputs(key)
    except ZooError:
        return False
    return key in made and fits(made[key], schema)


def build_preprocessor(
    blueprint: Blueprint[Preprocessor],
    key: str,
    schema: BatchSchema,
    model: str,
    stored: str | None = None,
) -> Preprocessor:
    """Build the preprocessor of a key; raise SpecError if the batch does not have the key."""
    if key not in schema:
        keys = ", ".join(f"'{name}'" for name in schema)
        message = f"'{key}' is not a key of the batch of {model}, which are {keys}"
        raise SpecError([Problem(message, blueprint.path, blueprint.place)])
    return blueprint.build(schema=schema[key], stored=stored)


def dataset_problems(
    blueprint: Blueprint[Dataset],
    dataset: Dataset,
    schema: BatchSchema,
    preprocessing: Mapping[str, type[Preprocessor]],
    made: Mapping[str, Mapping[str, TensorSchema]],
    registry: ComponentRegistry,
) -> Iterator[Problem]:
    """Yield the conflicts of a dataset with the batch of a model.

    Args:
        dataset: the built blueprint.
        preprocessing: the preprocessors by key of the batch.
        made: what `Preprocessor.outputs` returned, by key.
    """
    with blueprint.report_errors("fields"):
        fields: Mapping[str, Field] = dataset.fields()
    yield from _key_problems(blueprint, fields, preprocessing, made)
    available: dict[str, TensorSchema] = {}
    for key, field in fields.items():
        preprocessor = preprocessing.get(key)
        if preprocessor is not None and field.content == preprocessor.content:
            available |= made[key]
        elif field.content == "array" and preprocessor is None:
            available[key] = field.schema or TensorSchema()
        elif key in schema:
            others: list[type[Preprocessor]] = [
                entry.cls  # type: ignore[misc]
                for entry in registry.components("preprocessor")
            ]
            fitting = sorted({o.name for o in others if o.content == field.content})
            message = f"field '{key}' of dataset '{blueprint.label}' contains {field.content}"
            if preprocessor is not None:
                takes = preprocessor.content
                message += f", but preprocessing.{key} is '{preprocessor.name}', for {takes}"
                message += f"; preprocessors that fit: {', '.join(fitting) or 'none'}"
            else:
                names = ", ".join(fitting) or "none"
                message += f"; add preprocessing.{key} (preprocessors that fit: {names})"
            yield Problem(message, blueprint.path, blueprint.place)
            available[key] = schema[key]  # reported already
    for key, expected in schema.items():
        if key not in available:
            if not expected.optional:
                names = ", ".join(f"'{name}'" for name in fields)
                message = (
                    f"dataset '{blueprint.label}' has {names}, but the batch of the model also "
                    f"needs '{key}' {expected.format()}"
                )
                yield Problem(message, blueprint.path, blueprint.place)
        elif not fits(available[key], expected):
            found = available[key]
            message = (
                f"'{key}' of dataset '{blueprint.label}' is {found.dtype} {found.format()}, but "
                f"the model takes {expected.dtype} {expected.format()}"
            )
            yield Problem(message, blueprint.path, blueprint.place)


def _key_problems(
    blueprint: Blueprint[Dataset],
    fields: Mapping[str, Field],
    preprocessing: Mapping[str, type[Preprocessor]],
    made: Mapping[str, Mapping[str, TensorSchema]],
) -> Iterator[Problem]:
    """Yield a problem for each key that a preprocessor makes and the dataset also has."""
    for key in fields.keys() & made.keys():
        for other in sorted(made[key].keys() & fields.keys() - {key}):
            if other in preprocessing or fields[other].content == "array":
                message = (
                    f"preprocessing.{key} ('{preprocessing[key].name}') makes '{other}', but "
                    f"dataset '{blueprint.label}' also has a field '{other}'; remove the field, or "
                    f"use another preprocessor for '{key}'"
                )
                yield Problem(message, blueprint.path, blueprint.place)


def fits(found: TensorSchema, expected: TensorSchema) -> bool:
    """Return whether a tensor can be used where another is expected, as far as it is declared."""
    if "number" not in (found.dtype, expected.dtype) and found.dtype != expected.dtype:
        return False
    if found.dims is None or expected.dims is None:
        return True
    dims = expected.dims
    if expected.channels is not None and len(found.dims) > len(dims):
        dims = (*dims, len(expected.channels))
    if len(found.dims) != len(dims):
        return False
    pairs = zip(found.dims, dims, strict=True)
    return all(isinstance(a, str) or isinstance(b, str) or a == b for a, b in pairs)
