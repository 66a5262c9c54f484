"""`zoo.check` and `zoo.compose`: of a spec together with the base that its training starts from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from zoo.interfaces import Model
from zoo.interfaces.metric import LOSS
from zoo.registry.component_registry import ComponentRegistry, default_registry
from zoo.spec import composition
from zoo.spec.document import Document
from zoo.spec.extending import Source, merge_source
from zoo.spec.report import Report
from zoo.spec.spec import Spec
from zoo.spec.training import Training
from zoo.training.monitor import check_monitor, monitored_names

if TYPE_CHECKING:
    from zoo.training.inherited import StartedSpec
    from zoo.training.start import StartPlan


def check(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> Report:
    """Check a spec without allocating weights; raise SpecError with all problems found.

    If its training starts from the weights of a model, or it extends one, the model must fit;
    preprocessing and tokenizers that the spec does not set are those of the model.
    """
    return check_started(source, overrides=overrides, registry=registry)[1]


def check_started(
    source: Source, *, overrides: Iterable[str] = (), registry: ComponentRegistry | None = None
) -> tuple[Spec, Report, StartPlan | None]:
    """Return the spec, its report, and what its training takes from a base; None without one."""
    document, started = _read(source, overrides, registry)
    spec, report = composition.check_spec(document, registry=registry)
    if spec.sections.train is not None:
        training: Training = spec.sections.train.build()
        if set(monitored_names(training)) != {LOSS}:
            check_monitor(spec, training)
    return spec, report, None if started is None else started.plan


def compose(
    source: Source,
    *,
    device: str | torch.device = "cpu",
    dtype: str | torch.dtype | None = None,
    seed: int = 0,
    overrides: Iterable[str] = (),
    registry: ComponentRegistry | None = None,
) -> Model:
    """Check a spec and build its model with weights initialised from a seed.

    The parts initialise their parameters, then the initialiser in the section ``init``, if the spec
    has one. The weights are sampled on the CPU, so a seed gives the same model on every device. The
    model is in training mode.

    If the training of the spec starts from the weights of another model, preprocessing and
    tokenizers that the spec does not set are those of that model; its weights are set by
    `zoo.train`, or by `zoo.start_from`.
    """
    document, started = _read(source, overrides, registry)
    model = composition.compose(document, device=device, dtype=dtype, seed=seed, registry=registry)
    if started is not None:
        model.tokenizer = dict(started.tokenizers) or None
    return model


def _read(
    source: Source, overrides: Iterable[str], registry: ComponentRegistry | None
) -> tuple[Document, StartedSpec | None]:
    """Return a spec as plain data, with the preprocessing of the base of its training."""
    document = merge_source(source, overrides, registry or default_registry())
    train = document.data.get("train") if isinstance(document.data, dict) else None
    if not isinstance(train, dict) or train.get("start") is None:
        return document, None
    from zoo.training.inherited import read_started  # not needed to check most specs

    started = read_started(document, registry=registry)
    return started.document, started
