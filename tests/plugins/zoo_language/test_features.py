from typing import Any

import pytest
import torch

import zoo

TEXTS = torch.tensor([[4, 5, 6, 2], [3, 2, 0, 0]])


def spec(**changes: Any) -> dict[str, Any]:
    model = {
        "type": "features",
        "source": {"type": "token", "vocab": 7, "dim": 4},
        "encoder": {
            "type": "transformer",
            "layers": 1,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {"hidden": 8},
        },
    }
    return {"zoo": 1, "name": "test", "model": model | changes}


def test_the_states_of_the_encoder_are_the_outputs():
    model = zoo.compose(spec()).eval()

    outputs = model({"source": TEXTS})

    expected = model.encoder(model.source(TEXTS), model.source.mask(TEXTS)).states
    assert torch.equal(outputs.logits, expected)
    assert outputs.mask.tolist() == [[True] * 4, [True, True, False, False]]
    assert not outputs.extras


def test_a_mask_marks_the_tokens_of_an_embedding_without_padding():
    model = zoo.compose(
        spec(source={"type": "token", "vocab": 7, "dim": 4, "padding": None})
    ).eval()
    mask = TEXTS != 0
    outputs = model({"source": TEXTS, "mask": mask})
    assert torch.equal(outputs.mask, mask)
    short = model({"source": TEXTS[1:, :2]})
    torch.testing.assert_close(outputs.logits[1:, :2], short.logits)
    assert "mask" not in zoo.compose(spec()).batch_schema()


def test_known_value_of_the_pooled_first_state():
    model = zoo.compose(spec(pooler=True)).eval()
    with torch.no_grad():
        model.pooler.weight.copy_(2 * torch.eye(4))
        model.pooler.bias.fill_(0.5)

    outputs = model({"source": TEXTS})

    expected = torch.tanh(2 * outputs.logits[:, 0] + 0.5)
    torch.testing.assert_close(outputs.extras["pooled"], expected)


@pytest.mark.parametrize("objective", ["cross-entropy", "binary-cross-entropy"])
def test_no_objective_fits(objective):
    with pytest.raises(zoo.SpecError, match="gives features without a head; no objective fits"):
        zoo.check({**spec(), "objective": objective})


def test_a_metric_does_not_fit():
    with pytest.raises(zoo.SpecError, match=r"metric 'accuracy' takes .* 'features' gives none"):
        zoo.check({**spec(), "metrics": ["accuracy"]})
