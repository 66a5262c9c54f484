import pytest

from zoo.errors import ZooError
from zoo_demo.reversal import Reversal


def test_held_out_sequences_are_different_and_not_in_batches():
    task = Reversal(vocab=6, seed=0)
    held_out = task.hold_out(500)
    assert len(set(held_out)) == 500
    rows = task.batch(200)["source"].tolist()
    assert not {tuple(token for token in row if token) for row in rows} & set(held_out)


def test_more_sequences_than_exist_raise():
    task = Reversal(vocab=5, seed=0)
    task.hold_out(300)
    with pytest.raises(ZooError, match=r"vocab is 5, for which 504 sequences exist.*holds out 504"):
        task.hold_out(204)
