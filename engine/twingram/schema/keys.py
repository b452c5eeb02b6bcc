"""Keys of objects: which are admitted, and which schemas speak of the value under a key.

In: schemas that hold together. Out: the schemas of a given key's value; and the classes of free keys: languages of keys
that do not meet, each with the schemas of its values.

`patternProperties` split the free keys: a class is the keys that match some of the patterns and none of the others, so
that several patterns may match one key. `propertyNames` narrow all of them.
Cost: a search in the product of two automata for each pattern and class, and the product itself where a pattern parts
the class; nothing where no key is free.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from ..automaton.dfa import Dfa, difference, literals, union
from ..automaton.expression import INFINITE
from ..automaton.meet import acquainted, product, sample
from ..automaton.regex import RegexError, counted_pattern, pattern_dfa
from ..errors import LimitExceeded
from ..limits import Limits
from .context import Context
from .forms import Forms
from .keywords import MAPPING
from .report import Placed, step
from .stated import Branch, admitted, listed_values
from .strings import Narrowed, narrowed_by

__all__ = ["FreeKeys", "KeyRule"]

_MOST_CLASSES = 32
_MANY = 4  # how many patterns there are where it pays to look for those that meet no other


class FreeKeys(NamedTuple):
    """A class of free keys, and the schemas of their values. `declared` are the keys that are not among them."""

    keys: Narrowed
    declared: tuple[str, ...]
    values: tuple[Placed, ...]


_Class: TypeAlias = "tuple[Narrowed, tuple[int, ...]]"  # keys, and the numbers of the patterns that they match
_Side: TypeAlias = "tuple[Dfa, int, int | None]"  # an automaton, and how many characters its keys have


def _met(keys: Narrowed, side: _Side, limits: Limits) -> bool:
    """Whether any of the keys belong to the side."""
    dfa, low, high = side
    most = keys.high if high is None else min(keys.high, high)
    return sample((*keys.dfas, dfa), max(keys.low, low), most, limits=limits) is not None


class KeyRule:
    """What schemas that hold together say of keys."""

    def __init__(self, branch: Branch, forms: Forms, rest: Context) -> None:
        self.branch, self.forms, self.rest = branch, forms, rest
        self.patterned = any("patternProperties" in schema for schema, _ in branch)
        self.named = any("propertyNames" in schema for schema, _ in branch)

    @cached_property
    def patterns(self) -> list[list[tuple[str, Placed]]]:
        """For each schema its key patterns that can be read."""
        return [list(self._patterns(placed)) for placed in self.branch]

    def _patterns(self, placed: Placed) -> Iterator[tuple[str, Placed]]:
        schema, path = placed
        listed = schema.get("patternProperties")
        if listed is not None and not isinstance(listed, MAPPING):
            self.rest.report.malformed(path, "patternProperties", "an object")
            return
        for pattern, child in (listed or {}).items():
            if not isinstance(pattern, str):
                self.rest.report.malformed(path, "patternProperties", "an object, whose names are patterns")
                continue
            try:
                pattern_dfa(pattern, limits=self.rest.limits)
            except RegexError as error:
                self.rest.report.relax(path, "patternProperties", error.construct)
            except LimitExceeded as error:
                self.rest.report.relax(path, "patternProperties", str(error))
            else:
                yield pattern, Placed(child, f"{path}.patternProperties{step(pattern)}")

    # -- declared keys -------------------------------------------------------------------------------------------------

    @cached_property
    def _speaking(self) -> list[tuple[int, Mapping[Any, Any], Placed | None, str]]:
        """The schemas that say something of values: number, declared members, what is for the others, path."""
        found = []
        for index, (schema, path) in enumerate(self.branch):
            members = schema.get("properties")
            others = schema.get("additionalProperties", True)
            if members or others is not True or "patternProperties" in schema:
                listed = members if isinstance(members, MAPPING) else {}
                rest = None if others is True else Placed(others, f"{path}.additionalProperties")
                found.append((index, listed, rest, f"{path}.properties"))
        return found

    def values_of(self, name: str) -> Iterator[Placed]:
        """The schemas of the value under this key."""
        for index, members, rest, path in self._speaking:
            found = name in members
            if found:
                yield Placed(members[name], path + step(name))
            if self.patterned and self.patterns[index]:
                text = name.encode("utf-8", "replace")
                for pattern, placed in self.patterns[index]:
                    if pattern_dfa(pattern, limits=self.rest.limits).matches(text):
                        found = True
                        yield placed
            if not found and rest is not None:
                yield rest

    def admits(self, name: str) -> bool:
        """Whether `propertyNames` admit this key."""
        if not self.named:
            return True
        return all(
            self.rest.checker.holds(name, Placed(schema["propertyNames"], f"{path}.propertyNames"))
            for schema, path in self.branch
            if "propertyNames" in schema
        )

    # -- free keys -----------------------------------------------------------------------------------------------------

    def classes(self, declared: tuple[str, ...]) -> list[FreeKeys]:
        """The classes of keys that are not declared."""
        if not self.patterned and any(schema.get("additionalProperties") is False for schema, _ in self.branch):
            return []
        named = self._named(Narrowed((self.forms.object.key.body,), 0, INFINITE))
        if not self.patterned:
            return [FreeKeys(named, declared, tuple(self._values([])))]
        flat = [(index, pattern, placed) for index, row in enumerate(self.patterns) for pattern, placed in row]
        alone, split = self._alone(named, [pattern for _, pattern, _ in flat])
        done = {number for _, matched in alone for number in matched}
        for number, (_, pattern, placed) in enumerate(flat):
            if number in done:
                continue
            ahead = [index for index, _, _ in flat[number + 1 :]]
            try:
                parts = [part for part in self._split(split, number, pattern) if not self._idle(part[1], flat, ahead)]
                if len(parts) <= _MOST_CLASSES:
                    split = [(keys.also(*side, limits=self.rest.limits), names) for keys, names, side in parts]
                    continue
                reason = "too many patterns overlap"
            except LimitExceeded as error:
                reason = str(error)
            self.rest.report.relax(placed.path, "patternProperties", reason)
        found = [each for each in (*alone, *split) if not self._idle(each[1], flat, ())]
        return [
            FreeKeys(keys, self._among(declared, keys), tuple(self._values([flat[number][::2] for number in matched])))
            for keys, matched in found
        ]

    def _idle(
        self, matched: tuple[int, ...], flat: Sequence[tuple[int, str, Placed]], ahead: Collection[int]
    ) -> bool:
        """Whether no key of a class may be written, even if more patterns match: those of the schemas `ahead`."""
        if any(flat[number][2].schema is False for number in matched):
            return True
        heard = {flat[number][0] for number in matched}.union(ahead)
        return any(
            schema.get("additionalProperties") is False and index not in heard
            for index, (schema, _) in enumerate(self.branch)
        )

    def _among(self, declared: Iterable[str], keys: Narrowed) -> tuple[str, ...]:
        """The declared keys that a class would hold."""
        spell = self.forms.object.key.spell
        fitting = ((name, spell(name)) for name in declared if keys.low <= len(name) <= keys.high)
        return tuple(
            name for name, spelt in fitting if spelt is not None and all(dfa.matches(spelt) for dfa in keys.dfas)
        )

    def _alone(self, named: Narrowed, patterns: list[str]) -> tuple[list[_Class], list[_Class]]:
        """The classes of patterns that meet none of the others, if patterns are many; and the keys outside of them."""
        key, limits = self.forms.object.key, self.rest.limits
        if len(patterns) < _MANY:
            return [], [(named, ())]
        try:
            dfas = [pattern_dfa(pattern, spelling=key.table, limits=limits) for pattern in patterns]
            pairs = acquainted(dfas)
            if pairs is None:
                return [], [(named, ())]
            alone = sorted(set(range(len(dfas))).difference(*pairs))
            rest = difference(key.body, union(*(dfas[at] for at in alone), limits=limits), limits=limits)
            sides: list[tuple[Dfa, tuple[int, ...]]] = [*((dfas[at], (at,)) for at in alone), (rest, ())]
            found = [
                (named.also(dfa, limits=limits), names) for dfa, names in sides if _met(named, (dfa, 0, None), limits)
            ]
        except LimitExceeded:
            return [], [(named, ())]
        return [each for each in found if each[1]], [each for each in found if not each[1]]

    def _split(
        self, classes: list[_Class], number: int, pattern: str
    ) -> Iterator[tuple[Narrowed, tuple[int, ...], _Side]]:
        """Each class, those of its keys that match a pattern apart from those that do not: each with what narrows it
        so. Nothing is multiplied yet: there may be too many."""
        limits = self.rest.limits
        matching, *others = self._sides(pattern)
        for keys, matched in classes:
            if not _met(keys, matching, limits):
                yield keys, matched, (keys.dfas[0], 0, None)
                continue
            for side, names in ((matching, (*matched, number)), *((other, matched) for other in others)):
                if _met(keys, side, limits):
                    yield keys, names, side

    def _sides(self, pattern: str) -> list[_Side]:
        """The keys that match, and those that do not: what counts characters is counted, not unrolled."""
        key, limits = self.forms.object.key, self.rest.limits
        found = counted_pattern(pattern, spelling=key.table, limits=limits)
        if found is None:
            yes = pattern_dfa(pattern, spelling=key.table, limits=limits)
            return [(yes, 0, None), (pattern_dfa(pattern, spelling=key.table, negate=True, limits=limits), 0, None)]
        loose, low, high = found
        sides: list[_Side] = [found, (difference(key.body, loose, limits=limits), 0, None)]
        if low:
            sides.append((loose, 0, low - 1))
        if high is not None:
            sides.append((loose, high + 1, None))
        return sides

    def _values(self, hits: list[tuple[int, Placed]]) -> Iterator[Placed]:
        """The schemas of the values of a class, given the patterns that match: (place in the branch, schema)."""
        for index, (schema, path) in enumerate(self.branch):
            own = [placed for at, placed in hits if at == index]
            yield from own
            if not own and schema.get("additionalProperties", True) is not True:
                yield Placed(schema["additionalProperties"], f"{path}.additionalProperties")

    def _named(self, found: Narrowed) -> Narrowed:
        """The keys that `propertyNames` leave."""
        for schema, path in self.branch if self.named else ():
            if schema.get("propertyNames", True) is not True:
                found = self._name_texts(Placed(schema["propertyNames"], f"{path}.propertyNames"), found)
        return found

    def _name_texts(self, placed: Placed, found: Narrowed) -> Narrowed:
        branches = [b for b in self.rest.resolver.unsettled([placed]) if "string" in admitted(b)]
        kinds = [self._name_branch(branch, found) for branch in branches]
        if len(kinds) == 1:
            return kinds[0]
        if not kinds:
            return found.also(literals(()), limits=self.rest.limits)
        if len({kind[1:] for kind in kinds}) > 1:
            reason = "names of several kinds and lengths are not told apart"
            self.rest.report.relax(placed.path, "propertyNames", reason)
            return found
        dfas = (product(kind.dfas, self.rest.limits) for kind in kinds)
        return kinds[0]._replace(dfas=(union(*dfas, limits=self.rest.limits),))

    def _name_branch(self, branch: Branch, found: Narrowed) -> Narrowed:
        key = self.forms.object.key
        for schema, _ in branch:
            values = listed_values(schema)
            if values is not None:
                spelt = (key.spell(value) for value in values if isinstance(value, str))
                found = found.also(literals(text for text in spelt if text is not None), limits=self.rest.limits)
        return narrowed_by(branch, found, key.table, self.rest)
