"""Benchmark 'composed-transformer'."""

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

import zoo
from zoo_lab.bench.benchmark import Benchmark, Bound
from zoo_lab.benchmarks.transformer.gradient_checks import (
    assert_close,
    separate_hidden_units,
)
from zoo_lab.benchmarks.transformer.hand_written import HandWrittenTransformer

Loss = Callable[[], Tensor]


class ComposedTransformer(Benchmark):
    """Loss and gradients of a composed Transformer, compared with one written in plain torch.

    Both have the same weights and operations, and run in bfloat16 on a GPU.

    Args:
        batch: number of sentence pairs, B.
        length: number of tokens of source and target.
        vocab: vocabulary size, V.
        dim: width of the states, D.
        heads: number of heads.
        layers: number of blocks of the encoder and of the decoder.
        hidden: width of the feed-forward networks.
        dropout: dropout probability.
        compile: whether both are compiled.
    """

    name: ClassVar[str] = "composed-transformer"
    target: ClassVar[float | None] = 0.98
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {
        "compile": (False, True),
        "batch": (8, 64, 256),
    }
    test_params: ClassVar[Mapping[str, Any]] = {
        "batch": 2,
        "length": 3,
        "vocab": 11,
        "dim": 8,
        "heads": 2,
        "layers": 1,
        "hidden": 8,
    }

    def __init__(
        self,
        *,
        batch: Annotated[int, Field(ge=1)] = 64,
        length: Annotated[int, Field(ge=1)] = 64,
        vocab: Annotated[int, Field(ge=4)] = 32_000,
        dim: Annotated[int, Field(ge=2)] = 512,
        heads: Annotated[int, Field(ge=1)] = 8,
        layers: Annotated[int, Field(ge=1)] = 6,
        hidden: Annotated[int, Field(ge=1)] = 2048,
        dropout: Annotated[float, Field(gt=0, lt=1)] = 0.1,
        compile: bool = True,
    ) -> None:
        self.batch, self.length, self.vocab = batch, length, vocab
        self.dim, self.heads, self.layers, self.hidden = dim, heads, layers, hidden
        self.dropout = dropout
        self.compile = compile

    def prepare(self, device: torch.device) -> None:
        stack = {
            "type": "transformer",
            "layers": self.layers,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": self.heads},
            "feed_forward": {"hidden": self.hidden},
            "position": "sinusoidal",
            "dropout": self.dropout,
        }
        model = {
            "type": "seq2seq",
            "source": {"type": "token", "vocab": self.vocab, "dim": self.dim, "std": 0.05},
            "shared": True,
            "encoder": stack,
            "decoder": {**stack, "output": {"tied": True}},
        }
        self.dtype = dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
        spec = {"zoo": 1, "name": self.name, "model": model}
        self.composed = zoo.accelerate(zoo.compose(spec, device=device, dtype=dtype)).train()
        self.written = self._write(self.composed.state_dict(), dtype, device)
        shape = (self.batch, self.length)
        self.source = torch.randint(1, self.vocab, shape, device=device)
        self.tokens = torch.randint(1, self.vocab, (self.batch, self.length + 1), device=device)
        self.step = self._step(self.composed_loss, self.composed)

    def _write(
        self, weights: Mapping[str, Tensor], dtype: torch.dtype, device: torch.device
    ) -> HandWrittenTransformer:
        """Build the model in plain torch; its table of positions is not converted a second time."""
        with device:
            written = HandWrittenTransformer(
                vocab=self.vocab,
                dim=self.dim,
                heads=self.heads,
                layers=self.layers,
                hidden=self.hidden,
                dropout=self.dropout,
                length=self.length,
            ).to(dtype)
        written.load_state_dict({name: weights[name] for name in written.state_dict()})
        return written

    def composed_loss(self) -> Tensor:
        outputs = self.composed({"source": self.source, "target": self.tokens})
        return F.cross_entropy(outputs.logits.float().flatten(0, 1), self.tokens[:, 1:].flatten())

    def written_loss(self) -> Tensor:
        logits = self.written(self.source, self.tokens[:, :-1])
        return F.cross_entropy(logits.float().flatten(0, 1), self.tokens[:, 1:].flatten())

    def _step(self, loss: Loss, model: torch.nn.Module) -> Callable[[], Any]:
        compiled: Loss = torch.compile(loss) if self.compile else loss
        weights = list(model.parameters())
        return lambda: torch.autograd.grad(compiled(), weights)

    def check(self) -> None:
        """Compare loss and gradients without dropout, plain and accelerated: each tensor in
        float32 within 0.1 %, all together in the dtype of the measurement within 3 %."""
        for enabled in (False, True):
            self._check_dtype(torch.float32, 1e-3, each=True, enabled=enabled)
            self._check_dtype(self.dtype, 3e-2, each=False, enabled=enabled)

    def _check_dtype(
        self, dtype: torch.dtype, tolerance: float, *, each: bool, enabled: bool
    ) -> None:
        trial = copy.copy(self)
        model = copy.deepcopy(self.composed).to(dtype).eval()  # a copy is plain
        trial.composed = zoo.accelerate(model, enabled=enabled)
        trial.written = self._write(self.written.state_dict(), dtype, self.source.device)
        trial.written.eval()
        separate_hidden_units(trial.composed)
        separate_hidden_units(trial.written)
        found = _gradients(trial.composed_loss(), trial.composed)
        expected = _gradients(trial.written_loss(), trial.written)
        assert_close(found, expected, tolerance, f"composed model in {dtype}", each=each)

    def run(self) -> Any:
        return self.step()

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"hand-written": lambda: self._step(self.written_loss, self.written)}

    def bound(self) -> Bound:
        """The matrix products of blocks and output, and weights and gradients."""
        D, T, N = self.dim, self.length, self.batch * self.length
        blocks = self.layers * (12 * D * D + 4 * D * self.hidden)
        scores = self.layers * 3 * 2 * T * D
        weights = blocks + self.vocab * D
        return Bound(bytes=4 * weights, operations=6 * N * (blocks + scores + self.vocab * D))

    def items(self) -> tuple[int, str]:
        return self.batch * self.length, "target tokens"


def _gradients(loss: Tensor, model: torch.nn.Module) -> dict[str, Tensor]:
    """Return the loss and the gradient of each weight, by name, in float32.

    The padding row is left out: the composed model does not train it.
    """
    names, weights = zip(*model.named_parameters(), strict=True)
    grads = torch.autograd.grad(loss, weights)
    found = {name: grad.float() for name, grad in zip(names, grads, strict=True)}
    table = "source.table.weight"
    return {"loss": loss.detach().float(), **found, table: found[table][1:]}
