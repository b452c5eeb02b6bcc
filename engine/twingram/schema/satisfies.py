"""Whether one given value satisfies a schema: to keep the listed values that the other keywords admit.

In: a value and a placed schema. Out: yes or no. Keywords that are reported as relaxed for a schema with combinators or
conditions are passed over here too.
Cost: linear in the value; listed values are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..automaton.regex import RegexError, pattern_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .bounds import bounds_of, greatest, least, quantity
from .branches import Resolver
from .keywords import ANNOTATIONS, COMBINING
from .report import Placed, Report
from .stated import admitted, canonical, listed_values, type_of

__all__ = ["Checker"]

_SIMPLE = ANNOTATIONS | {"type", "enum", "const", "nullable"}


class Checker:
    """Checks values against the schemas of one document."""

    def __init__(self, resolver: Resolver, report: Report, limits: Limits) -> None:
        self._resolver, self._report, self._limits = resolver, report, limits
        self._listed: dict[int, frozenset[Any]] = {}  # identity of a schema -> its listed values

    def satisfies(self, value: Any, placed: Placed) -> bool:
        """Whether a schema whose combinators are followed admits the value, as far as this package enforces it."""
        schema = placed.schema
        if not _has_type(value, admitted((placed,))):
            return False
        values = listed_values(schema)
        if values is not None:
            listed = self._listed.get(id(schema))
            if listed is None:
                listed = self._listed[id(schema)] = frozenset(map(canonical, values))
            if canonical(value) not in listed:
                return False
        if schema.keys() <= _SIMPLE:
            return True
        if isinstance(value, str):
            return self._text(value, placed)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value, placed)
        if isinstance(value, list):
            return self._list(value, placed)
        return self._object(value, placed) if isinstance(value, Mapping) else True

    def holds(self, value: Any, placed: Placed) -> bool:
        """Whether a schema with combinators admits the value."""
        schema = placed.schema
        if isinstance(schema, bool) or not isinstance(schema, Mapping):
            return schema is not False
        if COMBINING.isdisjoint(schema):
            return self.satisfies(value, placed)
        branches = self._resolver.branches([placed])
        return any(all(self.satisfies(value, each) for each in branch) for branch in branches)

    def _text(self, value: str, placed: Placed) -> bool:
        high = least((placed,), "maxLength", self._report)
        if len(value) < greatest((placed,), "minLength", self._report) or (high is not None and len(value) > high):
            return False
        pattern = placed.schema.get("pattern")
        if not isinstance(pattern, str):
            return True
        try:
            return pattern_dfa(pattern, limits=self._limits).matches(value.encode("utf-8", "replace"))
        except (RegexError, LimitExceeded) as error:
            self._report.relax(placed.path, "pattern", str(error))
            return True

    def _number(self, value: float, placed: Placed) -> bool:
        exact = quantity(value)
        if exact is None:
            return False
        low, low_open, high, high_open = bounds_of((placed,), self._report)
        if low is not None and (exact < low or (low_open and exact == low)):
            return False
        if high is not None and (exact > high or (high_open and exact == high)):
            return False
        step = quantity(placed.schema.get("multipleOf"))
        return step is None or step <= 0 or (Fraction(exact) / Fraction(step)).denominator == 1

    def _list(self, value: list[Any], placed: Placed) -> bool:
        schema, path = placed
        high = least((placed,), "maxItems", self._report)
        if len(value) < greatest((placed,), "minItems", self._report) or (high is not None and len(value) > high):
            return False
        items = schema.get("items", True)
        leading = schema.get("prefixItems", items if isinstance(items, list) else [])
        rest = schema.get("additionalItems", True) if isinstance(items, list) else items
        leading = leading if isinstance(leading, list) else []
        return all(
            self.holds(item, Placed(leading[i] if i < len(leading) else rest, f"{path}.items"))
            for i, item in enumerate(value)
        )

    def _object(self, value: Mapping[str, Any], placed: Placed) -> bool:
        schema, path = placed
        required = schema.get("required")
        if isinstance(required, list) and not all(name in value for name in required):
            return False
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        others = schema.get("additionalProperties", True) if "patternProperties" not in schema else True
        return all(
            self.holds(item, Placed(properties.get(name, others), f"{path}.properties"))
            for name, item in value.items()
        )


def _has_type(value: Any, types: frozenset[str]) -> bool:
    """A number without a fraction is an integer, however it is written."""
    if isinstance(value, float):
        return ("integer" if value.is_integer() else "number") in types
    return not type_of(value).isdisjoint(types)
