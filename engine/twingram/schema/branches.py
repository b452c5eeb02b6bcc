"""Combinators: schemas that are made of schemas, as a list of alternatives without any.

In: schemas that hold together, and the document that their references point into. Out: branches: alternatives, each a
tuple of schemas that hold together and whose `$ref`, `allOf`, `anyOf` and `oneOf` are already followed. `()` admits
anything; no branch at all means that nothing is admitted.

Invariant: only the place itself is resolved, not its members or items, so that recursive schemas end here.
`oneOf` is exact where its options exclude each other by type, by listed values or by the value of a member that all
require; else it is read as `anyOf` and reported.
Cost: the product of the alternatives, at most `_MOST`; past it a combinator is dropped and reported.

Source: JSON Schema 2020-12 core, sections 8.2.3 and 10.2; RFC 6901 for pointers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any
from urllib.parse import unquote

from ..errors import LimitExceeded
from ..limits import Limits
from .keywords import COMBINING, KNOWN, UNKNOWN, unsupported
from .report import Placed, Report, step
from .stated import ALL_TYPES, Branch, admitted, canonical, declared_types, listed_values, type_of

__all__ = ["Resolver"]

_MOST = 256
_WORK = 20_000  # schemas looked at for one place
_OPTION = ""  # among the followed references: the way led through an option, which may be left out


class Resolver:
    """Branches of the schemas of one document."""

    def __init__(self, document: Any, report: Report, limits: Limits) -> None:
        self._document, self._report, self._depth = document, report, limits.schema_depth
        self._work = 0

    def branches(self, schemas: Sequence[Placed]) -> list[Branch]:
        """The alternatives of schemas that hold together."""
        found: list[Branch] = [()]
        self._work = 0
        for placed in schemas:
            found = self._both(found, self._expand(placed, frozenset(), 0), placed.path, "allOf")
        return found

    def _expand(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        schema, path = placed
        if schema is False:
            return []
        if not isinstance(schema, Mapping):
            if schema is not True:
                self._report.malformed(path, "", "a schema: an object, true or false")
            return [()]
        if depth > self._depth:
            raise LimitExceeded("schema_depth", self._depth, f"schemas are nested too deeply at {path[:200]}")
        self._work += 1
        if self._work > _WORK:
            self._report.relax(path, "", "too many schemas meet here")
            return [()]
        self.check(placed)
        found: list[Branch] = [(placed,)]
        if COMBINING.isdisjoint(schema):
            return found
        if "$ref" in schema:
            found = self._both(found, self._reference(placed, followed, depth), path, "$ref")
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                for options in self._options(placed, keyword, followed, depth + 1):
                    found = self._both(found, options, path, keyword)
        return found

    def check(self, placed: Placed) -> None:
        """Note that a schema takes part, and report the keywords that nobody enforces."""
        schema, path = placed
        report = self._report
        report.read(placed)
        if not schema.keys() <= KNOWN:
            types = admitted((placed,))
            for keyword in schema.keys() - KNOWN:
                reason = unsupported(str(keyword), schema[keyword], types)
                if reason:
                    report.relax(path, str(keyword), reason, always=reason is UNKNOWN)
        if "type" in schema and declared_types(schema) is None:
            report.malformed(path, "type", f"one or a list of {', '.join(sorted(ALL_TYPES))}")
        if "enum" in schema and not isinstance(schema["enum"], list):
            report.malformed(path, "enum", "a list")

    def _both(self, one: list[Branch], other: list[Branch], path: str, keyword: str) -> list[Branch]:
        """Every pair of alternatives together."""
        if len(one) * len(other) > max(_MOST, len(one), len(other)):
            self._report.relax(path, keyword, f"the combination has more than {_MOST} alternatives")
            return one
        if other == [()]:
            return one
        return [left + right for left in one for right in other]

    def _options(self, placed: Placed, keyword: str, followed: frozenset[str], depth: int) -> Iterable[list[Branch]]:
        """What a combinator stands for: lists of alternatives, one from each holds."""
        schema, path = placed
        listed = schema[keyword]
        if not isinstance(listed, list) or not listed:
            self._report.malformed(path, keyword, "a list of schemas")
            return []
        if keyword != "allOf":
            followed |= {_OPTION}
        parts = [
            self._expand(Placed(option, f"{path}.{keyword}[{index}]"), followed, depth)
            for index, option in enumerate(listed)
        ]
        if keyword == "allOf":
            return parts
        if keyword == "oneOf" and not _exclusive(parts):
            self._report.relax(path, keyword, "options may hold together: one of them at least holds, not just one")
        return [list({tuple(id(each.schema) for each in b): b for part in parts for b in part}.values())]

    # -- references ----------------------------------------------------------------------------------------------------

    def _reference(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        schema, path = placed
        reference = schema["$ref"]
        target = self.resolve(reference) if isinstance(reference, str) else None
        if target is None:
            self._report.relax(path, "$ref", f"{str(reference)[:80]!r} is not found in this document")
            return [()]
        if reference in followed and _OPTION in followed:
            return []  # what the other options say is all there is
        if reference in followed:
            self._report.relax(path, "$ref", "the reference leads back to itself and says nothing")
            return [()]
        return self._expand(target, followed | {reference}, depth + 1)

    def resolve(self, reference: str) -> Placed | None:
        """The schema that a reference names: by a pointer or an anchor, in this document or in one embedded in it."""
        address, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._named.get(f"#{fragment}")
        root = self._named.get(address) if address else Placed(self._document, "$")
        return None if root is None else _pointed(root, fragment)

    @cached_property
    def _named(self) -> dict[str, Placed]:
        """The schemas of the document by `$id` and, behind a `#`, by `$anchor`."""
        found: dict[str, Placed] = {}
        seen: set[int] = set()
        todo = [Placed(self._document, "$")]
        for placed in todo:
            place, path = placed
            if id(place) in seen or not isinstance(place, (Mapping, list)):
                continue
            seen.add(id(place))
            if isinstance(place, list):
                todo += [Placed(below, f"{path}[{index}]") for index, below in enumerate(place)]
                continue
            todo += [Placed(below, path + step(str(key))) for key, below in place.items()]
            for keyword, mark in (("$id", ""), ("id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                if isinstance(place.get(keyword), str):
                    name = mark + place[keyword]
                    found.setdefault(name if name.startswith("#") else name.rstrip("#"), placed)
        return found

    def direct(self, placed: Placed) -> Placed:
        """The end of a chain of bare references: so that equal places are one place."""
        seen = set()
        while isinstance(placed.schema, Mapping) and placed.schema.keys() == {"$ref"}:
            reference = placed.schema["$ref"]
            if not isinstance(reference, str) or reference in seen:
                return placed
            seen.add(reference)
            target = self.resolve(reference)
            if target is None:
                return placed
            self._report.read(placed)
            placed = target
        return placed


def _pointed(root: Placed, fragment: str) -> Placed | None:
    """Where a JSON pointer leads."""
    target, path = root
    for part in fragment.split("/")[1:] if fragment.startswith("/") else ():
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target, path = target[name], path + step(name)
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target, path = target[int(name)], f"{path}[{int(name)}]"
        else:
            return None
    return Placed(target, path)


# -- oneOf -------------------------------------------------------------------------------------------------------------


def _exclusive(options: Sequence[list[Branch]]) -> bool:
    """Whether no value satisfies two of the options, as far as types and listed values tell."""
    return all(
        _apart(left, right) for one, other in combinations(options, 2) for left in one for right in other
    )


def _apart(left: Branch, right: Branch) -> bool:
    one, other = _values(left), _values(right)
    if one is not None and other is not None:
        return one.isdisjoint(other)
    shared = _types(left) & _types(right)
    return not shared or (shared == {"object"} and _told_apart_by_member(left, right))


def _types(branch: Branch) -> frozenset[str]:
    types = admitted(branch)
    for schema, _ in branch:
        values = listed_values(schema)
        if values is not None:
            listed: frozenset[str] = frozenset().union(*(type_of(value) for value in values))
            types &= listed | ({"integer"} if "number" in listed else frozenset())
    return types


def _values(branch: Branch) -> frozenset[Any] | None:
    for schema, _ in branch:
        values = listed_values(schema)
        if values is not None:
            return frozenset(canonical(value) for value in values)
    return None


def _told_apart_by_member(left: Branch, right: Branch) -> bool:
    one, other = _discriminators(left), _discriminators(right)
    return any(one[name].isdisjoint(other[name]) for name in one.keys() & other.keys())


def _discriminators(branch: Branch) -> dict[str, frozenset[Any]]:
    """Required members of which the values are listed."""
    required = {
        name for schema, _ in branch for name in _list(schema.get("required")) if isinstance(name, str)
    }
    found = {}
    for schema, path in branch:
        properties = schema.get("properties")
        for name in required & properties.keys() if isinstance(properties, Mapping) else ():
            child = properties[name]
            values = _values((Placed(child, path),)) if isinstance(child, Mapping) else None
            if values is not None:
                found[name] = values
    return found


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
