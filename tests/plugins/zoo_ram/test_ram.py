from typing import Any

import numpy as np
import pytest
import torch

import zoo
from zoo import SpecError, ZooError
from zoo.testing import check
from zoo_objectives.reinforce import Reinforce
from zoo_ram.hybrid_reinforce import HybridReinforce
from zoo_ram.ram import RAM, shared_noise


def compose(**changes: Any) -> RAM:
    model = {
        "type": "ram",
        "retina": {"size": 4, "scales": 2},
        "classes": 3,
        "glimpses": 4,
        "glimpse_hidden": 7,
        "location_hidden": 5,
        "hidden": 6,
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


def make_batch(model: RAM, items: int = 5) -> dict[str, torch.Tensor]:
    return model.example(items, 6, torch.Generator().manual_seed(0))


def relu(x):
    return np.maximum(x, 0)


def reference_forward(model: RAM, image: np.ndarray) -> tuple[np.ndarray, list, list]:
    """Compute logits, locations and baselines of one image in evaluation with numpy."""
    W = {k: v.detach().numpy() for k, v in model.state_dict().items()}

    def linear(name, x):
        return W[f"{name}.weight"] @ x + W[f"{name}.bias"]

    h, location, locations, baselines = np.zeros(6), np.zeros(2), [], []
    for _ in range(4):
        locations.append(location)
        with torch.no_grad():
            patches = model.retina(torch.tensor(image)[None], torch.tensor(location)[None])
        what = relu(linear("glimpse.see", patches.numpy().ravel()))
        where = relu(linear("glimpse.place", location))
        g = relu(linear("glimpse.what", what) + linear("glimpse.where", where))
        h = relu(
            W["core.weight_ih"] @ g + W["core.bias_ih"] + W["core.weight_hh"] @ h
            + W["core.bias_hh"]
        )  # fmt: skip
        location = np.tanh(linear("policy.mean", h))
        baselines.append(linear("baseline", h)[0])
    return linear("out", h), locations, baselines[:-1]


def test_matches_the_equations_in_numpy():
    model = compose().double().eval()
    batch = make_batch(model)

    outputs = model(batch)

    for i, image in enumerate(batch["source"].numpy()):
        logits, locations, baselines = reference_forward(model, image)
        np.testing.assert_allclose(outputs.logits[i, 0].detach(), logits, atol=1e-12)
        np.testing.assert_allclose(outputs.extras["locations"][i], locations, atol=1e-12)
        np.testing.assert_allclose(outputs.extras["baselines"][i].detach(), baselines, atol=1e-12)


def test_known_values():
    model = compose(
        retina={"size": 2}, glimpses=2, classes=2, glimpse_hidden=1, location_hidden=1, hidden=1
    )
    state = {name: torch.zeros_like(weight) for name, weight in model.state_dict().items()}
    state["glimpse.see.weight"] += torch.tensor([[1.0, 0.0, 0.0, 0.0]])  # the top left pixel
    state["glimpse.what.weight"] += 1
    state["core.weight_ih"] += 1
    state["core.weight_hh"] += 10
    state["policy.mean.weight"] += torch.tensor([[0.5], [0.0]])
    state["baseline.weight"] += 3
    state["out.weight"] += torch.tensor([[1.0], [-1.0]])
    model.load_state_dict(state)
    image = torch.arange(16.0).view(1, 1, 4, 4)

    outputs = model.eval()({"source": image, "target": torch.tensor([1])})

    # The first glimpse is 5, at the centre. The second is at x = tanh(2.5) = 0.987, 1.973 pixels to
    # the right, where the first column is 0.973 of image column 3 and 0.027 of column 2.
    x = torch.tensor(2.5).tanh().item()
    glimpse = 5 + 2 * x
    h = 10 * 5 + glimpse
    torch.testing.assert_close(outputs.extras["locations"][0], torch.tensor([[0.0, 0.0], [x, 0.0]]))
    assert outputs.extras["baselines"].tolist() == [[15.0]]
    assert outputs.logits.flatten().tolist() == pytest.approx([h, -h], rel=1e-5)
    assert outputs.targets.tolist() == [[1]]
    assert outputs.mask.tolist() == [[True]]


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_evaluation_is_deterministic(cell):
    model = compose(cell=cell).eval()
    batch = make_batch(model)

    first, second = model(batch), model(batch)

    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.extras["locations"], second.extras["locations"])
    assert not first.extras["locations"][:, 0].any()


@pytest.mark.parametrize("start", ["random", "centre"])
def test_locations_are_sampled_in_training_reproducibly(start):
    model = compose(start=start).train()
    batch = make_batch(model, items=200)

    torch.manual_seed(1)
    first, other = (model(batch).extras["locations"] for _ in range(2))
    torch.manual_seed(1)
    again = model(batch).extras["locations"]

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.shape == (200, 4, 2)
    assert first.abs().max() <= 1
    if start == "centre":
        assert not first[:, 0].any()
    else:
        assert first[:, 0].abs().mean().item() == pytest.approx(0.5, abs=0.05)


def test_samples_sum_over_all_locations():
    outputs = compose().train()(make_batch(compose()))

    assert outputs.extras["logprob"].shape == outputs.extras["baselines"].shape == (5, 3)
    expected = outputs.extras["logprob"].sum(dim=1, keepdim=True)
    torch.testing.assert_close(outputs.samples.logprob, expected)
    normal = torch.distributions.Normal(0.0, 0.17)
    assert outputs.samples.entropy.tolist() == [[pytest.approx(6 * normal.entropy().item())]] * 5


@pytest.mark.parametrize("objective", [HybridReinforce(), Reinforce()])
def test_gradients_of_loss_and_reward_reach_their_own_parameters(objective):
    model = compose().train()
    torch.manual_seed(0)
    outputs = model(make_batch(model))

    objective(outputs).backward()

    trained = {name for name, p in model.named_parameters() if p.grad is not None}
    untrained = (
        set() if isinstance(objective, HybridReinforce) else {"baseline.weight", "baseline.bias"}
    )
    assert trained == {name for name, _ in model.named_parameters()} - untrained
    # The policy receives a detached state: the reward does not change the gradient of the core.
    core = model.core.weight_hh.grad.clone()
    model.zero_grad()
    torch.manual_seed(0)
    HybridReinforce(lambda_r=0.0, lambda_b=0.0)(model(make_batch(model))).backward()
    torch.testing.assert_close(model.core.weight_hh.grad, core)


def test_predict_averages_over_sampled_rollouts():
    model = compose().eval()
    images = make_batch(model)["source"]

    logprobs = model.predict(images, 7, torch.Generator().manual_seed(3))

    copies = images.repeat_interleave(7, dim=0)
    path = model.rollout(copies, sample=True, generator=torch.Generator().manual_seed(3))
    expected = path.logits.softmax(dim=-1).view(5, 7, 3).mean(dim=1).log()
    torch.testing.assert_close(logprobs, expected)
    assert not torch.equal(logprobs, model.predict(images, 7))
    with pytest.raises(ZooError, match=r"num_samples.*0.*1"):
        model.predict(images, 0)


@pytest.mark.parametrize("start", ["random", "centre"])
def test_evaluation_averages_over_rollouts_with_the_same_noise_for_all_images(start):
    model, one = (compose(start=start, rollouts=n).double().eval() for n in (4, 1))
    one.load_state_dict(model.state_dict())
    batch = {k: v.double() if k == "source" else v for k, v in make_batch(model).items()}

    outputs = model(batch)

    probabilities = [one(batch).logits.softmax(-1)]
    for noise in shared_noise(3, one.glimpses, start):
        path = one.rollout(batch["source"], sample=True, noise=noise)
        offsets = path.locations - one(batch).extras["locations"]
        assert (offsets[:, 0] == offsets[0, 0]).all()
        assert offsets[:, 1:].abs().max() > 0
        probabilities.append(path.logits.softmax(-1)[:, None])
    expected = torch.stack(probabilities).mean(dim=0).log()
    torch.testing.assert_close(outputs.logits, expected)
    assert torch.equal(outputs.extras["locations"], one(batch).extras["locations"])
    alone = model({name: tensor[2:3] for name, tensor in batch.items()})
    torch.testing.assert_close(alone.logits, outputs.logits[2:3])


def test_sampled_locations_do_not_depend_on_the_dtype():
    model = compose(rollouts=4).eval()
    batch = make_batch(model)
    expected = model(batch).logits
    wide = model.double()({**batch, "source": batch["source"].double()}).logits
    torch.testing.assert_close(wide, expected.double(), rtol=0, atol=1e-4)


@pytest.mark.parametrize("cell", ["rnn", "lstm"])
def test_bfloat16_is_close_to_float32(cell):
    model = compose(cell=cell).eval()
    batch = make_batch(model)
    expected = model(batch).logits

    half = model.bfloat16()({"source": batch["source"].bfloat16(), "target": batch["target"]})

    assert half.logits.dtype is torch.bfloat16
    assert half.extras["locations"].dtype is torch.float32
    assert (half.logits - expected).abs().max() <= 0.05 * expected.abs().max()
    HybridReinforce()(half).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


def test_compiles_as_one_graph_in_training():
    model = compose().train()
    batch = make_batch(model)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)

    torch.manual_seed(2)
    actual = compiled(batch)
    torch.manual_seed(2)
    expected = model(batch)

    torch.testing.assert_close(actual.logits, expected.logits)
    torch.testing.assert_close(actual.extras["locations"], expected.extras["locations"])


def test_laws_with_three_channels_and_one_scale():
    check(
        RAM,
        retina={"size": 3},
        classes=4,
        channels=3,
        glimpses=2,
        hidden=8,
        glimpse_hidden=8,
        location_hidden=8,
    )


def test_images_smaller_than_the_retina_raise():
    model, target = compose(), torch.zeros(1).long()

    assert model({"source": torch.zeros(1, 1, 4, 30), "target": target}).logits.shape == (1, 1, 3)
    with pytest.raises(ZooError, match=r"3 x 30.*4 x 4"):
        model({"source": torch.zeros(1, 1, 3, 30), "target": target})


@pytest.mark.parametrize("change", [{"glimpses": 1}, {"std": 0.0}, {"retina": {"size": 0}}])
def test_invalid_parameters_raise(change):
    with pytest.raises(SpecError, match=next(iter(change))):
        compose(**change)


def test_weight_names_and_shapes():
    shapes = {k: tuple(v.shape) for k, v in compose().state_dict().items()}

    assert shapes == {
        "glimpse.see.weight": (7, 32),
        "glimpse.see.bias": (7,),
        "glimpse.place.weight": (5, 2),
        "glimpse.place.bias": (5,),
        "glimpse.what.weight": (6, 7),
        "glimpse.what.bias": (6,),
        "glimpse.where.weight": (6, 5),
        "glimpse.where.bias": (6,),
        "core.weight_ih": (6, 6),
        "core.weight_hh": (6, 6),
        "core.bias_ih": (6,),
        "core.bias_hh": (6,),
        "policy.mean.weight": (2, 6),
        "policy.mean.bias": (2,),
        "baseline.weight": (1, 6),
        "baseline.bias": (1,),
        "out.weight": (3, 6),
        "out.bias": (3,),
    }
