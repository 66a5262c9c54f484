"""Constant learning rates, one after the other."""

from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from pydantic import Field

from zoo import ZooError
from zoo.plugin import Schedule
from zoo_optimisers.groups import NonNegative


class Piecewise(Schedule):
    r"""Constant factors, each until a given step; for trainings with several phases.

    .. math:: f(t) = f_i \ \text{for}\ u_{i-1} < t \le u_i, \qquad u_0 = 0,\ u_n = \infty

    Paper: Sukhbaatar et al. 2015, section 4.2: another learning rate during the linear start, which
    is then halved at given epochs.

    Args:
        factors: the factors, f_1 to f_n.
        until: the last step of each factor but the last one, u_1 to u_{n-1}, in increasing order.

    Shapes:
        a step, an integer -> a factor, a float.
    """

    name: ClassVar[str] = "piecewise"
    paper: ClassVar[str] = "Sukhbaatar et al. 2015, End-To-End Memory Networks, arXiv:1503.08895"
    test_params: ClassVar[Mapping[str, Any]] = {"factors": [0.2, 1.0, 0.5], "until": [2, 5]}

    def __init__(
        self,
        *,
        factors: Annotated[list[NonNegative], Field(min_length=1)],
        until: list[Annotated[int, Field(ge=1)]],
    ) -> None:
        if len(factors) != len(until) + 1:
            raise ZooError(
                f"'factors' has {len(factors)} values and 'until' {len(until)}; each factor except "
                "the last needs its last step in 'until'"
            )
        if any(later <= earlier for earlier, later in pairwise(until)):
            raise ZooError(f"the steps in 'until' must increase, found {until}")
        self.factors = factors
        self.until = until

    def factor(self, step: int) -> float:
        return float(self.factors[bisect_left(self.until, step)])
