"""Names of tensors with places left open: ``layers.{n}.attention.{p:q|k|v}.weight``.

``{n}`` is a whole number, ``{3*n+2}`` one that follows from it. ``{p:q|k|v}`` is one of the
words, which may be empty; ``{e:0..8}`` one of the numbers from 0 to 7. Where both sides of a rule
list words under one name, they correspond by their order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from zoo.errors import ZooError
from zoo.exchange.mapping.expression import Expression

Binding = Mapping[str, int]
"""What stands in the open places: a number, or which of the words."""

MAX_WORDS = 4096
MAX_NAMES = 100_000

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_CHOICE = re.compile(r"([A-Za-z_]\w*):(.*)", re.S)
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Choice:
    """An open place for one of some words."""

    name: str
    words: tuple[str, ...]


Piece = str | Expression | Choice


class Pattern:
    """A name with open places; matched against names, or filled to make one."""

    def __init__(self, text: str, words: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self.text = text
        self.pieces = _parse_pieces(text, words or {})
        self.words = {p.name: p.words for p in self.pieces if isinstance(p, Choice)}
        numbers = [p for p in self.pieces if isinstance(p, Expression)]
        self.names = {name for number in numbers for name in number.names} | self.words.keys()
        if prod(map(len, self.words.values())) > MAX_NAMES:
            raise ZooError(f"'{text}' stands for more than {MAX_NAMES:,} names")
        several = [p.text for p in numbers if len(p.names) != 1]
        if several:
            raise ZooError(f"'{{{several[0]}}}' should speak of one index")
        self._regex = re.compile("".join(map(_to_regex, self.pieces)))

    def match(self, name: str) -> dict[str, int] | None:
        """What stands in the open places of a name, or None if it has not this form."""
        found = self._regex.fullmatch(name)
        if not found:
            return None
        binding: dict[str, int] = {}
        opened = [piece for piece in self.pieces if not isinstance(piece, str)]
        for piece, text in zip(opened, found.groups(), strict=True):
            if isinstance(piece, Choice):
                key, at = piece.name, piece.words.index(text)
            else:
                (key,) = piece.names
                solved = piece.solve(int(text))
                if solved is None:
                    return None
                at = solved
            if binding.setdefault(key, at) != at:
                return None
        return binding

    def format_name(self, binding: Binding) -> str:
        """The name, with every open place filled."""
        return "".join(
            piece
            if isinstance(piece, str)
            else piece.words[binding[piece.name]]
            if isinstance(piece, Choice)
            else str(piece.value(binding))
            for piece in self.pieces
        )

    def expand(self, binding: Binding) -> list[str]:
        """The names, one for each word of the choices that the binding leaves open, in order."""
        open_choices = [name for name in self.words if name not in binding]
        counts = [range(len(self.words[name])) for name in open_choices]
        return [
            self.format_name({**binding, **dict(zip(open_choices, chosen, strict=True))})
            for chosen in product(*counts)
        ]

    def __str__(self) -> str:
        return self.text


def _parse_pieces(text: str, words: Mapping[str, tuple[str, ...]]) -> list[Piece]:
    pieces: list[Piece] = []
    end = 0
    for opened in _PLACEHOLDER.finditer(text):
        pieces += [text[end : opened.start()], _parse_placeholder(opened[1], words)]
        end = opened.end()
    pieces.append(text[end:])
    if any(isinstance(p, str) and ("{" in p or "}" in p) for p in pieces):
        raise ZooError(f"'{text}' has a brace without its other half")
    if not text:
        raise ZooError("a tensor's name is empty")
    return [piece for piece in pieces if piece != ""]


def _parse_placeholder(inside: str, words: Mapping[str, tuple[str, ...]]) -> Piece:
    choice = _CHOICE.fullmatch(inside)
    if not choice:
        if inside in words:  # listed on the other side of the rule
            return Choice(inside, words[inside])
        expression = Expression(inside)
        if not expression.names:
            raise ZooError(f"'{{{inside}}}' names no index")
        return expression
    numbers = _RANGE.fullmatch(choice[2])
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        if last - first > MAX_WORDS or last <= first:
            raise ZooError(f"'{{{inside}}}' should count from a number to a higher one")
        return Choice(choice[1], tuple(map(str, range(first, last))))
    listed = tuple(choice[2].split("|"))
    if len(set(listed)) < len(listed):
        raise ZooError(f"'{{{inside}}}' lists a word twice")
    return Choice(choice[1], listed)


def _to_regex(piece: Piece) -> str:
    if isinstance(piece, str):
        return re.escape(piece)
    if isinstance(piece, Choice):
        # The longest first, so that an empty word does not win over a longer one.
        return f"({'|'.join(map(re.escape, sorted(piece.words, key=len, reverse=True)))})"
    return r"(0|[1-9][0-9]{0,8})"


def paired_patterns(
    ours: Sequence[str], theirs: Sequence[str]
) -> tuple[list[Pattern], list[Pattern]]:
    """The patterns of both sides of a rule, checked to speak of the same places."""
    first = [[Pattern(text) for text in side if "{" in text] for side in (ours, theirs)]
    listed: list[dict[str, tuple[str, ...]]] = [
        {name: words for pattern in side for name, words in pattern.words.items()} for side in first
    ]
    for name in listed[0].keys() & listed[1].keys():
        here, there = (len(side[name]) for side in listed)
        if here != there:
            raise ZooError(f"'{name}' stands for {here} words of ours and {there} of theirs")
    mine = [Pattern(text, {**listed[1], **listed[0]}) for text in ours]
    others = [Pattern(text, {**listed[0], **listed[1]}) for text in theirs]
    for name in sorted(_index_names(mine) ^ _index_names(others)):
        raise ZooError(
            f"'{{{name}}}' stands on one side alone; list its numbers, as {{{name}:0..8}}"
        )
    return mine, others


def _index_names(side: Sequence[Pattern]) -> set[str]:
    return {name for pattern in side for name in pattern.names - pattern.words.keys()}
