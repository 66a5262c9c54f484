"""Evaluation of a model on batches: the loss and the values of metrics."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from zoo.data.encoding import ProgressFunction
from zoo.errors import ZooError
from zoo.evaluation.batch_results import BatchResults, ClassReport, EvaluationBatches, Share, Tables
from zoo.evaluation.generating import Generation, TextDecoder, build_generation
from zoo.evaluation.settings import unique_name
from zoo.interfaces import Filter, Metric, Model, Objective, Sampler
from zoo.interfaces.evaluation_mode import evaluation_mode


@dataclass(frozen=True)
class ModelEvaluation:
    """Results of a model on a dataset.

    Attributes:
        values: ``loss``, if there is an objective, and the values of the metrics, by name. If a
            name occurs again, a number follows: ``bleu-2``.
        signatures: the signature of each metric, by its name.
        by_metric: the names of the values of each metric.
        details: values by title of a table, row and column: the scores of each class and the
            confusion matrix of a classifier, and what `Metric.details` returns.
        hypotheses: the predicted texts, in the order of the examples; empty if none were needed.
        references: the reference texts of each hypothesis.
        generated: whether the model has generated tokens.
        examples: number of examples.
        seconds: duration of the evaluation.
        skipped: the number of examples that were left out, by reason.
        data: the dataset, as in a resolved spec.
        sampler: the sampler, as in a spec; None if nothing was generated.
    """

    values: dict[str, float]
    signatures: dict[str, str]
    by_metric: dict[str, list[str]] = field(default_factory=dict)
    details: Tables = field(default_factory=dict)
    hypotheses: list[str] = field(default_factory=list)
    references: list[list[str]] = field(default_factory=list)
    generated: bool = False
    examples: int = 0
    seconds: float = 0.0
    skipped: dict[str, int] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    sampler: Any = None


def evaluate_model(
    model: Model,
    batches: EvaluationBatches,
    metrics: Sequence[Metric],
    *,
    objective: Objective | None = None,
    sampler: Sampler | None = None,
    filters: Sequence[Filter] = (),
    max_length: int = 128,
    texts: bool = False,
    report: bool = False,
    seed: int = 0,
    rank: int = 0,
    world: int = 1,
    progress: ProgressFunction | None = None,
) -> ModelEvaluation:
    """Compute the loss and the metrics of a model, in evaluation mode and without gradients.

    Only what the objective and the metrics need is computed. Metrics of text take what the model
    generates. Metrics of tokens take generated tokens if there is a sampler and the batches have
    the input of generation; otherwise the most probable class at each position, given the
    previous targets. The mode of the model and the random state are restored.

    Args:
        metrics: they are copied, so the instances do not change.
        objective: the loss is the mean over all terms, weighted with `Objective.weight`.
        texts: whether to predict texts even if no metric takes them: those that the model
            generates, or the names of the most probable classes.
        report: whether to return the scores of each class and the confusion matrix; the model must
            predict classes of items or positions.
        seed: random seed; batch i is evaluated with ``seed + i``.
        rank, world: process and number of processes. Each process evaluates its share of every
            batch, and all return the merged results. `forward` must not communicate.

    Raises:
        ZooError: if a metric takes text, but the model does not generate it from the batches.
    """
    started = time.monotonic()
    share = evaluate_share(
        model,
        batches,
        metrics,
        objective,
        build_generation(model, sampler, filters, max_length),
        texts=texts,
        report=report,
        seed=seed,
        rank=rank,
        world=world,
        progress=progress,
    )
    if world > 1:
        shares: list[Any] = [None] * world
        torch.distributed.all_gather_object(shares, share)
        share = merge_shares(shares)
    seconds = time.monotonic() - started
    result = evaluation_result(share, has_loss=objective is not None, seconds=seconds)
    if share.report is not None:
        result.details.update(share.report.tables(TextDecoder(model).class_name))
    return result


def evaluate_share(
    model: Model,
    batches: EvaluationBatches,
    metrics: Sequence[Metric],
    objective: Objective | None,
    generation: Generation | None,
    *,
    texts: bool,
    report: bool = False,
    seed: int,
    rank: int,
    world: int,
    progress: ProgressFunction | None,
) -> Share:
    """Return the results of the share of one process."""
    share, decoder = Share([copy.deepcopy(metric) for metric in metrics]), TextDecoder(model)
    share.report = ClassReport() if report else None
    total = batches.updates(0)
    with _evaluating(model, objective):
        device, dtype = _placement(model)
        for done, update in enumerate(batches.epoch(0, rank=rank, world=world), 1):
            _seed(device, seed + update.index)
            for batch in update.batches:
                if batch is None:
                    continue
                batch = {key: _move(tensor, device, dtype) for key, tensor in batch.items()}
                step = BatchResults(model, batch, objective, generation, decoder)
                step.add_to(share, update.examples, batches, texts)
            if progress is not None:
                progress("evaluating", done, total)
    return share


def merge_shares(shares: Sequence[Share]) -> Share:
    """Return the merged results of all processes."""
    merged = shares[0]
    for other in shares[1:]:
        merged.merge(other)
    return merged


def evaluation_result(share: Share, *, has_loss: bool, seconds: float) -> ModelEvaluation:
    """Return the values of the metrics, and the loss."""
    if not share.examples:
        raise ZooError("there are no examples to evaluate the model on")
    result = ModelEvaluation(
        {}, {}, generated=share.generated, examples=share.examples, seconds=seconds
    )
    if has_loss:
        result.values["loss"] = share.loss / share.weight if share.weight else float("nan")
        result.by_metric["loss"] = ["loss"]
    for metric in share.metrics:
        label = unique_name(metric.name, result.by_metric)
        names = result.by_metric[label] = []
        for name, value in metric.compute().items():
            names.append(unique_name(name, result.values))
            result.values[names[-1]] = value
        result.signatures[label] = metric.signature() + _describe_tokens(metric, share)
        result.details.update(metric.details())
    for index in sorted(share.texts):
        hypothesis, references = share.texts[index]
        result.hypotheses.append(hypothesis)
        result.references.append(references)
    return result


def _describe_tokens(metric: Metric, share: Share) -> str:
    """Return the part of the signature about the predicted tokens."""
    if metric.consumes != "tokens":
        return ""
    return f"|tokens:{'generated' if share.generated else 'argmax'}"


@contextmanager
def _evaluating(model: Model, objective: Objective | None) -> Iterator[None]:
    """Set evaluation mode without gradients, and restore mode and random state on exit."""
    device, _ = _placement(model)
    devices = [device] if device.type == "cuda" else []
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(torch.random.fork_rng(devices=devices))
        stack.enter_context(evaluation_mode(model))
        if objective is not None:
            stack.enter_context(evaluation_mode(objective))
        yield


def _seed(device: torch.device, seed: int) -> None:
    torch.default_generator.manual_seed(seed)  # does not seed all GPUs
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)


def _placement(model: Model) -> tuple[torch.device, torch.dtype]:
    """Return the device and the floating-point dtype of the weights."""
    weights = [weight for weight in model.parameters() if weight.is_floating_point()]
    return (weights[0].device, weights[0].dtype) if weights else (torch.device("cpu"), torch.float)


def _move(tensor: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return tensor.to(device, dtype if tensor.is_floating_point() else None, non_blocking=True)
