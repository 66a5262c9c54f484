import torch

from zoo_vision.identity import Identity


def test_states_are_the_inputs_and_the_summary_is_the_masked_mean():
    inputs = torch.tensor([[[1.0, 2.0], [3.0, 6.0]], [[5.0, 7.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True], [True, False]])

    memory = Identity(input_dim=2)(inputs, mask)

    assert memory.states.tolist() == [[[1, 2], [3, 6]], [[5, 7], [0, 0]]]
    assert memory.summary.tolist() == [[2, 4], [5, 7]]
    assert torch.equal(memory.mask, mask)


def test_summary_of_fully_masked_inputs_is_zero():
    memory = Identity(input_dim=2)(torch.ones(1, 3, 2), torch.zeros(1, 3, dtype=torch.bool))

    assert memory.summary.tolist() == [[0, 0]]
