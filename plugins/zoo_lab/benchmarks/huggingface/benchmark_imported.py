"""Benchmark 'imported-model'."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

import zoo
from zoo_lab.bench.benchmark import Benchmark
from zoo_lab.benchmarks.huggingface.originals import ORIGINALS, Shape

TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-2}
"""Largest difference of the outputs, relative to the largest."""


class ImportedModel(Benchmark):
    """A model imported from transformers, compared with the original there.

    Both are loaded from files and run in evaluation mode, in bfloat16 on a GPU. Both get the same
    raw inputs: with 'whisper', both compute the features of waveforms in the measured time.

    Args:
        architecture: the architecture.
        part: 'forward' is a forward pass, 'generate' greedy generation with a cache; 'bert' does
            not generate.
        layers: number of blocks, of an encoder and of a decoder.
        dim: width of the states; heads have a width of 64.
        vocab: vocabulary size.
        batch: number of items.
        length: number of tokens of a text or a prompt, or of positions of audio.
        new: number of tokens that are generated.
        compile: whether forward passes of both are compiled, and whether the original generates
            with a static cache, which transformers compiles.
    """

    name: ClassVar[str] = "imported-model"
    target: ClassVar[float | None] = 1.0
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "architecture": (
            "llama",
            "bert",
            "whisper",
            {"architecture": "llama", "part": "generate"},
            {"architecture": "whisper", "part": "generate"},
            {"architecture": "llama", "compile": True},
            {"architecture": "bert", "compile": True},
            {"architecture": "whisper", "compile": True},
            {"architecture": "llama", "part": "generate", "compile": True},
            {"architecture": "whisper", "part": "generate", "compile": True},
        ),
    }
    packages: ClassVar[Sequence[str]] = ("transformers",)
    test_params: ClassVar[Mapping[str, Any]] = {
        "layers": 1,
        "dim": 32,
        "vocab": 31,
        "batch": 2,
        "length": 4,
        "new": 3,
    }

    def __init__(
        self,
        *,
        architecture: Literal["llama", "bert", "whisper"] = "llama",
        part: Literal["forward", "generate"] = "forward",
        layers: Annotated[int, Field(ge=1)] = 12,
        dim: Annotated[int, Field(ge=2)] = 768,
        vocab: Annotated[int, Field(ge=8)] = 32_000,
        batch: Annotated[int, Field(ge=1)] = 8,
        length: Annotated[int, Field(ge=4)] = 512,
        new: Annotated[int, Field(ge=1)] = 32,
        compile: bool = False,
    ) -> None:
        if architecture == "bert" and part == "generate":
            raise zoo.ZooError("'bert' does not generate; set part: forward")
        self.architecture, self.part, self.new, self.compile = architecture, part, new, compile
        self.shape = Shape(layers=layers, dim=dim, vocab=vocab, batch=batch, length=length)

    def prepare(self, device: torch.device) -> None:
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        self.device = device
        self.dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        with torch.device("cpu"):
            original = ORIGINALS[self.architecture](self.shape)
        self.original = original
        with tempfile.TemporaryDirectory(prefix="zoo-imported-") as folder:
            original.model.save_pretrained(Path(folder, "original"))
            self.theirs = type(original.model).from_pretrained(Path(folder, "original")).eval()
            file = zoo.import_model(Path(folder, "original"), Path(folder, "model.safetensors"))
            self.ours = zoo.load(file, device=device).to(self.dtype)
        self.theirs.to(device, self.dtype)
        if original.raw is not None:  # both generate; all sequences have the same length
            self.ours.eos, self.theirs.generation_config.eos_token_id = (), None
        self.inputs = self._move(original.inputs)
        self.batch = self._move(original.batch)
        self.forward = self._compiled(self.ours)

    def _move(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors on the device, in the dtype of the model."""
        return {
            name: tensor.to(self.device, self.dtype if tensor.is_floating_point() else None)
            for name, tensor in tensors.items()
        }

    def check(self) -> None:
        """Compare the outputs of a forward pass with those of the original."""
        found, expected = self._forward(), self._original_outputs(self.theirs)
        error, size = (found - expected).abs().max(), expected.abs().max()
        tolerance = TOLERANCES[self.dtype]
        assert error <= tolerance * size, f"outputs differ by {error} of {size}"

    def run(self) -> Any:
        return self._forward() if self.part == "forward" else self._generate()

    @torch.no_grad()
    def _forward(self) -> Tensor:
        logits: Tensor = self.forward(self.batch).logits
        return logits

    def _generate(self) -> Any:
        return zoo.generate(
            self.ours, self.original.raw, sampler="greedy", filters=[], max_length=self.new
        )

    @torch.no_grad()
    def _original_outputs(self, model: Callable[..., Any]) -> Tensor:
        outputs = model(**self.inputs, **self._preprocessed())
        name = "logits" if hasattr(outputs, "logits") else "last_hidden_state"
        result: Tensor = outputs[name]
        return result

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        if self.part == "forward":
            name = "transformers, compiled" if self.compile else "transformers"
            return {name: self._original_forward}
        if self.compile:
            static = partial(self._original_tokens, cache_implementation="static")
            return {"transformers, static cache": lambda: static}
        return {"transformers": lambda: self._original_tokens}

    def _original_forward(self) -> Callable[[], Any]:
        return partial(self._original_outputs, self._compiled(self.theirs))

    def _compiled(self, model: torch.nn.Module) -> Callable[..., Any]:
        is_compiled = self.compile and self.part == "forward"
        return torch.compile(model) if is_compiled else model

    def _original_tokens(self, **options: Any) -> Any:
        return self.theirs.generate(
            **self._move(self.original.prompt),
            **self._preprocessed(),
            **options,
            do_sample=False,
            max_new_tokens=self.new,
        )

    def _preprocessed(self) -> dict[str, Tensor]:
        return self._move(self.original.preprocess(self.device))

    def items(self) -> tuple[int, str]:
        count = self.shape.batch * (self.shape.length if self.part == "forward" else self.new)
        return count, "positions" if self.part == "forward" else "tokens"
