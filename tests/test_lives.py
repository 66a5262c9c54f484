"""A reader follows each life of a model through few files (lab/lives.py)."""

import lives
import pytest

BOUNDS = {"compose": 54, "training step": 23, "load": 48, "beam search": 45}


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """The lives without accelerations."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ZOO_FAST", "off")
        yield lives.lives(tmp_path_factory.mktemp("lives"))


@pytest.mark.parametrize("life", BOUNDS)
def test_a_life_enters_few_files(life, calls):
    files = lives.files_entered(calls[life])
    assert len(files) <= BOUNDS[life], "\n".join(sorted(files))


def test_every_life_has_a_bound(calls):
    assert calls.keys() == BOUNDS.keys()
