"""Loading of weights into models with shared tensors, and calls without targets."""

import pytest
import torch
from safetensors.torch import load_file

import zoo


def test_the_file_of_a_saved_model_is_a_complete_state_dict(tmp_path):
    model, other = (zoo.compose("transformer-tiny", seed=seed) for seed in (0, 1))
    weights = load_file(zoo.save(model, tmp_path / "model.safetensors"))
    assert len(weights) < len(model.state_dict())  # source, target and output share a tensor
    other.load_state_dict(weights)
    wrapped = torch.nn.Sequential(zoo.compose("transformer-tiny", seed=2))
    wrapped.load_state_dict({f"0.{name}": tensor for name, tensor in weights.items()})
    for name, tensor in model.state_dict().items():
        assert torch.equal(other.state_dict()[name], tensor)
        assert torch.equal(wrapped[0].state_dict()[name], tensor)
    assert other.decoder.output.embedding.table.weight is other.source.table.weight


def test_missing_and_unknown_weights_are_reported(tmp_path):
    model = zoo.compose("transformer-tiny")
    weights = load_file(zoo.save(model, tmp_path / "model.safetensors"))
    shared = weights.pop("source.table.weight")
    with pytest.raises(RuntimeError, match=r"Missing key.*source\.table\.weight.*output"):
        model.load_state_dict(weights)
    weights |= {"decoder.embedding.table.weight": shared, "other": shared}
    with pytest.raises(RuntimeError, match=r'Unexpected key.*"other"') as caught:
        model.load_state_dict(weights)
    assert "Missing" not in str(caught.value)


TOKENS = {"type": "token", "vocab": 9, "dim": 4}
CLASSIFIER = {
    "type": "classifier",
    "source": TOKENS,
    "encoder": {"type": "gru", "hidden": 3},
    "classes": 2,
    "pooling": "summary",
}
RECOGNISER = {
    "type": "ctc-recogniser",
    "source": TOKENS,
    "encoder": {"type": "gru", "hidden": 3},
    "vocab": 5,
}


def _model(part):
    return zoo.compose({"zoo": 1, "name": "model", "model": part}).eval()


@pytest.mark.parametrize("part", [CLASSIFIER, RECOGNISER], ids=["classifier", "ctc"])
def test_a_model_in_evaluation_mode_computes_its_outputs_without_targets(part):
    model = _model(part)
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    outputs = model({"source": batch["source"]})
    assert torch.equal(outputs.logits, model(batch).logits)
    assert outputs.targets.numel() == 0
    assert outputs.target_mask is None
    with pytest.raises(zoo.ZooError, match=r"'target' in the batch of model '.*' is missing"):
        model.train()({"source": batch["source"]})


@pytest.mark.parametrize(
    ("part", "name"),
    [(CLASSIFIER, "cross-entropy"), (RECOGNISER, "ctc")],
    ids=["classifier", "ctc"],
)
def test_a_loss_of_outputs_without_targets_raises(part, name):
    model = _model(part)
    source = model.example(2, 5, torch.Generator().manual_seed(0))["source"]
    objective = zoo.objective({"zoo": 1, "name": "loss", "model": part, "objective": name})
    with pytest.raises(zoo.ZooError, match=f"'{name}' needs targets, but the batch .* had none"):
        objective(model({"source": source}))


def test_a_model_without_targets_is_compiled_and_exported():
    model = _model(CLASSIFIER)
    batch = {"source": torch.tensor([[1, 2, 3], [4, 5, 0]])}
    expected = model(batch).logits
    program = torch.export.export(model, (batch,))
    torch.testing.assert_close(program.module()(batch).logits, expected)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(batch).logits, expected)


def test_a_model_that_needs_targets_says_what_to_do():
    model = zoo.compose("transformer-tiny").eval()
    source = model.example(2, 5)["source"]
    with pytest.raises(
        zoo.ZooError, match=r"'target' .* is missing.*teacher forcing.*zoo.generate"
    ):
        model({"source": source})
    pairs = zoo.compose("minilm-tiny").eval()
    with pytest.raises(zoo.ZooError, match=r"'target' .* is missing.*zoo.embed"):
        pairs({"source": pairs.example(2, 5)["source"]})
