"""Language models that a search through labels can ask."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from zoo import Model, ZooError, load
from zoo_ctc.arpa import ArpaLanguage, read_arpa


class Language(Protocol):
    """Knows what labels follow others."""

    def following(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Log-probabilities of each label [N, V] and of the end [N] after N histories."""


class ModelLanguage:
    """A language model of the zoo, n-gram or any other, whose symbols are the labels'."""

    def __init__(self, model: Model) -> None:
        if model.reads != "prompt":
            raise ZooError(f"model '{model.name}' goes on with no prompt: it is no language model")
        self.model = model.eval()

    @torch.no_grad()
    def following(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        room = self.model.symbols("target")
        if room < vocab:
            raise ZooError(f"the language model has {room} symbols, the frames {vocab}")
        speech = self.model.speech({"prompt": self._told(histories)})
        assert speech.prompt is not None
        logits = speech.decoder(speech.prompt, speech.memory).double()  # [N, P, V]
        last = torch.tensor([len(history) for history in histories], device=logits.device)
        rows = logits[torch.arange(len(histories), device=logits.device), last].log_softmax(dim=-1)
        found = rows.cpu().numpy()
        return found[:, :vocab], np.logaddexp.reduce(found[:, list(speech.ends)], axis=1)

    def _told(self, histories: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """The histories after the start token; what fills the shorter ones is never asked for."""
        first: int = self.model.bos  # type: ignore[assignment]
        longest = max(map(len, histories))
        rows = [[first, *history, *[first] * (longest - len(history))] for history in histories]
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        return torch.tensor(rows, device=device)


def load_language(path: str, symbols: str | None) -> Language:
    """The ARPA file (.arpa) or model file of the zoo at a path."""
    if Path(path).suffix == ".arpa":
        return ArpaLanguage(read_arpa(path), None if symbols is None else _names(symbols))
    return ModelLanguage(load(path))


def _names(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not UTF-8 text, so no list of symbols") from None
