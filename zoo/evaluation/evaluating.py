"""`zoo.evaluate`: evaluate a model on a dataset."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from zoo.data.batches import open_batches
from zoo.data.encoding import ProgressFunction
from zoo.data.preprocessing import build_preprocessors, infer_for_dataset
from zoo.data.unknown_tokens import warn_unknown_tokens
from zoo.errors import DataError, ZooError
from zoo.evaluation.datasets import (
    check_dataset,
    find_dataset,
    is_training_run,
    limit_examples,
)
from zoo.evaluation.model_evaluation import ModelEvaluation, evaluate_model
from zoo.evaluation.settings import read_settings
from zoo.generation.pipeline import ComponentSpec
from zoo.hub.models import load, named_path, read_header
from zoo.interfaces import Filter, Metric, Model, Objective, Sampler
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec.composition import resolve_device, resolve_dtype, resolve_seed
from zoo.spec.contracts import fitting_metrics, metric_conflict
from zoo.spec.sections import objective as build_objective
from zoo.spec.training import Batching


def evaluate(
    model: Model | str | os.PathLike[str],
    data: Mapping[str, Any] | None = None,
    *,
    part: str | None = None,
    metrics: Sequence[ComponentSpec | Metric] | None = None,
    sampler: ComponentSpec | Sampler | None = None,
    filters: Sequence[ComponentSpec | Filter] | None = None,
    overrides: Iterable[str] = (),
    max_length: int = 128,
    batch: int = 32,
    block: int | None = None,
    max_examples: int | None = None,
    texts: bool = False,
    base: str | os.PathLike[str] | None = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
    seed: int = 0,
    registry: ComponentRegistry | None = None,
    progress: ProgressFunction | None = None,
) -> ModelEvaluation:
    """Compute the loss and the metrics of a model on a dataset.

    Args:
        model: a model, or the path or reference of a saved one, such as the folder of a training
            run.
        data: the dataset as in a spec, ``{"type": "parallel-text", "source": ...}``. For the folder
            of a training run, or with ``part``, parameters that replace those of its dataset.
        part: the dataset of a saved model: "test", "validation" or "data" (the training data);
            default, for the folder of a training run: "test", or "validation" if there is no test
            data. The files in the provenance of other models are read only with ``part``.
        metrics: default: those of the model's spec.
        sampler: default: that of the model's spec. Text is generated if a metric takes it.
        filters: default: those of the model's spec.
        overrides: parameters of the parts, such as "sampler.width=8" or "bleu.tokenize=intl".
        max_length: maximum number of generated tokens.
        batch: number of examples in a batch.
        block: number of tokens of a block, for language models that were trained on blocks;
            default: that of the training.
        max_examples: use only the first examples, this many.
        texts: whether to return predicted texts even if no metric takes them.
        base: the base of a saved adapter, as in `zoo.load`.
        device: default: that of the model; for a saved model a GPU if there is one.
        dtype: dtype of the floating-point weights; default: that of the model; for a saved model
            as `zoo.load`.
        seed: random seed of the sampler.

    Raises:
        DataError: if a file of the dataset is missing or not valid.
        ZooError: if the dataset or a metric does not fit the model.
    """
    registry = registry or default_registry()
    train: Mapping[str, Any] = {}
    own_run = False
    if not isinstance(model, Model):
        path = named_path(model)
        own_run = path is not None and is_training_run(path)
        train = training_section(read_header(model).provenance)
        available = "cuda" if torch.cuda.is_available() else "cpu"
        options: dict[str, Any] = {"dtype": dtype, "base": base, "registry": registry}
        model = load(model, device=device or available, **options)
    else:
        _move(model, device, dtype)
    settings = read_settings(model, metrics, sampler, filters, overrides, registry)
    objective = build_objective(model) if (model.spec or {}).get("objective") else None
    _check_metrics(model, settings.metrics, objective, registry)
    dataset = find_dataset(train, part, data, registry, own_run=own_run)
    with _preprocessing(model, settings.preprocessing):
        preprocessors = build_preprocessors(model, registry=registry)
        preprocessors |= infer_for_dataset(dataset.build(), model, preprocessors, registry)
        check_dataset(dataset, model, preprocessors, registry)
        try:
            batches = open_batches(
                limit_examples(dataset, max_examples),
                model,
                preprocessors,
                Batching(items=batch, block=_block(train, block), shuffle=False, buckets=0),
                seed=resolve_seed(seed),
                evaluation=True,
                bad_data=train.get("bad_data", "fail"),
                progress=progress,
            )
        except DataError as error:
            if data:
                raise
            hint = "the dataset is that of the training; set other files with --data KEY=VALUE"
            raise DataError(f"{error.message} ({hint})", error.origin) from error
        warn_unknown_tokens(batches.examples, model, preprocessors, data="evaluation")
        with batches:
            result = evaluate_model(
                model,
                batches,
                settings.metrics,
                objective=objective,
                sampler=settings.sampler,
                filters=settings.filters,
                max_length=max_length,
                texts=texts,
                report=_predicts_classes(model),
                seed=seed,
                progress=progress,
            )
    return replace(
        result,
        skipped=batches.skipped,
        data=dataset.resolve(),
        sampler=settings.sampler_part if result.generated else None,
    )


def _predicts_classes(model: Model) -> bool:
    schema = model.output_schema()
    return schema is not None and "labels" in schema.predictions


def _move(model: Model, device: str | torch.device | None, dtype: str | torch.dtype | None) -> None:
    if device is not None:
        model.to(resolve_device(device))
    if dtype is not None:
        model.to(resolve_dtype(dtype))


def training_section(provenance: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the section ``train`` in the provenance of a model; empty if there is none."""
    train = provenance.get("train")
    section = train.get("section") if isinstance(train, Mapping) else None
    return section if isinstance(section, Mapping) else {}


def _block(train: Mapping[str, Any], asked: int | None) -> int | None:
    """Return the length of the blocks of tokens: as asked, or as a model was trained on."""
    batch = train.get("batch")
    block = batch.get("block") if isinstance(batch, Mapping) else None
    return asked or (block if isinstance(block, int) else None)


def _check_metrics(
    model: Model,
    metrics: Sequence[Metric],
    objective: Objective | None,
    registry: ComponentRegistry,
) -> None:
    """Raise ZooError if there is nothing to compute, or a metric does not fit the model."""
    schema, label = model.output_schema(), f"model '{model.name}'"
    fitting = "" if schema is None else ", ".join(fitting_metrics(schema, registry))
    if not metrics and objective is None:
        raise ZooError(
            f"the spec of {label} has no metrics and no objective; pass metrics"
            + (f" (metrics that fit: {fitting})" if fitting else "")
        )
    for metric in metrics:
        conflict = schema and metric_conflict(type(metric), schema, label)
        if conflict:
            raise ZooError(
                f"metric '{metric.name}' {conflict}; metrics that fit: {fitting or 'none'}"
            )


@contextmanager
def _preprocessing(model: Model, section: Mapping[str, Any]) -> Iterator[None]:
    """Set the section ``preprocessing`` of the model's spec inside the block."""
    spec = model.spec
    if spec is not None or section:
        model.spec = {**(spec or {}), "preprocessing": section}
    try:
        yield
    finally:
        model.spec = spec
