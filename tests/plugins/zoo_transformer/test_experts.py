import pytest
import torch
import torch.nn.functional as F

import zoo
from zoo.plugin import Blueprint
from zoo.spec.initialisation import find_weights
from zoo.testing import check
from zoo_transformer.experts import Experts
from zoo_transformer.feed_forward import FeedForward
from zoo_transformer.transformer_decoder import TransformerDecoder
from zoo_transformer.transformer_encoder import TransformerEncoder

SPEC = {
    "zoo": 1,
    "name": "experts",
    "model": {
        "type": "language-model",
        "eos": 1,
        "embedding": {"type": "token", "vocab": 11, "dim": 8, "padding": None},
        "decoder": {
            "type": "transformer",
            "layers": 2,
            "attention": {"scorer": "scaled-dot", "align": "soft", "heads": 2},
            "feed_forward": {
                "type": "experts",
                "count": 4,
                "selected": 2,
                "expert": {"hidden": 6, "activation": "silu", "gated": True},
                "shared": {"hidden": 5},
                "shared_gate": True,
            },
            "position": {"type": "sinusoidal"},
            "pattern": [{}, {"feed_forward": {"hidden": 7}}],
        },
    },
}


def build(count=4, selected=2, dim=3, shared=None, **options):
    torch.manual_seed(0)
    expert = Blueprint.of(FeedForward, hidden=5, activation="silu", gated=True)
    if shared is not None:
        options["shared"] = Blueprint.of(FeedForward, hidden=shared)
    blueprint = Blueprint.of(Experts, count=count, selected=selected, expert=expert, **options)
    return blueprint.build(dim=dim).double().eval()


@pytest.mark.parametrize(
    ("softmax", "expected"),
    [
        # exp of the logits: 1, 2, 4, 1; the third and the second expert are selected.
        ("all", (4 / 8) * 3 + (2 / 8) * 2),
        ("selected", (4 / 6) * 3 + (2 / 6) * 2),
    ],
)
def test_output_has_known_values(softmax, expected):
    expert = Blueprint.of(FeedForward, hidden=1)
    experts = Blueprint.of(Experts, count=4, selected=2, expert=expert, softmax=softmax)
    built = experts.build(dim=1).double()
    logits = torch.tensor([1.0, 2.0, 4.0, 1.0], dtype=torch.float64).log()
    with torch.no_grad():
        built.router.weight.copy_(logits[:, None])
        for index, each in enumerate(built.experts):  # each computes (index + 1) relu(x)
            for name, value in (("up", 1.0), ("down", index + 1.0)):
                getattr(each, name).weight.fill_(value)
                getattr(each, name).bias.zero_()

    output = built(torch.ones(1, 1, 1, dtype=torch.float64))

    assert output.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shared", [None, 4])
@pytest.mark.parametrize("softmax", ["all", "selected"])
def test_equals_the_sum_over_all_experts_with_most_weights_zero(softmax, shared):
    experts = build(softmax=softmax, shared=shared, shared_gate=shared is not None)
    x = torch.randn(2, 5, 3, dtype=torch.float64)
    probabilities = F.softmax(experts.router(x), dim=-1)
    top = probabilities.topk(2, dim=-1)
    weights = torch.zeros_like(probabilities).scatter(-1, top.indices, top.values)
    if softmax == "selected":  # renormalised
        weights = weights / weights.sum(dim=-1, keepdim=True)
    expected = sum(
        weights[..., index, None] * expert(x) for index, expert in enumerate(experts.experts)
    )
    if shared is not None:
        expected = expected + torch.sigmoid(experts.shared_gate(x)) * experts.shared(x)

    torch.testing.assert_close(experts(x), expected, rtol=0, atol=1e-12)


def test_one_selected_expert_of_one_is_a_feed_forward_network():
    experts = build(count=1, selected=1)
    x = torch.randn(2, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(experts(x), experts.experts[0](x), rtol=0, atol=1e-12)


def test_gradients_are_those_of_finite_differences():
    experts = build(softmax="all", router_bias=True)
    x = torch.randn(1, 4, 3, dtype=torch.float64)
    parameters = [*experts.router.parameters(), *experts.experts[1].parameters()]

    def run(x, *_):
        return experts(x)

    assert torch.autograd.gradcheck(run, (x.requires_grad_(), *parameters))
    experts(x).sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in experts.router.parameters())


@pytest.mark.parametrize("shared", [None, 4])
def test_autocast_changes_the_precision_only(shared):
    experts = build(count=2, selected=2, shared=shared).float()
    x = torch.randn(2, 5, 3)
    with torch.autocast("cpu", torch.bfloat16):
        output = experts(x)
    torch.testing.assert_close(output.float(), experts(x), rtol=0, atol=2e-2)


def test_in_training_an_expert_without_tokens_has_a_gradient_of_zero():
    experts = build(count=6, selected=1).train()
    experts(torch.randn(1, 1, 3, dtype=torch.float64)).sum().backward()
    sums = [expert.down.weight.grad.abs().sum().item() for expert in experts.experts]
    assert sorted(value > 0 for value in sums) == [False] * 5 + [True]


def test_training_lowers_the_loss_and_changes_the_router():
    model = zoo.compose({**SPEC, "objective": "cross-entropy"}, seed=0)
    router = model.decoder.blocks[0].feed_forward.router.weight
    before = router.detach().clone()
    tokens = torch.arange(8).repeat(3, 1)
    batch, losses = {"target": tokens, "mask": torch.ones_like(tokens, dtype=torch.bool)}, []
    for _ in range(15):
        outputs = model(batch)
        loss = F.cross_entropy(outputs.logits.flatten(0, 1), outputs.targets.flatten())
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for parameter, gradient in zip(model.parameters(), gradients, strict=True):
                parameter.sub_(0.3 * gradient)
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    assert not torch.equal(router, before)


EXPERTS = {"type": "experts", "count": 3, "selected": 2, "expert": {"hidden": 4}}


@pytest.mark.parametrize("component", [TransformerEncoder, TransformerDecoder])
def test_transformers_of_experts_obey_the_laws(component):
    attention = {"scorer": "zoo-testing:tiny", "align": "zoo-testing:tiny", "project": "qkv"}
    check(component, layers=1, attention=attention, feed_forward=EXPERTS)


def test_a_kind_of_layers_has_its_own_feed_forward_network():
    blocks = zoo.compose(SPEC).decoder.blocks
    assert type(blocks[0].feed_forward).__name__ == "Experts"
    assert (type(blocks[1].feed_forward), blocks[1].feed_forward.hidden) == (FeedForward, 7)


def test_the_check_has_the_parameters_of_all_experts():
    model = zoo.compose(SPEC)
    assert zoo.check(SPEC).parameters == sum(p.numel() for p in model.parameters())


def test_accelerated_and_plain_models_have_the_same_outputs():
    model = zoo.compose(SPEC).eval()
    tokens = torch.randint(0, 11, (3, 6), generator=torch.Generator().manual_seed(0))
    batch = {"target": tokens, "mask": torch.ones_like(tokens, dtype=torch.bool)}
    with torch.no_grad():
        fast = zoo.accelerate(model)(batch).logits
        plain = zoo.accelerate(model, enabled=False)(batch).logits
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-6)
    prompts = tokens.tolist()
    zoo.accelerate(model)
    accelerated = zoo.generate(model, prompts, sampler="greedy", max_length=6)
    zoo.accelerate(model, enabled=False)
    assert accelerated == zoo.generate(model, prompts, sampler="greedy", max_length=6)


def test_experts_of_one_block_count_as_one_residual_layer():
    weights = {weight.name: weight for weight in find_weights(zoo.compose(SPEC))}
    block = "decoder.blocks.0.feed_forward"
    counted = [name for name, weight in weights.items() if weight.num_residual]
    assert f"{block}.experts.3.down.weight" in counted
    assert f"{block}.shared.down.weight" in counted
    assert {weights[name].num_residual for name in counted} == {4}
    assert weights[f"{block}.router.weight"].kind == "decoder"


def test_state_dict_keys():
    shapes = {k: tuple(v.shape) for k, v in build(shared=4, shared_gate=True).state_dict().items()}
    assert shapes["router.weight"] == (4, 3)
    assert shapes["experts.3.gate.weight"] == (5, 3)
    assert shapes["shared.down.weight"] == (3, 4)
    assert shapes["shared_gate.weight"] == (1, 3)
    assert "router.bias" not in shapes


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"selected": 5}, r"selected \(5\) exceeds the number of experts, count \(4\)"),
        ({"shared": None}, "it requires a shared expert; set shared"),
    ],
)
def test_invalid_values_are_rejected(change, message):
    decoder = SPEC["model"]["decoder"]
    spec = {
        **SPEC,
        "model": {
            **SPEC["model"],
            "decoder": {**decoder, "feed_forward": {**decoder["feed_forward"], **change}},
        },
    }
    with pytest.raises(zoo.SpecError, match=message):
        zoo.check(spec)
