"""Several conditions of sampling together."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from zoo import ZooError
from zoo.plugin import Blueprint, Sampler


class CombinedSampler(Sampler):
    r"""Several random samplers in turn: each gets the distribution of the one before.

    .. math:: q = (f_n \circ \dots \circ f_1)(p)

    For example top-k with a temperature, then top-p: the tokens that both keep, where the total
    probability of top-p is that of the tokens that top-k keeps, as in transformers.

    Paper: Holtzman et al. 2020, section 5, which compares such conditions.

    Args:
        samplers: random samplers, in the order in which they are applied.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "combined"
    paper: ClassVar[str] = (
        "Holtzman et al. 2020, The Curious Case of Neural Text Degeneration, arXiv:1904.09751"
    )
    test_params: ClassVar[Mapping[str, Any]] = {
        "samplers": [{"type": "top-k", "k": 3, "temperature": 0.7}, {"type": "top-p", "p": 0.8}]
    }

    def __init__(self, *, samplers: Sequence[Blueprint[Sampler]]) -> None:
        if not samplers:
            raise ZooError("samplers is empty; list at least one random sampler")
        self.samplers: tuple[Sampler, ...] = tuple(each.build() for each in samplers)
        for each in self.samplers:
            if each.width != 1 or type(each).distribution is Sampler.distribution:
                raise ZooError(
                    f"sampler '{each.name}' has no distribution; combine random samplers such as "
                    "top-k and top-p"
                )

    def distribution(self, logprobs: Tensor) -> Tensor:
        *others, last = self.samplers
        for each in others:
            logprobs = each.distribution(logprobs).log()
        return last.distribution(logprobs)
