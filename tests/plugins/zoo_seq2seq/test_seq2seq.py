import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Attention, Blueprint, Embedding, Encoder, FromParent, Mask, Memory
from zoo_alignment.hard import Hard
from zoo_bahdanau.additive import Additive
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

    # Two real tokens are read, 3 and 2; then bos and 3 are spoken, and 3 and eos are wanted.
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


def test_two_lstms_equal_the_same_made_of_torchs_layers_item_by_item():
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
        read = weights["source.table.weight"][SOURCE[item][SOURCE[item] != 0]]
        told = weights["decoder.embedding.table.weight"][TARGET[item, :-1]]
        _, last = torch_encoder(read)
        states, _ = torch_decoder(told, last)
        expected = states @ weights["decoder.out.weight"].T + weights["decoder.out.bias"]
        torch.testing.assert_close(outputs.logits[item], expected, rtol=0, atol=1e-10)


def test_targets_are_what_follows_each_token_and_count_where_real():
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


def test_greedy_generation_equals_speaking_the_whole_prefix_again_and_again():
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
        spoken, score = [1], 0.0
        while len(spoken) < 7 and spoken[-1] != 2:
            logprobs = model.decoder(torch.tensor([spoken]), memory)[0, -1].log_softmax(dim=-1)
            spoken.append(int(logprobs.argmax()))
            score += logprobs.max().item()
        lengths.append(len(spoken) - 1)
        padded = spoken[1:] + [0] * (decoded.tokens.shape[-1] - lengths[-1])
        assert decoded.best()[item] == padded
        assert decoded.scores[item, 0].item() == pytest.approx(score, abs=1e-4)
    # The comparison would be empty if all ended at once, or none did.
    assert min(lengths) < 6 == max(lengths)


def test_the_target_has_a_table_of_its_own_like_the_sources():
    model = zoo.compose(spec())

    own = model.decoder.embedding
    assert (own.vocab, own.dim) == (9, 3)
    assert not torch.equal(own.table.weight, model.source.table.weight)


def test_the_target_may_have_another_vocabulary_and_other_special_symbols():
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
def test_a_special_symbol_outside_the_vocabulary_is_refused(name, token):
    message = rf"^model: {name} \({token}\) must be a symbol below vocab \(9\)$"
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(**{name: token}))


def test_an_end_that_is_padding_is_refused_and_a_start_that_is_padding_is_not():
    with pytest.raises(SpecError, match=r"eos \(0\) must be another symbol than padding \(0\)$"):
        zoo.compose(spec(eos=0))
    assert zoo.compose(spec(bos=0)).bos == 0


def test_a_shared_table_is_one_module_and_takes_no_target_beside_it():
    model = zoo.compose(spec(shared=True))
    assert model.source is model.decoder.embedding
    with pytest.raises(SpecError, match="'target' has no meaning"):
        zoo.compose(spec(shared=True, target={"type": "token", "vocab": 9, "dim": 3}))


def test_padding_outside_the_vocabulary_is_refused_where_it_stands():
    message = r"^model\.source: padding \(9\) must be below vocab \(9\)$"
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(source={"type": "token", "vocab": 9, "dim": 3, "padding": 9}))


class Continuous(Embedding):
    """Vectors as they are."""

    name = "continuous"
    dim = 3

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs

    def mask(self, inputs: Tensor) -> Tensor:
        return torch.ones(inputs.shape[:2], dtype=torch.bool)

    def example(self, batch: int, length: int, generator: torch.Generator | None = None) -> Tensor:
        return torch.randn(batch, length, 3, generator=generator)


def test_a_target_without_a_vocabulary_is_refused():
    message = "^embedding 'continuous' has no vocabulary to speak in$"
    with pytest.raises(ZooError, match=message):
        Seq2Seq(
            source=Blueprint.of(Token, vocab=4, dim=3),
            target=Blueprint.of(Continuous),
            encoder=Blueprint.of(RNN, hidden=2),
            decoder=Blueprint.of(PlainRNN, hidden=2),
        )


class SelfAttentive(Encoder):
    """Every position looks at one other."""

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
        states = self.attention(inputs, inputs, Mask(keys=mask))
        return Memory(states, mask, states.sum(dim=1))


def test_looks_are_handed_over_where_an_objective_asks_for_them():
    plain, model = zoo.compose(spec()), zoo.compose(spec(looks=True))
    batch = {"source": SOURCE, "target": TARGET}

    outputs = model(batch)

    assert plain(batch).extras == {}
    torch.testing.assert_close(outputs.logits, plain(batch).logits, rtol=0, atol=1e-6)
    looks = outputs.extras["looks"]
    assert looks.requires_grad
    assert torch.equal(outputs.extras["source_mask"], SOURCE != 0)
    torch.testing.assert_close(looks.sum(dim=-1), torch.ones(3, 4))
    assert torch.equal(looks > 0, (SOURCE != 0)[:, None].expand(-1, 4, -1))


@pytest.mark.parametrize(
    ("decoder", "count"),
    [
        ({"type": "plain-rnn", "hidden": 8}, "none"),
        (
            {
                "type": "transformer",
                "layers": 2,
                "attention": {"scorer": "scaled-dot", "align": "soft"},
                "feed_forward": {"hidden": 8},
            },
            "4",
        ),
    ],
)
def test_looks_are_those_of_one_attention(decoder, count):
    with pytest.raises(SpecError, match=f"looks: true needs .* '{decoder['type']}' has {count}"):
        zoo.check(spec(looks=True, decoder=decoder, encoder={"type": "gru", "hidden": 3}))


def test_draws_in_the_encoder_of_which_no_objective_would_hear_are_refused():
    def build(straight_through: bool) -> Seq2Seq:
        return Seq2Seq(
            source=Blueprint.of(Token, vocab=9, dim=3),
            encoder=Blueprint.of(SelfAttentive, straight_through=straight_through),
            decoder=Blueprint.of(PlainRNN, hidden=2),
        )

    with pytest.raises(ZooError, match=r"^alignment 'hard' draws where the encoder looks"):
        build(False)
    outputs = build(True)({"source": SOURCE, "target": TARGET})
    assert outputs.samples is None


def test_a_copy_from_an_encoder_of_another_form_is_refused_where_it_stands():
    message = (
        r"^model\.decoder: init: copy needs an encoder of the same form, but it ends in 1 layers "
        r"of width 8 and this decoder has 1 of 4; use init: bridge$"
    )
    decoder = {"type": "plain-rnn", "cell": "gru", "hidden": 4, "init": "copy"}
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(decoder=decoder))


def test_a_copy_from_an_encoder_of_another_cell_is_refused_where_it_stands():
    message = (
        r"^model\.decoder: init: copy needs the encoder's state 'c' for cell 'lstm', but the "
        r"encoder carries none; use init: bridge, or an encoder of the same cell$"
    )
    decoder = {"type": "plain-rnn", "cell": "lstm", "hidden": 8, "init": "copy"}
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(decoder=decoder))


def test_a_dot_between_two_widths_is_refused_with_the_origin_of_both():
    message = (
        r"^model\.decoder\.attention\.scorer: dot needs queries and keys of one width: "
        r"query_dim is 6 \(from model\.decoder\.hidden\), key_dim is 8 \(from model\.encoder\)$"
    )
    decoder = ATTENTIVE | {"hidden": 6, "attention": {"scorer": "dot", "align": "soft"}}
    with pytest.raises(SpecError, match=message):
        zoo.compose(spec(decoder=decoder))


def test_targets_without_padding_are_refused():
    target = {"type": "token", "vocab": 6, "dim": 4, "padding": None}
    message = "embedding 'token' has no padding, by which targets of unequal length are told"
    with pytest.raises(zoo.SpecError, match=message):
        zoo.compose(spec(target=target))


def test_its_weights_are_named_by_its_parts():
    model = zoo.compose(spec(decoder={"type": "plain-rnn", "cell": "gru", "hidden": 8}))

    kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    assert set(model.state_dict()) == {
        "source.table.weight",
        *(f"encoder.stack.layers.0.{way}.{k}" for k in kinds for way in (0, 1)),
        "decoder.embedding.table.weight",
        "decoder.initial.bridge.weight",
        "decoder.initial.bridge.bias",
        *(f"decoder.cells.cells.0.{k}" for k in kinds),
        "decoder.out.weight",
        "decoder.out.bias",
    }
