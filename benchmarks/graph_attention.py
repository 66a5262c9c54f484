"""A GAT layer against torch-geometric, forward and backward.

On a CUDA device, checks the Triton kernels against the reference path first; the graph has the size
of ogbn-arxiv (169,343 nodes, 2.33 million edges, 128 -> 8 x 32). On the CPU, with one thread, it
has the size of Cora. Target: 8 x torch-geometric at 1/8 of its memory; 2 x on the CPU.
"""

import time
from collections.abc import Callable

import torch
from gpu import BANDWIDTH, Row, attempt, relative_error, save
from torch import Tensor

from zoo.attention import recording
from zoo.plugin import Blueprint
from zoo_gat.edge_attention import EdgeAttention
from zoo_gat.edges import EdgeList
from zoo_gat.gat import Gat

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make(nodes: int, edges: int, width: int, heads: int, head_dim: int, dtype: torch.dtype):
    x = torch.randn(1, nodes, width, device=DEVICE, dtype=dtype)
    index = torch.randint(0, nodes, (1, edges, 2), device=DEVICE)
    mask = torch.ones(1, nodes, dtype=torch.bool, device=DEVICE)
    layer = EdgeAttention(
        input_dim=width, head_dim=head_dim, heads=heads, merge="concat", scorer=Blueprint.of(Gat)
    ).to(DEVICE, dtype)
    return x, mask, index, layer


def check(rows: list[Row]) -> None:
    for nodes, edges, heads, head_dim in ((1, 1, 1, 1), (50, 400, 3, 5), (4097, 50_000, 8, 32)):
        x, mask, index, layer = make(nodes, edges, 16, heads, head_dim, torch.float32)
        x.requires_grad_()
        edge_list = EdgeList.from_batch(index, mask, self_loops=True)
        tensors = [x, *layer.parameters()]

        def run(layer=layer, x=x, mask=mask, edge_list=edge_list, tensors=tensors):
            output = layer(x, mask, edge_list)
            weights = torch.linspace(-1, 1, output.numel(), device=DEVICE).view_as(output)
            return [output, *torch.autograd.grad((output * weights).sum(), tensors)]

        fused = run()
        with recording(layer):
            expected = run()
        errors = [relative_error(*pair) for pair in zip(fused, expected, strict=True)]
        rows.append({"name": "check", "nodes, edges": [nodes, edges], "errors": errors})
        print(rows[-1], flush=True)
        assert max(errors) < 1e-3, "the kernels differ from the reference"


def layers(nodes: int, edges: int, width: int, heads: int, head_dim: int) -> dict[str, Callable]:
    from torch_geometric.nn import GATConv

    x, mask, index, layer = make(nodes, edges, width, heads, head_dim, torch.float32)
    peer = GATConv(width, head_dim, heads=heads).to(DEVICE)
    by_target = index[0].T[:, index[0, :, 1].argsort()].contiguous()
    kept = EdgeList.from_batch(index, mask, self_loops=True)

    def train(module, *inputs: Tensor) -> None:
        module(*inputs).sum().backward()
        module.zero_grad()

    def reference() -> None:
        with recording(layer):
            train(layer, x, mask, kept)

    compiled = torch.compile(peer)
    return {
        "ours": lambda: train(layer, x, mask, kept),
        "reference path": reference,
        "torch-geometric": lambda: train(peer, x[0], by_target),
        "torch-geometric, compiled": lambda: train(compiled, x[0], by_target),
    }


def cpu_time(function: Callable[[], object]) -> float:
    function()
    times = []
    for _ in range(7):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return sorted(times)[3] * 1e3


def main() -> None:
    torch.manual_seed(0)
    rows: list[Row] = []
    if DEVICE == "cpu":
        torch.set_num_threads(1)
        variants = layers(2708, 10_556, 1433, 8, 8)
        variants.pop("torch-geometric, compiled")
        for name, function in variants.items():
            print(f"{name:30} {cpu_time(function):8.2f} ms")
        return
    check(rows)
    for nodes, edges in ((169_343, 2_332_486), (10_000, 1_000_000), (1_000_000, 20_000_000)):
        for name, function in layers(nodes, edges, 128, 8, 32).items():
            if nodes > 500_000 and name != "ours":
                continue
            attempt(rows, name, function, size=[nodes, edges])
            torch.cuda.empty_cache()
        floor = (3 * edges * 256 + 6 * nodes * 256) * 4 / BANDWIDTH * 1e3
        rows.append({"name": "floor (bytes without cache hits)", "ms": floor})
        print(rows[-1], flush=True)
    save("graph_attention", rows)


if __name__ == "__main__":
    main()
