"""Write the facts of the site that take long to compute: laws, trees of specs, model cards.

    python docs/site/measure_facts.py          # what is missing or has changed
    python docs/site/measure_facts.py --all    # everything again, in some minutes

The files in docs/site/facts are committed, so that the site is built in seconds. Tests check that
every component, spec and shipped model has its facts, and that specs and models have not changed
since.
"""

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zoo
from zoo.hub.catalogue import load_catalogue
from zoo.hub.publish import write_model_card
from zoo.interfaces import Component, Entry
from zoo.registry.component_registry import default_registry
from zoo.registry.plugin_data import PluginFile
from zoo.testing import run_laws

ROOT = Path(__file__).parents[2]
FACTS = Path(__file__).parent / "facts"
LAWS, TREES, CARDS = FACTS / "laws.json", FACTS / "trees.json", FACTS / "cards.json"

Facts = dict[str, Any]


def main() -> None:
    """Measure what is missing, or everything with ``--all``."""
    os.environ["ZOO_PLUGINS"] = "none"  # other installed plugins have documentation of their own
    everything = "--all" in sys.argv[1:]
    cards = {} if everything else read_facts(CARDS)
    shipped = {each.name: each.shipped for each in load_catalogue().models if each.shipped}
    for name, weights in shipped.items():
        if cards.get(name, {}).get("sha256") != weights.sha256:
            cards[name] = {"sha256": weights.sha256} | write_card(name, ROOT / weights.file)
    _write(CARDS, {name: cards[name] for name in sorted(shipped)})
    trees = {} if everything else read_facts(TREES)
    specs = {file.name: file for plugin in default_registry().plugins for file in plugin.specs}
    for name in sorted(specs):
        if trees.get(name, {}).get("sha256") != digest(specs[name]):
            trees[name] = measure_tree(specs[name])
    _write(TREES, {name: trees[name] for name in sorted(specs)})
    laws = {} if everything else read_facts(LAWS)
    entries = {key(entry): entry for entry in default_registry().components()}
    for name in sorted(entries):
        if name not in laws or set(laws[name]) != law_names(entries[name]):
            laws[name] = measure_laws(entries[name].cls)
            print(name, flush=True)
            _write(LAWS, {each: laws[each] for each in sorted(laws) if each in entries})


def read_facts(file: Path) -> Facts:
    """Return the facts of a file; none if it does not exist."""
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def key(entry: Entry) -> str:
    """Return the name of a component in the facts: ``scorer/additive``."""
    return f"{entry.kind}/{entry.name}"


def law_names(entry: Entry) -> set[str]:
    """Return the names of the laws of a component's kind."""
    from zoo.testing.laws import LAWS as laws

    return {law.name for law in laws[entry.kind]}


def digest(file: PluginFile) -> str:
    """Return the hash of a spec's text."""
    return hashlib.sha256(file.path.read_bytes()).hexdigest()[:16]


def measure_laws(component: type[Component]) -> dict[str, int | str]:
    """Return for each law the number of configurations that pass it, or why it does not apply."""
    passed: dict[str, int] = {}
    skipped: dict[str, str] = {}
    for outcome in run_laws(component):
        if outcome.status == "failed":
            raise AssertionError(f"{component.name} violates {outcome.law}: {outcome.message}")
        if outcome.status == "passed":
            passed[outcome.law] = passed.get(outcome.law, 0) + 1
        elif outcome.law != "rejected":
            skipped.setdefault(outcome.law, outcome.message)
    return {law: passed.get(law) or skipped[law] for law in sorted(passed | skipped)}


def measure_tree(file: PluginFile) -> Facts:
    """Return the parts of a spec with shapes and parameters."""
    report = zoo.check(file.name)
    providers = zoo.load_spec(file.name).providers()
    return {
        "sha256": digest(file),
        "uses": sorted({f"{each['kind']}/{each['name']}" for each in providers}),
        "parameters": report.parameters,
        "bytes": report.bytes,
        "parts": list(_rows(report.tree, "", "")),
    }


def write_card(name: str, weights: Path) -> Facts:
    """Return the model card, as `zoo push` writes it, and the diagram of the model's parts."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "model.safetensors").symlink_to(weights)
        write_model_card(folder, name)
        card, diagram = folder / "README.md", folder / "tree.svg"
        return {
            "card": card.read_text(encoding="utf-8"),
            "diagram": diagram.read_text(encoding="utf-8"),
        }


def _rows(part: Any, prefix: str, child_prefix: str) -> Iterator[list[Any]]:
    """Yield [name in the tree, type, shape, parameters] of a part and of those inside it."""
    name = part.path.rpartition(".")[2] + (f" x{part.count}" if part.count > 1 else "")
    yield [prefix + name, part.type, part.shape or "", part.parameters]
    for index, child in enumerate(part.children):
        last = index == len(part.children) - 1
        branch, trunk = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _rows(child, child_prefix + branch, child_prefix + trunk)


def _write(file: Path, facts: Facts) -> None:
    file.parent.mkdir(exist_ok=True)
    lines = [f"{json.dumps(name)}: {json.dumps(facts[name])}" for name in facts]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
