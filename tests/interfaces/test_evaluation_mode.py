import pytest
from torch import nn

from zoo.interfaces.evaluation_mode import evaluation_mode


def modes(module):
    return [each.training for each in module.modules()]


def test_modes_are_restored_after_an_exception():
    module = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.Dropout()))
    module[1].eval()
    before = modes(module)

    def fail():
        with evaluation_mode(module):
            assert modes(module) == [False] * 4
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert modes(module) == before == [True, True, False, False]
