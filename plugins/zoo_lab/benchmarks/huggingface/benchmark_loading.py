"""Benchmark 'loading'."""

import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field
from torch import nn

import zoo
from zoo_lab.bench.benchmark import Benchmark


class Loading(Benchmark):
    """Loading of a GPT-2 model from a file, compared with `from_pretrained` of transformers.

    Both load the same weights in float32 from files in the page cache.

    Args:
        layers: number of blocks.
        dim: width of the states; heads have a width of 64, or half of it if it is smaller.
        vocab: vocabulary size.
        use: whether every weight is read after loading; both libraries map the file.
    """

    name: ClassVar[str] = "loading"
    device_type: ClassVar[str] = "cpu"
    target: ClassVar[float | None] = 8.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"layers": (6, 12, 24), "use": (False, True)}
    packages: ClassVar[Sequence[str]] = ("transformers", "safetensors")
    test_params: ClassVar[Mapping[str, Any]] = {"layers": 2, "dim": 8, "vocab": 11}

    def __init__(
        self,
        *,
        layers: Annotated[int, Field(ge=1)] = 12,
        dim: Annotated[int, Field(ge=2)] = 768,
        vocab: Annotated[int, Field(ge=2)] = 50_257,
        use: bool = False,
    ) -> None:
        self.layers, self.dim, self.vocab, self.use = layers, dim, vocab, use

    def prepare(self, device: torch.device) -> None:
        self.device = device
        self.folder = Path(tempfile.mkdtemp(prefix="zoo-loading-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        overrides = [
            f"model.embedding={{vocab: {self.vocab}, dim: {self.dim}}}",
            f"model.bos={self.vocab - 1}",
            f"model.eos={self.vocab - 1}",
            f"model.decoder.layers={self.layers}",
            f"model.decoder.attention.heads={max(2, self.dim // 64)}",
            f"model.decoder.feed_forward.hidden={4 * self.dim}",
        ]
        model = zoo.compose("gpt2-small", overrides=overrides)
        self.file = zoo.save(model, self.folder / "model.safetensors", probe=False)
        self.weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}

    def check(self) -> None:
        """Compare every weight with the saved model's."""
        loaded = self.run().state_dict()
        assert loaded.keys() == self.weights.keys()
        for name, weight in self.weights.items():
            assert torch.equal(loaded[name].cpu(), weight), f"{name} differs from the saved weight"

    def run(self) -> nn.Module:
        return self._use(zoo.load(self.file, device=self.device))

    def _use(self, model: nn.Module) -> nn.Module:
        if self.use:
            with torch.no_grad():
                torch.stack([weight.sum() for weight in model.parameters()]).sum().item()
        return model

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"transformers": self._transformers}

    def _transformers(self) -> Callable[[], Any]:
        from transformers import GPT2LMHeadModel
        from transformers.utils import logging

        logging.disable_progress_bar()
        folder = zoo.export_model(self.file, self.folder / "exported", to="gpt2")

        def load() -> nn.Module:
            model: nn.Module = GPT2LMHeadModel.from_pretrained(folder)
            return self._use(model.to(self.device))

        return load

    def items(self) -> tuple[int, str]:
        return sum(weight.nbytes for weight in self.weights.values()), "bytes"
