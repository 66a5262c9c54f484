"""The objective of a spec on outputs of the model, on the meta device."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch

from zoo.errors import SpecError, ZooError
from zoo.interfaces import Model, Objective, Preprocessor
from zoo.registry.blueprint import BuildNode, record_build
from zoo.spec.data_contract import build_preprocessor
from zoo.spec.spec import Spec

TARGET = "target"


def class_names(model: Model, preprocessor: Preprocessor | None) -> list[str]:
    """Return the names of the classes of a model, in the order of their IDs.

    Raises:
        ZooError: if the targets are not classes.
    """
    schema = (model.batch_schema() or {}).get(TARGET)
    if schema is None or schema.dtype != "integer" or not isinstance(schema.below, int):
        raise ZooError(f"the targets of model '{model.name}' are not classes")
    if preprocessor is None:
        return [str(number) for number in range(schema.below)]
    return [preprocessor.decode([number]) for number in range(schema.below)]


class _UnknownClasses(ZooError):
    """The training data, which a check does not read, have the names of the classes."""


@dataclass
class DeclaredTargets:
    """The classes that a spec names, as if the training data had one target of each; see
    `zoo.interfaces.TrainingTargets`."""

    spec: Spec
    model: Model

    @property
    def names(self) -> list[str]:
        return class_names(self.model, self._preprocessor())

    def ids(self) -> Iterable[int]:
        return range(len(self.names))

    def _preprocessor(self) -> Preprocessor | None:
        blueprint = self.spec.sections.preprocessing.get(TARGET)
        schema = self.model.batch_schema() or {}
        if blueprint is None or TARGET not in schema:
            return None
        label = f"model '{self.model.name}'"
        try:
            preprocessor = build_preprocessor(blueprint, TARGET, schema, label)
            is_fitted = not preprocessor.fit(())
        except ZooError:
            is_fitted = False
        if not is_fitted:
            raise _UnknownClasses("the names of the classes are those of the training data")
        return preprocessor


def fitted_objective(spec: Spec, root: BuildNode) -> BuildNode | None:
    """Return the objective of a spec, fitted as far as that is possible without its data.

    None if there is none, or it needs the data.

    Args:
        root: all built parts, the model's tree first.

    Raises:
        SpecError: if it does not fit the classes of the model.
    """
    blueprint = spec.sections.objective
    if blueprint is None:
        return None
    node = next(child for child in root.children if child.blueprint is blueprint)
    if type(node.part).fit is Objective.fit:
        return node
    try:
        with blueprint.report_errors("fit"):
            params = node.part.fit(DeclaredTargets(spec, root.children[0].part))
    except SpecError as error:
        if isinstance(error.__cause__, _UnknownClasses):
            return None
        raise
    if not params:
        return node
    with record_build() as built, torch.device("meta"):
        replace(blueprint, params={**blueprint.params, **params}).build()
    return built.children[0]
