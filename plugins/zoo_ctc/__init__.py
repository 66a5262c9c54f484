"""Connectionist temporal classification: labels without an alignment, and speech to use it on."""

from collections.abc import Sequence

from zoo import Model, Objective, Sampler, hookimpl
from zoo_ctc.ctc import Ctc
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.ctc_recogniser import CtcRecogniser


@hookimpl
def zoo_components() -> Sequence[type[Model] | type[Objective] | type[Sampler]]:
    return [Ctc, CtcRecogniser, CtcGreedy]
