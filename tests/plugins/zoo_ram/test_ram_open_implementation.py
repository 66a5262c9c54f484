"""Parity with the common open implementation of RAM, written again here.

Patches are cropped at whole pixels, the sampled location is squashed by tanh after its density is
computed, the baseline has a ReLU.
"""

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal

import zoo


def compose(**changes):
    model = {
        "type": "ram",
        "retina": {"size": 4, "scales": 3, "crop": "pixel"},
        "classes": 3,
        "glimpses": 4,
        "glimpse_hidden": 7,
        "location_hidden": 5,
        "hidden": 6,
        "policy": {"bound": "tanh"},
        "baseline": "relu",
    }
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


def glimpse_patches(images, location, size, scales, ratio=2):
    patches = []
    for scale in range(scales):
        side = size * ratio**scale
        padded = F.pad(images, [side // 2] * 4)
        corners = (0.5 * (location + 1) * images.shape[-1]).long().tolist()
        crops = [
            image[:, y : y + side, x : x + side]
            for image, (x, y) in zip(padded, corners, strict=True)
        ]
        patches.append(F.avg_pool2d(torch.stack(crops), ratio**scale))
    return torch.cat(patches, dim=1).flatten(1)


def run(model, images, *, squash, policy_hidden=False, relu_baseline=True):
    """Return logits, locations, log-densities and baselines of a rollout with seed 3."""
    W = model.state_dict()

    def linear(name, x):
        return F.linear(x, W[f"{name}.weight"], W[f"{name}.bias"])

    noise = torch.Generator().manual_seed(3)
    location = 2 * torch.rand(len(images), 2, generator=noise) - 1
    h = torch.zeros(len(images), 6)
    locations, densities, baselines = [location], [], []
    for t in range(4):
        phi = glimpse_patches(images, location, 4, 3)
        what = linear("glimpse.what", F.relu(linear("glimpse.see", phi)))
        where = linear("glimpse.where", F.relu(linear("glimpse.place", location)))
        g = F.relu(what + where)
        inputs = F.linear(g, W["core.weight_ih"], W["core.bias_ih"])
        h = F.relu(inputs + F.linear(h, W["core.weight_hh"], W["core.bias_hh"]))
        if t == 3:
            break
        features = F.relu(linear("policy.hidden", h)) if policy_hidden else h
        mu = torch.tanh(linear("policy.mean", features))
        sample = mu + 0.17 * torch.randn(len(images), 2, generator=noise)
        densities.append(Normal(mu, 0.17).log_prob(sample).sum(dim=1))
        location = torch.tanh(sample) if squash else torch.clamp(sample, -1, 1)
        locations.append(location)
        baseline = linear("baseline", h).squeeze(1)
        baselines.append(F.relu(baseline) if relu_baseline else baseline)
    return linear("out", h), *(torch.stack(x, dim=1) for x in (locations, densities, baselines))


@pytest.mark.parametrize("form", ["squashed", "clamped"])
@torch.no_grad()
def test_rollouts_equal_the_open_implementation(form):
    changes = {} if form == "squashed" else {"policy": {"hidden": 3}, "baseline": "linear"}
    model = compose(**changes).eval()
    for parameter in model.parameters():
        parameter.normal_(std=0.7, generator=torch.Generator().manual_seed(parameter.numel()))
    model.baseline.bias -= 12  # some baselines are negative without the ReLU
    images = torch.rand(20, 1, 11, 11, generator=torch.Generator().manual_seed(0))

    rollout = model.rollout(images, sample=True, generator=torch.Generator().manual_seed(3))

    expected = run(
        model,
        images,
        squash=form == "squashed",
        policy_hidden=form == "clamped",
        relu_baseline=form == "squashed",
    )
    actual = (rollout.logits, rollout.locations, rollout.logprob, rollout.baselines)
    for ours, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(ours, theirs)
    if form == "squashed":
        assert (rollout.baselines == 0).any()
        assert rollout.locations[:, 1:].abs().max() < 1
    else:
        assert (rollout.locations.abs() == 1).any()


def test_the_defaults_crop_areas_clamp_locations_and_have_a_linear_baseline():
    model = zoo.compose("ram-tiny").eval()
    batch = model.example(2, 5, torch.Generator().manual_seed(0))
    options = ["model.policy={bound: clamp}", "model.baseline=linear", "model.retina.crop=area"]
    explicit = zoo.compose("ram-tiny", overrides=options).eval()
    assert explicit.state_dict().keys() == model.state_dict().keys()
    assert torch.equal(explicit(batch).logits, model(batch).logits)
    assert torch.equal(explicit(batch).extras["locations"], model(batch).extras["locations"])
