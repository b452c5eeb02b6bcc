"""References: the schema that a `$ref` names.

In: a document, a reference. Out: the schema and the JSON path to it, None if it is not in the document.

Pointers, anchors and embedded identifiers are resolved by `referencing`, each reference against the identifier of the
schema that it stands in. A dynamic reference leads where the resources on the way to it say: a schema that is entered
from elsewhere than where it stands is copied, once for each set of resources that can make a difference. The paths come
from one walk over the document, made when they are first asked for.
Cost: a pointer without identifiers in the way is followed at once; else linear in the document, once.

Source: JSON Schema 2020-12 core, section 8.2; RFC 6901 for pointers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any, TypeAlias
from urllib.parse import unquote, urljoin

from referencing import Registry, Specification
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from .keywords import MAPPING, Derived
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
_RECURSIVE = ""  # the name of all anchors of `$recursiveRef`
_LITERAL = frozenset({"enum", "const", "default", "examples", "example"})  # below them nothing is a schema


@lru_cache(maxsize=64)
def _draft(said: str) -> tuple[Specification[Any], frozenset[str]]:
    """The draft that `$schema` names, and the keywords that it does not know."""
    draft = next((draft for name, draft in _DRAFTS.items() if name in said), DRAFT202012)
    later = (words for other, words in _SINCE if _ORDER.index(other) > _ORDER.index(draft))
    return draft, frozenset().union(*later)

Scope: TypeAlias = "tuple[str, ...]"  # identifiers of resources, outermost first


class References:
    """The references of one document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        said = document.get("$schema") if isinstance(document, MAPPING) else None
        self._draft, self.foreign = _draft(said if isinstance(said, str) else "")  # and the keywords that came later
        self.alone = self._draft in (DRAFT4, DRAFT6, DRAFT7)  # what stands beside `$ref` counts for nothing
        self._origins: dict[int, int] = {}  # identity of a schema made here -> that of the one it was made of
        self._scopes: dict[int, Scope] = {}  # identity of a copy -> the scope in which it was entered
        self._copies: dict[tuple[int, Scope], dict[Any, Any]] = {}
        self._readable: dict[int, tuple[Any, Any]] = {}  # identity of a schema -> it, and what its draft reads of it

    def readable(self, placed: Placed) -> Placed:
        """The schema without the keywords that its draft does not know."""
        schema = placed.schema
        if not self.foreign or not isinstance(schema, MAPPING) or self.foreign.isdisjoint(schema):
            return placed
        if isinstance(schema, Derived):
            return placed
        if id(schema) not in self._readable:
            left = {keyword: value for keyword, value in schema.items() if keyword not in self.foreign}
            self._readable[id(schema)] = (schema, left)
            self._origins[id(left)] = self._original(schema)
            if id(schema) in self._scopes:
                self._scopes[id(left)] = self._scopes[id(schema)]
        return Placed(self._readable[id(schema)][1], placed.path)

    def resolve(self, placed: Placed, keyword: str = "$ref") -> Placed | None:
        """The schema that a reference in `placed` names."""
        reference = placed.schema[keyword]
        if not isinstance(reference, str):
            return None
        if keyword != "$ref":
            return self._dynamic(placed, keyword, reference)
        if reference.startswith("#/") or reference == "#":
            found = _pointed(Placed(self._document, "$"), unquote(reference[1:]))
            if found is not None and not self._identified:
                return found
        target = self._looked_up(placed, reference)
        return None if target is None else self._entered(target, self._scope_of(placed.schema))

    def _dynamic(self, placed: Placed, keyword: str, reference: str) -> Placed | None:
        """A reference that is overruled by the outermost resource, on the way here, that has an anchor of its name."""
        initial = self._looked_up(placed, reference)
        if initial is None or not isinstance(initial.schema, MAPPING):
            return initial
        name = _RECURSIVE if keyword == "$recursiveRef" else reference.rpartition("#")[2]
        scope = self._scope_of(placed.schema)
        if name in _anchors(initial.schema):
            owner = next((base for base in scope if name in self._tour.anchors.get(base, ())), None)
            if owner is not None:
                initial = self._tour.anchors[owner][name]
        return self._entered(initial, scope)

    def _looked_up(self, placed: Placed, reference: str) -> Placed | None:
        if not isinstance(self._document, MAPPING):
            return None
        base = self._tour.bases.get(self._original(placed.schema), "")
        try:
            found = self._registry.resolver(base).lookup(reference).contents
        except (Unresolvable, ValueError, AttributeError, TypeError):  # the latter two: what lies about is no schema
            return None
        return Placed(found, self._tour.paths.get(id(found), f"$[{reference!r}]"))

    def _original(self, schema: Any) -> int:
        """The identity of the schema in the document that this one is, or was made of."""
        return self._origins.get(id(schema), id(schema))

    # -- dynamic scopes: the resources on the way, as far as their anchors can matter ----------------------------------

    def _scope_of(self, schema: Any) -> Scope:
        found = self._scopes.get(id(schema))
        return self._tour.scopes.get(self._original(schema), ()) if found is None else found

    def _entered(self, target: Placed, scope: Scope) -> Placed:
        """A schema that is entered from a scope: itself, or a copy of it that remembers the scope."""
        if not isinstance(target.schema, MAPPING):
            return target
        scope = self._tour.extended(scope, self._tour.bases.get(id(target.schema), ""))
        if scope == self._tour.scopes.get(id(target.schema), ()):
            return target
        key = (id(target.schema), scope)
        if key not in self._copies:
            self._copies[key] = self._copied(target.schema, scope)
        return Placed(self._copies[key], target.path)

    def _copied(self, schema: Mapping[Any, Any], scope: Scope) -> dict[Any, Any]:
        todo: list[tuple[Mapping[Any, Any], dict[Any, Any], Scope]] = []

        def part(value: Any, scope: Scope) -> Any:
            if isinstance(value, list):
                return [part(each, scope) for each in value]
            if not isinstance(value, MAPPING):
                return value
            made: dict[Any, Any] = {}
            todo.append((value, made, self._tour.extended(scope, self._tour.bases.get(id(value), ""))))
            return made

        root: dict[Any, Any] = part(schema, scope)
        for source, made, inner in todo:  # grows
            self._origins[id(made)], self._scopes[id(made)] = id(source), inner
            made.update((key, value if key in _LITERAL else part(value, inner)) for key, value in source.items())
        return root

    @cached_property
    def _registry(self) -> Registry[Any]:
        resource = self._draft.create_resource(self._document)
        registry: Registry[Any] = Registry().with_resource("", resource)
        own = resource.id()
        return registry.with_resource(own, resource).crawl() if own else registry.crawl()

    @cached_property
    def _tour(self) -> _Tour:
        return _Tour(self._document, "id" if self._draft is DRAFT4 else "$id")

    @cached_property
    def _identified(self) -> bool:
        """Whether schemas are embedded that bear identifiers of their own."""
        return len(set(self._tour.bases.values())) > 1


class _Tour:
    """One walk over a document: for each schema, by its identity, the identifier of its resource, its path, and the
    scope that it has where it stands; for each resource its dynamic anchors."""

    def __init__(self, document: Any, identifier: str) -> None:
        self.bases: dict[int, str] = {}
        self.paths: dict[int, str] = {}
        self.scopes: dict[int, Scope] = {}
        self.anchors: dict[str, dict[str, Placed]] = {}
        chains: dict[int, tuple[str, ...]] = {}
        todo: list[tuple[Any, str, tuple[str, ...]]] = [(document, "$", ("",))]
        for place, path, chain in todo:  # grows
            if id(place) in self.paths or not isinstance(place, (dict, list, Mapping)):
                continue
            self.paths[id(place)] = path
            if isinstance(place, list):
                todo += [(below, f"{path}[{index}]", chain) for index, below in enumerate(place)]
                continue
            name = place.get(identifier)
            if isinstance(name, str) and not name.startswith("#"):
                chain = (*chain, urljoin(chain[-1], name).rstrip("#"))
            self.bases[id(place)], chains[id(place)] = chain[-1], chain
            for anchor in _anchors(place):
                self.anchors.setdefault(chain[-1], {}).setdefault(anchor, Placed(place, path))
            todo += [(below, path + step(str(key)), chain) for key, below in place.items() if key not in _LITERAL]
        for key, chain in chains.items() if len(self.anchors) > 1 else ():
            scope: Scope = ()
            for base in chain:
                scope = self.extended(scope, base)
            self.scopes[key] = scope

    def extended(self, scope: Scope, base: str) -> Scope:
        """The scope once a resource is entered: it counts if it has an anchor that no resource further out has."""
        mine = self.anchors.get(base)
        if mine is None or len(self.anchors) < 2:
            return scope
        taken = {name for each in scope for name in self.anchors[each]}
        return scope if mine.keys() <= taken else (*scope, base)


def _anchors(schema: Mapping[Any, Any]) -> list[str]:
    """The names under which dynamic references may find a schema."""
    name = schema.get("$dynamicAnchor")
    found = [name] if isinstance(name, str) else []
    return [*found, _RECURSIVE] if schema.get("$recursiveAnchor") is True else found


def _pointed(root: Placed, fragment: str) -> Placed | None:
    """Where a JSON pointer leads."""
    target, path = root
    for part in fragment.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(target, MAPPING) and name in target:
            target, path = target[name], path + step(name)
        elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
            target, path = target[int(name)], f"{path}[{int(name)}]"
        else:
            return None
    return Placed(target, path)
