"""Metrics of token sequences, labels, numbers and texts."""

from collections.abc import Sequence

from zoo.plugin import Metric, hookimpl
from zoo_metrics.accuracy import Accuracy
from zoo_metrics.bleu import BLEU
from zoo_metrics.cer import CER
from zoo_metrics.chrf import ChrF
from zoo_metrics.cider import CIDEr
from zoo_metrics.entity_f1 import EntityF1
from zoo_metrics.exact_match import ExactMatch
from zoo_metrics.hamming_loss import HammingLoss
from zoo_metrics.macro_f1 import MacroF1
from zoo_metrics.mae import MAE
from zoo_metrics.matthews import Matthews
from zoo_metrics.meteor_15 import METEOR15
from zoo_metrics.meteor_2005 import METEOR2005
from zoo_metrics.micro_f1 import MicroF1
from zoo_metrics.mse import MSE
from zoo_metrics.nist import NIST
from zoo_metrics.pearson import Pearson
from zoo_metrics.perplexity import Perplexity
from zoo_metrics.retrieval import Retrieval
from zoo_metrics.ribes import RIBES
from zoo_metrics.rouge_coco import ROUGECoco
from zoo_metrics.rouge_google import ROUGEGoogle
from zoo_metrics.sequence_accuracy import SequenceAccuracy
from zoo_metrics.spearman import Spearman
from zoo_metrics.ter import TER
from zoo_metrics.wer import WER


@hookimpl
def zoo_components() -> Sequence[type[Metric]]:
    return [
        Accuracy,
        SequenceAccuracy,
        ExactMatch,
        HammingLoss,
        MicroF1,
        MacroF1,
        Matthews,
        EntityF1,
        Retrieval,
        MSE,
        MAE,
        Pearson,
        Spearman,
        Perplexity,
        BLEU,
        ChrF,
        TER,
        ROUGEGoogle,
        ROUGECoco,
        METEOR2005,
        METEOR15,
        CIDEr,
        NIST,
        RIBES,
        WER,
        CER,
    ]
