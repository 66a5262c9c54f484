"""The sample of cases that `make test` runs."""

from dataclasses import dataclass

from case_sample import PARTS, choose, mirrors


@dataclass(frozen=True)
class Case:
    nodeid: str


CASES = [Case(f"tests/test_x.py::test[{kind}-{index}]") for kind in "ab" for index in range(40)]


def test_successive_samples_have_every_case_once():
    parts = [choose(CASES, 7 + part) for part in range(PARTS)]
    assert sorted(map(id, CASES)) == sorted(id(case) for part in parts for case in part)
    assert {len(part) for part in parts} == {len(CASES) // PARTS}


def test_a_sample_has_values_of_every_parameter():
    for rotation in range(PARTS):
        kinds = {case.nodeid.partition("[")[2][0] for case in choose(CASES, rotation)}
        assert kinds == {"a", "b"}


def test_a_changed_source_selects_the_tests_that_mirror_it():
    changed = {"zoo/data/source.py", "plugins/zoo_gat/gat.py", "zoo/cli/index/build.py"}
    assert mirrors("tests/data/test_source.py", changed)
    assert mirrors("tests/data/test_source_rates.py", changed)
    assert mirrors("tests/plugins/zoo_gat/test_gat.py", changed)
    assert mirrors("tests/cli/test_build.py", changed)
    assert not mirrors("tests/data/test_sources.py", changed)
    assert not mirrors("tests/generation/test_source.py", changed)
    assert mirrors("tests/test_names.py", {"tests/test_names.py"})
