"""The demo reverses over 95 % of unseen sequences in under 60 seconds, with every scorer."""

import re
import subprocess
import sys

import pytest

SCORERS = ["additive", "dot", "general", "concat", "scaled-dot"]


@pytest.mark.slow
@pytest.mark.parametrize("scorer", SCORERS)
def test_the_demo_reaches_its_accuracy(scorer, tmp_path):
    override = f"model.decoder.attention.scorer={scorer}"
    done = subprocess.run(
        [sys.executable, "-m", "zoo", "demo", "--set", override],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    share, seconds = re.search(
        r"([\d.]+)% of 500 unseen sequences.*?in (\d+) s", done.stdout, re.S
    ).groups()
    assert float(share) > 95
    assert int(seconds) < 60
    assert "identical logits" in done.stdout
