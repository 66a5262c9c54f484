"""Language models for CTC prefix beam search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

import zoo
from zoo import Model, ZooError
from zoo_ctc.arpa import ArpaLanguageModel, read_arpa


class LabelLanguageModel(Protocol):
    """Language model over labels."""

    def next_logprobs(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return log-probabilities of each label [N, V] and of the end [N] after N histories."""


class ZooLanguageModel:
    """A zoo model that generates from a prompt; its token IDs are the labels."""

    def __init__(self, model: Model) -> None:
        if model.generation_input != "prompt":
            raise ZooError(
                f"model '{model.name}' is not a language model; expected a model that generates "
                "from a prompt"
            )
        self.model = model.eval()

    @torch.no_grad()
    def next_logprobs(
        self, histories: Sequence[tuple[int, ...]], vocab: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        vocab_size = self.model.vocab_size("target")
        if vocab_size < vocab:
            raise ZooError(
                f"the language model has {vocab_size} tokens, but the frames have {vocab} labels"
            )
        generation_inputs = self.model.prepare_generation(
            {"prompt": self._build_prompts(histories)}
        )
        assert generation_inputs.prompt is not None
        logits = generation_inputs.decoder(
            generation_inputs.prompt, generation_inputs.memory
        ).double()  # [N, P, V]
        last = torch.tensor([len(history) for history in histories], device=logits.device)
        rows = logits[torch.arange(len(histories), device=logits.device), last].log_softmax(dim=-1)
        logprobs = rows.cpu().numpy()
        return logprobs[:, :vocab], np.logaddexp.reduce(
            logprobs[:, list(generation_inputs.eos_ids)], axis=1
        )

    def _build_prompts(self, histories: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """Return the histories after bos; shorter ones are padded with bos, which is not used."""
        bos: int = self.model.bos  # type: ignore[assignment]
        longest = max(map(len, histories))
        rows = [[bos, *history, *[bos] * (longest - len(history))] for history in histories]
        device = next((p.device for p in self.model.parameters()), torch.device("cpu"))
        return torch.tensor(rows, device=device)


def load_language_model(path: str, symbols: str | None) -> LabelLanguageModel:
    """Load an ARPA file (.arpa) or a zoo model file."""
    if Path(path).suffix == ".arpa":
        return ArpaLanguageModel(
            read_arpa(path), None if symbols is None else _read_token_names(symbols)
        )
    return ZooLanguageModel(zoo.load(path))


def _read_token_names(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ZooError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise ZooError(f"{path} is not a list of labels: it is not UTF-8 text") from None
