"""The objective of a run, with the parameters that depend on the training data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from zoo.data.padding import MASK
from zoo.data.reader import iterate_values
from zoo.interfaces import Model, Objective, Preprocessor
from zoo.spec.objective_check import TARGET, class_names
from zoo.spec.spec import Spec
from zoo.spec.training import Training


class DatasetTargets:
    """The classes of a model and the targets of a dataset; see `zoo.interfaces.TrainingTargets`."""

    def __init__(
        self, training: Training, model: Model, preprocessors: Mapping[str, Preprocessor]
    ) -> None:
        self.training = training
        self.model = model
        self.preprocessor = preprocessors.get(TARGET)

    @cached_property
    def names(self) -> list[str]:
        return class_names(self.model, self.preprocessor)

    def ids(self) -> Iterator[int]:
        dataset = self.training.data.build()
        examples, skip = dataset.open(), self.training.bad_data == "skip"
        keys = [key for key in (TARGET, MASK) if key in dataset.fields()]
        columns = [iterate_values(examples, key, skip=skip) for key in keys]
        for value, *mask in zip(*columns, strict=True):
            encoded = value if self.preprocessor is None else self.preprocessor.encode(value)
            ids = np.asarray(encoded)
            selected = ids[mask[0]] if mask else ids
            yield from (number for number in selected.ravel().tolist() if number >= 0)


def fit_objective(spec: Spec, model: Model, preprocessors: Mapping[str, Preprocessor]) -> Objective:
    """Build the objective of a spec and fit it to the training data.

    The fitted parameters are set in ``model.spec``, so that evaluations use the same objective.
    """
    blueprint, train = spec.sections.objective, spec.sections.train
    assert blueprint is not None
    assert train is not None
    objective = blueprint.build()
    if type(objective).fit is Objective.fit:
        return objective
    with blueprint.report_errors("fit"):
        params = objective.fit(DatasetTargets(train.build(), model, preprocessors))
    if not params:
        return objective
    fitted = replace(blueprint, params={**blueprint.params, **params})
    if model.spec is not None:
        model.spec = {**model.spec, "objective": fitted.resolve()}
    return fitted.build()
