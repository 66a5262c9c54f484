import pytest
import sacrebleu

from zoo_metrics.chrf import ChrF


def test_known_value(score):
    # 2 of 3 characters and 1 of 2 bigrams match, for precision and recall.
    value = score(ChrF(char_order=2), ["abc"], [["abd"]])

    assert value == pytest.approx(100 * (2 / 3 + 1 / 2) / 2, abs=1e-9)


@pytest.mark.parametrize("beta", [1, 2, 3])
def test_known_value_of_beta(beta, score):
    P, R = 1, 1 / 2
    expected = 100 * (1 + beta**2) * P * R / (beta**2 * P + R)

    assert score(ChrF(char_order=1, beta=beta), ["ab"], [["abcd"]]) == pytest.approx(expected)


def test_whitespace_and_lowercase(score):
    assert score(ChrF(), ["ab c"], [["a bc"]]) == 100
    assert score(ChrF(whitespace=True), ["ab c"], [["a bc"]]) < 100
    assert score(ChrF(), ["AB"], [["ab"]]) == 0
    assert score(ChrF(lowercase=True), ["AB"], [["ab"]]) == 100


def test_signature_includes_beta():
    metric = ChrF(beta=3, lowercase=True)
    metric.update(["a"], [["a"]])

    assert metric.signature() == (
        f"beta:3|nrefs:1|case:lc|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}"
    )
