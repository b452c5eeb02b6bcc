"""References: the schema that a `$ref` names.

In: a document, a reference. Out: the schema and the JSON path to it, None if it is not in the document.

Pointers, anchors and embedded identifiers are resolved by `referencing`, each reference against the identifier of the
schema that it stands in. The paths come from one walk over the document, made when they are first asked for.
Cost: a pointer without identifiers in the way is followed at once; else linear in the document, once.

Source: JSON Schema 2020-12 core, section 8.2; RFC 6901 for pointers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import unquote, urljoin

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from .keywords import Derived
from .report import Placed, step

__all__ = ["References"]

_DRAFTS = {"draft-03": DRAFT4, "draft-04": DRAFT4, "draft-06": DRAFT6, "draft-07": DRAFT7, "2019-09": DRAFT201909}
_ORDER = (DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012)
_SINCE = (
    (DRAFT6, frozenset({"const", "contains", "propertyNames"})),
    (DRAFT7, frozenset({"if", "then", "else"})),
    (DRAFT201909, frozenset({
        "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "minContains",
        "maxContains", "$recursiveRef",
    })),
    (DRAFT202012, frozenset({"prefixItems", "$dynamicRef"})),
)  # fmt: skip
_LITERAL = frozenset({"enum", "const", "default", "examples", "example"})  # below them nothing is a schema


@lru_cache(maxsize=64)
def _draft(said: str) -> tuple[Specification[Any], frozenset[str]]:
    """The draft that `$schema` names, and the keywords that it does not know."""
    draft = next((draft for name, draft in _DRAFTS.items() if name in said), DRAFT202012)
    later = (words for other, words in _SINCE if _ORDER.index(other) > _ORDER.index(draft))
    return draft, frozenset().union(*later)


class References:
    """The references of one document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        said = document.get("$schema") if isinstance(document, Mapping) else None
        self._draft, self.foreign = _draft(said if isinstance(said, str) else "")  # and the keywords that came later
        self.alone = self._draft in (DRAFT4, DRAFT6, DRAFT7)  # what stands beside `$ref` counts for nothing
        self._readable: dict[int, tuple[Any, Any]] = {}  # identity of a schema -> it, and what its draft reads of it

    def readable(self, placed: Placed) -> Placed:
        """The schema without the keywords that its draft does not know."""
        schema = placed.schema
        if not self.foreign or not isinstance(schema, Mapping) or self.foreign.isdisjoint(schema):
            return placed
        if isinstance(schema, Derived):
            return placed
        if id(schema) not in self._readable:
            left = {keyword: value for keyword, value in schema.items() if keyword not in self.foreign}
            self._readable[id(schema)] = (schema, left)
        return Placed(self._readable[id(schema)][1], placed.path)

    def resolve(self, placed: Placed, keyword: str = "$ref") -> Placed | None:
        """The schema that a reference in `placed` names."""
        reference = placed.schema[keyword]
        if not isinstance(reference, str):
            return None
        if keyword != "$ref":
            return self._dynamic(placed, reference)
        if reference.startswith("#/") or reference == "#":
            found = _pointed(Placed(self._document, "$"), unquote(reference[1:]))
            if found is not None and not self._identified:
                return found
        return self._looked_up(placed, reference)

    def _dynamic(self, placed: Placed, reference: str) -> Placed | None:
        """A reference that may be overruled by whoever refers to the schema: followed if nobody can overrule it."""
        name = reference.rpartition("#")[2]
        if self._dynamic_anchors.get(name, 0) > 1 or self._recursive_anchors > 1:
            return None
        return self._looked_up(placed, reference)

    def _looked_up(self, placed: Placed, reference: str) -> Placed | None:
        if not isinstance(self._document, Mapping):
            return None
        base = self._bases.get(id(placed.schema), "")
        try:
            found = self._registry.resolver(base).lookup(reference).contents
        except (Unresolvable, ValueError, AttributeError, TypeError):  # the latter two: what lies about is no schema
            return None
        return Placed(found, self._paths.get(id(found), f"$[{reference!r}]"))

    @cached_property
    def _registry(self) -> Registry[Any]:
        resource = self._draft.create_resource(self._document)
        registry: Registry[Any] = Registry().with_resource("", resource)
        own = resource.id()
        return registry.with_resource(own, resource).crawl() if own else registry.crawl()

    # -- one walk ------------------------------------------------------------------------------------------------------

    @cached_property
    def _identified(self) -> bool:
        """Whether schemas are embedded that bear identifiers of their own."""
        return len(set(self._bases.values())) > 1

    @property
    def _bases(self) -> dict[int, str]:
        return self._walk[0]

    @property
    def _paths(self) -> dict[int, str]:
        return self._walk[1]

    @property
    def _dynamic_anchors(self) -> dict[str, int]:
        return self._walk[2]

    @property
    def _recursive_anchors(self) -> int:
        return self._walk[3]

    @cached_property
    def _walk(self) -> tuple[dict[int, str], dict[int, str], dict[str, int], int]:
        """Per schema its base and its path; how often each dynamic anchor occurs."""
        bases: dict[int, str] = {}
        paths: dict[int, str] = {}
        anchors: dict[str, int] = {}
        recursive = 0
        todo: list[tuple[Any, str, str]] = [(self._document, "$", "")]
        for place, path, base in todo:
            if id(place) in paths or not isinstance(place, (Mapping, list)):
                continue
            paths[id(place)] = path
            if isinstance(place, list):
                todo += [(below, f"{path}[{index}]", base) for index, below in enumerate(place)]
                continue
            name = place.get("id" if self._draft is DRAFT4 else "$id")
            if isinstance(name, str) and not name.startswith("#"):
                base = urljoin(base, name).rstrip("#")
            bases[id(place)] = base
            anchor = place.get("$dynamicAnchor")
            if isinstance(anchor, str):
                anchors[anchor] = anchors.get(anchor, 0) + 1
            recursive += place.get("$recursiveAnchor") is True
            todo += [(below, path + step(str(key)), base) for key, below in place.items() if key not in _LITERAL]
        return bases, paths, anchors, recursive


def _pointed(root: Placed, fragment: str) -> Placed | None:
    """Where a JSON pointer leads."""
    target, path = root
    for part in fragment.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target, path = target[name], path + step(name)
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target, path = target[int(name)], f"{path}[{int(name)}]"
        else:
            return None
    return Placed(target, path)
