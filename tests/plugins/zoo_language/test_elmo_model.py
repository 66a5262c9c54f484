import pytest
import torch

import zoo

RELEASED = 93_600_864
"""Parameters of the released weights: 4,192 of characters, 199,168 of filters, 16,785,408 of
highway layers, 1,049,088 of the projection, and four LSTM layers of 18,890,752."""


def test_the_spec_has_the_parameters_of_the_released_model_and_its_softmax():
    with torch.device("meta"):
        model = zoo.load_spec("elmo-2018").sections.model.build()
    sizes = {
        name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()
    }
    filters = [(1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)]
    embedding = 262 * 16 + sum(16 * w * n + n for w, n in filters)
    embedding += 2 * 2 * (2048 * 2048 + 2048) + 2048 * 512 + 512
    layer = 4 * 4096 * (512 + 512 + 1) + 4096 * 512
    assert sizes["embedding"] == embedding
    assert sizes["lstm"] == 4 * layer
    assert embedding + 4 * layer == RELEASED
    assert sizes["out"] == 793_471 * (512 + 1)


def test_both_directions_use_one_softmax():
    model = zoo.compose("elmo-tiny").eval()
    batch = model.example(2, 4, torch.Generator().manual_seed(0))
    batch["source"][1, 3:] = 0
    outputs = model(batch)

    states = model.layer_states(batch)[:, :, -1]
    weight, bias = model.out.weight, model.out.bias
    forward = states[:, :-1, :8] @ weight.T + bias
    backward = states[:, 1:, 8:] @ weight.T + bias
    torch.testing.assert_close(outputs.logits, torch.cat([forward, backward], dim=1))
    target = batch["target"]
    assert torch.equal(outputs.targets, torch.cat([target[:, 1:], target[:, :-1]], dim=1))
    assert outputs.mask.tolist() == [[True] * 8, [True, True, False, False] * 2]


def test_logits_depend_on_one_side_only():
    model = zoo.compose("elmo-tiny").eval()
    batch = model.example(1, 4, torch.Generator().manual_seed(0))
    source = batch["source"].clone()
    source[:, 2] = (source[:, 2] % 19) + 1
    before = model(batch).logits[0]
    changed = (model({**batch, "source": source}).logits[0] != before).any(dim=-1)
    # forward logits of words 1..4, backward logits of words 0..3
    assert changed.tolist() == [False, False, True, True, True, True, False, False]


def test_names_of_the_parameters():
    names = set(zoo.compose("elmo-tiny").state_dict())
    layer = ("weight_ih", "weight_hh", "bias", "weight_hr")
    assert names == {
        "embedding.table.weight",
        *(f"embedding.convolutions.{n}.{p}" for n in (0, 1) for p in ("weight", "bias")),
        *(
            f"embedding.highways.{n}.{part}.{p}"
            for n in (0, 1)
            for part in ("transform", "gate")
            for p in ("weight", "bias")
        ),
        *(f"{part}.{p}" for part in ("embedding.projection", "out") for p in ("weight", "bias")),
        *(
            f"lstm.{way}.{n}.{p}"
            for way in ("forwards", "backwards")
            for n in (0, 1)
            for p in layer
        ),
    }


@pytest.mark.parametrize(
    "embedding",
    [
        {"type": "padded-log-mel", "rate": 1000, "window": 32, "hop": 16, "mels": 4, "frames": 3},
        {"type": "subsampled", "inner": {"type": "token", "vocab": 9, "dim": 8}, "dim": 8},
    ],
)
def test_an_embedding_that_changes_the_length_is_rejected(embedding):
    model = {"type": "elmo", "embedding": embedding, "lstm": {"hidden": 8}, "vocab": 7}
    data = {"zoo": 1, "name": "words", "model": model, "objective": "cross-entropy"}
    with pytest.raises(zoo.SpecError, match=r"model: .* one vector for each input"):
        zoo.check(data)
