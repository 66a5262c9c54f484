"""Connectionist temporal classification (CTC) and log-mel features for speech recognition."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Benchmark, Embedding, Objective, Sampler, hookimpl
from zoo_ctc.benchmark_ctc_beam import CtcBeamBenchmark
from zoo_ctc.benchmark_ctc_beam_cpu import CtcBeamCpuBenchmark
from zoo_ctc.benchmark_ctc_loss import CtcLossBenchmark
from zoo_ctc.benchmark_ctc_loss_cpu import CtcLossCpuBenchmark
from zoo_ctc.ctc import Ctc
from zoo_ctc.ctc_attention import CtcAttention
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_ctc.ctc_recogniser import CtcRecogniser
from zoo_ctc.joint_ctc import JointCtc
from zoo_ctc.joint_ctc_search import JointCtcSearch
from zoo_ctc.log_mel import LogMel
from zoo_ctc.subsampled import Subsampled


@hookimpl
def zoo_components() -> Sequence[type[Benchmark | Embedding | Model | Objective | Sampler]]:
    return [
        LogMel,
        Subsampled,
        Ctc,
        JointCtc,
        CtcRecogniser,
        CtcAttention,
        CtcGreedy,
        CtcPrefixBeam,
        JointCtcSearch,
        CtcLossBenchmark,
        CtcLossCpuBenchmark,
        CtcBeamBenchmark,
        CtcBeamCpuBenchmark,
    ]
