"""What the browser shows of the installed plugins, from the index: no component is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from zoo.about import DISTRIBUTION
from zoo.cli.index import ComponentRecord, Index
from zoo.errors import SpecError
from zoo_ui.target import has_weights

_SECTION = re.compile(r"^(\w+):$")
_ARGUMENT = re.compile(r"^    (\w[\w, ]*): (.*)$")
_MATH = re.compile(r"^\.\. math::\s*")


def describe_registry(index: Index) -> dict[str, Any]:
    """Return kinds, components, specs, models, and the problems of plugins."""
    return {
        "distribution": DISTRIBUTION,
        "kinds": list(index.kinds),
        "components": [_summary(component) for component in index.components()],
        "specs": sorted(index.specs),
        "models": [_model(dict(model.data)) for model in index.models if has_weights(model.data)],
        "problems": [
            {"plugin": plugin.name, "distribution": plugin.distribution, "message": message}
            for plugin in index.plugins
            for message in (*plugin.errors, *plugin.conflicts)
        ],
        "arguments": _arguments_by_definition(index),
    }


def _summary(component: ComponentRecord) -> dict[str, Any]:
    return component.as_json() | {"is_third_party": component.distribution != DISTRIBUTION}


def _model(data: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "paper", "licence", "results")
    return {key: data[key] for key in keys} | {"is_shipped": data["shipped"] is not None}


def describe_component(component: ComponentRecord) -> dict[str, Any]:
    """Return everything about a component: its docstring in parts, and its parameters."""
    documentation = split_docstring(component.doc)
    arguments = documentation.pop("arguments")
    rows = [
        {**vars(parameter), "text": arguments.get(parameter.name, "")}
        for parameter in component.parameters
    ]
    more = {"distribution_version": component.distribution_version, "slots": component.slots}
    return _summary(component) | more | documentation | {"parameters": rows}


def split_docstring(doc: str) -> dict[str, Any]:
    """Return the blocks of a docstring in their order, and the texts of the arguments by name.

    A block is a formula, a paragraph, or a section such as "Shapes" with its indented lines.
    """
    blocks: list[dict[str, str]] = []
    arguments: dict[str, str] = {}
    paragraphs = [part for part in re.split(r"\n\s*\n", doc) if part.strip()]
    for paragraph in paragraphs:
        lines = paragraph.splitlines()
        heading = _SECTION.match(lines[0])
        if heading and heading[1] == "Args":
            arguments |= _read_arguments(lines[1:])
        elif heading:
            text = "\n".join(line.strip() for line in lines[1:])
            blocks.append({"type": "section", "title": heading[1], "text": text})
        elif _MATH.match(lines[0]):
            blocks.append({"type": "formula", "text": _MATH.sub("", " ".join(lines)).strip()})
        elif blocks and blocks[-1] == {"type": "formula", "text": ""}:
            blocks[-1]["text"] = " ".join(line.strip() for line in lines)
        else:
            is_list = any(line.lstrip().startswith("- ") for line in lines)
            blocks.append({"type": "text", "text": ("\n" if is_list else " ").join(lines)})
    return {"blocks": blocks, "arguments": arguments}


def _read_arguments(lines: Iterable[str]) -> dict[str, str]:
    """Return the texts of a section "Args"; ``a, b: text`` is the text of both."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in lines:
        start = _ARGUMENT.match(line)
        if start:
            names = [name.strip() for name in start[1].split(",")]
            found |= dict.fromkeys(names, start[2].strip())
        else:
            found |= {name: f"{found[name]} {line.strip()}" for name in names}
    return found


def _arguments_by_definition(index: Index) -> dict[str, dict[str, str]]:
    """Return the texts of parameters by the name of the definition in the schema of specs."""
    found = {}
    for component in index.components():
        name = f"{component.kind}.{component.plugin}.{component.name}"
        found[name] = split_docstring(component.doc)["arguments"]
    for part in index.parts:
        found[part.class_name.lower()] = split_docstring(part.doc)["arguments"]
    return found


def describe_specs(index: Index) -> list[dict[str, Any]]:
    """Return name, plugin and description of each spec, and of each recipe that has one.

    ``has_training`` is whether it has a section ``train``.
    """
    found = []
    for is_recipe, files in ((False, index.specs), (True, index.recipes)):
        for name, (file, *_) in sorted(files.items()):
            data, problem = _read(file.file)
            spec = data.get("spec") if is_recipe else data
            if not isinstance(spec, dict):  # a recipe of a program
                continue
            row = {"name": name, "plugin": file.plugin, "is_recipe": is_recipe}
            description = problem or str(data.get("description", ""))
            row |= {"description": description, "has_training": bool(spec.get("train"))}
            found.append(row)
    return found


def _read(file: str) -> tuple[dict[str, Any], str]:
    """Return the content of a file of a plugin, and the problem if it cannot be read."""
    from zoo.spec.document import read_file  # not needed to show the page

    try:
        data = read_file(file).data
    except SpecError as error:
        return {}, str(error)
    return (data, "") if isinstance(data, dict) else ({}, "")
