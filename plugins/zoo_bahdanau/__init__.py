"""Bahdanau et al. 2015: additive attention, also with a normalised vector (Raffel et al. 2017)."""

from collections.abc import Sequence

from zoo.plugin import Component, hookimpl
from zoo_bahdanau.additive import Additive
from zoo_bahdanau.benchmark_additive import AdditiveAttention
from zoo_bahdanau.benchmark_additive_cpu import AdditiveAttentionCpu
from zoo_bahdanau.benchmark_additive_cpu_forward import AdditiveAttentionCpuForward
from zoo_bahdanau.normalised_additive import NormalisedAdditive


@hookimpl
def zoo_components() -> Sequence[type[Component]]:
    return [
        Additive,
        NormalisedAdditive,
        AdditiveAttention,
        AdditiveAttentionCpu,
        AdditiveAttentionCpuForward,
    ]
