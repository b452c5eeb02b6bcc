"""Combinators: schemas that are made of schemas, as a list of alternatives without any.

In: schemas that hold together, and the document that their references point into. Out: branches: alternatives, each a
tuple of schemas that hold together and whose combinators are already followed. `()` admits anything; no branch at all
means that nothing is admitted.

Conditions become alternatives: `if` A `then` B `else` C is A and B, or not A and C; a dependency is a missing member,
or the member and what it asks for; a `oneOf` whose options may hold together is one option and not the others. What a
schema excludes comes from `negation`. `unevaluated...` closes each alternative over what its schemas evaluate.
Invariant: only the place itself is resolved, not its members or items, so that recursive schemas end here. Derived
schemas are made once for each schema they come from: places are told apart by the identity of their schemas.
Cost: the product of the alternatives, at most `_MOST`; past it a combinator is dropped and reported.

Source: JSON Schema 2020-12 core, sections 8.2.3, 10.2 and 11.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations, islice, product
from typing import Any

from ..errors import LimitExceeded
from ..limits import Limits
from .apart import Apart
from .evaluated import closed_items, closed_properties
from .keywords import ANNOTATIONS, COMBINING, KNOWN, MAPPING, UNKNOWN, Derived, Own, unsupported
from .negation import Options, negated, opposite
from .references import References
from .report import Placed, Refusal, Report
from .stated import ALL_TYPES, Branch, declared_types, listed_values

__all__ = ["Resolver"]

_MOST = 256
_MOST_NESTED = 120  # combinators inside one another at one place
_MOST_PAIRS = 5000  # options of a `oneOf` that may hold together, each with each: about a hundred
_WORK = 20_000  # schemas looked at for one place
_OPTION = ""  # among the followed references: the way led through an option, which may be left out
_MOST_TOGETHER = 4  # options of an `anyOf` of which every set is tried, where it matters which ones hold
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_BARE = ANNOTATIONS | {"$ref"}
_UNEVALUATED = frozenset({"unevaluatedProperties", "unevaluatedItems"})
_SAYING_NOTHING = (ANNOTATIONS | COMBINING) - _UNEVALUATED - {"dependencies"}  # these say something to builders, too
_CONDITIONS = ("if", "dependentSchemas", "dependencies")


class Resolver:
    """Branches of the schemas of one document."""

    def __init__(self, document: Any, report: Report, limits: Limits) -> None:
        self._report, self._depth = report, limits.schema_depth
        self.references = References(document)
        self._apart = Apart(self.direct, limits)
        self.blocked: Refusal | None = None  # why the last place has no branch, if a reference is to blame
        self._work = 0
        self._together = False  # whether it matters which options of an `anyOf` hold at once
        self._unknown = False  # whether a reference was met that is not followed
        self._beside: Branch = ()  # schemas that hold together with the one at hand, whichever alternatives are taken
        self._beyond = False  # whether some opposite asks for a member that is not declared
        self._met: dict[Hashable, list[Branch]] = {}  # what was found at the place at hand
        self._directs: dict[tuple[int, str], tuple[Placed, Placed]] = {}  # where references lead
        self._made: dict[tuple[int, str], tuple[Any, Options | None]] = {}  # (schema, why) -> it, what follows from it

    def branches(self, schemas: Sequence[Placed]) -> list[Branch]:
        """The alternatives of schemas that hold together."""
        found = self.unsettled(schemas)
        return [way for branch in found for way in self._settled(branch)] if self._beyond else found

    def _settled(self, branch: Branch) -> list[Branch]:
        """A branch in which some member has to be none of the declared ones, as alternatives: which one it is."""
        asking = [placed for placed in branch if Own.BEYOND in placed.schema]
        if not asking or any(listed_values(schema) is not None for schema, _ in branch):  # each value is looked at then
            return [branch]
        rest = tuple(placed for placed in branch if Own.BEYOND not in placed.schema)
        keys = self._apart.only_keys(rest)
        found = [rest]
        for schema, path in asking:
            if keys is None:
                reason = "that some member is not declared there is asked for only where no free keys are admitted"
                self._report.relax(path, "additionalProperties", reason)
                continue
            known, other = schema[Own.BEYOND]
            ways: list[Branch] = [(Placed(self._member(schema, name, other), path),) for name in sorted(keys - known)]
            found = self._both(found, ways, path, "additionalProperties")
        return found

    def _member(self, schema: Any, name: str, other: Any) -> Any:
        """An object that has this member, and what it is; made once for each schema."""
        key = (id(schema), f"beyond {name}")
        if key not in self._made:
            self._made[key] = (schema, [Derived({"required": [name], "properties": {name: other}})])
        return (self._made[key][1] or [True])[0]

    def unsettled(self, schemas: Sequence[Placed]) -> list[Branch]:
        """The same, for values at hand and for names."""
        found: list[Branch] = [()]
        self._work, self.blocked, self._beside = 0, None, ()
        self._met.clear()
        for placed, part in zip(schemas, self._together_with(schemas, frozenset(), 0), strict=True):
            found = self._both(found, part, placed.path, "allOf")
        return found

    def _together_with(self, places: Sequence[Placed], followed: frozenset[str], depth: int) -> list[list[Branch]]:
        """The alternatives of each of several schemas that hold together."""
        before = self._beside
        found = []
        for place in places:
            others = (each for each in places if each is not place and _says(each.schema))
            self._beside = (*before, *others)
            found.append(self._expand(place, followed, depth))
        self._beside = before
        return found

    def _expand(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        schema, path = placed
        if schema is False:
            return []
        if not isinstance(schema, MAPPING):
            if schema is not True:
                self._report.malformed(path, "", "a schema: an object, true or false")
            return [()]
        if depth > min(self._depth, _MOST_NESTED):
            what = f"schemas are nested too deeply at {path[:200]}"
            raise LimitExceeded("schema_depth", self._depth, what, ceiling=_MOST_NESTED)
        self._work += 1
        if self._work > _WORK:
            self._report.relax(path, "", "too many schemas meet here")
            return [()]
        placed = self._readable(placed)
        schema = placed.schema
        alone = "$ref" in schema and self.references.alone
        self.check(self._reference_only(placed) if alone else placed)
        if COMBINING.isdisjoint(schema):
            return [(placed,)]
        if alone:
            return self._reference(placed, "$ref", followed, depth)
        key = (id(schema), path, followed, tuple(id(each.schema) for each in self._beside), self._together)
        found = self._met.get(key)  # definitions that refer to each other are met again and again
        if found is None:
            if not _UNEVALUATED.isdisjoint(schema):
                found = self._evaluating(placed, followed, depth)
            else:
                found = self._combined(placed, followed, depth)
            self._met[key] = found
        return found

    def _combined(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        schema, path = placed
        before, says = self._beside, _says(schema)
        if says:
            self._beside = (*before, placed)
        found: list[Branch] = [(placed,)] if says or isinstance(schema, Derived) else [()]
        for keyword in _REFERENCES:
            if keyword in schema:
                found = self._both(found, self._reference(placed, keyword, followed, depth), path, keyword)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if keyword in schema:
                for options in self._options(placed, keyword, followed, depth + 1):
                    found = self._both(found, options, path, keyword)
        if "not" in schema:
            found = self._both(found, self._excluded(placed, followed, depth + 1), path, "not")
        for keyword in _CONDITIONS:
            if keyword in schema:
                for row in self._follows(placed, keyword):
                    some = [self._expand(Placed(each, f"{path}.{keyword}"), followed, depth + 1) for each in row]
                    found = self._both(found, [branch for part in some for branch in part], path, keyword)
        self._beside = before
        return found

    def _readable(self, placed: Placed) -> Placed:
        """The schema without what its draft does not know, which is noted."""
        found = self.references.readable(placed)
        if found.schema is not placed.schema:
            for keyword in self.references.foreign & placed.schema.keys():
                reason = "the draft that the schema names does not have it: it restricts nothing"
                self._report.note(placed.path, keyword, reason)
        return found

    def check(self, placed: Placed) -> None:
        """Note that a schema takes part, and report the keywords that nobody knows."""
        schema, path = placed
        if isinstance(schema, Derived):
            return
        self._report.read(placed)
        if not schema.keys() <= KNOWN:
            for keyword in unsupported(schema):
                self._report.note(path, keyword, UNKNOWN)
        if "type" in schema and declared_types(schema) is None:
            self._report.malformed(path, "type", f"one or a list of {', '.join(sorted(ALL_TYPES))}")
        if "enum" in schema and not isinstance(schema["enum"], list):
            self._report.malformed(path, "enum", "a list")

    def _both(self, one: list[Branch], other: list[Branch], path: str, keyword: str) -> list[Branch]:
        """Every pair of alternatives together, those that contradict themselves left out."""
        if other == [()]:
            return one
        if len(one) == len(other) == 1:
            return [_joined(one[0], other[0])]
        found: list[Branch] = []
        gists = [(right, self._apart.gist(right)) for right in other]
        for left in one:
            mine = self._apart.gist(left)
            found += [_joined(left, right) for right, gist in gists if not self._apart.clash(mine, gist)]
            if len(found) > max(_MOST, len(one), len(other)):
                self._report.relax(path, keyword, f"the combination has more than {_MOST} alternatives")
                return one
        return found

    def _options(self, placed: Placed, keyword: str, followed: frozenset[str], depth: int) -> Iterable[list[Branch]]:
        """What a combinator stands for: lists of alternatives, one from each holds."""
        schema, path = placed
        listed = schema[keyword]
        if not isinstance(listed, list) or (not listed and keyword != "allOf"):
            self._report.malformed(path, keyword, "a list of schemas")
            return []
        if keyword != "allOf":
            followed |= {_OPTION}
        places = [Placed(option, f"{path}.{keyword}[{index}]") for index, option in enumerate(listed)]
        if keyword == "allOf":
            return self._together_with(places, followed, depth)
        parts = [self._expand(place, followed, depth) for place in places]
        if keyword == "oneOf":
            parts = self._exactly_one(placed, places, parts, followed, depth)
        elif self._together:
            parts = self._any_set(placed, parts)
        return [list({tuple(id(each.schema) for each in b): b for part in parts for b in part}.values())]

    def _any_set(self, placed: Placed, parts: list[list[Branch]]) -> list[list[Branch]]:
        """Every set of options that may hold together."""
        if len(parts) > _MOST_TOGETHER:
            self._report.narrow(placed.path, "anyOf", "only one option at a time says what is evaluated")
            return parts
        found = []
        for size in range(len(parts), 0, -1):
            for some in combinations(parts, size):
                both: list[Branch] = [()]
                for part in some:
                    both = self._both(both, part, placed.path, "anyOf")
                found.append(both)
        return found

    # -- oneOf, not, conditions ----------------------------------------------------------------------------------------

    def _exactly_one(
        self, placed: Placed, places: Sequence[Placed], parts: list[list[Branch]], followed: frozenset[str], depth: int
    ) -> list[list[Branch]]:
        """For each option its alternatives without those of the options that it does not exclude by itself."""
        found, here = list(parts), self._beside
        if self._apart.told_apart(parts, here):
            return parts
        by_text = self._apart.texts(parts, here)

        @cache
        def away(other: int) -> list[Branch] | None:
            return self._away(places[other], followed, depth)

        def exclusive(one: int, other: int) -> bool:
            pairs = product(parts[one], parts[other])
            return by_text(one, other) or all(
                self._apart.apart((*here, *left), (*here, *right)) for left, right in pairs
            )

        meet = (pair for pair in combinations(range(len(parts)), 2) if not exclusive(*pair))
        meeting = list(islice(meet, _MOST_PAIRS + 1))
        for index, other in sorted([*meeting, *((other, one) for one, other in meeting)]):
            excluded = away(other) if len(meeting) <= _MOST_PAIRS else None
            if excluded is None or len(excluded) * len(found[index]) > _MOST:
                self._report.relax(placed.path, "oneOf", "options may hold together, and are not told apart")
                return parts
            pairs = (_joined(left, right) for left in found[index] for right in excluded)
            found[index] = [pair for pair in pairs if not self._apart.contradicts(pair)]
        return found

    def _away(self, place: Placed, followed: frozenset[str], depth: int) -> list[Branch] | None:
        """What `place` does not admit, as branches; None if that cannot be said."""
        options = self._opposite(place, followed)
        if options is None:
            return None
        path = f"{place.path}.not"
        parts = [self._expand(Placed(each, path), followed | {_OPTION}, depth + 1) for each in options]
        return [branch for part in parts for branch in part]

    def _excluded(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        found = self._away(Placed(placed.schema["not"], placed.path), followed, depth)
        if found is None:
            self._report.relax(placed.path, "not", "what this schema excludes is not taken out")
            return [()]
        return found

    def _opposite(self, place: Placed, followed: frozenset[str]) -> Options | None:
        """The opposite of a schema, references followed."""
        place = self.references.readable(place)
        schema = place.schema
        key = (id(schema), "not")
        if key in self._made:
            return self._made[key][1]
        found: Options | None
        if isinstance(schema, MAPPING) and "$ref" in schema:
            name = f"not {schema['$ref']}"
            target = None if name in followed else self.references.resolve(place)
            found = None if target is None else self._opposite(target, followed | {name})
            rest = Derived({key: value for key, value in schema.items() if key != "$ref"})
            more = [] if self.references.alone else opposite(rest)
            found = None if found is None or more is None else found + more
        else:
            found = opposite(schema)
        self._beyond = self._beyond or any(isinstance(each, MAPPING) and Own.BEYOND in each for each in found or ())
        self._made[key] = (schema, found)
        return found

    def _follows(self, placed: Placed, keyword: str) -> Options:
        """What a condition stands for: lists of schemas, one from each holds."""
        key = (id(placed.schema), keyword + "+" * self._together)
        if key not in self._made:
            make = self._if if keyword == "if" else self._dependencies
            self._made[key] = (placed.schema, make(placed, keyword))
        return self._made[key][1] or []

    def _if(self, placed: Placed, _: str) -> Options:
        schema = placed.schema
        condition, then, other = schema["if"], schema.get("then", True), schema.get("else", True)
        if then is True and other is True and not self._together:
            return []
        if self._opposite(Placed(condition, placed.path), frozenset()) is None:
            self._report.relax(placed.path, "if", "what the condition excludes is not known, so `else` may always hold")
            return [[Derived({"allOf": [condition, then]}), other]]
        return [[Derived({"allOf": [condition, then]}), Derived({"allOf": [negated(condition), other]})]]

    def _dependencies(self, placed: Placed, keyword: str) -> Options:
        listed = placed.schema[keyword]
        if not isinstance(listed, MAPPING):
            self._report.malformed(placed.path, keyword, "an object")
            return []
        return [
            [Derived({"properties": {name: False}}), Derived({"allOf": [Derived({"required": [name]}), child]})]
            for name, child in listed.items()
            if isinstance(name, str) and child is not True and not isinstance(child, list)
        ]

    def _evaluating(self, placed: Placed, followed: frozenset[str], depth: int) -> list[Branch]:
        """A schema that says what is to be of all that its parts leave unevaluated."""
        before, self._together, self._unknown = self._together, True, False
        try:
            found = self._combined(placed, followed, depth)
        finally:
            self._together = before
        if self._unknown:
            for keyword in _UNEVALUATED & placed.schema.keys():
                self._report.relax(placed.path, keyword, "what a reference evaluates is not known")
            return found
        closed = []
        for branch in found:
            more: list[Placed] = []
            for keyword, close in (("unevaluatedProperties", closed_properties), ("unevaluatedItems", closed_items)):
                if placed.schema.get(keyword, True) is not True:
                    over = close(branch, placed)
                    if over is None:
                        self._report.relax(placed.path, keyword, "which items `contains` evaluates is not followed")
                    elif over:
                        more.append(Placed(self._kept(over), f"{placed.path}.{keyword}"))
            closed.append((*branch, *more))
        return closed

    def negated(self, schema: Any) -> Any:
        """The schema that admits what `schema` does not, one and the same for each schema."""
        key = (id(schema), "negated")
        if key not in self._made:
            self._made[key] = (schema, [negated(schema)])
        return (self._made[key][1] or [True])[0]

    def _kept(self, derived: Derived) -> Derived:
        """Kept alive with the resolver: the identity of a schema names its place."""
        self._made[id(derived), "kept"] = (derived, None)
        return derived

    # -- references ----------------------------------------------------------------------------------------------------

    def _reference(self, placed: Placed, keyword: str, followed: frozenset[str], depth: int) -> list[Branch]:
        schema, path = placed
        reference = str(schema[keyword])
        target = self.references.resolve(placed, keyword)
        if target is None and keyword != "$ref":
            self._report.relax(path, keyword, "who refers to this schema decides where it leads, which is not followed")
            self._unknown = True
            return [()]
        if target is None:
            if reference.startswith("#"):
                self._report.relax(path, keyword, f"{reference[:80]!r} is not found in this document")
                self._unknown = True
                return [()]
            reason = f"{reference[:200]!r} is not in this document, and nothing is fetched"
            self.blocked = Refusal(path, keyword, reason)
            return []
        name = f"{keyword} {id(target.schema)}"
        if name in followed and _OPTION in followed:
            return []  # what the other options say is all there is
        if name in followed:
            self._report.relax(path, keyword, "the reference leads back to itself and says nothing")
            return [()]
        return self._expand(target, followed | {name}, depth + 1)

    def direct(self, placed: Placed) -> Placed:
        """The end of a chain of references beside which nothing counts: so that equal places are one place."""
        if not isinstance(placed.schema, MAPPING) or "$ref" not in placed.schema:
            return self.references.readable(placed)
        key = (id(placed.schema), placed.path)
        found = self._directs.get(key)
        if found is None:
            found = self._directs[key] = placed, self._followed(placed)
        return found[1]

    def _followed(self, placed: Placed) -> Placed:
        seen = set()
        while isinstance(placed.schema, MAPPING) and "$ref" in placed.schema and self._bare(placed.schema):
            if id(placed.schema) in seen:
                return placed
            seen.add(id(placed.schema))
            target = self.references.resolve(placed)
            if target is None:
                return placed
            self._report.read(self._reference_only(placed) if self.references.alone else placed)
            placed = target
        return self.references.readable(placed)

    def _bare(self, schema: Mapping[Any, Any]) -> bool:
        return self.references.alone or schema.keys() <= _BARE

    def _reference_only(self, placed: Placed) -> Placed:
        """A reference without what stands beside it."""
        schema = placed.schema
        key = (id(schema), "$ref")
        if key not in self._made:
            self._made[key] = (schema, [{"$ref": schema["$ref"]}])
        return Placed((self._made[key][1] or [schema])[0], placed.path)


def _says(schema: Any) -> bool:
    """Whether a schema says something by itself, and not only by others."""
    return isinstance(schema, MAPPING) and not schema.keys() <= _SAYING_NOTHING


def _joined(left: Branch, right: Branch) -> Branch:
    """Both together, no schema twice: one that is referred to twice would double at each step of a chain."""
    if not left or not right:
        return left or right
    known = {id(each.schema) for each in left}
    return left + tuple(each for each in right if id(each.schema) not in known)
