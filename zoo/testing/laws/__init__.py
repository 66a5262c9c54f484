"""The laws of each kind; those of `common` and `modules` hold for every kind of component."""

from zoo.testing.law import Law
from zoo.testing.laws import (
    alignment,
    backbone,
    common,
    decoder,
    embedding,
    encoder,
    filter,
    importer,
    initialiser,
    metric,
    model,
    modules,
    objective,
    position,
    sampler,
    scorer,
)

LAWS: dict[str, tuple[Law, ...]] = {
    kind: (*common.LAWS, *modules.LAWS, *module.LAWS)
    for kind, module in {
        "backbone": backbone,
        "embedding": embedding,
        "position": position,
        "scorer": scorer,
        "alignment": alignment,
        "encoder": encoder,
        "decoder": decoder,
        "initialiser": initialiser,
        "filter": filter,
        "sampler": sampler,
        "objective": objective,
        "metric": metric,
        "model": model,
    }.items()
}

IMPORTER_LAWS: tuple[Law, ...] = importer.LAWS
