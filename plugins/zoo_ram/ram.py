"""The recurrent attention model (RAM)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from zoo import Batch, Model, Outputs, ZooError
from zoo.plugin import (
    BatchSchema,
    Blueprint,
    OutputSchema,
    Samples,
    TensorSchema,
    full_precision,
    rename_params,
)
from zoo_ram.baseline import Baseline
from zoo_ram.glimpse import GlimpseNetwork
from zoo_ram.policy import Policy
from zoo_ram.retina import Retina


@dataclass(frozen=True)
class Rollout:
    """Result of a rollout: logits [B, V], locations [B, G, 2], logprob, baselines [B, G - 1]."""

    logits: Tensor
    locations: Tensor
    logprob: Tensor
    baselines: Tensor


@dataclass(frozen=True, kw_only=True)
class LocationSettings:
    """How the locations of the glimpses are chosen, and the baseline of the reward for them.

    Args:
        std: standard deviation of the sampled locations.
        start: first location in training, "random" or "centre"; in evaluation it is the centre.
        policy: parameters of the location policy; by default locations are clamped to the image.
        baseline: "linear", or "relu" for a baseline that is not negative, like the reward.
    """

    std: Annotated[float, Field(gt=0)] = 0.17
    start: Literal["random", "centre"] = "random"
    policy: Blueprint[Policy] | None = None
    baseline: Literal["linear", "relu"] = "linear"


class RAM(Model):
    r"""RAM: recurrent image classifier that attends to one predicted location per step.

    .. math::
        g_t = f_g(\rho(x, l_t), l_t), \qquad h_t = \mathrm{ReLU}(W h_{t-1} + U g_t + b), \qquad
        l_{t+1} \sim \mathcal{N}(\tanh(A h_t + a), \sigma^2), \qquad
        p(y) = \mathrm{softmax}(V h_G + v)

    Locations are sampled in training. In evaluation they are the means, so outputs are
    deterministic. In training the first location is sampled uniformly (start: random) or is the
    centre; in evaluation it is the centre. With several rollouts, evaluation averages the class
    probabilities of this rollout and of sampled ones, which use the same noise for all images and
    in every call, so outputs remain deterministic. As in the paper's hybrid training, the
    classification loss trains the recurrent cell and the glimpse network by back-propagation;
    policy and baseline receive the detached state and are trained by the objective
    `hybrid-reinforce`, or the policy alone by `reinforce`.

    Paper: Mnih et al. 2014, sections 3 and 4.

    Args:
        retina: extracts the patches of a glimpse.
        classes: number of classes.
        glimpses: number of glimpses G.
        channels: number of image channels.
        glimpse_hidden: width of the patch features in the glimpse network.
        location_hidden: width of the location features in the glimpse network.
        hidden: width of the glimpse vector and of the recurrent state.
        cell: recurrent cell, "rnn" with ReLU as in the paper, or "lstm".
        std: standard deviation of the sampled locations.
        start: first location in training, "random" or "centre"; in evaluation it is the centre.
        policy: parameters of the location policy; by default locations are clamped to the image.
        baseline: "linear", or "relu" for a baseline that is not negative, like the reward.
        rollouts: number of rollouts in evaluation; the extras are those of the first.

    Shapes:
        batch {source [B, channels, height, width], target [B]} -> logits [B, 1, classes]; extras
        locations [B, glimpses, 2], logprob and baselines [B, glimpses - 1], one per sampled
        location. A location is (x, y) from -1 to 1; the top left corner is (-1, -1).
    """

    name: ClassVar[str] = "ram"
    loss_only: ClassVar[tuple[str, ...]] = ("target",)
    version: ClassVar[int] = 2
    paper: ClassVar[str] = "Mnih et al. 2014, Recurrent Models of Visual Attention, arXiv:1406.6247"
    test_params: ClassVar[Mapping[str, Any]] = {"retina": {"size": 3, "scales": 2}, "glimpses": 3}

    def __init__(
        self,
        *,
        retina: Blueprint[Retina],
        classes: Annotated[int, Field(ge=1)],
        glimpses: Annotated[int, Field(ge=2, le=128)] = 6,
        channels: Annotated[int, Field(ge=1)] = 1,
        glimpse_hidden: Annotated[int, Field(ge=1)] = 128,
        location_hidden: Annotated[int, Field(ge=1)] = 128,
        hidden: Annotated[int, Field(ge=1)] = 256,
        cell: Literal["rnn", "lstm"] = "rnn",
        location: LocationSettings,
        rollouts: Annotated[int, Field(ge=1, le=1024)] = 1,
    ) -> None:
        super().__init__()
        self.classes = classes
        self.glimpses = glimpses
        self.glimpse_hidden = glimpse_hidden
        self.location_hidden = location_hidden
        self.hidden = hidden
        self.cell = cell
        self.std = location.std
        self.start = location.start
        self.rollouts = rollouts
        self.channels = channels
        self.retina = retina.build(channels=channels)
        self.glimpse = GlimpseNetwork(
            input_dim=self.retina.output_dim,
            glimpse_hidden=glimpse_hidden,
            location_hidden=location_hidden,
            hidden=hidden,
        )
        self.core: nn.RNNCell | nn.LSTMCell = (
            nn.LSTMCell(hidden, hidden)
            if cell == "lstm"
            else nn.RNNCell(hidden, hidden, nonlinearity="relu")
        )
        policy = location.policy.build if location.policy else Policy
        self.policy: Policy = policy(input_dim=hidden, std=location.std)
        self.baseline = Baseline(hidden, location.baseline)
        self.out = nn.Linear(hidden, classes)

    @classmethod
    def migrate(
        cls, version: int, params: dict[str, Any], tensors: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if version == 1:
            rename_params(params, what="glimpse_hidden", where="location_hidden")
        return params, tensors

    def forward(self, batch: Batch) -> Outputs:
        images = batch["source"]
        rollout = self.rollout(images, sample=True) if self.training else self._evaluate(images)
        logprob = rollout.logprob.sum(dim=1, keepdim=True)
        entropy = torch.full_like(logprob, (self.glimpses - 1) * self.policy.entropy)
        targets = batch["target"][:, None]
        return Outputs(
            rollout.logits[:, None],
            targets,
            torch.ones_like(targets, dtype=torch.bool),
            Samples(logprob, entropy),
            extras={
                "locations": rollout.locations,
                "logprob": rollout.logprob,
                "baselines": rollout.baselines,
            },
        )

    def rollout(
        self,
        images: Tensor,
        *,
        sample: bool,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Rollout:
        """Apply the policy to images [B, channels, height, width] for all glimpses.

        Noise [G, 2] that is passed is used for all images instead of samples; see `shared_noise`.
        """
        location = self._initial_location(
            images, sample, generator, None if noise is None else noise[0]
        )
        state: Any = None
        locations, logprobs, baselines = [location], [], []
        for t in range(self.glimpses):
            if noise is None:  # in evaluation, the first rollout
                self.retina.record_squares(images, location)
            state = self.core(self.glimpse(self.retina(images, location), location), state)
            h = state[0] if isinstance(state, tuple) else state  # [B, hidden]
            if t + 1 < self.glimpses:
                following = None if noise is None else noise[t + 1]
                location, logprob = self.policy(h.detach(), sample, generator, noise=following)
                locations.append(location)
                logprobs.append(logprob)
                baselines.append(self.baseline(h.detach()))
        return Rollout(
            self.out(h),
            torch.stack(locations, dim=1),
            torch.stack(logprobs, dim=1),
            torch.stack(baselines, dim=1),
        )

    @torch.no_grad()
    def predict(
        self, images: Tensor, num_samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the log of the class probabilities [B, classes] averaged over sampled rollouts."""
        if num_samples < 1:
            raise ZooError(f"num_samples is {num_samples}, but must be at least 1")
        rollout = self.rollout(
            images.repeat_interleave(num_samples, dim=0), sample=True, generator=generator
        )
        logits = rollout.logits.view(-1, num_samples, self.classes)
        return _log_mean_probability(logits.transpose(0, 1))

    def _evaluate(self, images: Tensor) -> Rollout:
        """Return the rollout with mean locations, with logits averaged over all rollouts."""
        first = self.rollout(images, sample=False)
        if self.rollouts == 1:
            return first
        noise = shared_noise(self.rollouts - 1, self.glimpses, self.start)
        logits = [first.logits]
        for index in range(self.rollouts - 1):
            sampled = self.rollout(images, sample=True, noise=noise[index])
            logits.append(sampled.logits)
        return replace(first, logits=_log_mean_probability(torch.stack(logits)))

    def _initial_location(
        self,
        images: Tensor,
        sample: bool,
        generator: torch.Generator | None,
        noise: Tensor | None,
    ) -> Tensor:
        dtype = torch.promote_types(images.dtype, torch.float32)
        shape = (images.shape[0], 2)
        if self.start == "centre" or not sample:
            return torch.zeros(shape, dtype=dtype, device=images.device)
        if noise is None:
            # Noise of one dtype, so that a seed has the same locations in all of them.
            device = generator.device if generator else images.device
            noise = torch.rand(shape, dtype=torch.float32, device=device, generator=generator)
        return (2 * noise.to(images.device, dtype) - 1).expand(shape)

    def batch_schema(self, *, inference: bool = False) -> BatchSchema:
        source = TensorSchema(("B", self.channels, "H", "W"), "float", same_size=True)
        target = TensorSchema(("B",), "integer", below=self.classes, optional=inference)
        return {"source": source, "target": target}

    def output_schema(self) -> OutputSchema:
        extras = ("locations", "logprob", "baselines")
        trained_by = (("samples", "logprob"),)
        return OutputSchema(logits="item", samples=True, extras=extras, trained_by=trained_by)

    def example(
        self, batch: int, length: int, generator: torch.Generator | None = None
    ) -> dict[str, Tensor]:
        weight = self.out.weight
        side = self.retina.size + length
        shape = (batch, self.retina.channels, side, side)
        device = generator.device if generator else weight.device
        images = torch.rand(shape, generator=generator, device=device).to(weight)
        target = torch.randint(0, self.classes, (batch,), generator=generator, device=device)
        return {"source": images, "target": target.to(weight.device)}


def shared_noise(rollouts: int, glimpses: int, start: str) -> Tensor:
    """Return the noise [R, G, 2] of sampled rollouts in evaluation, the same in every call.

    The first location of a rollout is uniform from 0 to 1, the noise of the others is Gaussian.
    """
    generator = torch.Generator("cpu").manual_seed(0)
    noise = torch.zeros(rollouts, glimpses, 2, device="cpu")
    for rollout in noise:
        for t, row in enumerate(rollout):
            if t > 0:
                row.copy_(torch.randn(1, 2, device="cpu", generator=generator)[0])
            elif start == "random":
                row.copy_(torch.rand(1, 2, device="cpu", generator=generator)[0])
    return noise


def _log_mean_probability(logits: Tensor) -> Tensor:
    """Return the log of the class probabilities averaged over rollouts: [M, B, V] -> [B, V]."""
    logprobs = full_precision(logits).log_softmax(dim=-1)
    return logprobs.logsumexp(dim=0) - math.log(len(logits))


# As `torch.compiler.assume_constant_result` does, which imports torch's compiler.
shared_noise._dynamo_marked_constant = True  # type: ignore[attr-defined]
