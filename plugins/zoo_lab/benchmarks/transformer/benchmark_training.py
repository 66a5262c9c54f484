"""Benchmark of a training step of a Transformer."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

import zoo
from zoo.acceleration.binding import bound_accelerations
from zoo.training.local_step import LocalStep, LossModule
from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.benchmarks.transformer.gradient_checks import (
    assert_close,
    relative_error,
    separate_hidden_units,
    without_kernels,
)


class TrainingStep(Benchmark):
    """Training step of an encoder-decoder Transformer in bfloat16, against torch.nn.Transformer.

    A step is forward pass, cross-entropy with tied output layer, backward pass and AdamW, with
    dropout; all parameters are bfloat16.

    Args:
        batch: number of items.
        length: length of sources and targets.
        width: width of the states.
        layers: number of layers of the encoder and of the decoder.
        vocab: vocabulary size.
        dropout: dropout probability.
    """

    name: ClassVar[str] = "training-step"
    paper: ClassVar[str] = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    target: ClassVar[float | None] = 1.5
    memory_target: ClassVar[float | None] = 1.0
    peer_targets: ClassVar[Mapping[str, float]] = {"nn.Transformer, compiled": 3.5}
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (1, 8, 64, 256, 512)}
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 2,
        "length": 5,
        "width": 16,
        "layers": 1,
        "vocab": 13,
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        length: Annotated[int, Field(ge=1)] = 64,
        width: Annotated[int, Field(ge=16, multiple_of=16)] = 512,
        layers: Annotated[int, Field(ge=1)] = 6,
        vocab: Annotated[int, Field(ge=4)] = 32000,
        dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1,
    ) -> None:
        self.batch, self.length, self.width = batch, length, width
        self.layers, self.vocab, self.dropout = layers, vocab, dropout
        self.heads = max(2, width // 64)

    def prepare(self, device: torch.device) -> None:
        self.device = device
        self.model = zoo.compose(self._spec(self.dropout)).to(device, torch.bfloat16).train()
        objective = zoo.objective(self._spec(self.dropout)).to(device)
        module = zoo.accelerate(LossModule(self.model, objective))
        self.step = zoo.accelerate(LocalStep(module, self.model, _adamw(self.model), device=device))
        source = torch.randint(3, self.vocab, (self.batch, self.length), device=device)
        target = torch.randint(3, self.vocab, (self.batch, self.length + 1), device=device)
        self.inputs = {"source": source, "target": target}

    def run(self) -> None:
        self.step(self.inputs)

    def check(self) -> None:
        """Compare loss and gradients without dropout with the reference path: float32 within
        0.01 %, bfloat16 with at most 1.5 times the error of the reference path in bfloat16; then
        captured steps with steps that are not."""
        model = zoo.compose(self._spec(0.0)).to(self.device, torch.bfloat16).train()
        separate_hidden_units(model)
        inputs = {key: tensor.clone() for key, tensor in self.inputs.items()}
        inputs["source"][0, self.length // 2 + 1 :] = 0
        inputs["target"][-1, self.length // 2 + 1 :] = 0
        objective = zoo.objective(self._spec(0.0)).to(self.device)

        def gradients(dtype: torch.dtype, *, enabled: bool) -> dict[str, Tensor]:
            module = LossModule(copy.deepcopy(model).to(dtype), copy.deepcopy(objective))
            return _gradients(zoo.accelerate(module, enabled=enabled), inputs)

        with without_kernels():
            exact = gradients(torch.float32, enabled=False)
            rounded = gradients(torch.bfloat16, enabled=False)
        assert_close(gradients(torch.float32, enabled=True), exact, 1e-4, "float32")
        max_error = 1.5 * relative_error(rounded, exact) + 1e-3
        assert_close(gradients(torch.bfloat16, enabled=True), exact, max_error, "bfloat16")
        self._check_captured_steps(model.float(), objective, inputs)

    def _check_captured_steps(
        self, model: zoo.Model, objective: Any, inputs: Mapping[str, Tensor]
    ) -> None:
        weights = []
        for capture in (False, True):
            trained = copy.deepcopy(model)
            module = zoo.accelerate(LossModule(trained, objective))
            step = LocalStep(module, trained, _adamw(trained), device=self.device)
            zoo.accelerate(step, enabled=capture)
            for _ in range(4):
                step(inputs)
            reasons = [each.why_not(step, self.device) for each in bound_accelerations(step)]
            assert self.device.type != "cuda" or not any(reasons), reasons
            weights.append({name: w.detach() for name, w in trained.named_parameters()})
        assert_close(weights[1], weights[0], 1e-3, "weights after captured steps")

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {
            "nn.Transformer, compiled": lambda: self._peer(None),
            "nn.Transformer, reduce-overhead": lambda: self._peer("reduce-overhead"),
            "nn.Transformer, compiled, step in a CUDA graph": self._peer_in_graph,
        }

    def _peer(self, mode: str | None) -> Callable[[], Any]:
        peer = TorchTransformer(self).to(self.device, torch.bfloat16)
        loss = torch.compile(lambda: peer(self.inputs), mode=mode)
        return _make_step(loss, _adamw(peer))

    def _peer_in_graph(self) -> Callable[[], Any]:
        peer = TorchTransformer(self).to(self.device, torch.bfloat16)
        if self.device.type != "cuda":
            return _make_step(lambda: peer(self.inputs), _adamw(peer))
        optimiser = torch.optim.AdamW(peer.parameters(), fused=True, capturable=True)
        step = _make_step(torch.compile(lambda: peer(self.inputs)), optimiser)
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph.replay

    def bound(self) -> Bound:
        block = 12 * self.width**2  # self-attention and feed-forward
        weights = self.layers * (2 * block + 4 * self.width**2) + self.vocab * self.width
        tokens = self.batch * self.length
        # AdamW reads weight, gradient and two moments, and writes all but the gradient.
        return Bound(bytes=7 * 2 * weights, operations=6 * tokens * weights)

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "target tokens"

    def _spec(self, dropout: float) -> dict[str, Any]:
        part = {
            "layers": self.layers,
            "attention": {"heads": self.heads, "project": "qkv"},
            "feed_forward": {"hidden": 4 * self.width},
            "dropout": dropout,
        }
        return {
            "zoo": 1,
            "name": "training-step",
            "extends": "transformer-base",
            "model": {
                "source": {"vocab": self.vocab, "dim": self.width},
                "encoder": part,
                "decoder": part,
            },
            "objective": {"type": "cross-entropy", "smoothing": 0.0},
        }


class TorchTransformer(nn.Module):
    """The same model with torch.nn.Transformer; returns the loss."""

    def __init__(self, sizes: TrainingStep) -> None:
        super().__init__()
        self.embedding = nn.Embedding(sizes.vocab, sizes.width)
        self.transformer = nn.Transformer(
            sizes.width,
            sizes.heads,
            sizes.layers,
            sizes.layers,
            4 * sizes.width,
            sizes.dropout,
            batch_first=True,
        )
        mask = nn.Transformer.generate_square_subsequent_mask(sizes.length)
        self.register_buffer("mask", mask)

    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        inputs, targets = batch["target"][:, :-1], batch["target"][:, 1:]
        states = self.transformer(
            self.embedding(batch["source"]),
            self.embedding(inputs),
            tgt_mask=self.mask,
            tgt_is_causal=True,
        )
        logits = (states @ self.embedding.weight.T).float()
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _adamw(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(module.parameters(), lr=1e-4, fused=True)


def _make_step(loss: Callable[[], Tensor], optimiser: torch.optim.Optimizer) -> Callable[[], None]:
    def step() -> None:
        loss().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def _gradients(module: LossModule, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    loss = module(inputs)
    loss.backward()
    found = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
    module.zero_grad(set_to_none=True)
    return {"loss": loss.detach(), **found}
