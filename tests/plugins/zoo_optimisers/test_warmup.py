import pytest

import zoo
from zoo_optimisers.warmup import progress, warmup_factor

SCHEDULES = ("inverse-sqrt", "linear", "cosine", "constant", "plateau")


def test_progress_starts_after_the_warmup_and_ends_after_the_last_step():
    assert [progress(step, 2, 6) for step in range(1, 9)] == [0, 0, 0, 0.25, 0.5, 0.75, 1.0, 1.0]
    assert progress(3, 3, 3) == 0


def test_without_warmup_the_factor_is_1():
    assert [warmup_factor(step, 0) for step in (1, 2)] == [1.0, 1.0]


@pytest.mark.parametrize("name", SCHEDULES)
def test_more_warmup_than_steps_is_an_error_with_both_values(name):
    cls = next(entry.cls for entry in zoo.components("schedule") if entry.name == name)
    with pytest.raises(zoo.ZooError, match="warmup is 500, but the training has 100 steps"):
        cls(steps=100, warmup=500)
