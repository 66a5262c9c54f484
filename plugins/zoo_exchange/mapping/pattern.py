"""Patterns for tensor names: ``layers.{n}.attention.{p:q|k|v}.weight``.

``{n}`` matches an integer, ``{3*n+2}`` one computed from it. ``{p:q|k|v}`` matches one of the
words, which may be empty; ``{e:0..8}`` matches one of the integers 0 to 7. If both sides of a rule
list words under one name, they correspond by their order.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from zoo.errors import ZooError, truncate
from zoo_exchange.mapping.expression import Expression
from zoo_exchange.mapping.matcher import INTEGER, Alternatives, Matcher, MatchingWork

Binding = Mapping[str, int]
"""The value of each placeholder: an integer, or the index of a word."""

Words = Mapping[str, tuple[str, ...]]
"""The words of each placeholder that lists some."""

MAX_WORDS = 4096
MAX_NAMES = 100_000
MAX_PIECES = 64

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_CHOICE = re.compile(r"([A-Za-z_]\w*):(.*)", re.S)
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_SHORT_RANGE = re.compile(r":(\d{1,9})\.\.(\d{1,9})\}")


@dataclass(frozen=True)
class Choice:
    """A placeholder for one of several words."""

    name: str
    words: tuple[str, ...]


Piece = str | Expression | Choice


class Pattern:
    """A tensor name with placeholders.

    Args:
        text: the name.
        words: words listed elsewhere in the rule, for placeholders without a list of their own.
    """

    def __init__(self, text: str, words: dict[str, tuple[str, ...]] | None = None) -> None:
        self.text = text
        listed = _listed_words(text)
        self.pieces = _parse_pieces(text, ChainMap(listed, words or {}))
        self.words = {p.name: p.words for p in self.pieces if isinstance(p, Choice)} | listed
        self.expressions = [p for p in self.pieces if isinstance(p, Expression)]
        self.names = {name for e in self.expressions for name in e.names} | self.words.keys()
        if len(self.pieces) > MAX_PIECES:
            raise ZooError(f"'{truncate(text, 80)}' has more than {MAX_PIECES // 2} placeholders")
        if prod(map(len, self.words.values())) > MAX_NAMES:
            raise ZooError(f"'{text}' stands for more than {MAX_NAMES:,} names")
        for expression in self.expressions:
            if len(expression.names) != 1:
                raise ZooError(f"'{{{expression.text}}}' should contain exactly one index name")
        self.prefix, self.suffix = (
            piece if isinstance(piece, str) else "" for piece in (self.pieces[0], self.pieces[-1])
        )
        self._matcher = Matcher([_to_alternatives(piece) for piece in self.pieces])

    def match(self, name: str, work: MatchingWork | None = None) -> dict[str, int] | None:
        """Return the values of the placeholders in a name, or None if it does not match."""
        if not (name.startswith(self.prefix) and name.endswith(self.suffix)):
            if work:
                work.add(1)
            return None
        parts = self._matcher.split(name, work)
        if parts is None:
            return None
        binding: dict[str, int] = {}
        for piece, text in zip(self.pieces, parts, strict=True):
            value: int | None
            if isinstance(piece, str):
                continue
            if isinstance(piece, Choice):
                key, value = piece.name, piece.words.index(text)
            else:
                (key,) = piece.names
                value = piece.solve(int(text))
            if value is None or binding.setdefault(key, value) != value:
                return None
        return binding

    def candidates(self, names: Collection[str], work: MatchingWork) -> list[str]:
        """Return the names that begin and end as the pattern does, which is tested quickly."""
        work.add(len(names) // 4)
        prefix, suffix = self.prefix, self.suffix
        return [name for name in names if name.startswith(prefix) and name.endswith(suffix)]

    def format_name(self, binding: Binding) -> str:
        """Return the name with every placeholder replaced by its value."""
        return "".join(
            piece
            if isinstance(piece, str)
            else piece.words[binding[piece.name]]
            if isinstance(piece, Choice)
            else str(piece.value(binding))
            for piece in self.pieces
        )

    def num_names(self, binding: Binding) -> int:
        """Return the number of names that `expand` returns."""
        return prod(len(words) for name, words in self.words.items() if name not in binding)

    def expand(
        self, binding: Binding, names: Collection[str] = (), work: MatchingWork | None = None
    ) -> list[str]:
        """Return one name for each combination of words that the binding does not fix.

        If an index is not fixed, return those of `names` that match, in the order of the indices.
        """
        if any(not expression.names <= binding.keys() for expression in self.expressions):
            work = work or MatchingWork()
            names = self.candidates(names, work)
            found = [(self.match(name, work), name) for name in names]
            agreeing = [
                (list(match.values()), name)
                for match, name in found
                if match is not None and all(match.get(k, v) == v for k, v in binding.items())
            ]
            return [name for _, name in sorted(agreeing)]
        unbound = [name for name in self.words if name not in binding]
        indices = [range(len(self.words[name])) for name in unbound]
        return [
            self.format_name({**binding, **dict(zip(unbound, combination, strict=True))})
            for combination in product(*indices)
        ]

    def __str__(self) -> str:
        return self.text


def _parse_pieces(text: str, words: Words) -> list[Piece]:
    if not text:
        raise ZooError("a tensor name is empty")
    # With one group, split() returns text and placeholders alternately.
    parts = _PLACEHOLDER.split(text)
    if any("{" in part or "}" in part for part in parts):
        raise ZooError(f"'{text}' has an unmatched brace")
    pieces: list[Piece] = [parts[0]]
    for inside, literal in zip(parts[1::2], parts[2::2], strict=True):
        pieces += [_parse_choice(inside) or _parse_expression(inside, words), literal]
    return [piece for piece in pieces if piece != ""]


def _listed_words(text: str) -> dict[str, tuple[str, ...]]:
    """Return the words that the placeholders of a text list."""
    choices = [choice for choice in map(_parse_choice, _PLACEHOLDER.findall(text)) if choice]
    _check_counts(choices)
    return {choice.name: choice.words for choice in choices}


def count_words(text: str) -> int:
    """Return how many words the placeholders of a text list, without creating them."""
    sizes = (int(stop) - int(start) for start, stop in _SHORT_RANGE.findall(text))
    return text.count("|") + sum(size for size in sizes if 0 < size <= MAX_WORDS)


def _check_counts(choices: Sequence[Choice]) -> None:
    counts: dict[str, int] = {}
    for choice in choices:
        count = len(choice.words)
        if counts.setdefault(choice.name, count) != count:
            raise ZooError(
                f"'{choice.name}' lists {counts[choice.name]} words in one place and {count} in "
                "another; they should correspond one to one"
            )


def _parse_choice(inside: str) -> Choice | None:
    choice = _CHOICE.fullmatch(inside)
    if not choice:
        return None
    integers = _RANGE.fullmatch(choice[2])
    if integers:
        # Longer numbers are not converted: int() raises ValueError for them.
        start, stop = (int(digits) if len(digits) < 10 else -1 for digits in integers.groups())
        if min(start, stop) < 0 or not 0 < stop - start <= MAX_WORDS:
            raise ZooError(
                f"'{{{truncate(inside, 80)}}}' should be a range of 1 to {MAX_WORDS:,} integers, "
                "such as 0..8"
            )
        return Choice(choice[1], tuple(map(str, range(start, stop))))
    listed = tuple(choice[2].split("|"))
    if len(set(listed)) < len(listed):
        raise ZooError(f"'{{{inside}}}' lists a word twice")
    return Choice(choice[1], listed)


def _parse_expression(inside: str, words: Words) -> Expression | Choice:
    if inside in words:
        return Choice(inside, words[inside])
    expression = Expression(inside)
    if not expression.names:
        raise ZooError(f"'{{{inside}}}' contains no index name")
    if len(expression.names) > 1 or any(name not in words for name in expression.names):
        return expression
    (name,) = expression.names
    for word in words[name]:
        if not INTEGER.fullmatch(word):
            raise ZooError(f"'{{{inside}}}' needs integers, but '{name}' lists '{word}'")
    values = tuple(str(expression.value({name: int(word)})) for word in words[name])
    if len(set(values)) < len(values):
        raise ZooError(f"'{{{inside}}}' has the same value for several values of '{name}'")
    return Choice(name, values)


def _to_alternatives(piece: Piece) -> Alternatives:
    if isinstance(piece, str):
        return Alternatives([piece])
    return Alternatives(piece.words) if isinstance(piece, Choice) else Alternatives(None)


def paired_patterns(
    ours: Sequence[str], theirs: Sequence[str], *, one_sided: bool = False
) -> tuple[list[Pattern], list[Pattern]]:
    """Return the patterns of both sides of a rule; raise ZooError if their indices differ.

    With `one_sided`, one of the sides may have further indices.
    """
    listed = [
        [Choice(*item) for text in side for item in Pattern(text).words.items()]
        for side in (ours, theirs)
    ]
    our_words, their_words = ({choice.name: choice.words for choice in side} for side in listed)
    shared = our_words.keys() & their_words.keys()
    _check_counts([choice for side in listed for choice in side if choice.name in shared])
    all_words = {**their_words, **our_words}, {**our_words, **their_words}
    our_patterns = [Pattern(text, all_words[0]) for text in ours]
    their_patterns = [Pattern(text, all_words[1]) for text in theirs]
    our_indices, their_indices = map(unlisted_indices, (our_patterns, their_patterns))
    differing = our_indices.keys() ^ their_indices.keys()
    if one_sided and (differing <= our_indices.keys() or differing <= their_indices.keys()):
        return our_patterns, their_patterns
    for name in sorted(our_indices.keys() ^ their_indices.keys()):
        expression = our_indices.get(name) or their_indices[name]
        values = "|".join(str(expression.value({name: index})) for index in range(3))
        raise ZooError(
            f"index '{name}' is on one side only; write {{{name}}} on the other side too, or "
            f"list its values, for example {{{name}:{values}}}, in a 'convert' rule with 'split' "
            "or 'join'"
        )
    return our_patterns, their_patterns


def unlisted_indices(side: Sequence[Pattern]) -> dict[str, Expression]:
    """Return the expression of each index whose values are not listed."""
    return {name: e for pattern in side for e in pattern.expressions for name in e.names}
