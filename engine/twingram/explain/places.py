"""The places of a schema that speak of a value.

In: a schema and the way to a value, as keys and item numbers. Out: the schemas that apply there, with their JSON paths
as reports write them. Options of `anyOf` and `oneOf` are all given: which of them holds may still be open.
Invariant: each place once; what cannot be followed (a reference to elsewhere) is left out.
Cost: the schemas that meet on the way.

Source: JSON Schema 2020-12 core, section 10; RFC 6901 for pointers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from ..schema.report import Placed, step

__all__ = ["places"]

_MOST = 64  # places that are looked at side by side


def places(schema: Any, steps: Sequence[str | int]) -> list[Placed]:
    """The schemas that apply to the value that `steps` lead to."""
    found = _with_parts([Placed(schema, "$")], schema)
    for each in steps:
        found = _with_parts([inner for placed in found for inner in _below(placed, each)], schema)
    return [placed for placed in found if isinstance(placed.schema, Mapping)]


def _with_parts(found: list[Placed], document: Any) -> list[Placed]:
    """These and what their references and combinators lead to."""
    out: dict[str, Placed] = {}
    todo = list(reversed(found))
    while todo and len(out) < _MOST:
        placed = todo.pop()
        if placed.path in out:
            continue
        out[placed.path] = placed
        todo += reversed(list(_parts(placed, document)))
    return list(out.values())


def _parts(placed: Placed, document: Any) -> Iterator[Placed]:
    schema, path = placed
    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = _pointed(document, reference)
        if target is not None:
            yield target
    for keyword in ("allOf", "anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, list):
            for number, option in enumerate(options):
                yield Placed(option, f"{path}.{keyword}[{number}]")


def _pointed(document: Any, reference: str) -> Placed | None:
    if reference != "#" and not reference.startswith("#/"):
        return None
    target, path = document, "$"
    for part in unquote(reference).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target, path = target[name], path + step(name)
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target, path = target[int(name)], f"{path}[{int(name)}]"
        else:
            return None
    return Placed(target, path)


def _below(placed: Placed, key: str | int) -> Iterator[Placed]:
    return _member(placed, key) if isinstance(key, str) else _item(placed, key)


def _member(placed: Placed, key: str) -> Iterator[Placed]:
    schema, path = placed
    if not isinstance(schema, Mapping):
        return
    declared, known = schema.get("properties"), False
    if isinstance(declared, Mapping) and key in declared:
        known = True
        yield Placed(declared[key], f"{path}.properties{step(key)}")
    patterns = schema.get("patternProperties")
    for pattern, inner in patterns.items() if isinstance(patterns, Mapping) else ():
        if _matches(pattern, key):
            known = True
            yield Placed(inner, f"{path}.patternProperties{step(pattern)}")
    if not known and isinstance(schema.get("additionalProperties"), Mapping):
        yield Placed(schema["additionalProperties"], f"{path}.additionalProperties")


def _matches(pattern: object, key: str) -> bool:
    try:
        return isinstance(pattern, str) and re.search(pattern, key) is not None
    except re.error:
        return False


def _item(placed: Placed, index: int) -> Iterator[Placed]:
    schema, path = placed
    if not isinstance(schema, Mapping):
        return
    for keyword in ("prefixItems", "items"):
        listed = schema.get(keyword)
        if isinstance(listed, list) and index < len(listed):
            yield Placed(listed[index], f"{path}.{keyword}[{index}]")
            return
    for keyword in ("items", "additionalItems"):
        if isinstance(schema.get(keyword), Mapping):
            yield Placed(schema[keyword], f"{path}.{keyword}")
            return
