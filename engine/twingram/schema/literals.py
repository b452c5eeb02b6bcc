"""Listed values: `enum` and `const`.

In: schemas that hold together, at least one of which lists values. Out: the expression of the listed values that all of
the schemas admit, each in the one spelling that the format writes it in; values that it cannot write are refused one by
one.

Strings share one trie. A number is written as Python prints it, and 2.0 also as 2. Objects are written with
all their members, in the order that the options ask for.
Cost: linear in the values; a thousand strings take a millisecond.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from ..automaton.choice import alt, words
from ..automaton.expression import EMPTY, NOTHING, Expr, literal, seq
from ..automaton.members import ObjectTemplate
from ..automaton.notjson import is_document
from ..errors import LimitExceeded
from .context import Context
from .forms import Forms
from .keywords import MAPPING
from .readings import read_as
from .report import Placed, Refusal
from .stated import Branch, Types, canonical, listed_values, type_of

__all__ = ["Literals", "ranks_of"]

_DEEPEST = 100  # nesting of a listed value
_EXACT = 1 << 53  # below it every integer is a double


class Literals:
    """Writes listed values for one compilation."""

    def __init__(self, rest: Context) -> None:
        self._rest, self._report, self._checker, self._options = rest, rest.report, rest.checker, rest.options
        self._resolver = rest.resolver

    def build(self, branch: Branch, forms: Forms, read: Types) -> Expr | Refusal:
        """The listed values that a branch admits."""
        source = next(placed for placed in branch if listed_values(placed.schema) is not None)
        keyword = "const" if "const" in source.schema else "enum"
        path = source.path
        expr, refused = self._all(list(self._admitted(branch, source)), forms, read, Placed(keyword, path))
        if expr is not NOTHING:
            for refusal in refused:
                self._report.refuse(refusal)
            return expr
        return refused[0] if refused else Refusal(path, keyword, "no listed value satisfies the other keywords")

    def alternatives(self, schemas: Sequence[Placed], forms: Forms) -> tuple[Expr, list[tuple[bytes, Expr]]] | None:
        """Enumerated texts, or enumerated numbers: what stands before them, and each with what follows it. None where
        the schemas enumerate no values, or values of several types. Values that cannot be written are passed over."""
        values: dict[Any, Any] = {}
        for branch in self._resolver.branches(schemas):
            source = next((placed for placed in branch if listed_values(placed.schema) is not None), None)
            if source is None:
                return None
            values.update((canonical(value), value) for value in self._admitted(branch, source))
        if all(isinstance(value, str) for value in values.values()) and "string" in forms.types:
            spelt = [self._text(value, forms, None) for value in values.values()]
            return forms.string.before, [(text, forms.string.after) for text in spelt if isinstance(text, bytes)]
        if "number" in forms.types and all(type(value) in (int, float) for value in values.values()):
            before, after, terminal = forms.number
            digits = [_spelt(value) for value in values.values()]
            return before, [(text, after) for text in digits if text is not None and terminal.matches(text)]
        return None

    def _admitted(self, branch: Branch, source: Placed) -> Iterator[Any]:
        values = listed_values(source.schema) or []
        levels = max(map(_levels, values), default=0)
        if levels > _DEEPEST:
            what = f"a listed value at {source.path[:200]} nests too deeply"
            raise LimitExceeded("schema_depth", _DEEPEST, what, ceiling=_DEEPEST)
        self._rest.containers += levels
        for value in {canonical(value): value for value in reversed(values)}.values():
            if all(self._checker.satisfies(value, placed) for placed in branch):
                yield value

    def _all(self, values: Sequence[Any], forms: Forms, read: Types, place: Placed) -> tuple[Expr, list[Refusal]]:
        keyword, path = place
        texts: list[tuple[bytes, Expr]] = []
        ways: list[Expr] = []
        refused: list[Refusal] = []
        for value in reversed(values):
            if isinstance(value, str) and "string" in forms.types:
                spelt = self._text(value, forms, read)
                if isinstance(spelt, bytes):
                    texts.append((spelt, forms.string.after))
                else:
                    refused.append(Refusal(path, keyword, f"{_shown(value)} {spelt}"))
                continue
            made = self._value(value, forms)
            if made is NOTHING:
                refused.append(Refusal(path, keyword, f"{_shown(value)} cannot be written in this format"))
            else:
                ways.append(made)
        if texts:
            ways.append(seq(forms.string.before, words(texts)))
        return alt(ways), refused

    def _text(self, value: str, forms: Forms, read: Types) -> bytes | str:
        """The spelt body of a string, or why there is none."""
        spelt = forms.string.spell(value)
        if spelt is None:
            return "cannot be written in this format"
        others = (read_types(read) - {"string"}) if forms.raw else frozenset()
        scalars = others - {"array", "object"}
        if (scalars and read_as(scalars).matches(spelt)) or is_document(
            spelt, arrays="array" in others, objects="object" in others
        ):
            return "would be read as another type that is admitted here"
        return spelt

    def _value(self, value: Any, forms: Forms) -> Expr:
        """A value in its one spelling; `NOTHING` if the format has none."""
        if isinstance(value, str):
            spelt = forms.string.spell(value) if "string" in forms.types else None
            return NOTHING if spelt is None else seq(forms.string.before, literal(spelt), forms.string.after)
        if value is None or isinstance(value, bool):
            name = "null" if value is None else "true" if value else "false"
            return forms.word(name) if type_of(value) <= forms.types else NOTHING
        if isinstance(value, (int, float)):
            return _number(value, forms)
        if isinstance(value, list):
            return self._list(value, forms)
        return self._object(value, forms) if isinstance(value, MAPPING) and "object" in forms.types else NOTHING

    def _list(self, values: Sequence[Any], forms: Forms) -> Expr:
        if "array" not in forms.types:
            return NOTHING
        shape, row = forms.array, forms.array.after
        for index in range(len(values) - 1, -1, -1):
            row = seq(shape.separator if index else EMPTY, self._value(values[index], forms.item), row)
        return seq(shape.before, row)

    def _object(self, value: Mapping[Any, Any], forms: Forms) -> Expr:
        shape, keys = forms.object, []
        for name, item in value.items():
            spelt = shape.key.spell(name) if isinstance(name, str) else None
            tail = forms.after_key(self._value(item, forms.member))
            if spelt is None or tail is NOTHING:
                return NOTHING
            keys.append((spelt, tail, True))
        template = ObjectTemplate(
            keys, before=forms.before_key, separator=shape.separator,
            order=ranks_of(list(value), self._options.key_order),
        )  # fmt: skip
        return forms.object_of(template)


def ranks_of(names: Sequence[str], key_order: str) -> list[int] | None:
    """For each name its place in the order that the option asks for; None for any order."""
    if key_order == "any":
        return None
    if key_order == "declared":
        return list(range(len(names)))
    ranks = [0] * len(names)
    for rank, index in enumerate(sorted(range(len(names)), key=lambda i: names[i].lower())):
        ranks[index] = rank
    return ranks


def read_types(read: Types) -> frozenset[str]:
    """The types that a text may be read as."""
    return frozenset({"null", "boolean", "integer", "number", "array", "object"}) if read is None else read


def _number(value: int | float, forms: Forms) -> Expr:  # noqa: PYI041  an integer is no float here
    spelt = _spelt(value)
    if "number" not in forms.types or spelt is None:
        return NOTHING
    before, after, terminal = forms.number
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    ways = [spelt, _digits(int(value))] if whole else [spelt]
    found = [text for text in ways if terminal.matches(text)]
    if len(found) == 1:
        return seq(before, literal(found[0]), after)
    return seq(before, words([(text, after) for text in found])) if found else NOTHING


def _spelt(value: int | float) -> bytes | None:  # noqa: PYI041
    """A number as Python writes it; None if JSON has no such number."""
    if isinstance(value, float):
        return repr(value).encode() if math.isfinite(value) else None
    return _digits(value)


def _digits(value: int) -> bytes:
    """Decimal digits; Python's own conversion refuses very long ones."""
    return f"{Decimal(value):f}".encode()


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _levels(value: Any) -> int:
    """How many lists and objects stand inside each other, up to one more than are written; without recursion."""
    layer: Iterable[Any] = [value] if isinstance(value, (list, dict, Mapping)) else []
    for level in range(_DEEPEST + 1):
        if not layer:
            return level
        below = (each.values() if isinstance(each, MAPPING) else each for each in layer)
        layer = {id(each): each for row in below for each in row if isinstance(each, (list, dict, Mapping))}.values()
    return _DEEPEST + 1
