"""The laws of each kind; the laws of `common` apply to all kinds."""

from zoo.testing.law import Law
from zoo.testing.laws import (
    alignment,
    backbone,
    common,
    decoder,
    embedding,
    encoder,
    filter,
    metric,
    model,
    objective,
    position,
    sampler,
    scorer,
)

LAWS: dict[str, tuple[Law, ...]] = {
    kind: (*common.LAWS, *module.LAWS)
    for kind, module in {
        "backbone": backbone,
        "embedding": embedding,
        "position": position,
        "scorer": scorer,
        "alignment": alignment,
        "encoder": encoder,
        "decoder": decoder,
        "filter": filter,
        "sampler": sampler,
        "objective": objective,
        "metric": metric,
        "model": model,
    }.items()
}
