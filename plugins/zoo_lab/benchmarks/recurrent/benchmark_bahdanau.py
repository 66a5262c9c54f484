"""Benchmark of the Bahdanau model."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

import zoo
from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_lab.bench.benchmark import Benchmark, Bound


class TextbookDecoder(nn.Module):
    """Attentive GRU decoder as in tutorials: a loop over the tokens, without encoder and output."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(2 * width, width)
        self.query = nn.Linear(width, width)
        self.score = nn.Linear(width, 1)
        self.step: Callable[..., Tensor] = self._step

    def forward(self, y: Tensor, keys: Tensor, memory: Tensor) -> Tensor:
        """Compute the states [B, T, D] of inputs y [B, T, D]; keys and memory are [B, S, D]."""
        s = torch.zeros_like(y[:, 0])
        states = []
        for t in range(y.shape[1]):
            s = self.step(y[:, t], s, keys, memory)
            states.append(s)
        return torch.stack(states, dim=1)

    def _step(self, y: Tensor, s: Tensor, keys: Tensor, memory: Tensor) -> Tensor:
        scores = self.score(torch.tanh(self.query(s)[:, None] + keys)).squeeze(-1)
        context = torch.bmm(scores.softmax(dim=-1)[:, None], memory).squeeze(1)
        state: Tensor = self.cell(torch.cat([y, context], dim=-1), s)
        return state


class BahdanauModel(Benchmark):
    """Forward and backward pass of a whole Bahdanau model, against a textbook decoder loop.

    The model has a bidirectional GRU encoder, an attentive GRU decoder, embeddings and an output
    layer, in float32. On a GPU both passes are one CUDA graph, as in training. The peers compute
    only the loop of the decoder.

    Args:
        batch: number of items.
        length: length of sources and targets.
        width: width of embeddings, states, scores and memory.
        vocab: vocabulary size.
    """

    name: ClassVar[str] = "bahdanau-model"
    paper: ClassVar[str] = (
        "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align and "
        "Translate, arXiv:1409.0473"
    )
    target: ClassVar[float | None] = 8.0
    memory_target: ClassVar[float | None] = 0.5
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "length": (64, 128, 256, *({"length": n, "batch": 8} for n in (256, 512, 1024))),
        "batch": (1, 8, 64, 512),
    }
    test_params: ClassVar[Mapping[str, Any]] = {"batch": 2, "length": 4, "width": 8, "vocab": 11}

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        length: Annotated[int, Field(ge=2)] = 64,
        width: Annotated[int, Field(ge=2, multiple_of=2)] = 512,
        vocab: Annotated[int, Field(ge=4)] = 1000,
    ) -> None:
        self.batch, self.length, self.width, self.vocab = batch, length, width, vocab

    def prepare(self, device: torch.device) -> None:
        spec = {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": self.vocab, "dim": self.width},
            "encoder": {"type": "gru", "hidden": self.width // 2, "bidirectional": True},
            "decoder": {
                "type": "attentive-rnn",
                "hidden": self.width,
                "attention": {
                    "scorer": {"type": "additive", "hidden": self.width},
                    "align": "soft",
                },
            },
        }
        model = zoo.compose({"zoo": 1, "name": "bahdanau", "model": spec}).to(device)
        self.model = zoo.accelerate(model.train())
        shape = (self.batch, self.length + 1)
        self.inputs = {
            "source": torch.randint(3, self.vocab, (self.batch, self.length), device=device),
            "target": torch.randint(3, self.vocab, shape, device=device),
        }
        self.graphed = GraphedFunction(self._forward_and_backward)

    def run(self) -> None:
        on_gpu = self.inputs["source"].is_cuda
        (self.graphed if on_gpu else self._forward_and_backward)(self.inputs)

    def _forward_and_backward(self, batch: Mapping[str, Tensor]) -> None:
        self.model.zero_grad(set_to_none=False)
        torch.autograd.backward(_loss(self.model, batch))

    def check(self) -> None:
        """Compare with the loop over single tokens: float32 within 0.01 %, bfloat16 within 5 %."""
        for dtype, tolerance in ((torch.float32, 1e-4), (torch.bfloat16, 5e-2)):
            model = zoo.accelerate(copy.deepcopy(self.model).to(dtype))
            actual = _loss_and_gradients(model, self.inputs)
            with zoo.recording(model):
                expected = _loss_and_gradients(model, self.inputs)
            for name, tensor in expected.items():
                error = torch.linalg.vector_norm(actual[name] - tensor)
                size = torch.linalg.vector_norm(tensor)
                assert error <= tolerance * size, f"{name} in {dtype}: {error} of {size}"

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {
            "textbook loop": self._textbook,
            "textbook loop, compiled step": lambda: self._textbook(compiled=True),
        }

    def _textbook(self, compiled: bool = False) -> Callable[[], Any]:
        device = next(self.model.parameters()).device
        decoder = TextbookDecoder(self.width).to(device)
        if compiled:
            decoder.step = torch.compile(decoder._step)
        shape = (self.batch, self.length, self.width)
        y, keys, memory = (torch.randn(shape, device=device) for _ in range(3))

        def run() -> None:
            decoder.zero_grad()
            decoder(y, keys, memory).sum().backward()

        return run

    def bound(self) -> Bound:
        weights = 16 * self.width**2  # products of encoder, keys, decoder and readout per token
        tokens = self.batch * self.length
        return Bound(operations=3 * 2 * tokens * (weights + self.vocab * self.width // 2))

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "target tokens"


def _loss(model: nn.Module, batch: Mapping[str, Tensor]) -> Tensor:
    outputs = model(batch)
    return F.cross_entropy(outputs.logits.flatten(0, 1), outputs.targets.flatten())


def _loss_and_gradients(model: nn.Module, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    model.zero_grad()
    loss = _loss(model, batch)
    torch.autograd.backward(loss)
    gradients = {name: p.grad.float() for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach().float(), **gradients}
