import torch

import zoo

SPEC = {
    "zoo": 1,
    "name": "regressor",
    "model": {
        "type": "regressor",
        "source": {"type": "token", "vocab": 9, "dim": 4},
        "encoder": {"type": "gru", "hidden": 3},
        "pooling": "summary",
    },
    "objective": "mean-squared-error",
    "metrics": ["mse", "pearson"],
}


def test_the_outputs_are_linear_in_the_summary_and_the_loss_is_that_of_torch():
    model = zoo.compose(SPEC, seed=0).eval()
    batch = {"source": torch.tensor([[3, 4], [5, 6]]), "target": torch.tensor([1.0, -2.0])}
    outputs = model(batch)
    memory = model.encoder(model.source(batch["source"]), model.source.mask(batch["source"]))
    expected = memory.summary @ model.out.weight.T + model.out.bias
    torch.testing.assert_close(outputs.logits[:, 0], expected)
    loss = zoo.objective(model)(outputs)
    torch.testing.assert_close(loss, ((expected[:, 0] - batch["target"]) ** 2).mean())


def test_parameter_names():
    names = set(zoo.compose(SPEC, seed=0).state_dict())
    assert {"out.weight", "out.bias", "source.table.weight"} <= names


def test_several_numbers():
    model = zoo.compose(SPEC, overrides=["model.outputs=2"], seed=0)
    batch = {"source": torch.tensor([[3, 4]]), "target": torch.tensor([[1.0, -2.0]])}
    assert model(batch).logits.shape == model(batch).targets.shape == (1, 1, 2)


def test_objectives_and_metrics_of_classes_do_not_fit():
    for section in ({"objective": "binary-cross-entropy"}, {"metrics": ["macro-f1"]}):
        try:
            zoo.check({**SPEC, **section})
        except zoo.SpecError as error:
            message = str(error)
        assert "that fit: " in message
        assert "mean-squared-error" in message or "pearson" in message
