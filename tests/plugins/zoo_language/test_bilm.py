import pytest
import torch

import zoo
from zoo_language.bilm import reverse_tokens

SPEC = {
    "zoo": 1,
    "name": "bi",
    "model": {
        "type": "bilm",
        "embedding": {"type": "token", "vocab": 9, "dim": 4},
        "decoder": {"type": "plain-rnn", "hidden": 5, "init": "zeros"},
    },
}


def test_reverse_tokens_keeps_padding_at_the_end():
    tokens = torch.tensor([[1, 3, 4, 2], [1, 5, 2, 0]])
    assert reverse_tokens(tokens, tokens > 0).tolist() == [[2, 4, 3, 1], [2, 5, 1, 0]]


def test_each_half_equals_a_language_model_of_that_direction():
    model = zoo.compose(SPEC).eval()
    tokens = torch.tensor([[1, 3, 4, 7, 2], [1, 5, 2, 0, 0]])
    outputs = model({"target": tokens})
    assert outputs.logits.shape == (2, 8, 9)
    assert outputs.targets.tolist() == [[3, 4, 7, 2, 7, 4, 3, 1], [5, 2, 0, 0, 5, 1, 0, 0]]
    assert outputs.mask.tolist()[1] == [True, True, False, False] * 2

    one_way = {**SPEC, "model": {**SPEC["model"], "type": "language-model"}}
    for decoder, inputs, half in (
        (model.forwards, tokens, slice(0, 4)),
        (model.backwards, reverse_tokens(tokens, tokens > 0), slice(4, 8)),
    ):
        alone = zoo.compose(one_way).eval()
        alone.embedding.load_state_dict(model.embedding.state_dict())
        alone.decoder.load_state_dict(decoder.state_dict())
        torch.testing.assert_close(outputs.logits[:, half], alone({"target": inputs}).logits)


def test_a_later_token_affects_only_the_backward_half():
    model = zoo.compose(SPEC).eval()
    tokens = torch.tensor([[1, 3, 4, 7, 2]])
    other = torch.tensor([[1, 3, 4, 8, 2]])
    before, after = model({"target": tokens}).logits, model({"target": other}).logits
    assert torch.equal(before[:, :3], after[:, :3])
    assert not torch.equal(before[:, 5:], after[:, 5:])


def test_a_stochastic_alignment_raises():
    attention = {"scorer": "scaled-dot", "align": "hard", "heads": 2}
    part = {
        "type": "transformer",
        "layers": 1,
        "attention": attention,
        "feed_forward": {"hidden": 4},
    }
    token = {"type": "token", "vocab": 9, "dim": 4}
    for model in (
        {"type": "bilm", "embedding": token, "decoder": part},
        {"type": "language-model", "embedding": token, "decoder": part},
        {"type": "masked-lm", "source": token, "encoder": part},
        {"type": "classifier", "source": token, "encoder": part, "classes": 3},
    ):
        with pytest.raises(zoo.SpecError, match=r"alignment 'hard'"):
            zoo.check({"zoo": 1, "name": "stochastic", "model": model})
