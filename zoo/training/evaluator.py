"""Evaluation of the model of a run on its validation data."""

from __future__ import annotations

from torch import Tensor

from zoo.artifact.weights import load_weights, named_tensors
from zoo.evaluation.model_evaluation import evaluate_model
from zoo.interfaces import Model
from zoo.spec.spec import load_spec
from zoo.training.run_checkpoints import averaged
from zoo.training.setup import Setup
from zoo.training.sharding import full
from zoo.training.whole_batch import compares_examples


def evaluate_run(setup: Setup) -> dict[str, float]:
    """Return the loss and the metrics of the current model, or of its averages.

    Called by all processes, each of which evaluates a share of the data, or all of it if the loss
    compares the examples of a batch. FSDP gathers parameters
    only in the forward pass of the whole model, so a sharded model is evaluated as a copy with
    all weights.
    """
    with averaged(setup):
        if setup.processes.sharded:
            tensors = {name: full(t).clone() for name, t in named_tensors(setup.model).items()}
            return evaluate(setup, _copy_model(setup, tensors))
        return evaluate(setup, setup.model)


def evaluate(setup: Setup, model: Model) -> dict[str, float]:
    """Return the loss and the metrics of a model on the validation data of a run."""
    assert setup.validation is not None
    processes = setup.processes
    rank, world = (0, 1) if compares_examples(model) else (processes.rank, processes.world)
    result = evaluate_model(
        model,
        setup.validation,
        setup.metrics,
        objective=setup.objective,
        sampler=setup.sampler,
        filters=setup.filters,
        max_length=setup.training.evaluate.max_length,
        rank=rank,
        world=world,
    )
    return result.values


def _copy_model(setup: Setup, tensors: dict[str, Tensor]) -> Model:
    """Return a model that is not sharded, with these weights."""
    assert setup.model.spec is not None
    spec = load_spec(setup.model.spec, registry=setup.request.registry)
    return load_weights("the sharded model", spec, tensors, device=setup.processes.device)
