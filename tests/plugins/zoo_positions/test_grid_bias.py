import pytest
import torch
import transformers as hf
from transformers.models.beit.modeling_beit import BeitRelativePositionBias

from zoo import ZooError
from zoo_positions.grid_bias import GridBias

CPU = torch.device("cpu")


def rows_of(position, T, S, offset=0):
    """Return the row of each pair, using a table whose rows are their index."""
    with torch.no_grad():
        position.table.weight.copy_(torch.arange(len(position.table.weight))[:, None].expand(-1, 2))
        return position.bias(T, S, offset=offset, device=CPU)[0].long()


def test_known_rows():
    # Patches 0 1 / 2 3 of two rows and two columns: displacements (dy, dx) from (-1, -1) to (1, 1).
    rows = rows_of(GridBias(heads=2, size=2, class_token=False), 4, 4)
    assert rows.tolist() == [[4, 3, 1, 0], [5, 4, 2, 1], [7, 6, 4, 3], [8, 7, 5, 4]]


def test_the_class_token_has_rows_of_its_own():
    rows = rows_of(GridBias(heads=2, size=(1, 2)), 3, 3)
    assert rows.tolist() == [[5, 3, 3], [4, 1, 0], [4, 2, 1]]
    assert torch.equal(rows_of(GridBias(heads=2, size=(1, 2)), 1, 3, torch.tensor(2)), rows[2:])


def test_the_bias_is_that_of_transformers():
    config = hf.BeitConfig(num_attention_heads=2, image_size=12, patch_size=4, hidden_size=8)
    theirs = BeitRelativePositionBias(config)
    torch.nn.init.normal_(theirs.relative_position_bias_table)
    ours = GridBias(heads=2, size=3)
    with torch.no_grad():
        ours.table.weight.copy_(theirs.relative_position_bias_table)
    expected = theirs((3, 3))[0]
    assert torch.equal(ours.bias(10, 10, device=CPU), expected)


def test_more_states_than_the_grid_are_rejected():
    with pytest.raises(ZooError, match="there are 6 states, but position 'grid-bias' has 5"):
        GridBias(heads=2, size=2).bias(6, 6, device=CPU)
