"""Regular expressions as trees of characters, with the assertions that a finite automaton can check.

In: made by `regex.parse`, or by hand. Out: immutable values, compared by content.
"""

from __future__ import annotations

from dataclasses import dataclass

from .charset import ANY, CharSet, single

__all__ = [
    "ANYTHING",
    "EMPTY",
    "Anchor",
    "Chars",
    "Choice",
    "Concat",
    "Look",
    "Repeat",
    "Tree",
    "choice",
    "concat",
    "exact_prefix",
    "exact_text",
    "plain",
    "plain_texts",
    "searching",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Concat:
    """One after another; none is the empty text."""

    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several."""

    items: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least `low` times, at most `high` (None: any number)."""

    item: Tree
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Anchor:
    """A condition on the place: start, end, line_start, line_end, word (a word boundary), notword.

    `chars` are what counts as a line break, or as a word.
    """

    kind: str
    chars: CharSet = ()


@dataclass(frozen=True, slots=True)
class Look:
    """What follows here begins, or does not begin, with a text of `item`."""

    item: Tree
    negative: bool


Tree = Chars | Concat | Choice | Repeat | Anchor | Look

EMPTY = Concat(())
ANYTHING = Repeat(Chars(ANY), 0, None)


def concat(items: list[Tree]) -> Tree:
    return items[0] if len(items) == 1 else Concat(tuple(items))


def choice(items: list[Tree]) -> Tree:
    return items[0] if len(items) == 1 else Choice(tuple(items))


def searching(tree: Tree) -> Tree:
    """Any text with a text of `tree` somewhere in it. An alternative that is anchored is not padded on that side."""
    found: list[Tree] = []
    for item in tree.items if isinstance(tree, Choice) else (tree,):
        before = [] if _anchored(item, 0, "start") else [ANYTHING]
        after = [] if _anchored(item, -1, "end") else [ANYTHING]
        found.append(concat([*before, item, *after]))
    return choice(found)


def _anchored(tree: Tree, side: int, kind: str) -> bool:
    if isinstance(tree, Concat):
        return bool(tree.items) and _anchored(tree.items[side], side, kind)
    if isinstance(tree, Choice):
        return all(_anchored(item, side, kind) for item in tree.items)
    return isinstance(tree, Anchor) and tree.kind == kind


def plain(text: str) -> Tree:
    """The tree of one text."""
    return concat([Chars(single(ord(char))) for char in text])


def plain_texts(tree: Tree, most: int) -> list[str] | None:
    """All texts of the tree, in no order; None if they are more than `most`, or depend on what stands around them."""
    found: list[str] | None = None
    if isinstance(tree, Chars) and sum(high - low + 1 for low, high in tree.chars) <= most:
        found = [chr(code) for low, high in tree.chars for code in range(low, high + 1)]
    elif isinstance(tree, Concat):
        found = _in_a_row([plain_texts(item, most) for item in tree.items], most)
    elif isinstance(tree, Choice):
        ways = [plain_texts(item, most) for item in tree.items]
        found = None if None in ways else [text for way in ways for text in way or ()]
    elif isinstance(tree, Repeat) and tree.high is not None and tree.high <= most:
        once, found = plain_texts(tree.item, most), []
        for count in range(tree.low, tree.high + 1):
            more = _in_a_row([once] * count, most)
            found = None if found is None or more is None else found + more
    found = None if found is None else list(dict.fromkeys(found))
    return found if found is not None and len(found) <= most else None


def _in_a_row(parts: list[list[str] | None], most: int) -> list[str] | None:
    found = [""]
    for part in parts:
        if part is None or len(part) * len(found) > most:
            return None
        found = [one + other for one in found for other in part]
    return found


def exact_text(tree: Tree) -> str | None:
    """The only text of the tree, if it is plainly one."""
    text, whole = _leading(tree)
    return text if whole else None


def exact_prefix(tree: Tree) -> str:
    """A text with which every text of the tree begins; the longest that is plain to see."""
    return _leading(tree)[0]


def _leading(tree: Tree) -> tuple[str, bool]:
    """(leading text, whether it is the whole of the language)"""
    if isinstance(tree, Chars):
        if len(tree.chars) == 1 and tree.chars[0][0] == tree.chars[0][1]:
            return chr(tree.chars[0][0]), True
        return "", False
    if isinstance(tree, Concat):
        text = ""
        for item in tree.items:
            more, whole = _leading(item)
            text += more
            if not whole:
                return text, False
        return text, True
    if isinstance(tree, Repeat):
        text, whole = _leading(tree.item)
        return (text * tree.low, tree.high == tree.low) if whole else (text if tree.low else "", False)
    return ("", False) if not isinstance(tree, Choice) else (_common([_leading(item)[0] for item in tree.items]), False)


def _common(texts: list[str]) -> str:
    low, high = min(texts), max(texts)
    size = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    return low[:size]
