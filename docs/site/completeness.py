"""What must have a page: components, hooks, commands, public names, specs and shipped models."""

import importlib
from collections.abc import Iterator, Mapping

from reference_pages import MODULES, hook_functions
from site_data import SiteData, component_page

from zoo.cli.panels import COMMAND_NAMES


class MissingPages(Exception):
    """Raised for things without a page."""


def check_facts(data: SiteData) -> None:
    """Raise MissingPages if a component, spec or model has no facts for its page."""
    missing = [f"{each.kind}/{each.name}" for each in data.registry.components()]
    missing = [name for name in missing if name not in data.laws]
    missing += [name for name in data.index.specs if name not in data.trees]
    shipped = [model.data["name"] for model in data.index.models if model.data["shipped"]]
    missing += [name for name in shipped if name not in data.cards]
    if missing:
        names = ", ".join(missing)
        raise MissingPages(f"run python docs/site/measure_facts.py, which measures {names}")


def check_complete(pages: Mapping[str, str], data: SiteData) -> None:
    """Raise MissingPages if something has no page."""
    missing = [f"{thing} has no page {page}" for thing, page in required(data) if page not in pages]
    for module in MODULES:
        text = pages.get(f"api/{module}.md", "")
        for name in public_names(module):
            if f"\n## {name}\n" not in text:
                missing.append(f"{module}.{name} has no section in api/{module}.md")
    if missing:
        raise MissingPages("\n".join(missing))


def required(data: SiteData) -> Iterator[tuple[str, str]]:
    """Yield what must have a page, and its page."""
    registry = data.registry
    for entry in registry.components():
        yield f"{entry.kind} '{entry.name}'", component_page(entry)
    for name in hook_functions():
        yield f"hook '{name}'", f"hooks/{name}.md"
    added = [each.name for plugin in registry.plugins for each in plugin.commands]
    for name in (*COMMAND_NAMES, *added):
        yield f"command '{name}'", f"commands/{name}.md"
    for plugin in registry.plugins:
        for file in plugin.specs:
            yield f"spec '{file.name}'", f"specs/{file.name}.md"
    for model in data.index.models:
        if model.data["shipped"]:
            yield f"model '{model.data['name']}'", f"models/{model.data['name']}.md"


def public_names(module: str) -> list[str]:
    """Return the public names of a module."""
    return [name for name in importlib.import_module(module).__all__ if name != "plugin"]
