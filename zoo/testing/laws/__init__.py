"""The laws of each kind; those of `common`, `modules` and `cost` hold for every component."""

from zoo.testing.law import Law
from zoo.testing.laws import (
    acceleration,
    adapter,
    alignment,
    backbone,
    common,
    cost,
    dataset,
    decoder,
    embedding,
    encoder,
    filter,
    initialiser,
    metric,
    model,
    modules,
    objective,
    optimiser,
    part,
    position,
    preprocessor,
    sampler,
    schedule,
    scorer,
)

LAWS: dict[str, tuple[Law, ...]] = {
    kind: (*common.LAWS, *modules.LAWS, *module.LAWS, cost.bounded_cost_law(module.LAWS))
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
        "part": part,
        "optimiser": optimiser,
        "schedule": schedule,
        "dataset": dataset,
        "preprocessor": preprocessor,
        "acceleration": acceleration,
        "adapter": adapter,
    }.items()
}
