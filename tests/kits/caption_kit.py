"""Pictures of digits, small enough to learn from in seconds."""

import torch
from digits_kit import GLYPHS
from torch import Tensor

import zoo
from zoo_sampling.greedy import Greedy

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
"""Symbols of a caption; the digit d is FIRST + d."""
CELL = 8
"""Side of the square that holds a digit."""


def captioned_digits(
    count: int, *, cells: int = 4, generator: torch.Generator
) -> tuple[dict[str, Tensor], Tensor]:
    """Two or three digits, each somewhere in a cell of its own, and their names from the left.

    -> {source [B, 1, CELL, cells * CELL], target [B, 5]}, and the cell of each digit [B, 3], -1
    where there is no third.
    """
    images = torch.zeros(count, 1, CELL, cells * CELL)
    targets = torch.full((count, 5), PAD)
    where = torch.full((count, 3), -1)
    for item in range(count):
        digits = int(torch.randint(2, 4, (), generator=generator))
        taken = torch.randperm(cells, generator=generator)[:digits].sort().values
        names = torch.randint(0, 10, (digits,), generator=generator)
        for cell, name in zip(taken.tolist(), names.tolist(), strict=True):
            row, column = torch.randint(0, 4, (2,), generator=generator).tolist()
            left = cell * CELL + column + 1
            images[item, 0, row : row + 5, left : left + 3] = GLYPHS[name]
        where[item, :digits] = taken
        caption = [BOS, *(names + FIRST).tolist(), EOS]
        targets[item, : len(caption)] = torch.tensor(caption)
    return {"source": images, "target": targets}, where


DIRECTIONS = ((0, 1), (0, -1), (1, 0), (-1, 0))
"""Right, left, down, up; the direction n is FIRST + 10 + n."""
SIDE = 12
"""Of the frames of a clip."""


def moving_digits(count: int, *, generator: torch.Generator) -> dict[str, Tensor]:
    """A digit crosses the middle in four to six frames; the caption says which, and where to.

    What goes one way is seen in the same places as what goes the other.

    -> {source [B, 6, 1, SIDE, SIDE], padded by frames of zeros, target [B, 4]}.
    """
    clips = torch.zeros(count, 6, 1, SIDE, SIDE)
    targets = torch.empty(count, 4, dtype=torch.long)
    for item in range(count):
        name = int(torch.randint(0, 10, (), generator=generator))
        way = int(torch.randint(0, 4, (), generator=generator))
        frames = int(torch.randint(4, 7, (), generator=generator))
        down, right = DIRECTIONS[way]
        row, column = torch.randint(3, 5, (2,), generator=generator).tolist()
        for frame in range(frames):
            past = frame - frames // 2
            y, x = row + past * down, column + 1 + past * right
            clips[item, frame, 0, y : y + 5, x : x + 3] = GLYPHS[name]
        targets[item] = torch.tensor([BOS, FIRST + name, FIRST + 10 + way, EOS])
    return {"source": clips, "target": targets}


def train_model(spec: str, data: dict[str, Tensor], *, seed: int, steps: int, changes: tuple = ()):
    """The spec's model after so many steps of 64 items against its own objective."""
    model = zoo.compose(spec, seed=seed, overrides=changes).train()
    objective = zoo.load_spec(spec, overrides=changes).sections.objective.build()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    slower = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1, 2.02 - 2 * n / steps))
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)  # for looks that are drawn
    for _ in range(steps):
        rows = torch.randint(0, len(data["target"]), (64,), generator=generator)
        loss = objective(model({name: tensor[rows] for name, tensor in data.items()}))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        slower.step()
    return model.eval()


def right(model: zoo.Model, data: dict[str, Tensor]) -> Tensor:
    """Which symbols of each caption, its end included, are said as they should be: [B, T]."""
    wanted = data["target"][:, 1:]
    said = model.generate(data, Greedy(), max_length=wanted.shape[1]).tokens[:, 0]
    missing = wanted.shape[1] - said.shape[1]
    said = torch.nn.functional.pad(said, (0, missing), value=PAD)
    return (said == wanted) | (wanted == PAD)
