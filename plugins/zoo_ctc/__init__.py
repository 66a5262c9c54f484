"""Connectionist temporal classification (CTC) and log-mel features for speech recognition."""

from collections.abc import Sequence

from zoo import Model
from zoo.plugin import Embedding, Objective, Sampler, hookimpl
from zoo_ctc.convolved import Convolved
from zoo_ctc.ctc import Ctc
from zoo_ctc.ctc_attention import CtcAttention
from zoo_ctc.ctc_greedy import CtcGreedy
from zoo_ctc.ctc_prefix_beam import CtcPrefixBeam
from zoo_ctc.ctc_recogniser import CtcRecogniser
from zoo_ctc.fbank import Fbank
from zoo_ctc.joint_ctc import JointCtc
from zoo_ctc.joint_ctc_search import JointCtcSearch
from zoo_ctc.log_mel import LogMel
from zoo_ctc.padded_log_mel import PaddedLogMel
from zoo_ctc.subsampled import Subsampled


@hookimpl
def zoo_components() -> Sequence[type[Embedding | Model | Objective | Sampler]]:
    return [
        LogMel,
        PaddedLogMel,
        Fbank,
        Subsampled,
        Convolved,
        Ctc,
        JointCtc,
        CtcRecogniser,
        CtcAttention,
        CtcGreedy,
        CtcPrefixBeam,
        JointCtcSearch,
    ]
