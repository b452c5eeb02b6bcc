"""Whether one given value satisfies a schema: to keep the listed values that the other keywords admit.

In: a value and a placed schema. Out: yes or no. Keywords that are reported as relaxed are passed over here too.
Cost: linear in the value; listed values are few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from ..automaton.dfa import Dfa
from ..automaton.regex import RegexError, pattern_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import bounds_of, greatest, least, quantity
from .branches import Resolver
from .formats import FORMATS
from .keywords import ANNOTATIONS, COMBINING, MAPPING, Own
from .report import Placed, Report
from .stated import admitted, canonical, listed_values, type_of

__all__ = ["Checker"]

_SIMPLE = ANNOTATIONS | {"type", "enum", "const", "nullable"}
_SIMPLE_TOO = _SIMPLE | {Own.EXCLUDED}


class Checker:
    """Checks values against the schemas of one document. `formats`: whether `format` restricts."""

    def __init__(self, resolver: Resolver, report: Report, limits: Limits, *, formats: bool = True) -> None:
        self._resolver, self._report, self._limits, self._formats = resolver, report, limits, formats
        self._listed: dict[int, frozenset[Any]] = {}  # identity of a schema -> its listed values
        self._excluded: dict[int, tuple[Any, frozenset[Any]]] = {}  # the same of those that it excludes

    def satisfies(self, value: Any, placed: Placed) -> bool:
        """Whether a schema whose combinators are followed admits the value, as far as this package enforces it."""
        schema = placed.schema
        if not _has_type(value, admitted((placed,))):
            return False
        if listed_values(schema) is not None and not self._is_listed(value, schema):
            return False
        if schema.keys() <= _SIMPLE:
            return True
        if Own.EXCLUDED in schema and self._is_excluded(value, schema):
            return False
        if schema.keys() <= _SIMPLE_TOO:
            return True
        if isinstance(value, str):
            return self._text(value, placed)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value, placed)
        if isinstance(value, list):
            return self._list(value, placed)
        return self._object(value, placed) if isinstance(value, MAPPING) else True

    def _is_listed(self, value: Any, schema: Mapping[Any, Any]) -> bool:
        listed = self._listed.get(id(schema))
        if listed is None:
            listed = self._listed[id(schema)] = frozenset(map(canonical, listed_values(schema) or ()))
        return canonical(value) in listed

    def _is_excluded(self, value: Any, schema: Mapping[Any, Any]) -> bool:
        excluded = self._excluded.get(id(schema))
        if excluded is None:
            excluded = self._excluded[id(schema)] = schema, frozenset(map(canonical, schema[Own.EXCLUDED]))
        return canonical(value) in excluded[1]

    def holds(self, value: Any, placed: Placed) -> bool:
        """Whether a schema with combinators admits the value."""
        schema = self._resolver.references.readable(placed).schema
        if isinstance(schema, bool) or not isinstance(schema, MAPPING):
            return schema is not False
        if COMBINING.isdisjoint(schema):
            return self.satisfies(value, placed)
        branches = self._resolver.unsettled([placed])
        return any(all(self.satisfies(value, each) for each in branch) for branch in branches)

    # -- texts and numbers ---------------------------------------------------------------------------------------------

    def _text(self, value: str, placed: Placed) -> bool:
        schema = placed.schema
        high = least((placed,), "maxLength", self._report)
        if len(value) < greatest((placed,), "minLength", self._report) or (high is not None and len(value) > high):
            return False
        data = value.encode("utf-8", "replace")
        for dfa, wanted in self._patterns(placed):
            if dfa.matches(data) is not wanted:
                return False
        form = FORMATS.get(schema.get("format")) if isinstance(schema.get("format"), str) else None
        if form is None or not self._formats:
            return True
        return self._of(form.pattern, whole=True).matches(data) and (form.most is None or len(value) <= form.most)

    def _patterns(self, placed: Placed) -> Iterator[tuple[Dfa, bool]]:
        for keyword, wanted in (("pattern", True), (Own.UNLIKE, False)):
            pattern = placed.schema.get(keyword)
            if not isinstance(pattern, str):
                continue
            try:
                yield self._of(pattern), wanted
            except (RegexError, LimitExceeded) as error:
                self._report.relax(placed.path, "pattern", str(error))
        name = placed.schema.get(Own.UNFIT)
        if name is not None:
            yield self._of(FORMATS[name].pattern, whole=True), False

    def _of(self, pattern: str, *, whole: bool = False) -> Dfa:
        return pattern_dfa(pattern, search=not whole, limits=self._limits)

    def _number(self, value: float, placed: Placed) -> bool:
        exact = quantity(value)
        if exact is None or (Own.FRACTION in placed.schema and exact == exact.to_integral_value()):
            return False
        low, low_open, high, high_open = bounds_of((placed,), self._report)
        if low is not None and (exact < low or (low_open and exact == low)):
            return False
        if high is not None and (exact > high or (high_open and exact == high)):
            return False
        step = quantity(placed.schema.get("multipleOf"))
        return step is None or step <= 0 or (Fraction(exact) / Fraction(step)).denominator == 1

    # -- arrays --------------------------------------------------------------------------------------------------------

    def _list(self, value: list[Any], placed: Placed) -> bool:
        schema, path = placed
        high = least((placed,), "maxItems", self._report)
        if len(value) < greatest((placed,), "minItems", self._report) or (high is not None and len(value) > high):
            return False
        if schema.get("uniqueItems") is True and len(set(map(canonical, value))) < len(value):
            return False
        if not self._contains(value, placed):
            return False
        items = schema.get("items", True)
        leading = schema.get("prefixItems", items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        leading = leading if isinstance(leading, list) else []
        return all(
            self.holds(item, Placed(leading[i] if i < len(leading) else rest, f"{path}.items"))
            for i, item in enumerate(value)
        )

    def _contains(self, value: list[Any], placed: Placed) -> bool:
        if "contains" not in placed.schema:
            return True
        wanted = Placed(placed.schema["contains"], f"{placed.path}.contains")
        count = sum(self.holds(item, wanted) for item in value)
        low = greatest((placed,), "minContains", self._report) if "minContains" in placed.schema else 1
        high = least((placed,), "maxContains", self._report)
        return low <= count and (high is None or count <= high)

    # -- objects -------------------------------------------------------------------------------------------------------

    def _object(self, value: Mapping[str, Any], placed: Placed) -> bool:
        schema, path = placed
        required = schema.get("required")
        if isinstance(required, list) and not all(name in value for name in required):
            return False
        high = least((placed,), "maxProperties", self._report)
        if len(value) < greatest((placed,), "minProperties", self._report) or (high is not None and len(value) > high):
            return False
        for name, needed in needs_of(schema):
            if name in value and not all(each in value for each in needed):
                return False
        if Own.BEYOND in schema:
            known, other = schema[Own.BEYOND]
            if not any(self.holds(item, Placed(other, path)) for name, item in value.items() if name not in known):
                return False
        names = Placed(schema.get("propertyNames", True), f"{path}.propertyNames")
        return all(
            self.holds(name, names) and all(self.holds(item, each) for each in self._member(name, placed))
            for name, item in value.items()
        )

    def _member(self, name: str, placed: Placed) -> Iterator[Placed]:
        schema, path = placed
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        found = False
        if isinstance(properties, MAPPING) and name in properties:
            found = True
            yield Placed(properties[name], f"{path}.properties")
        for pattern, child in patterns.items() if isinstance(patterns, MAPPING) else ():
            try:
                matches = self._of(pattern).matches(name.encode("utf-8", "replace"))
            except (RegexError, LimitExceeded) as error:
                self._report.relax(path, "patternProperties", str(error))
                return
            if matches:
                found = True
                yield Placed(child, f"{path}.patternProperties")
        if not found:
            yield Placed(schema.get("additionalProperties", True), f"{path}.additionalProperties")


def needs_of(schema: Mapping[Any, Any]) -> Iterator[tuple[str, list[str]]]:
    """Members that ask for others, and which: by `dependentRequired`, or by the lists of `dependencies`."""
    for keyword in ("dependentRequired", "dependencies"):
        listed = schema.get(keyword)
        for name, needed in listed.items() if isinstance(listed, MAPPING) else ():
            if isinstance(name, str) and isinstance(needed, list):
                yield name, [each for each in needed if isinstance(each, str)]


def _has_type(value: Any, types: frozenset[str]) -> bool:
    """A number without a fraction is an integer, however it is written."""
    if isinstance(value, float):
        return ("integer" if value.is_integer() else "number") in types
    return not type_of(value).isdisjoint(types)
