"""The function `zoo.batches`."""

from __future__ import annotations

from typing import Literal

from zoo.data.batches import Batches, open_batches
from zoo.data.preprocessing import fit_preprocessors
from zoo.errors import ZooError
from zoo.interfaces import Model
from zoo.spec.spec import Source, Spec, load_spec
from zoo.spec.training import Training


def batches(
    spec: Source | Spec,
    model: Model,
    part: Literal["data", "validation", "test"] = "data",
    *,
    workers: int = 0,
    pin: bool = False,
) -> Batches:
    """Return the batches of a dataset in the section ``train`` of a spec, for a model.

    The preprocessors are fitted to the training data and attached to the model, so that
    `zoo.save` saves them. Use it to train with a loop of your own::

        model = zoo.compose("spec.yaml")
        objective = zoo.objective(model)
        optimiser = torch.optim.AdamW(model.parameters())
        batches = zoo.batches("spec.yaml", model)
        for epoch in range(10):
            for update in batches.epoch(epoch):
                for batch in update.batches:
                    objective(model(batch)).backward()
                optimiser.step()
                optimiser.zero_grad()

    Args:
        part: ``data`` is shuffled in each epoch; ``validation`` and ``test`` keep their order.
        workers: number of processes that make batches; 0: this process.
        pin: copy batches to pinned memory, for fast transfer to a GPU.
    """
    read = spec if isinstance(spec, Spec) else load_spec(spec)
    if read.sections.train is None:
        raise ZooError(f"spec '{read.name}' has no section 'train', which names the data")
    training: Training = read.sections.train.build()
    datasets = training.datasets()
    if part not in datasets:
        names = ", ".join(f"'{name}'" for name in datasets)
        raise ZooError(f"section 'train' of spec '{read.name}' has no '{part}'; it has {names}")
    return open_batches(
        datasets[part],
        model,
        fit_preprocessors(read, model),
        training.batch,
        seed=training.seed,
        evaluation=part != "data",
        bad_data=training.bad_data,
        workers=workers,
        pin=pin,
    )
