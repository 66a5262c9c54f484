"""Where each page stands in the navigation; every other page is listed by its own index."""

GUIDES = {
    "First steps": (
        "quickstart",
        "concepts",
        "specs",
        "attend",
        "ui",
        "own-files",
        "from-pytorch",
        "notebooks/index",
    ),
    "Tasks": (
        "texts",
        "text-classification",
        "text-regression",
        "tagging",
        "embeddings",
        "masked-language-model",
        "instructions",
        "translation",
        "translation-cpu",
        "images",
        "captions",
        "speech",
        "speech-recognition",
        "graphs",
        "graph-classification",
        "stories",
        "vectors",
    ),
    "Training": (
        "datasets",
        "tokenizers",
        "training",
        "fine-tuning",
        "trained-parts",
        "adapters",
        "callbacks",
        "own-loop",
        "hugging-face-trainer",
        "lightning",
        "evaluation",
        "compare-scorers",
        "scaling",
        "accelerations",
    ),
    "Other models": ("bring-a-model", "hub", "importing", "importers", "maps", "new-architecture"),
    "Your own components": ("ten-minute-plugin", "plugins"),
}
REFERENCE = (
    "components",
    "parts",
    "cheatsheet",
    "specs/index",
    "models/index",
    "command-line",
    "commands/index",
    "api/index",
    "hooks/index",
    "glossary",
)
RESULTS = ("performance", "reproductions", "atlas")
DESIGN = (
    "architecture",
    "interfaces",
    "spec-language",
    "data",
    "artifact",
    "fast-lane",
    "laboratory",
)


def contents(pages: set[str]) -> dict[str, list[tuple[str, list[str]]]]:
    """Return for each page with a list of further pages its captions and pages, without suffix.

    Args:
        pages: all pages, without suffix; those of a folder belong to its index, those of
            ``components/KIND`` to the page of the kind.
    """
    groups = [*guides(pages).items()]
    groups += [("Reference", REFERENCE), ("Results", RESULTS), ("Design", DESIGN)]
    found = {"index": [(caption, list(names)) for caption, names in groups]}
    kinds = sorted(
        page for page in pages if page.startswith("components/") and page.count("/") == 1
    )
    found["components"] = [("", kinds)]
    for kind in kinds:
        found[kind] = [("", _inside(pages, kind))]
    for folder in ("specs", "models", "commands", "api", "hooks", "notebooks"):
        found[f"{folder}/index"] = [
            ("", [p for p in _inside(pages, folder) if p != f"{folder}/index"])
        ]
    return found


def guides(pages: set[str]) -> dict[str, tuple[str, ...]]:
    """Return the guides by subject; those that are not listed above come last."""
    listed = {
        "index",
        *REFERENCE,
        *RESULTS,
        *DESIGN,
        *(n for names in GUIDES.values() for n in names),
    }
    others = sorted(page for page in pages if "/" not in page and page not in listed)
    return GUIDES | ({"More guides": tuple(others)} if others else {})


def _inside(pages: set[str], folder: str) -> list[str]:
    return sorted(page for page in pages if page.startswith(f"{folder}/"))
