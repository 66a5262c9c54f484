import math
import re
from typing import Any

import pytest
import torch
from torch import nn

import zoo
from zoo import SpecError, ZooError

RNN = {"type": "plain-rnn", "hidden": 4, "init": "zeros"}
TRANSFORMER = {
    "type": "transformer",
    "layers": 1,
    "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
    "feed_forward": {"hidden": 8},
    "position": "sinusoidal",
}
TOKENS = torch.tensor([[1, 4, 3, 6, 2], [1, 5, 2, 0, 0], [1, 3, 3, 2, 0]])


def compose(decoder: dict[str, Any], dtype: str | None = None, **changes: Any) -> zoo.Model:
    model = {
        "type": "language-model",
        "embedding": {"type": "token", "vocab": 7, "dim": 4},
        "decoder": decoder,
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes}, dtype=dtype)


def empty_memory(dtype: torch.dtype = torch.float32) -> zoo.plugin.Memory:
    empty = torch.zeros(3, 0, dtype=dtype)
    return zoo.plugin.Memory(empty[..., None], empty.bool(), empty)


def test_a_model_of_known_weights():
    model = compose(
        {"type": "plain-rnn", "hidden": 1, "cell": "rnn", "init": "zeros"},
        embedding={"type": "token", "vocab": 3, "dim": 1},
    ).double()
    model.load_state_dict(
        {
            "embedding.table.weight": torch.tensor([[0.0], [1.0], [-2.0]]),
            "decoder.embedding.table.weight": torch.tensor([[0.0], [1.0], [-2.0]]),
            "decoder.cells.cells.0.weight_ih": torch.tensor([[0.5]]),
            "decoder.cells.cells.0.weight_hh": torch.tensor([[2.0]]),
            "decoder.cells.cells.0.bias_ih": torch.tensor([0.125]),
            "decoder.cells.cells.0.bias_hh": torch.tensor([-0.5]),
            "decoder.out.weight": torch.tensor([[1.0], [-1.0], [3.0]]),
            "decoder.out.bias": torch.tensor([0.0, 0.5, -0.25]),
        }
    )

    outputs = model({"target": torch.tensor([[1, 2, 0]])})

    # The inputs are bos and 2, the targets 2 and padding.
    s1 = math.tanh(0.5 * 1 + 0.125 - 0.5)
    s2 = math.tanh(0.5 * -2 + 0.125 + 2 * s1 - 0.5)
    expected = [[[s, -s + 0.5, 3 * s - 0.25] for s in (s1, s2)]]
    expected = torch.tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=1e-12)
    assert outputs.targets.tolist() == [[2, 0]]
    assert outputs.mask.tolist() == [[True, False]]


def test_an_lstm_matches_torch():
    model = compose(RNN).double()
    other = nn.LSTM(4, 4, batch_first=True).double()
    cell = model.decoder.cells.cells[0]
    other.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})

    states, _ = other(model.embedding.table.weight[TOKENS[:, :-1]])

    expected = model.decoder.out(states)
    torch.testing.assert_close(model({"target": TOKENS}).logits, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("decoder", [RNN, TRANSFORMER], ids=["plain-rnn", "transformer"])
def test_step_by_step_equals_teacher_forcing(decoder):
    model = compose(decoder)
    forced = model({"target": TOKENS}).logits

    state, pieces = model.decoder.start(empty_memory(), steps=4), []
    for token in TOKENS[:, :-1].split(1, dim=1):
        logits, state = model.decoder.step(token, state)
        pieces.append(logits)

    torch.testing.assert_close(torch.cat(pieces, dim=1), forced, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("decoder", [RNN, TRANSFORMER], ids=["plain-rnn", "transformer"])
def test_one_training_step_lowers_the_loss(decoder, dtype):
    model = compose(decoder, dtype=dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def loss() -> torch.Tensor:
        out = model({"target": TOKENS})
        return nn.functional.cross_entropy(out.logits[out.mask].float(), out.targets[out.mask])

    before = loss()
    before.backward()
    optimizer.step()

    assert all(parameter.grad.abs().sum() > 0 for parameter in model.parameters())
    assert loss() < before


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
def test_recurrent_bfloat16_is_close_to_float32(cell):
    expected = compose(RNN | {"cell": cell})({"target": TOKENS}).logits

    logits = compose(RNN | {"cell": cell}, dtype="bfloat16")({"target": TOKENS}).logits

    assert logits.dtype is torch.bfloat16
    assert (logits.float() - expected).norm() < 0.1 * expected.norm()


def test_padding_is_masked():
    outputs = compose(RNN)({"target": TOKENS})

    assert outputs.targets.tolist() == TOKENS[:, 1:].tolist()
    assert outputs.mask.sum(dim=1).tolist() == [4, 2, 3]


def test_examples_are_one_token_longer_than_the_logits():
    model = compose(RNN)

    batch = model.example(2, 5, torch.Generator().manual_seed(0))

    assert batch["target"].shape == (2, 6)
    assert model(batch).logits.shape == (2, 5, 7)
    assert (batch["target"] != 0).all()


def test_init_bridge_without_a_source_raises():
    with pytest.raises(SpecError, match=r"init: bridge.*init: zeros"):
        compose(RNN | {"init": "bridge"})


def test_cross_attention_without_a_source_raises():
    cross = {"cross": TRANSFORMER["attention"]}
    with pytest.raises(SpecError, match="'cross'"):
        compose(TRANSFORMER | cross)


@pytest.mark.parametrize("name", ["bos", "eos"])
def test_a_special_token_outside_the_vocabulary_raises(name):
    with pytest.raises(SpecError, match=rf"{name} \(7\).*vocab \(7\)"):
        compose(RNN, **{name: 7})


def test_padding_as_eos_raises():
    for eos in (0, [2, 0]):
        with pytest.raises(SpecError, match=re.escape(f"eos ({eos})") + r".*padding \(0\)"):
            compose(RNN, eos=eos)


def test_bos_and_eos_may_be_equal():
    model = compose(RNN, bos=6, eos=6)

    assert (model.bos, model.eos) == (6, 6)


@pytest.mark.parametrize(
    ("embedding", "match"),
    [
        ({"type": "patches", "size": 2, "dim": 4}, "'patches' is not a token embedding"),
        (
            {"type": "grid", "vocab": 4, "dim": 4, "rows": 2, "columns": 2},
            "'grid'",
        ),
    ],
    ids=["patches", "grid"],
)
def test_an_embedding_without_token_sequences_raises(embedding, match):
    with pytest.raises(ZooError, match=match):
        compose(RNN, embedding=embedding)


UNPADDED = {"type": "token", "vocab": 7, "dim": 4, "padding": None}
VALID = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]).bool()


def test_without_padding_only_the_mask_excludes_tokens():
    model = compose(TRANSFORMER, embedding=UNPADDED)

    assert model({"target": TOKENS}).mask.all()
    assert torch.equal(model({"target": TOKENS, "mask": VALID}).mask, VALID[:, 1:])


def test_mask_and_padding_are_combined():
    mask = compose(RNN)({"target": TOKENS, "mask": VALID.roll(1, dims=0)}).mask

    assert mask.sum(dim=1).tolist() == [3, 2, 2]


def generate_greedy(model: zoo.Model, batch: dict[str, torch.Tensor]) -> list[list[int]]:
    spec = {"zoo": 1, "name": "s", "model": dict(model.spec["model"]), "sampler": "greedy"}
    sampler = zoo.load_spec(spec).sections.sampler.build()
    return model.generate(batch, sampler, max_length=4).best()


def test_without_padding_token_0_can_be_generated():
    model = compose(TRANSFORMER | {"output": {"bias": True}}, embedding=UNPADDED)
    with torch.no_grad():
        model.decoder.output.bias[0] = 100.0

    assert generate_greedy(model, {"prompt": TOKENS[:1]}) == [[0, 0, 0, 0]]


def test_without_an_end_token_every_text_has_the_maximum_length():
    changes = {"embedding": UNPADDED, "bos": None, "eos": None}
    model = compose(TRANSFORMER | {"output": {"bias": True}}, **changes).eval()
    with torch.no_grad():
        model.decoder.output.bias[0] = 100.0  # the token that fills rows after an end

    prompts = torch.tensor([[1, 4, 3], [5, 6, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])

    assert model.batch_schema()["target"].suffix == ()
    assert generate_greedy(model, {"prompt": prompts, "mask": mask}) == [[0, 0, 0, 0]] * 2


def test_masked_prompts_of_different_lengths_continue_as_each_alone():
    torch.manual_seed(1)
    model = compose(TRANSFORMER, embedding=UNPADDED, bos=6, eos=6).eval()
    prompts = torch.tensor([[6, 0, 3, 5], [6, 4, 0, 0], [6, 6, 6, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 0]]).bool()

    together = generate_greedy(model, {"prompt": prompts, "mask": mask})

    for prompt, length, output in zip(prompts, [4, 2, 3], together, strict=True):
        (alone,) = generate_greedy(model, {"prompt": prompt[None, :length]})
        assert output[: len(alone)] == alone
        assert set(output[len(alone) :]) <= {6}


def test_a_prompt_padded_on_the_left_raises():
    model = compose(TRANSFORMER, embedding=UNPADDED)
    mask = torch.tensor([[0, 1, 1]]).bool()
    with pytest.raises(ZooError, match=r"mask.*pad prompts on the right"):
        generate_greedy(model, {"prompt": TOKENS[:1, :3], "mask": mask})


def test_parameter_names():
    assert {k: tuple(v.shape) for k, v in compose(RNN).state_dict().items()} == {
        "embedding.table.weight": (7, 4),
        "decoder.embedding.table.weight": (7, 4),
        "decoder.cells.cells.0.weight_ih": (16, 4),
        "decoder.cells.cells.0.weight_hh": (16, 4),
        "decoder.cells.cells.0.bias_ih": (16,),
        "decoder.cells.cells.0.bias_hh": (16,),
        "decoder.out.weight": (7, 4),
        "decoder.out.bias": (7,),
    }
