"""What was tried for recipes, in `tried.md`: text whose figures are those of committed results."""

import re
from collections.abc import Mapping

from committed_results import FOLDER, VARIANTS, read_results

from zoo_lab.reproduce.figures import format_mean, format_target
from zoo_lab.reproduce.result import Reproduction, convert_unit

TRIED = FOLDER / "tried.md"


def read_tried(results: Mapping[str, Reproduction]) -> dict[str, str]:
    """Return what was tried, by recipe; names in braces are replaced by figures."""
    known = {**results, **read_results(VARIANTS)}
    text = re.sub(
        r"\{([a-z0-9-]+)(?: ([a-z]+))?(?: ([0-9]+))?\}",
        lambda found: quoted_figure(known[found[1]], found[2], int(found[3] or 0)),
        TRIED.read_text(encoding="utf-8"),
    )
    parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {name: part.strip() for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def quoted_figure(result: Reproduction, what: str | None, number: int) -> str:
    """Return a figure of a result: that of its first target, or of what is above a limit."""
    figure = next(figure for figure in result.figures if format_target(figure))
    if what == "test":
        return format_mean(figure)
    if what == "seed":
        return format_mean(figure.model_copy(update={"by_seed": {number: figure.by_seed[number]}}))
    if what == "above":
        return ", ".join(f.label for f in result.figures if f is not figure and f.mean > number)
    metric = figure.value.partition("/")[2]
    if f"validation/{metric}" not in result.seeds[0].values:
        metric, figure = "loss", figure.model_copy(update={"unit": ""})
    if what == "at":
        curve = result.seeds[0].curve
        values = {0: next(p for p in curve if p["step"] == number)[f"validation_{metric}"]}
    else:
        values = {seed.seed: seed.values[f"validation/{metric}"] for seed in result.seeds}
    by_seed = {seed: convert_unit(value, figure.unit) for seed, value in values.items()}
    return format_mean(figure.model_copy(update={"by_seed": by_seed}))
