"""Text regions: any text up to what may follow it.

In: a terminal in the idiom `((?!A|B|...).)+` with the `s` flag, perhaps behind `(?!C)`, or needles, or terminators.
Out: the `Region` that the idiom spells; automata of the texts without a needle, or without a match of a terminator, or
that do not begin with one.
Invariant: these languages hold the empty text and every prefix of their texts (at whole characters, if strict).
Strict automata hold well-formed UTF-8 only, and accept between characters only. The others hold any bytes, accept in
every state, and count a character where its first byte is read.
Cost: linear in the needles (a few milliseconds for fifteen markers).
Source: A. V. Aho, M. J. Corasick, "Efficient String Matching: An Aid to Bibliographic Search" (1975).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..limits import DEFAULT_LIMITS, Limits
from .charset import ANY, contains
from .dfa import Dfa, check_states, from_draft, intersect, union
from .kept import kept
from .regex import parse, terminal_dfa, tree_dfa
from .runs import Draft, Row, merge_runs, overlay
from .tree import (
    ANYTHING,
    Chars,
    Choice,
    Concat,
    Look,
    Repeat,
    Tree,
    concat,
    exact_prefix,
    exact_text,
    plain,
    plain_texts,
)

__all__ = [
    "Region", "any_text", "exclude_dfa", "is_nearly_region", "parse_region", "terminal_dfa", "unlike_dfa", "until_dfa",
]  # fmt: skip

_FEW = 32  # texts that a terminator is written out as


class Region(NamedTuple):
    """What ends a text region, and what it does not begin with. The tuples of what ends it run in parallel, one entry
    an alternative."""

    terminators: tuple[Tree, ...]
    literals: tuple[bytes | None, ...]  # the exact text of a terminator that is plain text
    prefixes: tuple[bytes, ...]  # the text with which every match of a terminator begins, as far as it is plain
    least: int  # characters that the terminal holds at least: 1 for `+`, 0 for `*`
    unlike: Tree | None = None  # no text begins with a match of it


@lru_cache(maxsize=512)
def parse_region(pattern: str, flags: str = "") -> Region | None:
    """The region that a terminal spells; None if it is no region."""
    if "(?!" not in pattern:
        return None
    tree, unlike = parse(pattern, dialect="python", flags=flags), None
    if isinstance(tree, Concat) and len(tree.items) == 2 and isinstance(tree.items[0], Look) and tree.items[0].negative:
        unlike, tree = tree.items[0].item, tree.items[1]
    if not (isinstance(tree, Repeat) and tree.low <= 1 and tree.high is None and isinstance(tree.item, Concat)):
        return None
    items = tree.item.items
    if len(items) != 2 or items[1] != Chars(ANY) or not isinstance(items[0], Look) or not items[0].negative:
        return None
    body = items[0].item
    terminators = [item for end in (body.items if isinstance(body, Choice) else (body,)) for item in _unfolded(end)]
    texts = [exact_text(item) for item in terminators]
    return Region(
        tuple(terminators),
        tuple(None if text is None else text.encode() for text in texts),
        tuple(exact_prefix(item).encode() for item in terminators),
        tree.low,
        unlike,
    )


def _unfolded(end: Tree) -> list[Tree]:
    """What ends a region, an alternative for each text that it begins with, as far as they are a few."""
    items = end.items if isinstance(end, Concat) else (end,)
    for size in range(len(items), 0, -1):
        texts = plain_texts(Concat(items[:size]), _FEW)
        if texts is not None:
            return [concat([plain(text), *items[size:]]) for text in texts]
    return [end]


@lru_cache(maxsize=512)
def is_nearly_region(pattern: str, flags: str = "") -> bool:
    """Whether a pattern that is no region was likely meant as one: the idiom without its flag, or with more around."""
    return "(?!" in pattern and parse_region(pattern, flags) is None and _holds_idiom(
        parse(pattern, dialect="python", flags=flags)
    )


def _holds_idiom(tree: Tree) -> bool:
    if isinstance(tree, Repeat) and tree.high is None and isinstance(tree.item, Concat) and len(tree.item.items) > 1:
        first, last = tree.item.items[0], tree.item.items[-1]
        if isinstance(first, Look) and first.negative and _is_dot(last):
            return True
    inner = tree.items if isinstance(tree, (Concat, Choice)) else (tree.item,) if isinstance(tree, Repeat) else ()
    return any(map(_holds_idiom, inner))


def _is_dot(tree: Tree) -> bool:
    """A character of any kind, but for line breaks perhaps."""
    if isinstance(tree, Choice):
        return any(map(_is_dot, tree.items))
    return isinstance(tree, Chars) and all(contains(tree.chars, code) for code in range(0x20, 0x7F))


@lru_cache(maxsize=8)
def any_text(spelling: str = "raw") -> Dfa:
    """Every text, spelled."""
    return tree_dfa(ANYTHING, spelling=spelling)


@lru_cache(maxsize=1)
def _any_bytes() -> Dfa:
    """Every byte string; a state's flag tells whether its last byte began a character."""
    row: Row = ((0x00, 0x7F, 1), (0x80, 0xBF, 2), (0xC0, 0xFF, 1))
    return from_draft(Draft(((), row, row), (0, 1, 1), (0, 1, 0), 1))


def exclude_dfa(
    needles: Iterable[bytes], *, strict: bool, spelling: str = "raw", limits: Limits = DEFAULT_LIMITS
) -> Dfa:
    """The texts in which no needle occurs. With a spelling, it is the spelled bytes that hold none."""
    return _exclude(tuple(sorted(set(needles))), strict, spelling, limits)


@kept
def _exclude(needles: tuple[bytes, ...], strict: bool, spelling: str, limits: Limits) -> Dfa:
    if not strict and spelling != "raw":
        raise ValueError("a spelling asks for strict=True")
    if b"" in needles:
        raise ValueError("the empty text occurs in every text")
    base = any_text(spelling) if strict else _any_bytes()
    return intersect(base, _without(needles, limits), limits=limits) if needles else base


def _without(needles: Sequence[bytes], limits: Limits) -> Dfa:
    """Aho and Corasick's automaton, cut off where a needle ends."""
    children: list[dict[int, int]] = [{}]
    ends = [False]
    for needle in needles:
        node = 0
        for byte in needle:
            following = children[node].get(byte)
            if following is None:
                following = children[node][byte] = len(children)
                children.append({})
                ends.append(False)
                check_states(following, limits)
            node = following
        ends[node] = True
    moves = _with_failures(children, ends)
    rows: list[Row] = [(), *(_filled(move) for move in moves)]
    alive = [0, *(int(not end) for end in ends)]
    return from_draft(Draft([row if live else () for row, live in zip(rows, alive, strict=True)], alive, alive, 1))


def _with_failures(children: list[dict[int, int]], ends: list[bool]) -> list[dict[int, int]]:
    """Each node's moves that do not lead to the root, those of its longest proper suffix included."""
    failures = [0] * len(children)
    moves: list[dict[int, int]] = [{} for _ in children]
    order = [0]
    for node in order:
        behind = moves[failures[node]] if node else {}
        moves[node] = {**behind, **children[node]}
        for byte, child in children[node].items():
            failures[child] = behind.get(byte, 0)
            ends[child] = ends[child] or ends[failures[child]]
            order.append(child)
    return moves


def _filled(moves: dict[int, int]) -> Row:
    """The row of a node, in states (node 0 is state 1): the root on every byte that has no move."""
    runs, low = [], 0
    for byte, node in sorted(moves.items()):
        if low < byte:
            runs.append((low, byte - 1, 1))
        runs.append((byte, byte, node + 1))
        low = byte + 1
    if low < 256:
        runs.append((low, 255, 1))
    return merge_runs(runs)


@kept
def unlike_dfa(beginning: Tree, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The byte strings that do not begin with a match of the tree."""
    begun = tree_dfa(beginning, limits=limits)
    free = len(begun.runs)  # from here on anything goes
    rows: list[Row] = []
    for runs in begun.runs:
        row, low = [], 0
        for first, last, target in runs:
            row += [(low, first - 1, free)] if low < first else []
            row.append((first, last, 0 if begun.accept[target] else target))
            low = last + 1
        rows.append(merge_runs([*row, (low, 255, free)] if low < 256 else row))
    flags = [0] + [1] * free
    return from_draft(Draft([(), *rows[1:], ((0, 255, free),)], flags, flags, begun.start or free))


def until_dfa(terminators: Iterable[Tree], *, strict: bool, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The texts in which no match of a terminator lies as a whole."""
    return _until(tuple(terminators), strict, limits)


@kept
def _until(terminators: tuple[Tree, ...], strict: bool, limits: Limits) -> Dfa:
    closing = union(*(tree_dfa(tree, limits=limits) for tree in terminators), limits=limits)
    base = any_text() if strict else _any_bytes()
    if not closing.start:
        return base
    if closing.accept[closing.start]:
        raise ValueError("a terminator that matches the empty text ends every region at once")
    return intersect(base, _avoiding(closing, limits), limits=limits)


def _avoiding(closing: Dfa, limits: Limits) -> Dfa:
    """All byte strings in which no word of `closing` occurs: a state is the set of matches under way."""
    start = frozenset((closing.start,))
    numbers, order = {start: 1}, [start]
    rows: list[Row] = [()]
    for states in order:
        runs, low = [], 0
        for first, last, targets in overlay([closing.runs[state] for state in states]):
            if low < first:
                runs.append((low, first - 1, 1))
            low = last + 1
            target = start.union(targets) - {0}
            if any(closing.accept[state] for state in target):
                continue
            name = numbers.get(target)
            if name is None:
                name = numbers[target] = len(order) + 1
                order.append(target)
                check_states(name, limits)
            runs.append((first, last, name))
        if low < 256:
            runs.append((low, 255, 1))
        rows.append(merge_runs(runs))
    flags = [0] + [1] * len(order)
    return from_draft(Draft(rows, flags, flags, 1))
