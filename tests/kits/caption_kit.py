"""Images and clips of digits with captions, small enough to train on in seconds."""

import torch
from digits_kit import GLYPHS
from torch import Tensor

import zoo
from zoo_sampling.greedy import Greedy

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
"""Token IDs of a caption; the digit d is FIRST + d."""
CELL = 8
"""Side of the square cell of a digit."""


def captioned_digits(
    count: int, *, cells: int = 4, generator: torch.Generator
) -> tuple[dict[str, Tensor], Tensor]:
    """Return images of two or three digits in separate cells, with their labels from the left.

    -> {source [B, 1, CELL, cells * CELL], target [B, 5]}, and the cell of each digit [B, 3], -1
    for a missing third digit.
    """
    images = torch.zeros(count, 1, CELL, cells * CELL)
    targets = torch.full((count, 5), PAD)
    digit_cells = torch.full((count, 3), -1)
    for item in range(count):
        digits = int(torch.randint(2, 4, (), generator=generator))
        chosen = torch.randperm(cells, generator=generator)[:digits].sort().values
        labels = torch.randint(0, 10, (digits,), generator=generator)
        for cell, label in zip(chosen.tolist(), labels.tolist(), strict=True):
            row, column = torch.randint(0, 4, (2,), generator=generator).tolist()
            left = cell * CELL + column + 1
            images[item, 0, row : row + 5, left : left + 3] = GLYPHS[label]
        digit_cells[item, :digits] = chosen
        caption = [BOS, *(labels + FIRST).tolist(), EOS]
        targets[item, : len(caption)] = torch.tensor(caption)
    return {"source": images, "target": targets}, digit_cells


DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Right, left, down, up; the direction n has token ID FIRST + 10 + n."""
SIDE = 12
"""Side of the frames of a clip."""


def moving_digits(count: int, *, generator: torch.Generator) -> dict[str, Tensor]:
    """Return clips of one moving digit; the caption is the digit and its direction.

    Opposite directions pass through the same positions, so one frame does not show the direction.

    -> {source [B, 6, 1, SIDE, SIDE], padded with frames of zeros, target [B, 4]}.
    """
    clips = torch.zeros(count, 6, 1, SIDE, SIDE)
    targets = torch.empty(count, 4, dtype=torch.long)
    for item in range(count):
        label = int(torch.randint(0, 10, (), generator=generator))
        direction = int(torch.randint(0, 4, (), generator=generator))
        frames = int(torch.randint(4, 7, (), generator=generator))
        down, right = DIRECTIONS[direction]
        row, column = torch.randint(3, 5, (2,), generator=generator).tolist()
        for frame in range(frames):
            offset = frame - frames // 2
            y, x = row + offset * down, column + 1 + offset * right
            clips[item, frame, 0, y : y + 5, x : x + 3] = GLYPHS[label]
        targets[item] = torch.tensor([BOS, FIRST + label, FIRST + 10 + direction, EOS])
    return {"source": clips, "target": targets}


def train_model(spec: str, data: dict[str, Tensor], *, seed: int, steps: int, changes: tuple = ()):
    """Train the model of a spec with its objective, on 64 items per step."""
    model = zoo.compose(spec, seed=seed, overrides=changes).train()
    objective = zoo.load_spec(spec, overrides=changes).sections.objective.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, 2.02 - 2 * n / steps))
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # for sampled attention
    for _ in range(steps):
        rows = torch.randint(0, len(data["target"]), (64,), generator=generator)
        loss = objective(model({name: tensor[rows] for name, tensor in data.items()}))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    return model.eval()


def correct_tokens(model: zoo.Model, data: dict[str, Tensor]) -> Tensor:
    """Return which tokens of each caption, including eos, are generated correctly: [B, T]."""
    expected = data["target"][:, 1:]
    tokens = model.generate(data, Greedy(), max_length=expected.shape[1]).tokens[:, 0]
    missing = expected.shape[1] - tokens.shape[1]
    tokens = torch.nn.functional.pad(tokens, (0, missing), value=PAD)
    return (tokens == expected) | (expected == PAD)
