"""Base of the benchmarks of graph attention layers."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

import zoo
from zoo_fast.device.cuda_graph import GraphedFunction
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList
from zoo_lab.bench.benchmark import Benchmark, Bound

Size = Annotated[int, Field(ge=1)]


class LayerBenchmark(Benchmark):
    """A graph attention layer with self-loops, forward and backward, against torch-geometric.

    The graph is random. All layers get the same features, which need no gradient, and the same
    gradient of the output. The edges of the peer are sorted by target, ours are not; the layer
    sorts them in the first call and keeps the order. Compiled peers get a list with self-loops, so
    that shapes are fixed.

    Args:
        recorded: on a GPU, capture both passes as a CUDA graph, as training does and as the peer in
            its mode reduce-overhead.
    """

    def __init__(
        self,
        *,
        nodes: Size,
        edges: Size,
        features: Size,
        heads: Size,
        head_dim: Size,
        recorded: bool,
    ) -> None:
        self.nodes, self.edges, self.features = nodes, edges, features
        self.heads, self.head_dim, self.recorded = heads, head_dim, recorded

    @abstractmethod
    def build_layer(self) -> EdgeAttention:
        """Return the measured layer."""

    @abstractmethod
    def build_peer(self, *, add_self_loops: bool) -> nn.Module:
        """Return the layer of torch-geometric."""

    def sample_features(self) -> Tensor:
        """Return random features [nodes, features]."""
        return torch.randn(self.nodes, self.features)

    def prepare(self, device: torch.device) -> None:
        self.device = device
        self.layer = zoo.accelerate(self.build_layer().to(device))
        self.x = self.sample_features()[None].to(device)
        self.mask = torch.ones(1, self.nodes, dtype=torch.bool, device=device)
        self.edge_list = torch.randint(self.nodes, (1, self.edges, 2), device=device)
        self.grad = torch.randn(1, self.nodes, self.heads * self.head_dim, device=device)
        self.pairs = EdgeList.from_batch(self.edge_list, self.mask, self_loops=True)
        self.graph = GraphedFunction(lambda inputs: self._forward_and_backward())

    def check(self) -> None:
        """Compare output and gradients with the reference path, on a small graph with a hub."""
        tolerances = {torch.float32: 1e-4, torch.bfloat16: 2e-2}
        if self.device.type == "cpu":
            del tolerances[torch.bfloat16]  # there is only the reference path
        for dtype, tolerance in tolerances.items():
            layer = copy.deepcopy(self.layer).to(dtype)
            N = min(self.nodes, 4097)
            x = torch.randn(2, N, self.features, device=self.device, dtype=dtype)
            edges = torch.randint(N, (2, 16 * N, 2), device=self.device)
            edges[0, ::2, 1] = 0
            edges[1, -3:] = -1
            mask = torch.ones(2, N, dtype=torch.bool, device=self.device)
            mask[1, N // 2 :] = False
            pairs = EdgeList.from_batch(edges, mask, self_loops=True)
            reference = _results(layer, x, mask, pairs)
            expected = _results(copy.deepcopy(layer).float(), x.float(), mask, pairs)
            found = _results(zoo.accelerate(layer), x, mask, pairs)
            for name, value in expected.items():
                error, rounding = (
                    (results[name] - value).norm() / value.norm().clamp(min=1e-6)
                    for results in (found, reference)
                )
                # Gradients of scores are differences, which bfloat16 rounds in any order.
                max_error = tolerance + 1.5 * rounding
                assert error < max_error, f"{name} differs by {error:.1e} in {dtype}"

    def run(self) -> Any:
        is_captured = self.recorded and self.device.type == "cuda"
        return self.graph({}) if is_captured else self._forward_and_backward()

    def _forward_and_backward(self) -> Sequence[Tensor]:
        return _backward(self.layer, self.layer(self.x, self.mask, self.pairs), self.grad)

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        def eager() -> Callable[[], Any]:
            return self._peer(add_self_loops=True)

        def compiled(mode: str) -> Callable[[], Callable[[], Any]]:
            return lambda: self._peer(add_self_loops=False, mode=mode)

        return {
            "torch-geometric": eager,
            "torch-geometric, compiled": compiled("default"),
            "torch-geometric, reduce-overhead": compiled("reduce-overhead"),
        }

    def _peer(self, *, add_self_loops: bool, mode: str | None = None) -> Callable[[], Any]:
        layer = self.build_peer(add_self_loops=add_self_loops).to(self.device)
        edges = self.edge_list[0].T
        if not add_self_loops:
            loops = torch.arange(self.nodes, device=self.device).expand(2, -1)
            edges = torch.cat([edges[:, edges[0] != edges[1]], loops], dim=1)
        edges = edges[:, edges[1].argsort()].contiguous()
        function = layer if mode is None else torch.compile(layer, mode=mode)
        x, grad = self.x[0], self.grad[0]
        return lambda: _backward(layer, function(x, edges), grad)

    def bound(self) -> Bound:
        """Two reads of the values or gradients of each edge, and the dense tensors."""
        width, pairs = self.heads * self.head_dim, self.edges + self.nodes
        per_node = 2 * self.features + 6 * width
        operations = 4 * self.nodes * self.features * width
        return Bound(4.0 * (2 * pairs * width + self.nodes * per_node), operations)

    def items(self) -> tuple[int, str]:
        return self.edges, "edges"


def _backward(layer: nn.Module, output: Tensor, grad: Tensor) -> Sequence[Tensor]:
    return torch.autograd.grad(output, list(layer.parameters()), grad)


def _results(layer: nn.Module, x: Tensor, mask: Tensor, edges: EdgeList) -> dict[str, Tensor]:
    """Return output and gradients in float32; the gradient of the output is fixed."""
    x = x.clone().requires_grad_()
    output = layer(x, mask, edges)
    named = {"x": x, **dict(layer.named_parameters())}
    generator = torch.Generator().manual_seed(1)
    grad = torch.randn(output.shape, generator=generator).to(output)
    grads = torch.autograd.grad(output, list(named.values()), grad)
    gradients = {name: value.float() for name, value in zip(named, grads, strict=True)}
    return {"output": output.detach().float(), **gradients}
