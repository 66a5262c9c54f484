"""Markdown to HTML: the body of a page, its headings, its links and its words."""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

_SCROLLS = 'tabindex="0" role="region"'
"""What is wider than the page scrolls by itself, also by keyboard."""
_EXTERNAL = re.compile(r"^[a-z]+:")


@dataclass(frozen=True)
class Heading:
    """A heading of a page: its level, anchor and text."""

    level: int
    anchor: str
    text: str


@dataclass(frozen=True)
class Body:
    """A rendered page.

    Args:
        html: the body of the page.
        headings: its headings in order.
        links: the pages, files and anchors that it links to, as written.
        words: its text without code blocks, for the search.
        summary: its first paragraph as text.
    """

    html: str
    headings: Sequence[Heading]
    links: Sequence[str]
    words: str
    summary: str


class BodyRenderer:
    """Renders Markdown: CommonMark with tables, ``math`` blocks and `$…$` in code spans."""

    def __init__(self) -> None:
        self.parser = MarkdownIt("commonmark", {"html": False}).enable("table")
        for rule in ("fence", "code_block", "code_inline", "table_open", "table_close"):
            self.parser.add_render_rule(rule, globals()[f"_{rule}"])

    def render(self, text: str) -> Body:
        """Return the body of a page."""
        tokens = self.parser.parse(text)
        headings = list(_set_anchors(tokens))
        links = list(_rewrite_links(tokens))
        body = self.parser.renderer.render(tokens, self.parser.options, {})
        return Body(body, headings, links, _words(tokens), _summary(tokens))


def _set_anchors(tokens: Sequence[Token]) -> Any:
    """Set the anchors of headings, as GitHub does, and yield the headings."""
    used: dict[str, int] = {}
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = plain_text(inline)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        used[slug] = used.get(slug, 0) + 1
        anchor = slug if used[slug] == 1 else f"{slug}-{used[slug] - 1}"
        token.attrSet("id", anchor)
        yield Heading(int(token.tag[1]), anchor, text)


def _rewrite_links(tokens: Sequence[Token]) -> Any:
    """Let links to pages lead to their HTML files; yield all links inside the site."""
    for token in tokens:
        for child in token.children or ():
            key = {"link_open": "href", "image": "src"}.get(child.type)
            target = str(child.attrGet(key)) if key else ""
            if key and not _EXTERNAL.match(target):
                yield target
                child.attrSet(key, re.sub(r"\.md(?=#|$)", ".html", target))
            if child.type == "image":
                child.attrSet("loading", "lazy")


def plain_text(token: Token) -> str:
    """Return the text of an inline token without markup."""
    kept = ("text", "code_inline", "softbreak")
    parts = (each.content or " " for each in token.children or () if each.type in kept)
    return "".join(parts)


def _words(tokens: Sequence[Token]) -> str:
    return " ".join(plain_text(token) for token in tokens if token.type == "inline")


def _summary(tokens: Sequence[Token]) -> str:
    """Return the first paragraph with a sentence; lines of links and pictures are skipped."""
    for token, inline in pairwise(tokens):
        if token.type == "paragraph_open" and token.level == 0:
            text = plain_text(inline)
            if " · version " not in text and text.strip().endswith((".", ":", ")")):
                return text
    return ""


def _fence(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    token = tokens[index]
    language = token.info.strip().split(" ")[0]
    if language == "math":
        text = html.escape(token.content)
        return f'<div class="math" {_SCROLLS} aria-label="equation">{text}</div>\n'
    return _block(token.content, language)


def _code_block(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    content = tokens[index].content
    return _block(
        content, "bash" if re.match(r"(zoo|pip|make|python|torchrun|\.) ", content) else ""
    )


def _block(content: str, language: str) -> str:
    text = html.escape(content)
    if language and language != "text":
        text = highlight(content, get_lexer_by_name(language), HtmlFormatter(nowrap=True))
    return f'<pre {_SCROLLS} aria-label="code"><code>{text}</code></pre>\n'


def _code_inline(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    content = tokens[index].content
    if len(content) > 2 and content[0] == content[-1] == "$":
        return f'<span class="math">{html.escape(content[1:-1])}</span>'
    return f"<code>{html.escape(content)}</code>"


def _table_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return f'<div class="table" {_SCROLLS} aria-label="table"><table>\n'


def _table_close(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table></div>\n"


def broken_links(bodies: Mapping[str, Body], files: set[str]) -> list[str]:
    """Return the links of pages to pages, files or anchors that do not exist.

    Args:
        bodies: the bodies of pages by path.
        files: paths of other files, such as pictures.
    """
    anchors = {path: {each.anchor for each in body.headings} for path, body in bodies.items()}
    problems = []
    for path, body in bodies.items():
        for target in body.links:
            name, _, anchor = target.partition("#")
            page = _resolve(path, name) if name else path
            if page not in anchors and page not in files:
                problems.append(f"{path}: there is no page or file {target}")
            elif anchor and anchor not in anchors.get(page, ()):
                problems.append(f"{path}: {page} has no heading #{anchor}")
    return problems


def _resolve(source: str, target: str) -> str:
    parts = source.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)
