"""Write docs/importers.md from the importers of transformers, and measure their parity.

`python docs/write_importers.py` writes the page. With ``--measure``, the small random models of the
tests are compared with transformers first, and the differences are written to docs/importers.json.
"""

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from zoo.registry.component_registry import default_registry
from zoo_huggingface.importers import Architecture

DOCS = Path(__file__).parent
PAGE, FIGURES = DOCS / "importers.md", DOCS / "importers.json"
KITS = DOCS.parent / "tests" / "kits"
INTRODUCTION = """\
# Architectures of transformers

Written by `python docs/write_importers.py`. These model types are imported without a spec and a
map: `zoo.load("org/name")`, `zoo import FOLDER`. Every key of a config is taken, has the one value
that is supported, or does not change the outputs; any other key or value is rejected by its name.
The difference is that of the logits of small random models with float32 weights, for a padded batch
on the CPU, relative to the largest; 0 means equal in every bit. `--measure` measures it again.
[Supporting a new architecture](new-architecture.md) adds another.

Image processors are imported too: image files have the pixels of the Pillow backend of
transformers, within 1e-5 (bilinear, bicubic, Lanczos, nearest, box and Hamming filters; the
shortest edge or both; center crops; any scale, mean and standard deviation; grey, palette and
transparent files as RGB). Its torchvision backend, which it uses where torchvision is installed,
rounds resized pixels differently.
"""


def main() -> None:
    """Write the page, and with ``--measure`` the differences."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    if "--measure" in sys.argv[1:]:
        FIGURES.write_text(json.dumps(measure(), indent=2) + "\n", encoding="utf-8")
    PAGE.write_text(page(json.loads(FIGURES.read_text(encoding="utf-8"))), encoding="utf-8")


def page(figures: Mapping[str, float]) -> str:
    """Return the text of the page."""
    return INTRODUCTION + "".join(_section(each, figures) for each in architectures())


def architectures() -> list[Architecture]:
    found = [each for each in default_registry().importers if isinstance(each, Architecture)]
    return sorted(found, key=lambda each: each.name)


def _section(importer: Architecture, figures: Mapping[str, float]) -> str:
    refused = [f"`{each.key}` other than `{each.value}`" for each in importer.required_values]
    rows = {
        "classes": _code(importer.model_classes),
        "keys taken": _code(sorted(importer.config_keys)),
        "refused": ", ".join(refused) or "only keys that are not known",
        "difference": _difference(figures.get(importer.name)),
    }
    lines = (f"- {label}: {text}\n" for label, text in rows.items())
    return f"\n## {importer.name}\n\n{''.join(lines)}"


def _difference(figure: float | None) -> str:
    if figure is None:
        return "not measured"
    return f"{figure:.1e}" if figure else "0"


def _code(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def measure() -> dict[str, float]:
    """Return the largest relative difference of the logits of each importer's small models."""
    sys.path.insert(0, str(KITS))
    from hf_model_kit import compare_logits, hf_model, import_and_load
    from hf_models import MODELS

    figures: dict[str, float] = {}
    for name in MODELS:
        theirs = hf_model(name).eval()
        importer = theirs.config.model_type
        with tempfile.TemporaryDirectory() as folder:
            theirs.save_pretrained(Path(folder) / "theirs")
            ours = import_and_load(Path(folder) / "theirs", Path(folder))
            actual, expected = compare_logits(name, ours, theirs)
        difference = float((actual - expected).abs().max() / expected.abs().max())
        figures[importer] = max(difference, figures.get(importer, 0.0))
    return {name: float(f"{figures[name]:.2g}") for name in sorted(figures)}


if __name__ == "__main__":
    main()
