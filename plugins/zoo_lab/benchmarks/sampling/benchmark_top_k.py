"""Benchmark 'top-k-filter'."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field
from torch import Tensor

from zoo.plugin import Sampler
from zoo_lab.benchmarks.sampling.benchmark_sampling import SamplingBenchmark
from zoo_sampling.top_k import TopK


class TopKBenchmark(SamplingBenchmark):
    """Top-k sampling from a large vocabulary, compared with transformers' TopKLogitsWarper.

    Args:
        batch: number of rows.
        vocab: vocabulary size.
        k: number of tokens to keep.
        std: standard deviation of the logits, which are normally distributed.
    """

    name: ClassVar[str] = "top-k-filter"
    target: ClassVar[float | None] = 10.0
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 3, "vocab": 40, "k": 5}

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        vocab: Annotated[int, Field(ge=1)] = 32_000,
        k: Annotated[int, Field(ge=1)] = 50,
        std: Annotated[float, Field(gt=0)] = 3.0,
    ) -> None:
        super().__init__(batch=batch, vocab=vocab, std=std)
        self.k = k

    def sampler(self) -> Sampler:
        return TopK(k=self.k)

    def warper(self) -> Callable[[Any, Tensor], Tensor]:
        from transformers import TopKLogitsWarper

        warper: Callable[[Any, Tensor], Tensor] = TopKLogitsWarper(self.k)
        return warper

    def reference(self, probs: Tensor) -> Tensor:
        threshold = probs.topk(min(self.k, self.vocab), dim=-1).values[:, -1:]
        kept = probs.where(probs >= threshold, 0.0)
        return kept / kept.sum(dim=-1, keepdim=True)
