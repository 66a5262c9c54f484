import pytest
import torch
from torch import nn

from zoo import ZooError
from zoo_vision.grid import Grid


def build() -> Grid:
    torch.manual_seed(0)
    return Grid(vocab=4, dim=3, rows=2, columns=5)


def test_known_values():
    grid = Grid(vocab=2, dim=1, rows=2, columns=3)
    grid.load_state_dict(
        {
            "table.weight": torch.tensor([[1.0], [2.0]]),
            "rows.weight": torch.tensor([[10.0], [20.0]]),
            "columns.weight": torch.tensor([[100.0], [200.0], [300.0]]),
        }
    )

    vectors = grid(torch.tensor([[[0, 1, 1], [1, 0, 0]]]))

    assert vectors.flatten().tolist() == [111, 212, 312, 122, 221, 321]


@pytest.mark.parametrize(("rows", "columns"), [(2, 5), (1, 5), (2, 3), (1, 1)])
def test_matches_three_torch_embeddings(rows, columns):
    grid = build()
    tables = {name: nn.Embedding.from_pretrained(t) for name, t in grid.state_dict().items()}
    cells = torch.randint(0, 4, (3, rows, columns))

    vectors = grid(cells)

    assert vectors.shape == (3, rows * columns, 3)
    for b in range(3):
        for r in range(rows):
            for c in range(columns):
                expected = tables["table.weight"](cells[b, r, c])
                expected = expected + tables["rows.weight"](torch.tensor(r))
                expected = expected + tables["columns.weight"](torch.tensor(c))
                torch.testing.assert_close(vectors[b, r * columns + c], expected)


def test_all_cells_are_valid():
    mask = build().mask(torch.zeros(2, 2, 5, dtype=torch.long))

    assert mask.shape == (2, 10)
    assert mask.all()


def test_an_example_is_one_row_of_tokens():
    grid = build()

    example = grid.example(20, 5, torch.Generator().manual_seed(0))

    assert example.shape == (20, 1, 5)
    assert set(example.flatten().tolist()) == {0, 1, 2, 3}
    assert grid(example).shape == (20, 5, 3)


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (2, 6)])
def test_a_grid_that_is_too_large_raises(rows, columns):
    with pytest.raises(ZooError, match=f"{rows} x {columns}.*2 x 5"):
        build()(torch.zeros(1, rows, columns, dtype=torch.long))


def test_forward_hooks_of_the_embeddings_fire():
    grid, called = build(), []
    for name, module in grid.named_children():
        module.register_forward_hook(lambda *_, name=name: called.append(name))

    grid(torch.zeros(1, 2, 5, dtype=torch.long))

    assert sorted(called) == ["columns", "rows", "table"]


def test_weight_names_and_shapes():
    shapes = {k: tuple(v.shape) for k, v in build().state_dict().items()}

    assert shapes == {"table.weight": (4, 3), "rows.weight": (2, 3), "columns.weight": (5, 3)}
