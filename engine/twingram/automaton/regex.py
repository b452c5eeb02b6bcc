"""Regular expressions to byte automata.

In: a pattern in one of the dialects of `dialect.py`, or a tree. Out: the `Dfa` of its spelled texts.

interegular reads Python's plain core only (no anchors, properties or code point escapes) and works per character with
a mark for anything else, so it is no front end for this; its automata are what the tests compare ours with.

Cost: that of `pattern`, `determinize` and `spelling`, half a millisecond for what schemas hold as a rule. `pattern_dfa`
and `terminal_dfa` keep what they built.
"""

from __future__ import annotations

from ..errors import LimitExceeded
from ..limits import DEFAULT_LIMITS, Limits
from .determinize import complement_draft, determinize
from .dfa import Dfa, from_draft
from .kept import kept
from .pattern import RegexError, parse
from .spelling import TooLarge, decoder, spell
from .tree import Anchor, Chars, Concat, Repeat, Tree, concat, searching

__all__ = ["RegexError", "counted_pattern", "parse", "pattern_dfa", "terminal_dfa", "tree_dfa"]

_FULL_ESCAPES = 800  # states up to which a JSON pattern admits every escape of every character
_INNER_STATES = 8  # at least so many of them come, as a rule, of one state of the pattern
_LONG_REPEAT = 8  # repetitions below this are kept as states


def tree_dfa(tree: Tree, *, spelling: str = "raw", negate: bool = False, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The spelled texts of a tree; with `negate`, those of all other texts.

    With the spelling "json" every escape of every character is admitted, unless that makes the automaton large: then
    four-digit escapes are admitted for control characters only.
    """
    draft, parts = determinize(tree, limits)
    if negate:
        draft = complement_draft(draft, parts.size)
    if spelling == "json" and len(draft.rows) * _INNER_STATES > _FULL_ESCAPES:
        spelling = "json-short"
    if spelling == "json":
        try:
            wide = spell(draft, parts.size, decoder(parts.spans, "json"), limits, cap=_FULL_ESCAPES)
        except TooLarge:
            spelling = "json-short"
        else:
            return from_draft(wide, minimal=True)
    return from_draft(spell(draft, parts.size, decoder(parts.spans, spelling), limits), minimal=True)


@kept
def pattern_dfa(
    pattern: str,
    *,
    spelling: str = "raw",
    search: bool = True,
    dialect: str = "ecma",
    flags: str = "",
    negate: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> Dfa:
    """The spelled texts that a pattern matches: somewhere in them (`search`), or from end to end.

    With `negate`, the texts that it does not match. Take that rather than `difference`: it holds however the spelling
    had to be cut down.
    """
    _check_length(pattern, limits)
    tree = parse(pattern, dialect=dialect, flags=flags)
    return tree_dfa(searching(tree) if search else tree, spelling=spelling, negate=negate, limits=limits)


def counted_pattern(
    pattern: str, *, spelling: str = "raw", dialect: str = "ecma", limits: Limits = DEFAULT_LIMITS
) -> tuple[Dfa, int, int | None] | None:
    """A pattern such as `^[a-z][a-z0-9]{0,63}$` without the counting: (automaton, fewest, most characters).

    Its texts are those of the automaton that have so many characters; a count kept elsewhere saves a state for each.
    None for patterns of another shape: anchored at both ends, single characters, among them one long repetition.
    """
    _check_length(pattern, limits)
    found = _uncounted(parse(pattern, dialect=dialect))
    return found and (_uncounted_dfa(found[0], spelling=spelling, limits=limits), *found[1:])


def _uncounted(tree: Tree) -> tuple[Tree, int, int | None] | None:
    items = tree.items if isinstance(tree, Concat) else ()
    if len(items) < 3 or items[0] != Anchor("start") or items[-1] != Anchor("end"):
        return None
    body = items[1:-1]
    repeats = [item for item in body if isinstance(item, Repeat) and item.high != item.low]
    if len(repeats) != 1 or not all(_is_plain(item) for item in body):
        return None
    repeat = repeats[0]
    if max(repeat.low, repeat.high or 0) < _LONG_REPEAT:
        return None
    fixed = sum(item.low if isinstance(item, Repeat) else 1 for item in body if item is not repeat)
    loose = concat([Repeat(repeat.item, 0, None) if item is repeat else item for item in body])
    return loose, fixed + repeat.low, None if repeat.high is None else fixed + repeat.high


@kept
def _uncounted_dfa(tree: Tree, *, spelling: str, limits: Limits) -> Dfa:
    return tree_dfa(tree, spelling=spelling, limits=limits)


def _is_plain(tree: Tree) -> bool:
    return isinstance(tree, Chars) or (isinstance(tree, Repeat) and isinstance(tree.item, Chars))


@kept
def terminal_dfa(pattern: str, flags: str = "", *, limits: Limits = DEFAULT_LIMITS) -> Dfa:
    """The texts of a grammar's terminal: the whole of the pattern, in UTF-8."""
    _check_length(pattern, limits)
    return tree_dfa(parse(pattern, dialect="python", flags=flags), limits=limits)


def _check_length(pattern: str, limits: Limits) -> None:
    if len(pattern.encode("utf-8", "surrogatepass")) > limits.pattern_bytes:
        raise LimitExceeded("pattern_bytes", limits.pattern_bytes, f"a pattern of {len(pattern)} characters")
