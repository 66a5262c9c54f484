"""Perplexity."""

import math
import random
import statistics
from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from zoo import ZooError
from zoo.plugin import Metric
from zoo_metrics.validation import zip_pairs

# Log-probabilities computed in half precision may exceed 0 by this much.
TOLERANCE = 1e-3


class Perplexity(Metric):
    r"""Perplexity: exponential of the mean negative log-likelihood per token.

    .. math:: \mathrm{PPL} = \exp\left(-\frac{1}{T} \sum_{t=1}^{T} \ln p(y_t \mid y_{<t})\right)

    T is the number of tokens of all sequences. A prediction is the list of natural-log
    probabilities of the reference tokens. A token of probability 0 makes the value infinite.

    Paper: Jelinek et al. 1977.

    Shapes:
        N lists of log-probabilities, N lists of token IDs -> {perplexity: at least 1}.
    """

    name: ClassVar[str] = "perplexity"
    paper: ClassVar[str] = (
        "Jelinek, Mercer, Bahl and Baker 1977, Perplexity: a measure of the difficulty of speech "
        "recognition tasks"
    )
    consumes: ClassVar[Literal["logprobs"]] = "logprobs"
    lower_is_better: ClassVar[bool] = True

    def __init__(self) -> None:
        self.nll = 0.0
        self.total = 0

    def update(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[int]]
    ) -> None:
        pairs = list(zip_pairs(self.name, predictions, references))
        for logprobs, tokens in pairs:
            if len(logprobs) != len(tokens):
                raise ZooError(
                    f"perplexity: a prediction has {len(logprobs)} log-probabilities, but its "
                    f"reference has {len(tokens)} tokens"
                )
            invalid = [value for value in logprobs if not value <= TOLERANCE]
            if invalid:
                raise ZooError(
                    f"perplexity: predictions contain {invalid[0]}, but log-probabilities must be "
                    "at most 0"
                )
        self.nll -= sum(float(value) for logprobs, _ in pairs for value in logprobs)
        self.total += sum(len(tokens) for _, tokens in pairs)

    def merge(self, other: Self) -> None:
        self.nll += other.nll
        self.total += other.total

    def compute(self) -> dict[str, float]:
        if self.total == 0:
            raise ZooError("perplexity has no value: no tokens were added")
        try:
            return {"perplexity": math.exp(self.nll / self.total)}
        except OverflowError:
            return {"perplexity": math.inf}

    def signature(self) -> str:
        return "perplexity|base:e|unit:token|mean:tokens|version:1"

    def reference(
        self, predictions: Sequence[Sequence[float]], references: Sequence[Sequence[int]]
    ) -> dict[str, float]:
        probabilities = [math.exp(value) for logprobs in predictions for value in logprobs]
        return {"perplexity": 1 / statistics.geometric_mean(probabilities)}

    def example(self, count: int, rng: random.Random) -> tuple[list[list[float]], list[list[int]]]:
        lengths = [rng.randint(1, 5) for _ in range(count)]
        return (
            [[math.log(rng.uniform(0.1, 1)) for _ in range(length)] for length in lengths],
            [[rng.randrange(9) for _ in range(length)] for length in lengths],
        )
