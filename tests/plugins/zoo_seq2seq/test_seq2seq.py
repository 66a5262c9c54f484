import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Attention, Blueprint, Encoder, FromParent, Mask, Memory
from zoo_alignment.hard import Hard
from zoo_bahdanau.additive import Additive
from zoo_memory.dense import Dense
from zoo_recurrent.plain_rnn import PlainRNN
from zoo_recurrent.rnn import RNN
from zoo_sampling.greedy import Greedy
from zoo_seq2seq.seq2seq import Seq2Seq
from zoo_tokens.token import Token

ATTENTIVE = {
    "type": "attentive-rnn",
    "hidden": 8,
    "attention": {"scorer": {"type": "additive", "hidden": 4}, "align": "soft"},
}
SOURCE = torch.tensor([[3, 4, 5, 6], [7, 0, 0, 0], [8, 3, 0, 0]])
TARGET = torch.tensor([[1, 4, 3, 2, 0], [1, 2, 0, 0, 0], [1, 5, 5, 6, 2]])


def spec(**changes: Any) -> dict[str, Any]:
    model = {
        "type": "seq2seq",
        "source": {"type": "token", "vocab": 9, "dim": 3},
        "encoder": {"type": "gru", "hidden": 4, "bidirectional": True},
        "decoder": ATTENTIVE,
    }
    return {"zoo": 1, "name": "test", "model": model | changes}


def test_a_model_of_known_weights():
    token = Blueprint.of(Token, vocab=4, dim=1)
    model = Seq2Seq(
        source=token,
        encoder=Blueprint.of(RNN, hidden=1),
        decoder=Blueprint.of(PlainRNN, hidden=1, cell="rnn", init="copy"),
    ).double()
    model.load_state_dict(
        {
            "source.table.weight": torch.tensor([[0.0], [0.5], [-1.0], [2.0]]),
            "encoder.stack.layers.0.0.weight_ih": torch.tensor([[0.5]]),
            "encoder.stack.layers.0.0.weight_hh": torch.tensor([[-2.0]]),
            "encoder.stack.layers.0.0.bias_ih": torch.tensor([0.25]),
            "encoder.stack.layers.0.0.bias_hh": torch.tensor([0.0]),
            "decoder.embedding.table.weight": torch.tensor([[0.0], [1.0], [3.0], [-0.5]]),
            "decoder.cells.cells.0.weight_ih": torch.tensor([[1.5]]),
            "decoder.cells.cells.0.weight_hh": torch.tensor([[0.5]]),
            "decoder.cells.cells.0.bias_ih": torch.tensor([0.0]),
            "decoder.cells.cells.0.bias_hh": torch.tensor([-0.125]),
            "decoder.out.weight": torch.tensor([[1.0], [-1.0], [3.0], [0.5]]),
            "decoder.out.bias": torch.tensor([0.0, 0.5, -0.25, 1.0]),
        }
    )

    outputs = model({"source": torch.tensor([[3, 2, 0]]), "target": torch.tensor([[1, 3, 2]])})

    # The source tokens are 3 and 2, the decoder inputs bos and 3, the targets 3 and eos.
    h1 = math.tanh(0.5 * 2 + 0.25)
    h2 = math.tanh(0.5 * -1 + 0.25 - 2 * h1)
    s1 = math.tanh(1.5 * 1 + 0.5 * h2 - 0.125)
    s2 = math.tanh(1.5 * -0.5 + 0.5 * s1 - 0.125)
    expected = torch.tensor(
        [[[s, -s + 0.5, 3 * s - 0.25, 0.5 * s + 1] for s in (s1, s2)]], dtype=torch.float64
    )
    torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=1e-12)
    assert outputs.targets.tolist() == [[3, 2]]
    assert outputs.mask.tolist() == [[True, True]]


def test_lstm_encoder_and_decoder_match_torch_item_by_item():
    model = zoo.compose(
        spec(
            encoder={"type": "lstm", "hidden": 4, "layers": 2},
            decoder={
                "type": "plain-rnn",
                "cell": "lstm",
                "hidden": 4,
                "layers": 2,
                "init": "copy",
            },
        ),
        dtype="float64",
    )
    torch_encoder = nn.LSTM(3, 4, 2, batch_first=True).double()
    torch_decoder = nn.LSTM(3, 4, 2, batch_first=True).double()
    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    weights = model.state_dict()
    torch_encoder.load_state_dict(
        {f"{k}_l{i}": weights[f"encoder.stack.layers.{i}.0.{k}"] for k in kinds for i in (0, 1)}
    )
    torch_decoder.load_state_dict(
        {f"{k}_l{i}": weights[f"decoder.cells.cells.{i}.{k}"] for k in kinds for i in (0, 1)}
    )

    outputs = model({"source": SOURCE, "target": TARGET})

    for item in range(3):
        source = weights["source.table.weight"][SOURCE[item][SOURCE[item] != 0]]
        target = weights["decoder.embedding.table.weight"][TARGET[item, :-1]]
        _, final = torch_encoder(source)
        states, _ = torch_decoder(target, final)
        expected = states @ weights["decoder.out.weight"].T + weights["decoder.out.bias"]
        torch.testing.assert_close(outputs.logits[item], expected, rtol=0, atol=1e-10)


def test_targets_are_shifted_and_padding_is_masked():
    model = zoo.compose(spec())

    outputs = model({"source": SOURCE, "target": TARGET})

    assert outputs.logits.shape == (3, 4, 9)
    assert outputs.targets.tolist() == [[4, 3, 2, 0], [2, 0, 0, 0], [5, 5, 6, 2]]
    assert outputs.mask.tolist() == [
        [True, True, True, False],
        [True, False, False, False],
        [True, True, True, True],
    ]


def test_a_padded_batch_equals_its_items_alone():
    model = zoo.compose(spec())

    together = model({"source": SOURCE, "target": TARGET}).logits

    for item in range(3):
        source = SOURCE[item][SOURCE[item] != 0][None]
        alone = model({"source": source, "target": TARGET[item : item + 1]}).logits
        torch.testing.assert_close(together[item : item + 1], alone, rtol=0, atol=1e-6)


def test_greedy_generation_equals_decoding_each_prefix_from_the_start():
    model = zoo.compose(spec(), seed=2)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(4)
        model.decoder.out.bias[0] = -1e9
    source = model.source.example(12, 5, torch.Generator().manual_seed(0))

    decoded = model.generate({"source": source}, Greedy(), max_length=6)

    lengths = []
    for item in range(12):
        memory = model.encode(source[item : item + 1])
        prefix, score = [1], 0.0
        while len(prefix) < 7 and prefix[-1] != 2:
            logprobs = model.decoder(torch.tensor([prefix]), memory)[0, -1].log_softmax(dim=-1)
            prefix.append(int(logprobs.argmax()))
            score += logprobs.max().item()
        lengths.append(len(prefix) - 1)
        padded = prefix[1:] + [0] * (decoded.tokens.shape[-1] - lengths[-1])
        assert decoded.best()[item] == padded
        assert decoded.scores[item, 0].item() == pytest.approx(score, abs=1e-4)
    # Some outputs end early and some reach the maximum length.
    assert min(lengths) < 6 == max(lengths)


def test_target_embedding_defaults_to_a_second_one_like_the_sources():
    model = zoo.compose(spec())

    target = model.decoder.embedding
    assert (target.vocab, target.dim) == (9, 3)
    assert not torch.equal(target.table.weight, model.source.table.weight)


def test_target_with_another_vocabulary_and_other_special_tokens():
    model = zoo.compose(
        spec(target={"type": "token", "vocab": 5, "dim": 2, "padding": 4}, bos=0, eos=3)
    )
    with torch.no_grad():
        model.decoder.out.weight.zero_()
        model.decoder.out.bias.copy_(torch.tensor([0.0, 0, 0, 1, 0]))

    outputs = model({"source": SOURCE, "target": torch.tensor([[0, 2, 3], [0, 3, 4], [0, 1, 3]])})
    decoded = model.generate({"source": SOURCE}, Greedy(), max_length=4)

    assert outputs.logits.shape == (3, 2, 5)
    assert outputs.mask.tolist() == [[True, True], [True, False], [True, True]]
    assert decoded.best() == [[3], [3], [3]]


def test_an_example_is_a_batch_without_padding():
    model = zoo.compose(spec(target={"type": "token", "vocab": 5, "dim": 2}))

    batch = model.example(6, 4, torch.Generator().manual_seed(0))

    assert batch["source"].shape == (6, 4)
    assert batch["source"].min() >= 1
    assert batch["source"].max() < 9
    assert 1 <= batch["target"].min() <= batch["target"].max() < 5
    assert model(batch).mask.all()


@pytest.mark.parametrize("name", ["bos", "eos"])
@pytest.mark.parametrize("token", [9, 10])
def test_special_token_outside_the_vocabulary_raises(name, token):
    with pytest.raises(SpecError, match=rf"^model: {name} \({token}\).*vocab \(9\)"):
        zoo.compose(spec(**{name: token}))


def test_padding_as_eos_raises_and_as_bos_is_valid():
    with pytest.raises(SpecError, match=r"eos \(0\).*padding \(0\)"):
        zoo.compose(spec(eos=0))
    assert zoo.compose(spec(bos=0)).bos == 0


def test_shared_embedding_is_one_module_and_excludes_target():
    model = zoo.compose(spec(shared=True))
    assert model.source is model.decoder.embedding
    with pytest.raises(SpecError, match=r"'target'.*shared: true"):
        zoo.compose(spec(shared=True, target={"type": "token", "vocab": 9, "dim": 3}))


def test_padding_outside_the_vocabulary_raises_with_its_path():
    with pytest.raises(SpecError, match=r"^model\.source: padding \(9\).*vocab \(9\)"):
        zoo.compose(spec(source={"type": "token", "vocab": 9, "dim": 3, "padding": 9}))


def test_target_without_a_vocabulary_raises():
    with pytest.raises(ZooError, match=r"'dense' is not a token embedding"):
        Seq2Seq(
            source=Blueprint.of(Token, vocab=4, dim=3),
            target=Blueprint.of(Dense, width=3, dim=3),
            encoder=Blueprint.of(RNN, hidden=2),
            decoder=Blueprint.of(PlainRNN, hidden=2),
        )


class SelfAttentive(Encoder):
    """Self-attention with sampled positions."""

    name = "self-attentive"

    def __init__(self, *, input_dim: FromParent[int], straight_through: bool) -> None:
        super().__init__()
        self.output_dim = self.summary_dim = input_dim
        self.carry = {}
        self.attention = Attention(
            query_dim=input_dim,
            key_dim=input_dim,
            scorer=Blueprint.of(Additive, hidden=2),
            align=Blueprint.of(Hard, straight_through=straight_through),
        )

    def forward(self, inputs: Tensor, mask: Tensor) -> Memory:
        states = self.attention(inputs, inputs, Mask(keys=mask)).context
        return Memory(states, mask, states.sum(dim=1))


def test_return_attention_adds_the_weights_to_the_extras():
    plain, model = zoo.compose(spec()), zoo.compose(spec(return_attention=True))
    batch = {"source": SOURCE, "target": TARGET}

    outputs = model(batch)

    assert plain(batch).extras == {}
    torch.testing.assert_close(outputs.logits, plain(batch).logits, rtol=0, atol=1e-6)
    weights = outputs.extras["attention_weights"]
    assert weights.requires_grad
    assert torch.equal(outputs.extras["source_mask"], SOURCE != 0)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 4))
    assert torch.equal(weights > 0, (SOURCE != 0)[:, None].expand(-1, 4, -1))


@pytest.mark.parametrize(
    ("decoder", "count"),
    [
        ({"type": "plain-rnn", "hidden": 8}, 0),
        (
            {
                "type": "transformer",
                "layers": 2,
                "attention": {"scorer": "scaled-dot", "align": "soft"},
                "feed_forward": {"hidden": 8},
            },
            4,
        ),
    ],
)
def test_return_attention_needs_exactly_one_attention(decoder, count):
    changes = {"decoder": decoder, "encoder": {"type": "gru", "hidden": 3}}
    with pytest.raises(SpecError, match=f"return_attention.*'{decoder['type']}' has {count}"):
        zoo.check(spec(return_attention=True, **changes))


def test_stochastic_alignment_in_the_encoder_raises():
    def build(straight_through: bool) -> Seq2Seq:
        return Seq2Seq(
            source=Blueprint.of(Token, vocab=9, dim=3),
            encoder=Blueprint.of(SelfAttentive, straight_through=straight_through),
            decoder=Blueprint.of(PlainRNN, hidden=2),
        )

    with pytest.raises(ZooError, match=r"alignment 'hard'.*encoder"):
        build(False)
    outputs = build(True)({"source": SOURCE, "target": TARGET})
    assert outputs.samples is None


@pytest.mark.parametrize(
    ("cell", "hidden", "match"),
    [
        ("gru", 4, r"^model\.decoder: init: copy.*1 layers of width 8.*1 of width 4"),
        ("lstm", 8, r"^model\.decoder: init: copy.*'c'.*'lstm'"),
    ],
)
def test_init_copy_from_another_encoder_raises_with_its_path(cell, hidden, match):
    decoder = {"type": "plain-rnn", "cell": cell, "hidden": hidden, "init": "copy"}
    with pytest.raises(SpecError, match=match):
        zoo.compose(spec(decoder=decoder))


def test_dot_scorer_of_two_widths_raises_with_the_origin_of_both():
    message = (
        r"^model\.decoder\.attention\.scorer: .*query_dim is 6 \(from model\.decoder\.hidden\), "
        r"key_dim is 8 \(from model\.encoder\)"
    )
    decoder = ATTENTIVE | {"hidden": 6, "attention": {"scorer": "dot", "align": "soft"}}
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(decoder=decoder))


def test_targets_without_a_padding_token_are_padded_with_the_end():
    target = {"type": "token", "vocab": 9, "dim": 4, "padding": None}
    model = zoo.compose(spec(target=target)).eval()
    assert model.batch_schema()["target"].pad == 2
    padded = TARGET.masked_fill(TARGET == 0, 2)
    outputs = model({"source": SOURCE, "target": padded})
    assert outputs.mask.tolist() == [
        [True, True, True, False],
        [True, False, False, False],
        [True, True, True, True],
    ]
    alone = model({"source": SOURCE[1:2, :1], "target": TARGET[1:2, :2]})
    torch.testing.assert_close(outputs.logits[1, :1], alone.logits[0])


def test_a_prompt_follows_the_start_token():
    model = zoo.compose(spec(prompt=[5, 4]), seed=1).eval()
    assert model.batch_schema()["target"].prefix == (1, 5, 4)
    plain = zoo.compose(spec(), seed=1).eval()
    rows = [[3, 4, 5], [7]]
    prompted = zoo.generate(model, rows, sampler="greedy", max_length=6)
    for row, (hypothesis,) in zip(rows, prompted, strict=True):
        tokens = [1, 5, 4]
        while len(tokens) < 9 and tokens[-1] != 2:
            target = torch.tensor([[*tokens, 0]])
            logits = plain({"source": torch.tensor([row]), "target": target}).logits[0, -1]
            logits[0] = -math.inf
            tokens.append(int(logits.argmax()))
        assert hypothesis.tokens == [token for token in tokens[3:] if token != 2]
    assert prompted == zoo.generate(plain, rows, sampler="greedy", max_length=6, prompt=[5, 4])
    assert prompted != zoo.generate(plain, rows, sampler="greedy", max_length=6)
    pieces = zoo.stream(plain, rows[0], sampler="greedy", max_length=6, prompt=[5, 4])
    assert "".join(pieces) == " ".join(map(str, prompted[0][0].tokens))


def test_a_prompt_outside_of_the_vocabulary_raises():
    with pytest.raises(SpecError, match=r"prompt \(9\) must be less than vocab \(9\)"):
        zoo.compose(spec(prompt=[9]))
    with pytest.raises(ZooError, match="'prompt' in the batch"):
        zoo.generate(zoo.compose(spec()), [[3]], sampler="greedy", prompt=[9])


def test_parameter_names():
    model = zoo.compose(spec(decoder={"type": "plain-rnn", "cell": "gru", "hidden": 8}))

    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    assert set(model.state_dict()) == {
        "source.table.weight",
        *(f"encoder.stack.layers.0.{direction}.{k}" for k in kinds for direction in (0, 1)),
        "decoder.embedding.table.weight",
        "decoder.initial.bridge.weight",
        "decoder.initial.bridge.bias",
        *(f"decoder.cells.cells.0.{k}" for k in kinds),
        "decoder.out.weight",
        "decoder.out.bias",
    }
