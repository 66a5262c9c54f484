"""Shared by the benchmarks of generation: our loop, the reference path, and transformers."""

import copy
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

import zoo
from zoo import Model
from zoo.plugin import DecodeRequest, GenerationInputs, Sampler, decode
from zoo_lab.bench.benchmark import Benchmark

STEPS = 8
"""Steps whose logits are compared."""


class GenerationBenchmark(Benchmark):
    """Generates a fixed number of tokens: no token ends a sequence.

    A subclass sets the attributes in `prepare`: model and its inputs, sampler and length.
    """

    model: Model
    inputs: Mapping[str, Tensor]
    sampler: Sampler
    length: int

    def run(self) -> Any:
        return self._generate(self.model, self.length)

    def check(self) -> None:
        """Compare with the reference path, without Triton kernels and CUDA graphs.

        Logits of single steps: float32 within 0.1 %, bfloat16 within 5 % of the largest logit.
        Float32 tokens: equal for at least nine of ten items, since logits can be nearly equal.
        """
        model = zoo.accelerate(copy.deepcopy(self.model))  # a copy is plain
        for dtype, tolerance in ((torch.float32, 1e-3), (torch.bfloat16, 5e-2)):
            model.to(dtype)
            if dtype == torch.bfloat16 and self._device.type == "cpu":
                continue
            actual = self._step_logits(model)
            with reference_path():
                expected = self._step_logits(model)
            error, size = (actual - expected).abs().max(), expected.abs().max()
            assert error <= tolerance * size, f"logits in {dtype}: {error} of {size}"
        model.float()
        length = min(self.length, 2 * STEPS)
        found = self._generate(model, length).tokens[:, 0]
        with reference_path():
            expected = self._generate(model, length).tokens[:, 0]
        equal = (found == expected).all(dim=-1).float().mean()
        assert equal >= 0.9, f"the tokens of {1 - equal:.0%} of the items differ"

    @property
    def _device(self) -> torch.device:
        return next(iter(self.inputs.values())).device

    @torch.no_grad()
    def _prepare(self, model: Model) -> GenerationInputs:
        return replace(model.prepare_generation(self.inputs), eos=())

    def _generate(self, model: Model, length: int) -> Any:
        return decode(self._prepare(model), DecodeRequest(sampler=self.sampler, max_length=length))

    @torch.no_grad()
    def _step_logits(self, model: Model) -> Tensor:
        """Return the logits of steps with the same random tokens, and a changed order of rows."""
        inputs, W = self._prepare(model), self.sampler.width
        generator = torch.Generator().manual_seed(0)
        rows = W * inputs.memory.states.shape[0]
        vocab = self._vocab()
        tokens = torch.randint(1, vocab, (rows, STEPS), generator=generator).to(self._device)
        order = (torch.arange(rows).view(-1, W).flip(1).flatten()).to(self._device)
        state = inputs.decoder.start(inputs.memory, steps=STEPS).repeat(W)
        logits = []
        for step in range(STEPS):
            found, state = inputs.decoder.step(tokens[:, step, None], state)
            logits.append(found.float())
            state = state.reorder(order)
        return torch.cat(logits, dim=1)

    @abstractmethod
    def _vocab(self) -> int:
        """Return the vocabulary size."""

    @abstractmethod
    def _build_peer(self) -> tuple[Any, Mapping[str, Any]]:
        """Return a model of transformers of the same size and the inputs of its `generate`."""

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        peers: dict[str, Callable[[], Callable[[], Any]]] = {
            "transformers": lambda: self._peer({}),
            "transformers, static cache": lambda: self._peer({"cache_implementation": "static"}),
        }
        if self._device.type == "cuda":
            peers["transformers, static cache, compiled"] = lambda: self._peer(
                {"cache_implementation": "static"}, compiled=True
            )
        return peers

    def _peer(self, options: Mapping[str, Any], compiled: bool = False) -> Callable[[], Any]:
        model, inputs = self._build_peer()
        model.to(self._device, next(self.model.parameters()).dtype).eval()
        if compiled:
            model.forward = torch.compile(model.forward, mode="reduce-overhead")

        def run() -> Any:
            return model.generate(
                **inputs,
                **options,
                num_beams=self.sampler.width,
                do_sample=False,
                min_new_tokens=self.length,
                max_new_tokens=self.length,
            )

        return run


def build_model(
    model: Mapping[str, Any], sampler: str | Mapping[str, Any], device: torch.device
) -> tuple[Model, Sampler]:
    """Return a model in evaluation mode, in bfloat16 on a GPU, and a sampler."""
    spec = {"zoo": 1, "name": "benchmark", "model": model, "sampler": sampler}
    with device:
        built: Model = zoo.compose(spec)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    section = zoo.load_spec(spec).sections.sampler
    assert section is not None
    return zoo.accelerate(built.to(device, dtype).eval()), section.build()


@contextmanager
def reference_path() -> Iterator[None]:
    """Use neither Triton kernels nor CUDA graphs inside the block."""
    names = ("ZOO_TRITON", "ZOO_CUDA_GRAPHS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "off"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
