"""Padding against known arrays."""

import numpy as np
import torch

from zoo.data.padding import pad_arrays, pad_ranges, pad_tensor, pad_text_ranges


def test_arrays_are_padded_at_the_end():
    padded = pad_arrays([np.array([1, 2]), np.array([3])], 9)
    assert padded.tolist() == [[1, 2], [3, 9]]


def test_ranges_of_a_flat_array_are_padded():
    tokens, starts, ends = np.arange(6), np.array([4, 0]), np.array([6, 1])
    padded, lengths = pad_ranges(tokens, starts, ends, -1)
    assert padded.tolist() == [[4, 5], [0, -1]]
    assert lengths.tolist() == [2, 1]


def test_ranges_of_several_texts_are_padded():
    tokens, starts, ends = np.arange(6), np.array([0, 4]), np.array([4, 6])
    padded, counts = pad_text_ranges(tokens, starts, ends, np.array([2, 1]), -1)
    assert padded.tolist() == [[[0, 1], [2, 3]], [[4, -1], [5, -1]]]
    assert counts.tolist() == [2, 2]


def test_a_tensor_is_padded_in_its_first_dimensions():
    tensor = torch.ones(1, 2, 1)
    assert pad_tensor(tensor, (1, 3), 5)[:, :, 0].tolist() == [[1, 1, 5]]
    assert pad_tensor(tensor, (1, 2), 5) is tensor
