"""DRAW: an image drawn in many small steps."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import full_precision
from zoo_draw.read_write import Reader, Writer

Side = Annotated[int, Field(ge=1)]


class Draw(Model):
    r"""Encodes an image in steps, each told what is still wrong, and draws it from the codes.

    .. math::
        \hat x_t = x - \sigma(c_{t-1}), \quad
        h^e_t = \mathrm{LSTM}([\mathrm{read}(x, \hat x_t, h^d_{t-1}), h^d_{t-1}]), \quad
        z_t \sim \mathcal{N}(\mu(h^e_t), \sigma(h^e_t)^2), \quad
        h^d_t = \mathrm{LSTM}(z_t), \quad
        c_t = c_{t-1} + \mathrm{write}(h^d_t)

    The pixels are Bernoulli variables with the logits c_T. Codes are drawn in training, so that
    the objective `variational` is an estimate of the bound; in evaluation they are the means, so
    that a batch always gives the same, and `bound` draws them.

    Paper: Gregor et al. 2015, equations 1 to 18 and, for windows, 19 to 29. The canvas and both
    states begin with learned values, the cells of the LSTMs with 0.

    Args:
        height: of the images.
        width: of the images.
        channels: of the images.
        steps: T, how many codes there are.
        latent: width of a code.
        hidden: width of each LSTM.
        read: side of the grid it reads through; none to see the whole image.
        write: side of the grid it draws through; none to draw on the whole canvas.

    Shapes:
        batch {source [B, channels, height, width] from 0 to 1} -> logits and targets [B, P, 1] for
        the P = channels * height * width pixels; extras kl [B, steps], in nats.
    """

    name: ClassVar[str] = "draw"
    paper: ClassVar[str] = (
        "Gregor et al. 2015, DRAW: A Recurrent Neural Network For Image Generation, "
        "arXiv:1502.04623"
    )
    test_params: ClassVar[Mapping[str, Any]] = {
        "height": 5, "width": 4, "steps": 3, "latent": 2, "read": 2, "write": 3
    }  # fmt: skip

    def __init__(
        self,
        *,
        height: Side,
        width: Side,
        channels: Annotated[int, Field(ge=1)] = 1,
        steps: Annotated[int, Field(ge=1)] = 64,
        latent: Annotated[int, Field(ge=1)] = 100,
        hidden: Annotated[int, Field(ge=1)] = 256,
        read: Side | None = None,
        write: Side | None = None,
    ) -> None:
        super().__init__()
        self.shape = (channels, height, width)
        self.steps = steps
        self.latent = latent
        self.read = Reader(grid=read, hidden=hidden, shape=self.shape)
        self.write = Writer(grid=write, hidden=hidden, shape=self.shape)
        self.encoder = nn.LSTMCell(self.read.output_dim + hidden, hidden)
        self.decoder = nn.LSTMCell(latent, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.log_sigma = nn.Linear(hidden, latent)
        self.canvas = nn.Parameter(torch.zeros(self.shape))
        self.encoder_start = nn.Parameter(torch.zeros(hidden))
        self.decoder_start = nn.Parameter(torch.zeros(hidden))

    def forward(self, batch: Batch) -> Outputs:
        images = batch["source"]
        canvas, kl = self._unroll(images, draw=self.training)
        targets = images.flatten(1)[..., None]
        mask = torch.ones_like(targets[..., 0], dtype=torch.bool)
        return Outputs(canvas.flatten(1)[..., None], targets, mask, extras={"kl": kl})

    @torch.no_grad()
    def bound(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A draw [B] of the bound on -log p(x), in nats: its mean is above, a draw need not be."""
        canvas, kl = self._unroll(images, draw=True, generator=generator)
        reconstruction = F.binary_cross_entropy_with_logits(
            canvas, images.to(canvas), reduction="none"
        )
        return reconstruction.flatten(1).sum(dim=1) + kl.sum(dim=1)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """n images [n, channels, height, width] from codes of the prior, as pixels' chances."""
        canvas, decoder = self._initial_canvas(n), self._initial_state(self.decoder_start, n)
        for _ in range(self.steps):
            decoder = self.decoder(self._sample_noise(n, generator), decoder)
            canvas = canvas + self.write(decoder[0])
        return canvas.sigmoid()

    def _unroll(
        self, images: Tensor, *, draw: bool, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """The last canvas [B, channels, height, width] and the divergence of each code [B, T]."""
        self._validate_images(images)
        B = images.shape[0]
        canvas = self._initial_canvas(B)
        encoder, decoder = (
            self._initial_state(self.encoder_start, B),
            self._initial_state(self.decoder_start, B),
        )
        kl = []
        for _ in range(self.steps):
            glimpse = self.read(images, images - canvas.sigmoid(), decoder[0])
            encoder = self.encoder(torch.cat([glimpse, decoder[0]], dim=1), encoder)
            mu, log_sigma = self.mu(encoder[0]), self.log_sigma(encoder[0])
            z = mu + log_sigma.exp() * self._sample_noise(B, generator) if draw else mu
            decoder = self.decoder(z, decoder)
            canvas = canvas + self.write(decoder[0])
            kl.append(gaussian_kl(full_precision(mu), full_precision(log_sigma)))
        return canvas, torch.stack(kl, dim=1)

    def _initial_canvas(self, B: int) -> Tensor:
        return full_precision(self.canvas).expand(B, -1, -1, -1)

    def _initial_state(self, state: Tensor, B: int) -> tuple[Tensor, Tensor]:
        h = state.expand(B, -1)
        return h, torch.zeros_like(h)

    def _sample_noise(self, B: int, generator: torch.Generator | None) -> Tensor:
        weight = self.mu.weight
        device = generator.device if generator else weight.device
        shape = (B, self.latent)
        return torch.randn(shape, dtype=weight.dtype, device=device, generator=generator).to(weight)

    def _validate_images(self, images: Tensor) -> None:
        if images.dim() != 4 or tuple(images.shape[1:]) != self.shape:
            channels, height, width = self.shape
            raise ZooError(
                f"images are {list(images.shape)}, but should be "
                f"[batch, {channels} channels, {height}, {width}]"
            )
        # Elsewhere than on a CPU, looking at the pixels would make the host wait.
        if images.device.type == "cpu" and images.numel() and not torch.compiler.is_compiling():
            low, high = images.min().item(), images.max().item()
            if not (low >= 0 and high <= 1):
                raise ZooError(
                    f"pixels go from {low:g} to {high:g}, but model '{self.name}' takes them as "
                    "chances, from 0 to 1"
                )

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """A random batch; its images are as large as the model draws them, whatever the length."""
        device = generator.device if generator else self.canvas.device
        images = torch.rand((batch, *self.shape), generator=generator, device=device)
        return {"source": images.round().to(self.canvas)}


def gaussian_kl(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """KL(N(mu, sigma^2) || N(0, 1)), summed over a code, equation 11: [B, latent] -> [B]."""
    return (mu.square() + (2 * log_sigma).exp() - 2 * log_sigma - 1).sum(dim=-1) / 2
