"""The DRAW model."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import BatchSchema, OutputSchema, TensorSchema, full_precision, rename_params
from zoo_draw.read_write import Reader, Writer


class Draw(Model):
    r"""DRAW: recurrent variational autoencoder that reads and writes an image in steps.

    .. math::
        \hat x_t = x - \sigma(c_{t-1}), \quad
        h^e_t = \mathrm{LSTM}([\mathrm{read}(x, \hat x_t, h^d_{t-1}), h^d_{t-1}]), \quad
        z_t \sim \mathcal{N}(\mu(h^e_t), \sigma(h^e_t)^2), \quad
        h^d_t = \mathrm{LSTM}(z_t), \quad
        c_t = c_{t-1} + \mathrm{write}(h^d_t)

    The pixels are Bernoulli variables with logits c_T. In training, latents are sampled, so the
    objective `variational` estimates the bound. In evaluation, latents are the means, so outputs
    are deterministic; `bound` samples them.

    Paper: Gregor et al. 2015, equations 1 to 18 and, for windows, 19 to 29. The canvas and both
    hidden states are initialised with learned values, the LSTM cell states with 0.

    Args:
        height: image height.
        width: image width.
        channels: number of image channels.
        steps: number of steps T, one latent each.
        latent: width of a latent.
        hidden: width of each LSTM.
        read_size: side of the read grid; None reads the full image.
        write_size: side of the write grid; None writes to the full canvas.

    Shapes:
        batch {source [B, channels, height, width] from 0 to 1} -> logits and targets [B, P, 1] for
        the P = channels * height * width pixels; extras kl [B, steps], in nats.
    """

    name: ClassVar[str] = "draw"
    version: ClassVar[int] = 2
    paper: ClassVar[str] = (
        "Gregor et al. 2015, DRAW: A Recurrent Neural Network For Image Generation, "
        "arXiv:1502.04623"
    )
    weight_roles: ClassVar[Mapping[str, str]] = {
        "canvas": "special",
        "encoder_start": "special",
        "decoder_start": "special",
    }
    test_params: ClassVar[Mapping[str, Any]] = {
        "height": 5, "width": 4, "steps": 3, "latent": 2, "read_size": 2, "write_size": 3
    }  # fmt: skip

    def __init__(
        self,
        *,
        height: Annotated[int, Field(ge=1)],
        width: Annotated[int, Field(ge=1)],
        channels: Annotated[int, Field(ge=1)] = 1,
        steps: Annotated[int, Field(ge=1, le=128)] = 64,
        latent: Annotated[int, Field(ge=1)] = 100,
        hidden: Annotated[int, Field(ge=1)] = 256,
        read_size: Annotated[int, Field(ge=1)] | None = None,
        write_size: Annotated[int, Field(ge=1)] | None = None,
    ) -> None:
        super().__init__()
        self.height = height
        self.width = width
        self.channels = channels
        self.steps = steps
        self.latent = latent
        self.hidden = hidden
        self.read_size = read_size
        self.write_size = write_size
        self.shape = (channels, height, width)
        self.read = Reader(grid=read_size, hidden=hidden, shape=self.shape)
        self.write = Writer(grid=write_size, hidden=hidden, shape=self.shape)
        self.encoder = nn.LSTMCell(self.read.output_dim + hidden, hidden)
        self.decoder = nn.LSTMCell(latent, hidden)
        self.mu = nn.Linear(hidden, latent)
        self.log_sigma = nn.Linear(hidden, latent)
        self.canvas = nn.Parameter(torch.empty(self.shape))
        self.encoder_start = nn.Parameter(torch.empty(hidden))
        self.decoder_start = nn.Parameter(torch.empty(hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the initial canvas and the initial hidden states to 0."""
        for initial in (self.canvas, self.encoder_start, self.decoder_start):
            nn.init.zeros_(initial)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, read="read_size", write="write_size")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        images = batch["source"]
        canvas, kl = self._unroll(images, sample_latents=self.training)
        targets = images.flatten(1)[..., None]
        mask = torch.ones_like(targets[..., 0], dtype=torch.bool)
        return Outputs(canvas.flatten(1)[..., None], targets, mask, extras={"kl": kl})

    @torch.no_grad()
    def bound(self, images: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Return a one-sample estimate [B] of the upper bound on -log p(x), in nats."""
        canvas, kl = self._unroll(images, sample_latents=True, generator=generator)
        reconstruction = F.binary_cross_entropy_with_logits(
            canvas, images.to(canvas), reduction="none"
        )
        return reconstruction.flatten(1).sum(dim=1) + kl.sum(dim=1)

    @torch.no_grad()
    def sample(self, n: int, generator: torch.Generator | None = None) -> Tensor:
        """Return pixel probabilities [n, channels, height, width] for latents of the prior."""
        canvas, decoder = self._initial_canvas(n), self._initial_state(self.decoder_start, n)
        for _ in range(self.steps):
            decoder = self.decoder(self._sample_noise(n, generator), decoder)
            canvas = canvas + self.write(decoder[0])
        return canvas.sigmoid()

    def _unroll(
        self, images: Tensor, *, sample_latents: bool, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the last canvas [B, channels, height, width] and the KL of each latent [B, T]."""
        self._validate_images(images)
        B = images.shape[0]
        canvas = self._initial_canvas(B)
        encoder, decoder = (
            self._initial_state(self.encoder_start, B),
            self._initial_state(self.decoder_start, B),
        )
        mus, log_sigmas = [], []
        for _ in range(self.steps):
            glimpse = self.read(images, images - canvas.sigmoid(), decoder[0])
            encoder = self.encoder(torch.cat([glimpse, decoder[0]], dim=1), encoder)
            mu, log_sigma = self.mu(encoder[0]), self.log_sigma(encoder[0])
            z = mu
            if sample_latents:
                z = mu + log_sigma.exp() * self._sample_noise(B, generator)
            decoder = self.decoder(z, decoder)
            canvas = canvas + self.write(decoder[0])
            mus.append(full_precision(mu))
            log_sigmas.append(full_precision(log_sigma))
        return canvas, gaussian_kl(torch.stack(mus, dim=1), torch.stack(log_sigmas, dim=1))

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
                f"images have shape {list(images.shape)}, but model '{self.name}' expects "
                f"[batch, {channels}, {height}, {width}]"
            )
        # On an accelerator, reading the values would synchronise.
        if images.device.type == "cpu" and images.numel() and not torch.compiler.is_compiling():
            low, high = images.min().item(), images.max().item()
            if not (low >= 0 and high <= 1):
                raise ZooError(
                    f"pixel values range from {low:g} to {high:g}, but model '{self.name}' "
                    "expects values from 0 to 1"
                )

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        return {"source": TensorSchema(("B", *self.shape), "float")}

    def output_schema(self) -> OutputSchema:
        return OutputSchema(logits="pixel", targets="multi-label", extras=("kl",))

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        """Return a random batch of images of the model's size; ``length`` is ignored."""
        device = generator.device if generator else self.canvas.device
        images = torch.rand((batch, *self.shape), generator=generator, device=device)
        return {"source": images.round().to(self.canvas)}


def gaussian_kl(mu: Tensor, log_sigma: Tensor) -> Tensor:
    """Compute KL(N(mu, sigma^2) || N(0, 1)), equation 11: [..., latent] -> [...]."""
    return (mu.square() + (2 * log_sigma).exp() - 2 * log_sigma - 1).sum(dim=-1) / 2
