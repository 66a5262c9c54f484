"""Pages of commands, hooks and the Python interface."""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

from docstrings import Docstring, parse
from page_text import code, code_block, link, prose, table
from site_data import SiteData, source_link
from typer.main import get_command

from zoo.about import DISTRIBUTION
from zoo.cli.main import app
from zoo.cli.panels import PANELS
from zoo.cli.wrapping import load_command
from zoo.registry import hookspecs

MODULES = {
    "zoo": "For users of models.",
    "zoo.plugin": "For authors of plugins.",
    "zoo.command": "For authors of commands.",
    "zoo.testing": "The laws as a test suite.",
}


def command_pages(data: SiteData) -> dict[str, str]:
    """Return the pages of the commands of the zoo and its plugins, by path."""
    commands = dict(get_command(app).commands)  # type: ignore[attr-defined]
    panels = {name: panel for panel, names in PANELS.items() for name in names}
    for plugin in data.index.plugins:
        for record in plugin.commands:
            commands[record.name] = load_command(record)
            panels[record.name] = record.panel or f"Plugin {plugin.name}"
    pages = {f"commands/{name}.md": _command(name, each) for name, each in commands.items()}
    sections = [
        "# Commands",
        "`zoo --help` lists the commands, `zoo COMMAND --help` the options of one.",
    ]
    for panel in dict.fromkeys(panels.values()):
        rows = [
            (f"[`zoo {name}`]({name}.md)", _first_sentence(commands[name].help))
            for name in commands
            if panels[name] == panel
        ]
        sections += [f"## {panel}", table(("command", ""), rows)]
    pages["commands/index.md"] = "\n\n".join(sections) + "\n"
    return pages


def _command(name: str, command: Any) -> str:
    sections = [f"# zoo {name}", *_command_text(f"zoo {name}", command)]
    for sub_name, sub in getattr(command, "commands", {}).items():
        sections += [f"## zoo {name} {sub_name}", *_command_text(f"zoo {name} {sub_name}", sub)]
    return "\n\n".join(sections) + "\n"


def _command_text(usage: str, command: Any) -> Iterator[str]:
    """Yield usage, help, arguments, options and example of a command."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    words = [_metavar(each) for each in arguments]
    yield code_block("text", " ".join([usage, *(["[OPTIONS]"] if options else []), *words]))
    yield from parse_help(command.help or "")
    if arguments:
        rows = [(code(_metavar(each)), _help(each)) for each in arguments]
        yield table(("argument", ""), rows)
    if options:
        yield table(("option", ""), [(_option(each), _help(each)) for each in options])
    if command.epilog:
        yield f"Example: {code(command.epilog.removeprefix('Example: '))}"


def _metavar(parameter: Any) -> str:
    return (parameter.metavar or parameter.name.upper()) + ("..." if parameter.nargs < 0 else "")


def parse_help(text: str) -> Iterator[str]:
    """Yield the paragraphs of a help text as Markdown."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield prose(" ".join(paragraph.split()))


def _option(option: Any) -> str:
    value = "" if option.is_flag else f" {_metavar(option)}"
    return ", ".join(code(name + value) for name in [*option.opts, *option.secondary_opts])


def _help(parameter: Any) -> str:
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) else f" Default: `{default}`."
    return prose(" ".join((parameter.help or "").split())) + shown


def _first_sentence(text: str | None) -> str:
    first = inspect.cleandoc(text or "").split("\n\n")[0]
    return prose(" ".join(first.split()))


def hook_functions() -> dict[str, Any]:
    """Return the hooks of plugins by name."""
    functions = inspect.getmembers(hookspecs, inspect.isfunction)
    return {name: function for name, function in functions if name.startswith("zoo_")}


def hook_pages(data: SiteData) -> dict[str, str]:
    """Return the pages of hooks by path."""
    hooks = hook_functions()
    pages = {f"hooks/{name}.md": _hook(name, hooks[name], data) for name in hooks}
    doc = parse(inspect.getdoc(hookspecs) or "")
    rows = [
        (f"[`{name}`]({name}.md)", prose(parse(inspect.getdoc(hooks[name])).summary))
        for name in hooks
    ]
    sections = ["# Hooks", *map(prose, [doc.summary]), *doc.body, table(("hook", ""), rows)]
    sections.append("[Plugins](../plugins.md) describes how plugins are found and what goes wrong.")
    pages["hooks/index.md"] = "\n\n".join(sections) + "\n"
    return pages


def _hook(name: str, function: Any, data: SiteData) -> str:
    doc = parse(inspect.getdoc(function) or "")
    result = str(inspect.signature(function).return_annotation)
    sections = [
        f"# {name}",
        code_block("python", f"@hookimpl\ndef {name}() -> {result}: ..."),
        prose(doc.summary),
        *doc.body,
    ]
    own = [each for each in data.index.plugins if each.distribution == DISTRIBUTION]
    modules = {each.name: importlib.import_module(each.target) for each in own}
    users = {
        plugin: vars(module)[name] for plugin, module in modules.items() if name in vars(module)
    }
    if users:
        shortest = min(users, key=lambda each: len(inspect.getsource(users[each])))
        source = inspect.getsource(users[shortest])
        sections += [f"The plugin `{shortest}` has:", code_block("python", source)]
        names = ", ".join(f"`{each}`" for each in sorted(users))
        sections.append(f"Plugins of this distribution with the hook: {names}.")
    return "\n\n".join(sections) + "\n"


def api_pages() -> dict[str, str]:
    """Return the pages of the public modules by path."""
    pages = {f"api/{name}.md": _module(name) for name in MODULES}
    rows = [
        (
            link(f"`{name}`", f"api/{name}.md", "api/index.md"),
            text,
            ", ".join(f"`{n}`" for n in public_names(name)),
        )
        for name, text in MODULES.items()
    ]
    pages["api/index.md"] = (
        "# Python interface\n\nThese modules are the public interface; others can change in any "
        "release.\n\n" + table(("module", "", "names"), rows) + "\n"
    )
    return pages


def public_names(module: str) -> list[str]:
    """Return the public names of a module in alphabetical order, functions first."""
    imported = importlib.import_module(module)
    names = [name for name in imported.__all__ if not inspect.ismodule(getattr(imported, name))]
    return sorted(names, key=lambda name: (inspect.isclass(getattr(imported, name)), name.lower()))


def _module(name: str) -> str:
    module = importlib.import_module(name)
    doc = parse(inspect.getdoc(module) or "")
    sections = [f"# {name}", prose(doc.summary), *doc.body]
    for public in public_names(name):
        sections += [f"## {public}", *_object(f"{name}.{public}", getattr(module, public))]
    return "\n\n".join(sections) + "\n"


def _object(name: str, thing: Any) -> Iterator[str]:
    """Yield signature and documentation of a function, class or value."""
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        yield f"`{name}` is {prose(_type_text(thing))}."
        return
    yield code_block("python", _signature(name, thing))
    yield from _documentation(parse(inspect.getdoc(thing) or ""))
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and inspect.isfunction(function) and function.__doc__:
                summary = prose(parse(inspect.getdoc(function)).summary)
                yield f"`{method}{_parameters(function)}`: {summary}"
    if getattr(thing, "__module__", "").split(".")[0].startswith("zoo"):
        yield f"Source: {source_link(thing)}"


def _type_text(thing: Any) -> str:
    text = str(thing).replace("typing.", "")
    return f"`{text}`" if len(text) <= 200 else f"a `{type(thing).__name__}`"


def _documentation(doc: Docstring) -> Iterator[str]:
    yield prose(doc.summary)
    yield from doc.body
    for title, text in doc.sections.items():
        described = doc.arguments(title)
        if described:
            rows = [(code(name), prose(about)) for name, about in described.items()]
            yield table((title.lower().replace("args", "argument"), ""), rows)
        else:
            yield f"**{title}**\n\n" + code_block("text", text)


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return f"class {name}({thing.__mro__[1].__name__})"
    prefix = "class " if inspect.isclass(thing) else ""
    text = f"{prefix}{name}{_parameters(thing)}"
    if len(text) <= 100:
        return text
    head, _, rest = text.partition("(")
    inner, close, result = rest.rpartition(")")
    return (
        head
        + "(\n    "
        + re.sub(r", (?=[*\w]+(?::|=|,|$))", ",\n    ", inner)
        + ",\n"
        + close
        + result
    )


def _parameters(thing: Any) -> str:
    try:
        return str(inspect.signature(thing)).replace("'", "")
    except (TypeError, ValueError):
        return "(…)"
