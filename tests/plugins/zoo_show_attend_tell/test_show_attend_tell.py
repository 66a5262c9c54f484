import math
from typing import Any

import pytest
import torch
from torch import Tensor

import zoo
from zoo import SpecError, ZooError
from zoo.plugin import Attention, Blueprint, Memory
from zoo.testing.tiny import TinyBackbone
from zoo_alignment.hard import Hard
from zoo_alignment.soft import Soft
from zoo_bahdanau.additive import Additive
from zoo_location.location import Location
from zoo_sampling.greedy import Greedy
from zoo_show_attend_tell.show_attend_tell import ShowAttendTell
from zoo_tokens.token import Token
from zoo_vision.regions import Regions


def attention_blueprint(scorer: type = Additive, align: type = Soft) -> Blueprint[Attention]:
    return Blueprint.of(Attention, scorer=Blueprint.of(scorer, hidden=3), align=Blueprint.of(align))


def build(**changes: Any) -> ShowAttendTell:
    torch.manual_seed(0)
    params = {"attention": attention_blueprint(), "hidden": 5} | changes
    decoder = ShowAttendTell(embedding=Token(vocab=7, dim=6), memory_dim=4, **params)
    with torch.no_grad():
        for weight in decoder.parameters():
            weight.normal_(std=0.7)
        decoder.embedding.table.weight[0] = 0
    return decoder.double().eval()


def make_memory(seed: int = 1) -> Memory:
    generator = torch.Generator().manual_seed(seed)
    states = torch.randn(3, 4, 4, generator=generator, dtype=torch.float64)
    mask = torch.arange(4) < torch.tensor([[4], [2], [3]])
    return Memory(states, mask, states.mean(dim=1))


def reference_forward(
    decoder: ShowAttendTell, tokens: list[int], a: Tensor
) -> tuple[Tensor, Tensor]:
    """Compute equations 1 to 7 of Xu et al. 2015 for one image, with annotation vectors a [L, D].

    Returns logits [T, V] and alpha [T, L].
    """
    w = dict(decoder.named_parameters())
    E = w["embedding.table.weight"]
    n, m = decoder.cell.hidden_size, E.shape[1]
    mean = torch.stack([a[:, d].sum() / len(a) for d in range(a.shape[1])])
    h = torch.tanh(w["init_h.0.weight"] @ mean + w["init_h.0.bias"])
    c = torch.tanh(w["init_c.0.weight"] @ mean + w["init_c.0.bias"])
    scorer = "attention.scorers.0."
    logits, alphas = [], []
    for token in tokens:
        e = []
        for a_i in a:
            inner = w[scorer + "W.weight"] @ h + w[scorer + "U.weight"] @ a_i
            e.append(sum(w[scorer + "v"] * torch.tanh(inner)))
        total = sum(math.exp(e_i) for e_i in e)
        alpha = [math.exp(e_i) / total for e_i in e]
        z = sum(alpha_i * a_i for alpha_i, a_i in zip(alpha, a, strict=True))
        z = z / (1 + math.exp(-(w["beta.weight"][0] @ h + w["beta.bias"][0])))
        x = torch.cat([E[token], z])
        pre = w["cell.weight_ih"] @ x + w["cell.weight_hh"] @ h
        pre = pre + w["cell.bias_ih"] + w["cell.bias_hh"]
        i, f, g, o = (pre[k * n : (k + 1) * n] for k in range(4))
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        deep = E[token] + w["L_h.weight"] @ h + w["L_h.bias"] + w["L_z.weight"] @ z
        assert deep.shape == (m,)
        logits.append(w["L_o.weight"] @ deep + w["L_o.bias"])
        alphas.append(torch.tensor(alpha, dtype=torch.float64))
    return torch.stack(logits), torch.stack(alphas)


@torch.no_grad()
def test_forward_matches_the_equations():
    decoder, memory = build(), make_memory()
    tokens = torch.tensor([[1, 3, 5, 2], [1, 6, 6, 4], [1, 2, 0, 0]])

    with zoo.recording(decoder) as log:
        logits = decoder(tokens, memory)

    alphas = torch.cat(log["attention"], dim=2)[:, 0]  # [B, T, S]
    for item, count in enumerate((4, 2, 3)):
        expected, expected_alphas = reference_forward(
            decoder, tokens[item].tolist(), memory.states[item, :count]
        )
        torch.testing.assert_close(logits[item], expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(alphas[item, :, :count], expected_alphas, rtol=0, atol=1e-12)


@torch.no_grad()
def test_initial_state_has_known_values():
    decoder = build(hidden=1)
    decoder.init_h[0].weight.copy_(torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    decoder.init_h[0].bias.fill_(0.25)
    decoder.init_c[0].weight.copy_(torch.tensor([[0.0, -1.0, 0.0, 0.0]]))
    decoder.init_c[0].bias.zero_()
    states = torch.tensor([[[1.0, 4.0, 0, 0], [0.5, 2.0, 0, 0], [9.0, 9.0, 9, 9]]]).double()
    mask = torch.tensor([[True, True, False]])

    state = decoder.start(Memory(states, mask, states[:, 0]), steps=1)

    # The mean of the two valid vectors is (0.75, 3).
    assert state.per_hypothesis["h"].item() == pytest.approx(math.tanh(0.75 + 0.25), abs=1e-12)
    assert state.per_hypothesis["c"].item() == pytest.approx(math.tanh(-3), abs=1e-12)


@torch.no_grad()
def test_gate_scales_the_context():
    gated, plain = build(), build(gate=False)
    plain.load_state_dict({k: v for k, v in gated.state_dict().items() if "beta" not in k})
    gated.beta.weight.zero_()
    memory, tokens = make_memory(), torch.tensor([[1, 3]] * 3)

    def with_gate_bias(bias: float) -> Tensor:
        gated.beta.bias.fill_(bias)
        return gated(tokens, memory)

    # A gate of 1/2 equals a decoder without gate whose context weights are halved.
    half = {**plain.state_dict()}
    half["cell.weight_ih"] = half["cell.weight_ih"].clone()
    half["cell.weight_ih"][:, 6:] /= 2
    half["L_z.weight"] = half["L_z.weight"] / 2
    ungated = plain(tokens, memory)
    torch.testing.assert_close(with_gate_bias(40.0), ungated, rtol=0, atol=1e-12)
    plain.load_state_dict(half)
    torch.testing.assert_close(with_gate_bias(0.0), plain(tokens, memory), rtol=0, atol=1e-12)
    assert not torch.allclose(with_gate_bias(-800.0), ungated, atol=0.1)


@torch.no_grad()
def test_initial_state_with_two_layers_uses_relu():
    decoder, memory = build(init_layers=2), make_memory()

    state = decoder.start(memory, steps=1)

    mean = memory.states[1, :2].mean(dim=0)
    first, last = decoder.init_c[0], decoder.init_c[2]
    inner = (first.weight @ mean + first.bias).clamp(min=0)
    expected = (last.weight @ inner + last.bias).tanh()
    torch.testing.assert_close(state.per_hypothesis["c"][1], expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_hard_attention_selects_the_most_probable_vector_in_evaluation():
    soft, hard = build(), build(attention=attention_blueprint(align=Hard))
    hard.load_state_dict(soft.state_dict())
    memory, tokens = make_memory(), torch.tensor([[1]] * 3)

    with zoo.recording(soft) as soft_log, zoo.recording(hard) as hard_log:
        soft(tokens, memory)
        hard(tokens, memory)

    (alpha,), (selected,) = soft_log["attention"], hard_log["attention"]
    assert torch.equal(selected.argmax(dim=-1), alpha.argmax(dim=-1))
    assert torch.equal(selected.sum(dim=-1), torch.ones_like(selected[..., 0]))


@torch.no_grad()
def test_a_sequential_attention_keeps_its_state():
    decoder, memory = build(attention=attention_blueprint(Location)), make_memory()
    tokens = torch.tensor([[1, 3, 5], [1, 6, 4], [1, 2, 2]])
    state, pieces = decoder.start(memory, steps=3), []

    for t in range(3):
        logits, state = decoder.step(tokens[:, t : t + 1], state)
        pieces.append(logits)

    assert state.per_hypothesis["attention.step"].tolist() == [3, 3, 3]
    steps = torch.cat(pieces, dim=1)
    torch.testing.assert_close(steps, decoder(tokens, memory), rtol=0, atol=1e-12)


def test_bfloat16_is_supported():
    decoder, memory = build().bfloat16(), make_memory()
    memory = Memory(memory.states.bfloat16(), memory.mask, memory.summary.bfloat16())

    logits = decoder(torch.tensor([[1, 2]] * 3), memory)

    assert logits.dtype == torch.bfloat16
    assert logits.isfinite().all()


def test_an_embedding_without_a_vocabulary_raises():
    images = Regions(backbone=Blueprint.of(TinyBackbone))
    with pytest.raises(
        ZooError,
        match="embedding 'regions' is not a token embedding and has no vocabulary",
    ):
        ShowAttendTell(embedding=images, memory_dim=4, attention=attention_blueprint(), hidden=2)


def test_state_dict_keys():
    assert {k: tuple(v.shape) for k, v in build().state_dict().items()} == {
        "embedding.table.weight": (7, 6),
        "init_h.0.weight": (5, 4),
        "init_h.0.bias": (5,),
        "init_c.0.weight": (5, 4),
        "init_c.0.bias": (5,),
        "attention.scorers.0.v": (3,),
        "attention.scorers.0.W.weight": (3, 5),
        "attention.scorers.0.U.weight": (3, 4),
        "beta.weight": (1, 5),
        "beta.bias": (1,),
        "cell.weight_ih": (20, 10),
        "cell.weight_hh": (20, 5),
        "cell.bias_ih": (20,),
        "cell.bias_hh": (20,),
        "L_h.weight": (6, 5),
        "L_h.bias": (6,),
        "L_z.weight": (6, 4),
        "L_o.weight": (7, 6),
        "L_o.bias": (7,),
    }


def test_images_of_any_size_are_captioned_and_small_ones_raise():
    model = zoo.compose("show-attend-tell-soft-tiny").eval()

    for height, width in ((8, 8), (16, 24), (9, 41)):
        images = torch.zeros(2, 1, height, width)
        assert model.generate({"source": images}, Greedy(), max_length=3).tokens.shape[0] == 2
    with pytest.raises(ZooError, match=r"8 x 7.*'convolution'"):
        model.generate({"source": torch.zeros(2, 1, 8, 7)}, Greedy(), max_length=3)
    with pytest.raises(ZooError, match=r"\[2, 3, 8, 8\].*\[B, 1, H, W\]"):
        model.generate({"source": torch.zeros(2, 3, 8, 8)}, Greedy(), max_length=3)


@pytest.mark.parametrize("name", ["show-attend-tell-soft", "show-attend-tell-hard"])
def test_published_model_attends_to_a_feature_map_of_14_x_14(name):
    with torch.device("meta"):
        model = zoo.load_spec(name).sections.model.build().eval()
        batch = {
            "source": torch.zeros(2, 3, 224, 224),
            "target": torch.zeros(2, 6, dtype=torch.long),
        }
        memory = model.encode(batch["source"])
        outputs = model(batch)
    assert memory.states.shape == (2, 196, 512)
    assert outputs.logits.shape == (2, 5, 10000)
    assert (outputs.samples is None) == (name == "show-attend-tell-soft")


def test_hidden_zero_raises():
    with pytest.raises(SpecError, match="hidden"):
        zoo.compose("show-attend-tell-soft-tiny", overrides=["model.decoder.hidden=0"])
