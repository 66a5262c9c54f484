"""Benchmark 'gat-batch'."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

import zoo
from zoo_lab.bench.result import Goal
from zoo_lab.benchmarks.training_benchmark import Batch, TrainingBenchmark, make_step


class GatBatch(TrainingBenchmark):
    """A training step of the GAT for Cora on a batch of small graphs, against a batch of
    torch-geometric.

    Args:
        spec: the spec of the model.
        batch: number of graphs.
        nodes: number of nodes of a graph; it has three edges for each.
    """

    name: ClassVar[str] = "gat-batch"
    sweep: ClassVar[Mapping[str, Sequence[Any]]] = {"batch": (8, 64)}
    packages: ClassVar[Sequence[str]] = ("torch-geometric",)
    test_params: ClassVar[Mapping[str, Any]] = {"spec": "gat-tiny", "batch": 2, "nodes": 5}

    def __init__(
        self,
        *,
        spec: str = "gat-cora",
        batch: Annotated[int, Field(ge=1)] = 8,
        nodes: Annotated[int, Field(ge=2)] = 32,
    ) -> None:
        self.spec, self.batch, self.nodes = spec, batch, nodes

    def prepare(self, device: torch.device) -> None:
        model = zoo.compose(self.spec, device=device)
        generator = torch.Generator().manual_seed(0)
        batch = model.example(self.batch, self.nodes, generator)
        self.prepare_step(model, zoo.objective(self.spec), batch)

    def checked_batch(self) -> Batch:
        return self.batch_on_device

    def peers(self) -> Mapping[str, Callable[[], Callable[[], Any]]]:
        return {"torch-geometric": self._torch_geometric}

    def _torch_geometric(self) -> Callable[[], Any]:
        from torch_geometric.data import Batch as Graphs, Data

        graphs = []
        for x, edges, y in zip(
            *(self.batch_on_device[key] for key in ("features", "edges", "target")), strict=True
        ):
            present = edges[(edges >= 0).all(dim=-1)]
            graphs.append(Data(x=x, edge_index=present.T.contiguous(), y=y))
        graph: Any = Graphs.from_data_list(graphs)
        peer = GeometricGat(zoo.load_spec(self.spec).resolve()["model"]).to(self.device)

        def loss() -> Tensor:
            return F.cross_entropy(peer(graph.x, graph.edge_index), graph.y, ignore_index=-100)

        return make_step(loss, peer)

    def goal(self) -> Goal:
        return Goal(ratio=3.0)

    def items(self) -> tuple[int, str]:
        return self.batch, "graphs"


class GeometricGat(nn.Module):
    """The same model with layers of torch-geometric."""

    def __init__(self, model: Mapping[str, Any]) -> None:
        super().__init__()
        from torch_geometric.nn import GATConv

        encoder = model["encoder"]
        width, rate = encoder["hidden"] * encoder["heads"], encoder["attention"]["dropout"]
        self.dropout = encoder["dropout"]
        self.first = GATConv(model["features"], encoder["hidden"], encoder["heads"], dropout=rate)
        self.second = GATConv(
            width, encoder["output"], encoder["output_heads"], concat=False, dropout=rate
        )

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        x = F.dropout(x, self.dropout, self.training)
        x = F.elu(self.first(x, edges))
        x = F.dropout(x, self.dropout, self.training)
        outputs: Tensor = self.second(x, edges)
        return outputs
