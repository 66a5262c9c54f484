"""CTC prefix beam search: the likeliest labels, over all their paths."""

from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from zoo import GenerationOutput, ZooError
from zoo.plugin import FrameSampler
from zoo_ctc.language_models import LabelLanguageModel, load_language_model
from zoo_ctc.prefix_search import BeamConfig, search


class CtcPrefixBeam(FrameSampler):
    r"""Follows the W best prefixes of labels through the frames, all paths of each together.

    .. math::
        s(y) = \log p(y \mid x) + \alpha \log p_{\mathrm{LM}}(y\,\$) + \beta\,|y|

    where $ is the end, which the language model judges after the last frame. With a beam wide
    enough for every prefix the score is exact; a prefix that falls out of a narrow one takes its
    paths with it, so the score can only be too low. Frames are searched on the host.

    Paper: Graves 2012, section 7.5.3; Hannun et al. 2014, algorithm 1, for the language model.

    Args:
        width: prefixes followed at once, W.
        n_best: how many are returned; all of them if not set.
        prune: symbols less likely than this at a frame extend no prefix there, but for the
            likeliest.
        language: path of a language model over the labels: an ARPA file (.arpa) or a model file
            of the zoo, as `zoo compose` writes one of a language-model; its symbols are numbered
            as the labels.
        symbols: path of a text file with the ARPA file's word for each label, one a line from
            label 0 on; their numbers if not set.
        weight: of the language model, alpha.
        bonus: for each label, beta; makes up for what a language model takes from long answers.

    Shapes:
        logprobs [B, T, V], mask [B, T] -> tokens [B, n_best, U], scores [B, n_best].
    """

    name: ClassVar[str] = "ctc-prefix-beam"
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
        language: str | None = None,
        symbols: str | None = None,
        weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0,
        bonus: Annotated[float, Field(allow_inf_nan=False)] = 0.0,
    ) -> None:
        if n_best is not None and n_best > width:
            raise ZooError(f"n_best ({n_best}) must not be above width ({width})")
        if language is None and bonus:
            raise ZooError(f"bonus ({bonus:g}) makes up for a language model, but there is none")
        if symbols is not None and (language is None or Path(language).suffix != ".arpa"):
            raise ZooError("'symbols' names the words of an ARPA file, but 'language' is none")
        for path in filter(None, (language, symbols)):
            if not Path(path).is_file():
                raise ZooError(f"there is no file {path}")
        self.width = width
        self.n_best = n_best or width
        self.path = language
        self.symbols = symbols
        self.config = BeamConfig(width, prune, weight, bonus)

    @cached_property
    def language(self) -> LabelLanguageModel | None:
        """Read when first needed; set it to use another than a file's."""
        return None if self.path is None else load_language_model(self.path, self.symbols)

    def decode_frames(
        self, logprobs: Tensor, mask: Tensor, *, blank: int, pad: int
    ) -> GenerationOutput:
        frames, lengths = logprobs.double().cpu().numpy(), mask.sum(dim=1).tolist()
        found = [
            search(rows[:length], blank, self.config, self.language)[: self.n_best]
            for rows, length in zip(frames, lengths, strict=True)
        ]
        longest = max((len(labels) for ranked in found for labels, _ in ranked), default=1)
        shape = (len(found), self.n_best)
        tokens = torch.full((*shape, max(longest, 1)), pad, device="cpu")
        scores = torch.full(shape, float("-inf"), dtype=torch.float64, device="cpu")
        for item, ranked in enumerate(found):
            for place, (labels, score) in enumerate(ranked):
                tokens[item, place, : len(labels)] = torch.tensor(labels, device="cpu")
                scores[item, place] = score
        return GenerationOutput(tokens.to(mask.device), scores.to(logprobs))
