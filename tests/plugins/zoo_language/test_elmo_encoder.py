import torch

import zoo
from zoo_language.layer_mix import LayerMix

LSTM = {"hidden": 12, "cell_clip": 3.0, "projection_clip": 3.0}


def test_a_task_model_uses_the_layers_of_a_trained_language_model():
    bilm = zoo.compose("elmo-tiny").eval()
    source = bilm.spec["model"]["embedding"]
    encoder = {"type": "elmo", "lstm": LSTM}
    model = {"type": "tagger", "source": source, "encoder": encoder, "labels": 4}
    tagger = zoo.compose({"zoo": 1, "name": "tags", "model": model}).eval()
    tagger.source.load_state_dict(bilm.embedding.state_dict())
    tagger.encoder.lstm.load_state_dict(bilm.lstm.state_dict())
    with torch.no_grad():
        tagger.encoder.mix.weights.copy_(torch.tensor([0.1, -0.4, 0.9]))
        tagger.encoder.mix.gamma.fill_(1.5)

    batch = bilm.example(2, 5, torch.Generator().manual_seed(0))
    batch["source"][1, 4:] = 0
    layers = bilm.layer_states(batch)  # [B, T, 3, 2 D]
    s = torch.tensor([0.1, -0.4, 0.9]).exp() / torch.tensor([0.1, -0.4, 0.9]).exp().sum()
    expected = 1.5 * (s[0] * layers[:, :, 0] + s[1] * layers[:, :, 1] + s[2] * layers[:, :, 2])

    memory = tagger.encoder(tagger.source(batch["source"]), tagger.source.mask(batch["source"]))
    torch.testing.assert_close(memory.states, expected)
    summary = torch.cat([expected[1, 3, :8], expected[1, 0, 8:]])
    torch.testing.assert_close(memory.summary[1], summary)
    assert isinstance(tagger.encoder.mix, LayerMix)


def test_the_mixing_weights_get_gradients_while_the_language_model_is_frozen():
    spec = {
        "zoo": 1,
        "name": "tags",
        "model": {
            "type": "tagger",
            "source": {"type": "token", "vocab": 9, "dim": 4},
            "encoder": {"type": "elmo", "lstm": {"hidden": 5}},
            "labels": 3,
        },
    }
    tagger = zoo.compose(spec)
    tagger.encoder.lstm.requires_grad_(False)
    outputs = tagger(tagger.example(2, 4, torch.Generator().manual_seed(0)))
    outputs.logits.square().sum().backward()
    assert tagger.encoder.mix.weights.grad.abs().sum() > 0
    assert tagger.encoder.mix.gamma.grad.abs().sum() > 0
