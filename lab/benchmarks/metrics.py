"""Metrics of captions and translations compared with the programs that papers used.

    python lab/benchmarks/metrics.py

The texts and the values of the programs are in tests/recorded/metrics/captions.json, with the
commands that produced them: METEOR 1.5 (Java), mteval-v13a (Perl) and pycocoevalcap.
"""

import json
from pathlib import Path

from zoo_metrics.meteor_15 import METEOR15
from zoo_metrics.meteor_2005 import METEOR2005
from zoo_metrics.nist import NIST
from zoo_metrics.rouge_coco import ROUGECoco
from zoo_metrics.rouge_google import ROUGEGoogle

RECORDED = Path(__file__).parents[2] / "tests" / "recorded" / "metrics" / "captions.json"


def main():
    recorded = json.loads(RECORDED.read_text())
    predictions = [item["prediction"] for item in recorded["items"]]
    references = [item["references"] for item in recorded["items"]]
    expected = {**recorded["corpus"], "nist": recorded["corpus"]["nist"][-1]}
    print(f"{'metric':14} {'zoo':>10} {'program':>10}")
    for metric in (METEOR15(), METEOR2005(), ROUGECoco(), ROUGEGoogle(), NIST()):
        metric.update(predictions, references)
        for name, value in metric.compute().items():
            program = f"{expected[name]:10.6f}" if name in expected else f"{'':>10}"
            print(f"{name:14} {value:10.6f} {program}")
    metric = NIST(max_order=1)
    metric.update(["a b c d"], [["a b x y", "x y c d"]])
    print(f"{'nist, order 1':14} {metric.compute()['nist']:10.6f} {3:10.6f}  (two references)")


if __name__ == "__main__":
    main()
