"""Parity with the authors' checkpoint for Cora: logits, attention weights and accuracy."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import zoo

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("ZOO_WEIGHTS", ROOT / ".." / "shared" / "weights")) / "gat-cora-petarv"

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the authors' weights are not available; set ZOO_WEIGHTS to their folder",
)


def _original_name(index, what):
    suffix = f"_{index}" if index else ""
    return f"BiasAdd{suffix}/biases" if what == "out" else f"conv1d{suffix}/{what}"


def _load_weights():
    """Convert the names: head h is conv1d_{3h}, conv1d_{3h+1}, conv1d_{3h+2} and BiasAdd_h."""
    raw = {
        name: torch.from_numpy(value)
        for name, value in load_file(FOLDER / "model.safetensors").items()
    }
    weights = {}
    for layer, heads in enumerate((range(8), range(8, 9))):
        prefix = f"encoder.layers.{layer}"
        weights[f"{prefix}.key.weight"] = torch.cat(
            [raw[_original_name(3 * h, "kernel")][0].T for h in heads]
        )
        weights[f"{prefix}.bias"] = torch.cat([raw[_original_name(h, "out")] for h in heads])
        for index, h in enumerate(heads):
            for part, conv in (("u", 3 * h + 1), ("v", 3 * h + 2)):
                scorer = f"{prefix}.scorers.{index}.{part}"
                weights[f"{scorer}.weight"] = raw[_original_name(conv, "kernel")][0].T
                weights[f"{scorer}.bias"] = raw[_original_name(conv, "bias")]
    return weights


@pytest.fixture(scope="module")
def batch():
    data = np.load(FOLDER / "input.npz")
    nodes, width = data["x_shape"]
    features = torch.zeros(int(nodes), int(width))
    rows = np.repeat(np.arange(nodes), np.diff(data["x_indptr"]))
    features[torch.from_numpy(rows), torch.from_numpy(data["x_indices"]).long()] = torch.from_numpy(
        data["x_data"]
    )
    edges = torch.from_numpy(np.stack([data["edge_col"], data["edge_row"]], axis=1)).long()
    return {
        "features": features[None],
        "edges": edges[None],
        "target": torch.from_numpy(data["labels"])[None],
        "mask": torch.from_numpy(data["test_mask"])[None],
    }


@pytest.fixture(scope="module")
def model():
    model = zoo.compose("gat-cora").eval()
    model.load_state_dict(_load_weights())
    return model


def test_logits_and_accuracy_match_the_authors_code(model, batch):
    expected = torch.from_numpy(np.load(FOLDER / "reference.npz")["logits"])
    with torch.no_grad():
        outputs = model(batch)
    torch.testing.assert_close(outputs.logits[0], expected, atol=1e-4, rtol=0)
    correct = outputs.logits.argmax(dim=-1) == outputs.targets
    assert correct[outputs.mask].float().mean().item() == pytest.approx(0.844)


def test_edge_weights_match_the_authors_code(model, batch):
    reference = np.load(FOLDER / "reference.npz")
    nodes, edges = batch["features"].shape[1], batch["edges"][0]
    loops = torch.arange(nodes)[:, None].expand(-1, 2)
    source, target = torch.cat([edges, loops]).T
    rows, columns = (torch.from_numpy(reference[f"att_{n}"]).long() for n in ("rows", "cols"))
    with torch.no_grad(), zoo.recording(model) as log:
        model(batch)
    for layer, name in enumerate(("att_layer1_head0", "att_out_head0")):
        dense = torch.zeros(nodes, nodes)
        dense[target, source] = log[f"encoder.layers.{layer}"][0][0, 0]
        expected = torch.from_numpy(reference[name])
        torch.testing.assert_close(dense[rows, columns], expected, atol=1e-5, rtol=0)
