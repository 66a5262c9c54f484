import numpy as np
import pytest
import torch

from zoo_draw.filters import GridParameters, filter_banks


def make_parameters(*rows: tuple[float, ...]) -> torch.Tensor:
    """Return rows of centre x and y and the logarithms of sigma^2, delta~ and gamma."""
    banks = torch.tensor(rows, dtype=torch.float64)
    return torch.cat([banks[:, :2], banks[:, 2:].log()], dim=1)


def reference_filters(row, N, height, width):
    """Compute equations 19 to 26 with loops: F_X [N, A], F_Y [N, B]."""
    gx_, gy_, log_variance, log_delta, _ = row
    A, B = width, height
    g_X, g_Y = (A + 1) / 2 * (gx_ + 1), (B + 1) / 2 * (gy_ + 1)
    delta = (max(A, B) - 1) / (N - 1) * np.exp(log_delta)
    variance = np.exp(log_variance)
    F_X, F_Y = np.zeros((N, A)), np.zeros((N, B))
    for i in range(1, N + 1):
        for F, g, pixels in ((F_X, g_X, A), (F_Y, g_Y, B)):
            mu = g + (i - N / 2 - 0.5) * delta
            for a in range(1, pixels + 1):
                F[i - 1, a - 1] = np.exp(-((a - mu) ** 2) / (2 * variance))
            F[i - 1] /= F[i - 1].sum()
    return F_X, F_Y


@pytest.mark.parametrize(("N", "means"), [(1, [14.5]), (2, [7.5, 21.5]), (4, [4, 11, 18, 25])])
def test_the_initial_grid_covers_the_image_evenly(N, means):
    place = GridParameters(3, N=N, size=28).double()

    banks = filter_banks(place(torch.randn(1, 3, dtype=torch.float64)), N, 28, 28)

    pixels, sigma = torch.arange(1.0, 29.0, dtype=torch.float64), 28 / N / 2
    centres = torch.tensor(means, dtype=torch.float64)[:, None]
    expected = torch.distributions.Normal(centres, sigma).log_prob(pixels).softmax(dim=-1)
    torch.testing.assert_close(banks.F_X[0], expected, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(banks.F_Y, banks.F_X)
    assert banks.gamma.item() == 1


def test_known_values():
    # Three pixels with centre 2; two filters with a stride of (3 - 1) / (2 - 1) * 0.5.
    banks = filter_banks(make_parameters((0, 0, 0.25, 0.5, 2)), 2, 3, 3)

    near, far = np.exp(-2 * 0.25), np.exp(-2 * 2.25)  # 0.5 and 1.5 pixels from the mean
    first = np.array([near, near, far]) / (2 * near + far)
    np.testing.assert_allclose(banks.F_X[0], [first, first[::-1]], atol=1e-12)
    np.testing.assert_allclose(banks.F_Y[0], [first, first[::-1]], atol=1e-12)
    assert banks.gamma.item() == pytest.approx(2.0)


@pytest.mark.parametrize(("N", "height", "width"), [(2, 28, 28), (5, 6, 9), (3, 9, 6)])
def test_matches_a_loop_over_the_equations(N, height, width):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(20, 5, generator=generator, dtype=torch.float64) * 0.3

    banks = filter_banks(rows, N, height, width)

    for i, row in enumerate(rows.tolist()):
        F_X, F_Y = reference_filters(row, N, height, width)
        np.testing.assert_allclose(banks.F_X[i], F_X, atol=1e-12)
        np.testing.assert_allclose(banks.F_Y[i], F_Y, atol=1e-12)
        assert banks.gamma[i].item() == pytest.approx(np.exp(row[4]))


def test_read_and_write_match_equations_27_and_29():
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(3, 5, generator=generator, dtype=torch.float64) * 0.5
    images = torch.rand(3, 2, 6, 5, generator=generator, dtype=torch.float64)
    patches = torch.rand(3, 2, 4, 4, generator=generator, dtype=torch.float64)
    banks = filter_banks(rows, 4, 6, 5)

    read, written = banks.read(images), banks.write(patches)

    for i, row in enumerate(rows.tolist()):
        (F_X, F_Y), gamma = reference_filters(row, 4, 6, 5), np.exp(row[4])
        for c in range(2):
            expected = gamma * F_Y @ images[i, c].numpy() @ F_X.T
            np.testing.assert_allclose(read[i, c], expected, atol=1e-12)
            expected = F_Y.T @ patches[i, c].numpy() @ F_X / gamma
            np.testing.assert_allclose(written[i, c], expected, atol=1e-12)


@pytest.mark.parametrize(("top", "left"), [(0, 0), (2, 1), (3, 4), (1, 5)])
def test_a_sharp_grid_of_stride_one_is_a_crop(top, left):
    N, height, width = 3, 6, 8
    image = torch.rand(1, 2, height, width, dtype=torch.float64)
    centre = (left + 2) * 2 / (width + 1) - 1, (top + 2) * 2 / (height + 1) - 1
    banks = filter_banks(
        make_parameters((*centre, 1e-4, (N - 1) / (width - 1), 1)), N, height, width
    )

    crop = image[..., top : top + N, left : left + N]
    torch.testing.assert_close(banks.read(image), crop, rtol=0, atol=1e-12)
    canvas = torch.zeros_like(image)
    canvas[..., top : top + N, left : left + N] = crop
    torch.testing.assert_close(banks.write(crop), canvas, rtol=0, atol=1e-12)


def test_a_sharp_grid_over_the_full_image_is_the_identity():
    image = torch.rand(1, 1, 5, 5, dtype=torch.float64)
    banks = filter_banks(make_parameters((0, 0, 1e-4, 1, 1)), 5, 5, 5)

    torch.testing.assert_close(banks.read(image), image, rtol=0, atol=1e-12)


def test_a_grid_of_one_point_ignores_the_stride():
    image = torch.arange(9.0, dtype=torch.float64).view(1, 1, 3, 3)
    banks = filter_banks(make_parameters((0, 0, 1e-4, 5, 3)), 1, 3, 3)

    assert banks.read(image).item() == pytest.approx(3 * 4)


@pytest.mark.parametrize("centre", [-50.0, 50.0])
def test_a_grid_far_outside_the_image_selects_the_edge(centre):
    banks = filter_banks(make_parameters((centre, centre, 0.01, 1, 1)).float(), 2, 4, 4)

    edge = torch.eye(4)[0 if centre < 0 else 3].expand(1, 2, 4)
    torch.testing.assert_close(banks.F_X, edge)
    torch.testing.assert_close(banks.F_Y, edge)


def test_gradients_flow_to_parameters_images_and_patches():
    rows = (torch.randn(2, 5, dtype=torch.float64) * 0.3).requires_grad_()
    image = torch.rand(2, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    patch = torch.rand(2, 1, 3, 3, dtype=torch.float64, requires_grad=True)

    def read(rows, image):
        return filter_banks(rows, 3, 4, 5).read(image)

    def write(rows, patch):
        return filter_banks(rows, 3, 4, 5).write(patch)

    assert torch.autograd.gradcheck(read, (rows, image))
    assert torch.autograd.gradcheck(write, (rows, patch))


def test_autocast_does_not_change_what_is_read_and_written():
    banks = filter_banks(make_parameters((0.1, -0.2, 1.5, 0.8, 1.2)).float(), 3, 8, 8)
    image, patch = torch.randn(1, 1, 8, 8), torch.randn(1, 1, 3, 3)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        read, written = banks.read(image), banks.write(patch)

    assert torch.equal(read, banks.read(image))
    assert torch.equal(written, banks.write(patch))
