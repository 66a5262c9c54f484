"""Shell completion of arguments: names of the index, and files.

A callback that returns nothing leaves the word to the shell, which completes paths.
"""

from __future__ import annotations

import glob
import os
import textwrap
from collections.abc import Iterable, Iterator

_MAX_TEXT = 60
"""Characters of a description; typer wraps longer ones."""

Completion = tuple[str, str]
"""A word, and its description."""


def complete_component(incomplete: str) -> list[Completion]:
    """Complete what ``zoo show`` takes: components, parts, sections and specs."""
    from zoo.cli.index import load_index

    index = load_index()
    found = [(c.name, f"{c.kind}: {c.summary}") for c in index.components()]
    found += [(part.name, part.doc.partition("\n")[0]) for part in index.parts]
    return _select([*found, *_specs()], incomplete)


def complete_spec(incomplete: str) -> list[Completion]:
    """Complete specs of plugins and YAML files."""
    return _select([*_specs(), *_files(incomplete, "*.yaml", "*.yml")], incomplete)


def complete_model(incomplete: str) -> list[Completion]:
    """Complete models with weights, model files and folders of training runs."""
    return _select([*_models(), *_model_files(incomplete)], incomplete)


def complete_model_or_spec(incomplete: str) -> list[Completion]:
    """Complete specs and models, by name or file."""
    return _select([*complete_model(incomplete), *complete_spec(incomplete)], incomplete)


def complete_kind(incomplete: str) -> list[Completion]:
    """Complete kinds of components."""
    from zoo.cli.index import load_index

    return _select(((kind, "") for kind in load_index().kinds), incomplete)


def complete_plugin(incomplete: str) -> list[Completion]:
    """Complete installed plugins."""
    from zoo.cli.index import load_index

    found = ((p.name, f"{p.distribution} {p.version}") for p in load_index().plugins)
    return _select(found, incomplete)


def complete_importer(incomplete: str) -> list[Completion]:
    """Complete importers, which are also formats of exports."""
    from zoo.cli.index import load_index

    return _select(((i.name, i.summary) for i in load_index().importers), incomplete)


def complete_map(incomplete: str) -> list[Completion]:
    """Complete maps of plugins and YAML files."""
    from zoo.cli.index import load_index

    found = [(name, "") for name in load_index().maps]
    return _select([*found, *_files(incomplete, "*.yaml", "*.yml")], incomplete)


def complete_sampler(incomplete: str) -> list[Completion]:
    """Complete samplers."""
    return _select(_components("sampler"), incomplete)


def complete_filter(incomplete: str) -> list[Completion]:
    """Complete filters."""
    return _select(_components("filter"), incomplete)


def complete_metrics(incomplete: str) -> list[Completion]:
    """Complete the last of several metrics, separated by commas."""
    before, comma, last = incomplete.rpartition(",")
    found = _select(_components("metric"), last)
    return [(f"{before}{comma}{name}", text) for name, text in found]


def complete_device(incomplete: str) -> list[Completion]:
    """Complete devices, without asking which there are."""
    return _select([("cpu", ""), ("cuda", "the current GPU"), ("cuda:0", "")], incomplete)


def _select(words: Iterable[Completion], incomplete: str) -> list[Completion]:
    found = {word: text for word, text in words if word.startswith(incomplete)}
    return [(word, textwrap.shorten(text, _MAX_TEXT)) for word, text in sorted(found.items())]


def _components(kind: str) -> Iterator[Completion]:
    from zoo.cli.index import load_index

    return ((c.name, c.summary) for c in load_index().components(kind))


def _specs() -> Iterator[Completion]:
    from zoo.cli.index import load_index

    specs = load_index().specs
    return ((name, f"spec of plugin {files[0].plugin}") for name, files in specs.items())


def _models() -> Iterator[Completion]:
    from zoo.cli.index import load_index

    rows = (model.data for model in load_index().models)
    return ((row["name"], row["paper"]) for row in rows if row["shipped"] or row["weights"])


def _files(incomplete: str, *patterns: str) -> Iterator[Completion]:
    """Yield the files of the current folder; paths with a folder are left to the shell."""
    if os.sep not in incomplete:
        yield from ((name, "file") for pattern in patterns for name in glob.glob(pattern))


def _model_files(incomplete: str) -> Iterator[Completion]:
    yield from _files(incomplete, "*.safetensors")
    runs = _files(incomplete, os.path.join("*", "model.safetensors"))
    yield from ((os.path.dirname(file), "folder") for file, _ in runs)
