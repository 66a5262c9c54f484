import math
import re
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Normal, kl_divergence

import zoo
from zoo import SpecError, ZooError
from zoo.testing import check
from zoo_draw.draw import Draw, gaussian_kl
from zoo_draw.variational import Variational

WINDOWS = [(2, 3), (None, None), (None, 2), (3, None)]


def compose(**changes: Any) -> Draw:
    model = {"type": "draw", "height": 5, "width": 4, "steps": 3, "latent": 2, "hidden": 6,
             "read_size": 2, "write_size": 3}  # fmt: skip
    return zoo.compose({"zoo": 1, "name": "test", "model": model | changes})


def make_batch(model: Draw, items: int = 3) -> dict[str, torch.Tensor]:
    return model.example(items, 1, torch.Generator().manual_seed(0))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_draw(model: Draw, x: np.ndarray) -> tuple[np.ndarray, list[float]]:
    """Compute equations 1 to 29 in numpy for one image of one channel, latents at their means."""
    W = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    B, A = x.shape

    def linear(name, v):
        return W[f"{name}.weight"] @ v + W[f"{name}.bias"]

    def lstm(name, v, h, c):
        gates = W[f"{name}.weight_ih"] @ v + W[f"{name}.bias_ih"]
        gates = gates + W[f"{name}.weight_hh"] @ h + W[f"{name}.bias_hh"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        return sigmoid(o) * np.tanh(c), c

    def banks(name, h, N):
        gx, gy, log_variance, log_delta, log_gamma = linear(name, h)
        delta = (max(A, B) - 1) / (N - 1) * np.exp(log_delta)
        filters = []
        for g, pixels in ((gx, A), (gy, B)):
            mu = (pixels + 1) / 2 * (g + 1) + (np.arange(1, N + 1) - N / 2 - 0.5) * delta
            a = np.arange(1, pixels + 1)
            F_ = np.exp(-((a - mu[:, None]) ** 2) / (2 * np.exp(log_variance)))
            filters.append(F_ / F_.sum(axis=1, keepdims=True))
        return *filters, np.exp(log_gamma)

    canvas = W["canvas"][0].copy()
    h_enc, h_dec = W["encoder_start"], W["decoder_start"]
    c_enc, c_dec, kls = np.zeros(6), np.zeros(6), []
    for _ in range(model.steps):
        error = x - sigmoid(canvas)
        if model.read.grid:
            F_X, F_Y, gamma = banks("read.place", h_dec, model.read.grid)
            inputs = [gamma * F_Y @ image @ F_X.T for image in (x, error)]
        else:
            inputs = [x, error]
        r = np.concatenate([image.ravel() for image in inputs])
        h_enc, c_enc = lstm("encoder", np.concatenate([r, h_dec]), h_enc, c_enc)
        mu, log_sigma = linear("mu", h_enc), linear("log_sigma", h_enc)
        kls.append(0.5 * (mu**2 + np.exp(log_sigma) ** 2 - 2 * log_sigma).sum() - len(mu) / 2)
        h_dec, c_dec = lstm("decoder", mu, h_dec, c_dec)
        patch = linear("write.patch", h_dec)
        if model.write.grid:
            N = model.write.grid
            F_X, F_Y, gamma = banks("write.place", h_dec, N)
            canvas = canvas + F_Y.T @ patch.reshape(N, N) @ F_X / gamma
        else:
            canvas = canvas + patch.reshape(B, A)
    return canvas, kls


@pytest.mark.parametrize(("read", "write"), WINDOWS)
def test_matches_the_equations_in_numpy(read, write):
    model = compose(read_size=read, write_size=write).double().eval()
    with torch.no_grad():
        places = [p for name, p in model.named_parameters() if ".place." in name]
        for weight in (model.canvas, model.encoder_start, model.decoder_start, *places):
            weight.copy_(torch.randn(weight.shape, dtype=torch.float64) / 2)
    batch = make_batch(model)

    outputs = model(batch)

    for i, image in enumerate(batch["source"].numpy()):
        canvas, kls = reference_draw(model, image[0])
        np.testing.assert_allclose(outputs.logits[i, :, 0].detach(), canvas.ravel(), atol=1e-10)
        np.testing.assert_allclose(outputs.extras["kl"][i].detach(), kls, atol=1e-10)
    assert torch.equal(outputs.targets[..., 0], batch["source"].flatten(1))
    assert outputs.mask.all()


def test_gaussian_kl_matches_torch():
    mu, log_sigma = torch.randn(2, 7, 3, dtype=torch.float64)
    expected = kl_divergence(Normal(mu, log_sigma.exp()), Normal(mu * 0, 1.0)).sum(dim=1)

    torch.testing.assert_close(gaussian_kl(mu, log_sigma), expected)
    assert gaussian_kl(torch.zeros(1, 3), torch.zeros(1, 3)).item() == 0


def test_latents_are_sampled_in_training_reproducibly():
    model = compose()
    batch = make_batch(model)

    torch.manual_seed(1)
    first, other = (model.train()(batch).logits for _ in range(2))
    torch.manual_seed(1)
    again = model(batch).logits

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(model.eval()(batch).logits, model(batch).logits)


def test_bound_equals_the_objective_in_training():
    model = compose()
    batch = make_batch(model)

    bound = model.eval().bound(batch["source"], torch.Generator().manual_seed(3))

    torch.manual_seed(3)
    expected = Variational()(model.train()(batch))
    assert bound.shape == (3,)
    torch.testing.assert_close(bound.mean(), expected)
    assert not torch.equal(bound, model.bound(batch["source"]))


def test_bound_is_above_the_exact_negative_log_likelihood():
    """With one latent of width 1 the likelihood is a one-dimensional integral."""
    model = compose(steps=1, latent=1).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3)  # so that the posterior differs from the prior
    image = make_batch(model, 1)["source"]
    z = torch.linspace(-10, 10, 4001, dtype=torch.float64)
    start = model.decoder_start.expand(len(z), -1)
    with torch.no_grad():
        h, _ = model.decoder(z[:, None], (start, torch.zeros_like(start)))
        canvas = model.canvas + model.write(h)
    nll = F.binary_cross_entropy_with_logits(canvas, image.expand_as(canvas), reduction="none").sum(
        dim=(1, 2, 3)
    )
    density = torch.exp(Normal(z * 0, 1.0).log_prob(z) - nll)
    exact = -torch.trapezoid(density, z).log().item()

    bounds = model.bound(image.expand(20_000, -1, -1, -1), torch.Generator().manual_seed(0))

    error = bounds.std().item() / math.sqrt(len(bounds))
    assert bounds.mean().item() - 5 * error > exact
    # The gap is the KL divergence of the encoder's distribution from the true posterior.
    posterior = density / torch.trapezoid(density, z)
    q = _code_posterior(model, image)
    gap = torch.trapezoid(q.log_prob(z).exp() * (q.log_prob(z) - posterior.log()), z)
    assert bounds.mean().item() - exact == pytest.approx(gap.item(), abs=5 * error)


def _code_posterior(model: Draw, image: torch.Tensor) -> Normal:
    """Return the encoder's distribution of the first latent."""
    h = model.decoder_start.expand(1, -1)
    with torch.no_grad():
        glimpse = model.read(image, image - model.canvas.sigmoid(), h)
        start = (model.encoder_start.expand(1, -1), torch.zeros_like(h))
        state, _ = model.encoder(torch.cat([glimpse, h], dim=1), start)
        return Normal(model.mu(state)[0, 0], model.log_sigma(state)[0, 0].exp())


@pytest.mark.parametrize(("read", "write"), WINDOWS)
def test_samples_are_images_and_reproducible(read, write):
    model = compose(read_size=read, write_size=write, channels=2).eval()

    first = model.sample(4, torch.Generator().manual_seed(0))

    assert first.shape == (4, 2, 5, 4)
    assert ((first > 0) & (first < 1)).all()
    assert torch.equal(first, model.sample(4, torch.Generator().manual_seed(0)))
    assert not torch.equal(first, model.sample(4, torch.Generator().manual_seed(1)))
    assert not torch.equal(first[0], first[1])


def test_sample_decodes_latents_of_the_prior():
    model = compose().eval()
    generator = torch.Generator().manual_seed(0)
    latents = [torch.randn(4, 2, generator=generator) for _ in range(3)]
    h = model.decoder_start.expand(4, -1)
    state, canvas = (h, torch.zeros_like(h)), model.canvas
    for z in latents:
        state = model.decoder(z, state)
        canvas = canvas + model.write(state[0])

    sampled = model.sample(4, torch.Generator().manual_seed(0))

    torch.testing.assert_close(sampled, canvas.sigmoid())


def test_bfloat16_is_close_to_float32():
    model = compose().eval()
    batch = make_batch(model)
    expected = model(batch).logits

    half = model.bfloat16()({"source": batch["source"].bfloat16()})

    assert (half.logits - expected).abs().max() <= 0.05 * expected.abs().max()
    Variational()(half).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    assert model.sample(2).isfinite().all()


def test_compiles_as_one_graph_in_training():
    model = compose().train()
    batch = make_batch(model)
    torch.compiler.reset()
    compiled = torch.compile(model, backend="eager", fullgraph=True)

    torch.manual_seed(2)
    actual = compiled(batch).logits
    torch.manual_seed(2)
    torch.testing.assert_close(actual, model(batch).logits)


@pytest.mark.slow
def test_laws_without_windows_and_with_three_channels():
    test_params = {"height": 3, "width": 4, "steps": 2, "latent": 2, "hidden": 4}
    check(Draw, **test_params)
    check(Draw, **test_params, channels=3, read_size=1, write_size=2)


@pytest.mark.parametrize("shape", [[2, 3, 5, 4], [2, 1, 4, 5], [2, 5, 4]])
def test_images_of_another_shape_raise(shape):
    with pytest.raises(ZooError, match=rf"{re.escape(str(shape))}.*\[B, 1, 5, 4\]"):
        compose()({"source": torch.zeros(shape)})


@pytest.mark.parametrize(("low", "high"), [(-0.5, 1.0), (0.0, 255.0), (math.nan, math.nan)])
def test_pixels_outside_0_to_1_raise(low, high):
    images = torch.zeros(2, 1, 5, 4)
    images[0, 0, 0, 0], images[1, 0, 2, 2] = low, high
    for call in (lambda: compose()({"source": images}), lambda: compose().bound(images)):
        with pytest.raises(ZooError, match=f"{low:g} to {high:g}.*'draw'.*0 to 1"):
            call()


@pytest.mark.parametrize("change", [{"read_size": 0}, {"steps": 0}, {"latent": 0}])
def test_invalid_parameters_raise(change):
    with pytest.raises(SpecError, match=next(iter(change))):
        compose(**change)


def test_weight_names_and_shapes():
    shapes = {k: tuple(v.shape) for k, v in compose().state_dict().items()}

    assert shapes == {
        "canvas": (1, 5, 4),
        "encoder_start": (6,),
        "decoder_start": (6,),
        "read.place.weight": (5, 6),
        "read.place.bias": (5,),
        "write.place.weight": (5, 6),
        "write.place.bias": (5,),
        "write.patch.weight": (9, 6),
        "write.patch.bias": (9,),
        "encoder.weight_ih": (24, 14),
        "encoder.weight_hh": (24, 6),
        "encoder.bias_ih": (24,),
        "encoder.bias_hh": (24,),
        "decoder.weight_ih": (24, 2),
        "decoder.weight_hh": (24, 6),
        "decoder.bias_ih": (24,),
        "decoder.bias_hh": (24,),
        "mu.weight": (2, 6),
        "mu.bias": (2,),
        "log_sigma.weight": (2, 6),
        "log_sigma.bias": (2,),
    }
    plain = set(compose(read_size=None, write_size=None).state_dict())
    assert set(shapes) - plain == {f"{w}.place.{p}" for w in ("read", "write") for p in
                                   ("weight", "bias")}  # fmt: skip


def test_reset_parameters_restores_the_initial_values():
    model = compose()
    with torch.no_grad():
        for initial in (model.canvas, model.encoder_start, model.decoder_start):
            initial.fill_(1.0)

    model.reset_parameters()

    assert not any(p.any() for p in (model.canvas, model.encoder_start, model.decoder_start))
