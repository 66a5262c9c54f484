"""Benchmark 'top-p-filter'."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_lab.benchmarks.sampling.benchmark_sampling import SamplingBenchmark
from zoo_sampling.top_p import TopP


class TopPBenchmark(SamplingBenchmark):
    """Nucleus sampling from a large vocabulary, compared with transformers' TopPLogitsWarper.

    Args:
        batch: number of rows.
        vocab: vocabulary size.
        p: total probability to reach.
        std: standard deviation of the logits, which are normally distributed.
    """

    name: ClassVar[str] = "top-p-filter"
    target: ClassVar[float | None] = 5.0
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 3, "vocab": 40}

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        vocab: Annotated[int, Field(ge=1)] = 32_000,
        p: Annotated[float, Field(gt=0, lt=1)] = 0.9,
        std: Annotated[float, Field(gt=0)] = 3.0,
    ) -> None:
        super().__init__(batch=batch, vocab=vocab, std=std)
        self.p = p

    def sampler(self) -> Sampler:
        return TopP(p=self.p)

    def warper(self) -> Callable[[Any, Tensor], Tensor]:
        from transformers import TopPLogitsWarper

        warper: Callable[[Any, Tensor], Tensor] = TopPLogitsWarper(self.p)
        return warper

    def reference(self, probs: Tensor) -> Tensor:
        ascending, order = probs.sort(dim=-1)
        removed = ascending.cumsum(dim=-1) <= 1 - self.p
        removed[:, -1] = False
        kept = ascending.masked_fill(removed, 0.0).gather(-1, order.argsort(dim=-1))
        return kept / kept.sum(dim=-1, keepdim=True)
