"""CTC prefix beam search."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import GenerationOutput, ZooError
from zoo.plugin import FrameSampler, rename_params
from zoo_ctc.language_model_cache import Labels
from zoo_ctc.language_models import LabelLanguageModel, load_language_model
from zoo_ctc.prefix_search import PrefixBeamConfig, search

Results = Sequence[Sequence[tuple[Labels, float]]]


class CtcPrefixBeam(FrameSampler):
    r"""CTC prefix beam search, with an optional language model.

    .. math::
        s(y) = \log p(y \mid x) + \alpha \log p_{\mathrm{LM}}(y\,\$) + \beta\,|y|

    where $ is the end of the sequence, scored by the language model after the last frame. Each
    score sums over all paths of a label sequence. It is exact if the beam is wide enough for every
    prefix, and a lower bound otherwise. The search runs on the CPU.

    Paper: Graves 2012, section 7.5.3; Hannun et al. 2014, algorithm 1, for the language model.

    Args:
        width: beam width W.
        n_best: number of hypotheses to return; by default all.
        prune: labels with a lower probability at a frame do not extend prefixes, except the most
            probable one.
        language_model: path of a language model over the labels: an ARPA file (.arpa) or a zoo
            model file of a language-model, whose token IDs are the labels.
        symbols: path of a text file with the ARPA word of each label, one per line from label 0;
            by default the label IDs.
        weight: weight alpha of the language model.
        length_bonus: score beta added per label, which compensates for the language model's bias
            towards short sequences.

    Shapes:
        logprobs [B, T, V], mask [B, T] -> tokens [B, n_best, U], scores [B, n_best].
    """

    name: ClassVar[str] = "ctc-prefix-beam"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Hannun et al. 2014, First-Pass Large Vocabulary Continuous Speech Recognition using "
        "Bi-Directional Recurrent DNNs, arXiv:1408.2873"
    )

    def __init__(
        self,
        *,
        width: Annotated[int, Field(ge=1, le=4096)] = 16,
        n_best: Annotated[int, Field(ge=1)] | None = None,
        prune: Annotated[float, Field(ge=0, lt=1)] = 0.0,
        language_model: str | None = None,
        symbols: str | None = None,
        weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
        length_bonus: Annotated[float, Field(allow_inf_nan=False)] = 0.0,
    ) -> None:
        if n_best is not None and n_best > width:
            raise ZooError(f"n_best ({n_best}) must be at most width ({width})")
        if language_model is None and length_bonus:
            raise ZooError(
                f"length_bonus ({length_bonus:g}) needs a language_model, but none is set"
            )
        is_arpa = language_model is not None and Path(language_model).suffix == ".arpa"
        if symbols is not None and not is_arpa:
            raise ZooError(
                f"symbols ({symbols}) needs an ARPA file (.arpa) as language_model, but it is "
                f"{language_model or 'not set'}"
            )
        for name, path in (("language_model", language_model), ("symbols", symbols)):
            if path is not None and not Path(path).is_file():
                raise ZooError(f"{name}: {path}: no such file")
        self.width = width
        self.n_best = n_best or width
        self.language_model = language_model
        self.symbols = symbols
        self.config = PrefixBeamConfig(width, prune, weight, length_bonus)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, language="language_model", bonus="length_bonus")
        return params, tensors

    @cached_property
    def lm(self) -> LabelLanguageModel | None:
        """The language model, loaded on first use; can be set to another one."""
        if self.language_model is None:
            return None
        return load_language_model(self.language_model, self.symbols)

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        frames, lengths = logprobs.double().cpu().numpy(), mask.sum(dim=1).tolist()
        results = [
            search(item[:length], blank, self.config, self.lm)[: self.n_best]
            for item, length in zip(frames, lengths, strict=True)
        ]
        return self.pad_results(results, logprobs, pad)

    def pad_results(self, results: Results, logprobs: Tensor, pad: int) -> GenerationOutput:
        """Return the labels and scores of each item in tensors like the log-probabilities."""
        longest = max((len(labels) for ranked in results for labels, _ in ranked), default=1)
        shape = (len(results), self.n_best)
        tokens = torch.full((*shape, max(longest, 1)), pad, device="cpu")
        scores = torch.full(shape, float("-inf"), dtype=torch.float64, device="cpu")
        for item, ranked in enumerate(results):
            for rank, (labels, score) in enumerate(ranked):
                tokens[item, rank, : len(labels)] = torch.tensor(labels, device="cpu")
                scores[item, rank] = score
        return GenerationOutput(tokens.to(logprobs.device), scores.to(logprobs))
