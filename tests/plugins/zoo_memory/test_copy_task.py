"""Dataset 'copy-task'."""

import numpy as np
import pytest

from zoo import ZooError
from zoo_memory.copy_task import CopyTask


def test_the_target_repeats_the_source_after_its_end():
    examples = CopyTask(bits=3, least=2, most=4, count=20).open()
    lengths = set()
    for index in range(20):
        example = examples[index]
        n = int(example["mask"].sum())
        lengths.add(n)
        assert examples.sizes()[index] == len(example["source"]) == 2 * n + 2
        assert np.array_equal(example["source"][1 : n + 1, :3], example["target"][n + 2 :])
        assert example["source"][0].tolist() == [0, 0, 0, 1, 0]
        assert example["source"][n + 1].tolist() == [0, 0, 0, 0, 1]
        assert not example["source"][n + 2 :].any()
        assert not example["target"][~example["mask"]].any()
    assert lengths == {2, 3, 4}


def test_invalid_lengths_are_rejected():
    with pytest.raises(ZooError, match=r"least \(3\) must not be greater than most \(2\)"):
        CopyTask(least=3, most=2)
