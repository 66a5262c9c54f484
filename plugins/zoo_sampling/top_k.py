"""Top-k sampling."""

from typing import Annotated, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_sampling.logits import apply_temperature, keep_tokens, validate_range


class TopK(Sampler):
    r"""Top-k sampling: sample from the k most probable tokens and ties with the k-th.

    .. math:: p'(v) \propto p(v) \, [\, p(v) \ge p_{(k)} \,]

    Paper: Fan et al. 2018, section 5.4.

    Args:
        k: number of tokens to keep.
        temperature: applied before tokens are removed; below 1 the distribution is sharper, above 1
            flatter.

    Shapes:
        logprobs [B, 1, V], scores [B, 1] -> tokens, parents, scores [B, 1].
    """

    name: ClassVar[str] = "top-k"
    paper: ClassVar[str] = "Fan et al. 2018, Hierarchical Neural Story Generation, arXiv:1805.04833"

    def __init__(
        self,
        *,
        k: Annotated[int, Field(ge=1)] = 10,
        temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
    ) -> None:
        self.k = int(validate_range("k", k, above=0))
        self.temperature = validate_range("temperature", temperature, above=0)

    def distribution(self, logprobs: Tensor) -> Tensor:
        logits = apply_temperature(logprobs, self.temperature)
        threshold = logits.topk(min(self.k, logits.shape[-1]), dim=-1).values[..., -1:]
        return keep_tokens(logits, logits >= threshold)
