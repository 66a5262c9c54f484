"""The links around a page: sidebar, breadcrumbs, neighbours, and its own headings."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from html_body import Heading
from page_text import relative

Contents = Mapping[str, Sequence[tuple[str, Sequence[str]]]]


@dataclass(frozen=True)
class Sidebar:
    """The links between pages, as HTML.

    Args:
        contents: captions and pages that a page lists, all without suffix.
        titles: the title of each page.
    """

    contents: Contents
    titles: Mapping[str, str]

    @cached_property
    def parents(self) -> dict[str, str]:
        """The page that lists a page."""
        return {
            page: parent
            for parent, groups in self.contents.items()
            for _, pages in groups
            for page in pages
        }

    @cached_property
    def order(self) -> dict[str, tuple[str | None, str | None]]:
        """The pages before and after a page in its list."""
        found = {}
        for groups in self.contents.values():
            pages = [page for _, names in groups for page in names]
            for before, page, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
                found[page] = (before, after)
        return found

    def render(self, page: str) -> str:
        """Return the list of pages: all captions, and what is inside the sections of the page."""
        path = self.path(page)
        lines = []
        for caption, pages in self.contents["index"]:
            lines.append(f"<p>{html.escape(caption)}</p>")
            lines += self._list(pages, path, page)
        return "\n".join(lines)

    def path(self, page: str) -> list[str]:
        """Return a page and those that it is inside of, without the first page."""
        found = []
        while page in self.parents:
            found.append(page)
            page = self.parents[page]
        return found

    def breadcrumbs(self, page: str) -> str:
        """Return links to the pages that a page is inside of."""
        above = self.path(page)[:0:-1]
        if not above:
            return ""
        links = " › ".join(self._link(each, page) for each in above)
        return f'<nav class="breadcrumbs" aria-label="Breadcrumbs">{links}</nav>'

    def neighbours(self, page: str) -> str:
        """Return links to the pages before and after a page."""
        before, after = self.order.get(page, (None, None))
        previous = f"<span>← {self._link(before, page)}</span>" if before else "<span></span>"
        following = f"<span>{self._link(after, page)} →</span>" if after else ""
        if not before and not after:
            return ""
        return f'<nav class="neighbours" aria-label="Next pages">{previous}{following}</nav>'

    def _list(self, pages: Sequence[str], path: Sequence[str], source: str) -> Iterator[str]:
        yield "<ul>"
        for page in pages:
            yield f"<li>{self._link(page, source)}"
            if page in path:
                for _, inside in self.contents.get(page, ()):
                    yield from self._list(inside, path, source)
            yield "</li>"
        yield "</ul>"

    def _link(self, page: str, source: str) -> str:
        current = ' aria-current="page"' if page == source else ""
        address = relative(f"{page}.html", source)
        return f'<a href="{address}"{current}>{html.escape(self.titles[page])}</a>'


def outline(headings: Sequence[Heading]) -> str:
    """Return links to the sections of a page, if there are several."""
    shown = [each for each in headings if each.level == 2]
    if len(shown) < 2:
        return ""
    items = "".join(
        f'<li><a href="#{each.anchor}">{html.escape(each.text)}</a></li>' for each in shown
    )
    return f"<p>On this page</p><ul>{items}</ul>"
