"""The sampling step of a large vocabulary, compared with transformers."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from zoo import accelerate
from zoo.plugin import Sampler
from zoo_lab.bench.benchmark import Benchmark, Bound

SAMPLED = "transformers, sampled"


class SamplingBenchmark(Benchmark):
    """Sampling of one token of each row, compared with the logits warper of transformers.

    The target is for the warper alone, which does less: it returns the remaining logits. The other
    peer also samples.

    Args:
        batch: number of rows.
        vocab: vocabulary size.
        std: standard deviation of the logits, which are normally distributed.
    """

    device_type: ClassVar[str] = "cpu"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64, 512)}
    packages: ClassVar[Sequence[str]] = ("transformers",)

    def __init__(self, *, batch: int, vocab: int, std: float) -> None:
        self.batch = batch
        self.vocab = vocab
        self.std = std

    @abstractmethod
    def sampler(self) -> Sampler:
        """Return the measured sampler."""

    @abstractmethod
    def warper(self) -> Callable[[Any, Tensor], Tensor]:
        """Return the warper of transformers."""

    @abstractmethod
    def reference(self, probs: Tensor) -> Tensor:
        """Return the distribution [B, V] after tokens are removed from probabilities [B, V]."""

    def prepare(self, device: torch.device) -> None:
        logits = torch.randn(self.batch, self.vocab, device=device) * self.std
        self.logprobs = logits.log_softmax(dim=-1)
        self.scores = logits.new_zeros(self.batch, 1)
        self.measured = accelerate(self.sampler())

    @torch.no_grad()
    def check(self) -> None:
        """Compare the distribution with the plain formula in float64, and check a sample.

        The formulas may differ in the token at which the total probability is reached.
        """
        expected = self.reference(self.logprobs.double().exp())
        found = self.measured.distribution(self.logprobs[:, None])[:, 0].double()
        distance = (found - expected).abs().sum(dim=-1).max().item() / 2
        assert distance < 1e-3, f"the total variation distance to the reference is {distance:.1e}"
        selection = self.measured.select(self.logprobs[:, None], self.scores)
        assert (found.gather(-1, selection.tokens) > 0).all(), "a removed token was sampled"
        torch.testing.assert_close(selection.scores, self.logprobs.gather(-1, selection.tokens))

    @torch.no_grad()
    def run(self) -> Any:
        return self.measured.select(self.logprobs[:, None], self.scores)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def only_warper() -> Callable[[], Any]:
            warp = self.warper()
            return lambda: warp(None, self.logprobs)

        def sampled() -> Callable[[], Any]:
            warp = self.warper()
            return lambda: warp(None, self.logprobs).softmax(dim=-1).multinomial(1)

        return {"transformers warper": only_warper, SAMPLED: sampled}

    def bound(self) -> Bound:
        return Bound(bytes=4 * self.batch * self.vocab)

    def items(self) -> tuple[int, str]:
        return self.batch, "tokens"
