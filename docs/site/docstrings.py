"""The docstring of a component: summary, equation, paragraphs, and named sections."""

import re
from dataclasses import dataclass, field

from page_text import code_block, math_block, prose

_MATH = ".. math::"
_HEADING = re.compile(r"^([A-Z][a-z]+):$")
_ARGUMENT = re.compile(r"^([\w, *]+?): +(.*)$", re.S)


@dataclass
class Docstring:
    """A docstring in pieces.

    Args:
        summary: the first paragraph.
        equations: the equations in TeX.
        body: the paragraphs and equations after the summary, as Markdown.
        sections: the text of each named section, such as Shapes, without its indentation.
    """

    summary: str
    equations: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)

    def arguments(self, section: str = "Args") -> dict[str, str]:
        """Return what a section says about each name."""
        found: dict[str, str] = {}
        for entry in re.split(r"\n(?=\S)", self.sections.get(section, "")):
            match = _ARGUMENT.match(entry)
            for name in match[1].split(",") if match else ():
                found[name.strip(" *")] = " ".join(match[2].split())
        return found


def parse(text: str) -> Docstring:
    """Return a docstring, as `inspect.getdoc` returns it, in pieces."""
    first, *paragraphs = text.strip().split("\n\n")
    found = Docstring(" ".join(first.split()))
    section = None
    for paragraph in paragraphs:
        heading, _, rest = paragraph.partition("\n")
        if _HEADING.match(heading) and (not rest or rest.startswith("    ")):
            section = heading[:-1]
            found.sections[section] = _dedent(rest)
        elif section and paragraph.startswith("    "):
            found.sections[section] += "\n\n" + _dedent(paragraph)
        else:
            section = None
            _add_paragraph(found, paragraph)
    return found


def _add_paragraph(found: Docstring, paragraph: str) -> None:
    continues_math = paragraph.startswith("    ") and found.body[-1:] == [
        math_block(equation) for equation in found.equations[-1:]
    ]
    if paragraph.startswith(_MATH) or continues_math:
        equation = " ".join(paragraph.removeprefix(_MATH).split())
        found.equations.append(equation)
        found.body.append(math_block(equation))
    elif paragraph.startswith("    "):
        found.body.append(code_block("text", _dedent(paragraph)))
    elif paragraph.startswith(">>> "):
        found.body.append(code_block("python", paragraph))
    else:
        found.body.append(_lists(paragraph))


def _lists(paragraph: str) -> str:
    """Return a paragraph; lines that start with a hyphen stay items of a list."""
    items = re.split(r"\n(?=- )", paragraph)
    return "\n".join(prose(" ".join(item.split())) for item in items)


def _dedent(text: str) -> str:
    return re.sub(r"^    ", "", text, flags=re.M)
