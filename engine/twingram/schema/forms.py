"""Forms: what the values at one kind of place are made of, and what was built from that once and for all.

In: a `Spelling`, or the `ObjectShape` of arguments. Out: a `Forms`, which gives the pieces of each type, the
expressions of types that nothing restricts, and the expression of any value at all.

Places whose values follow the same rule share one `Forms` (it hangs on the grammar's compiler), so that what does not
depend on a schema is built once for each format, not once a request.
Invariant: any value is one reference a rule, however deep it nests.
Cost: a few milliseconds, once for each rule of values.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import cached_property
from weakref import WeakValueDictionary

from ..automaton.choice import alt, maybe
from ..automaton.dfa import Dfa, difference, intersect, literals
from ..automaton.expression import INFINITE, NOTHING, Expr, repeat, seq, text
from ..automaton.kept import kept
from ..automaton.later import later
from ..automaton.meet import meet, sample
from ..automaton.members import ObjectTemplate, members
from ..automaton.notjson import not_json
from ..automaton.numbers import integer_dfa, number_dfa
from ..automaton.recursion import Definitions, reference
from ..automaton.regex import pattern_dfa
from ..grammar.spelling import ArrayShape, ObjectShape, Spelling, StringShape
from ..limits import Limits
from .readings import read_as
from .stated import Types

__all__ = ["Forms", "both", "row_of", "without_texts"]

_ESCAPED = 8  # states for a byte of a key that may be written as an escape
_OTHER_TYPES = frozenset({"null", "boolean", "integer", "number", "array", "object"})


class Forms:
    """The pieces of values at one kind of place."""

    def __init__(self, spelling: Spelling | None, shape: ObjectShape | None = None) -> None:
        self._spelling = spelling
        self._plain: dict[str, Expr] = {}  # scalar type -> its unrestricted values
        self._tails: dict[Expr, Expr] = {}  # unrestricted value of a member -> what follows the member's key
        self._free: WeakValueDictionary[Hashable, Expr] = WeakValueDictionary()  # what free keys are made of -> keys
        self._any: Expr | None = None
        if shape is not None:
            self.object = shape
        self.types: frozenset[str] = frozenset({"object"}) if spelling is None else spelling.types
        self.raw = spelling is not None and spelling.raw
        self.arguments = spelling is None

    @classmethod
    def of(cls, spelling: Spelling) -> Forms:
        """The forms of this spelling, shared with all spellings of the same rule."""
        known = spelling.compiler.kept
        found = known.get(spelling.rule)
        if not isinstance(found, Forms):
            found = known[spelling.rule] = cls(spelling)
        return found

    @property
    def spelling(self) -> Spelling:
        assert self._spelling is not None, "arguments are an object and nothing else"
        return self._spelling

    @cached_property
    def object(self) -> ObjectShape:
        return self.spelling.object

    @cached_property
    def array(self) -> ArrayShape:
        return self.spelling.array

    @cached_property
    def string(self) -> StringShape:
        return self.spelling.string

    @cached_property
    def number(self) -> tuple[Expr, Expr, Dfa]:
        return self.spelling.number

    @cached_property
    def writes_all_numbers(self) -> bool:
        """Whether the format writes every number that `numbers` makes, so that nothing is to be taken out of them: a
        product of its numbers, which count digits, with the multiples of 309 took 50 ms."""
        _, _, terminal = self.number
        return all(both(terminal, dfa) is dfa for dfa in (integer_dfa(None, None), number_dfa()))

    @cached_property
    def member(self) -> Forms:
        """The forms of the values of members."""
        return Forms.of(self.object.value)

    @cached_property
    def item(self) -> Forms:
        """The forms of the items of arrays."""
        return Forms.of(self.array.item)

    # -- values that no schema restricts -------------------------------------------------------------------------------

    def plain(self, name: str) -> Expr:
        """All values of a scalar type."""
        found = self._plain.get(name)
        if found is None:
            found = self._plain[name] = self._make_plain(name)
        return found

    def _make_plain(self, name: str) -> Expr:
        if name not in self.types and not (name == "integer" and "number" in self.types):
            return NOTHING
        if name == "string":
            return self.text(self.string.body)
        if name == "boolean":
            return alt((self.word("true"), self.word("false")))
        if name == "null":
            return self.word("null")
        return self.digits(integer_dfa(None, None) if name == "integer" else number_dfa())

    def word(self, name: str) -> Expr:
        """`true`, `false` or `null`."""
        return self.spelling.word(name)

    def text(self, body: Dfa) -> Expr:
        """Strings with a body of this language."""
        return seq(self.string.before, text(body), self.string.after)

    def digits(self, dfa: Dfa) -> Expr:
        """Numbers of this language."""
        before, after, terminal = self.number
        return seq(before, text(dfa if self.writes_all_numbers else both(terminal, dfa)), after)

    def body(self, read: Types) -> Dfa:
        """The bodies of strings where values of the types `read` stand beside them; some fewer (see `readings`)."""
        others = self.others(read)
        return _clear(self.string.body, others) if others else self.string.body

    def others(self, read: Types) -> frozenset[str]:
        """The types as which a string might be read that has no delimiters."""
        if not self.raw:
            return frozenset()
        return _OTHER_TYPES if read is None else read & _OTHER_TYPES

    def free_text(self, read: Types) -> Expr:
        """All strings, where values of the types `read` stand beside them."""
        others = self.others(read)
        if not others:
            return self.plain("string")
        inner = not_json(self.clear(read), arrays="array" in others, objects="object" in others)
        return seq(self.string.before, inner, self.string.after)

    def clear(self, read: Types) -> Dfa:
        """The bodies of strings that no reader takes for one of the scalars of `read`."""
        scalars = self.others(read) - {"array", "object"}
        return _clear(self.string.body, scalars) if scalars else self.string.body

    def free_keys(self, declared: tuple[str, ...], limits: Limits) -> Dfa:
        """Bodies of the keys that are none of the declared ones, however those are spelt."""
        key = self.object.key
        return without_texts(key.body, declared, key.table, limits) if declared else key.body

    def free_key(self, dfas: tuple[Dfa, ...], low: int, high: int, declared: tuple[str, ...], limits: Limits) -> Expr:
        """Keys of `low` to `high` characters that all the automata accept, and that are none of the declared ones.

        To take the declared ones out is put off until such a key is begun, where it is sure that one is left."""
        if not declared:
            return meet(dfas, low, high, limits=limits)
        key = (dfas, low, high, declared)
        found = self._free.get(key)
        if found is None:
            least = self._least_free(*key, limits) if self._small(declared, limits) else None
            if least is None:
                found = self._free_key(*key, limits)
            else:
                found = later(lambda: self._free_key(*key, limits), least)
            self._free[key] = found
        return found

    def _free_key(
        self, dfas: tuple[Dfa, ...], low: int, high: int, declared: tuple[str, ...], limits: Limits
    ) -> Expr:
        own, free = self.object.key.body, self.free_keys(declared, limits)
        return meet((free, *(dfa for dfa in dfas if dfa is not own)), low, high, limits=limits)

    def _small(self, declared: tuple[str, ...], limits: Limits) -> bool:
        """Whether the automaton of the free keys is surely within the limits."""
        each = 1 if self.object.key.table == "raw" else _ESCAPED
        return each * sum(len(name.encode("utf-8", "surrogatepass")) + 1 for name in declared) < limits.automaton_states

    def _least_free(
        self, dfas: tuple[Dfa, ...], low: int, high: int, declared: tuple[str, ...], limits: Limits
    ) -> int | None:
        """Bytes of the shortest key that is free for sure; None if none is known."""
        if dfas == (self.object.key.body,) and (low, high) == (0, INFINITE):
            body = dfas[0]
            if body.accept[body.start] and "" not in declared:
                return 0
            if sum(len(name) == 1 for name in declared) < self._short_keys:
                return 1
        found = self.sample_key(dfas, low, high, limits)
        return meet(dfas, low, high, limits=limits).shortest if found is not None and found not in declared else None

    def sample_key(self, dfas: tuple[Dfa, ...], low: int, high: int, limits: Limits) -> str | None:
        """A shortest key of `low` to `high` characters that all the automata accept; None if there is none."""
        spelt = sample(dfas, low, high, limits=limits)
        if spelt is None:
            return None
        text = spelt.decode("utf-8", "replace")
        if self.object.key.table == "raw":
            return text
        read: str = json.loads(f'"{text}"')
        return read

    @cached_property
    def _short_keys(self) -> int:
        """How many keys of a single byte there are."""
        body = self.object.key.body
        return sum(body.accept[target] for target in body.rows[body.start][:128])

    # -- any value -----------------------------------------------------------------------------------------------------

    @property
    def anything(self) -> Expr:
        """Any value: one reference."""
        if self._any is None:
            self._define()
        assert self._any is not None
        return self._any

    def _define(self) -> None:
        definitions = Definitions()
        group = self._group()
        made = {forms: reference(definitions, number) for number, forms in enumerate(group)}
        for number, forms in enumerate(group):
            member = made.get(forms.member) or forms.member._any if "object" in forms.types else None
            item = made.get(forms.item) or forms.item._any if "array" in forms.types else None
            definitions.bodies[number] = forms._any_of(member or NOTHING, item or NOTHING)
        definitions.settle()
        for forms, expr in made.items():
            forms._any = expr

    def _group(self) -> list[Forms]:
        """The forms below this one whose any value is not defined yet."""
        group = [self]
        for forms in group:
            below = [forms.member] if "object" in forms.types else []
            below += [forms.item] if "array" in forms.types else []
            group += [each for each in dict.fromkeys(below) if each._any is None and each not in group]
        return group

    @cached_property
    def containers(self) -> int:
        """How many objects and arrays any value is made of, each once."""
        group = [self]
        for forms in group:
            below = [forms.member] if "object" in forms.types else []
            below += [forms.item] if "array" in forms.types else []
            group += [each for each in dict.fromkeys(below) if each not in group]
        return sum(len(forms.types & {"object", "array"}) for forms in group)

    def _any_of(self, member: Expr, item: Expr) -> Expr:
        ways = [self.free_object(member)] if "object" in self.types else []
        if "array" in self.types:
            ways.append(self.list_of(item, 0, None))
        ways += [self.plain(name) for name in ("number", "boolean", "null") if name in self.types]
        if "string" in self.types:
            ways.append(self.free_text(None))
        return alt(ways)

    def free_object(self, value: Expr) -> Expr:
        """Objects with any keys."""
        free = seq(text(self.object.key.body), self.after_key(value))
        return self.object_of(ObjectTemplate((), before=self.before_key, separator=self.object.separator, free=free))

    def object_of(self, template: ObjectTemplate) -> Expr:
        """Objects whose members follow a template."""
        return seq(self.object.before, members(template), self.object.after)

    @cached_property
    def before_key(self) -> Expr:
        return seq(self.object.member_before, self.object.key.before)

    def after_key(self, value: Expr) -> Expr:
        """What follows the body of a member's key, to the member's end."""
        found = self._tails.get(value)
        if found is None:
            shape = self.object
            found = seq(shape.key.after, shape.between, value, shape.member_after)
            if value in self.member._plain.values():
                self._tails[value] = found
        return found

    def list_of(self, item: Expr, low: int, high: int | None) -> Expr:
        """Arrays of `low` to `high` items."""
        shape = self.array
        return seq(shape.before, row_of(item, shape.separator, low, high), shape.after)


def row_of(item: Expr, separator: Expr, low: int, high: int | None) -> Expr:
    """`low` to `high` items with the separator between them."""
    if high is not None and high < low:
        return NOTHING
    if high == 0:
        return seq()
    more = seq(separator, item)
    rest = repeat(more, max(0, low - 1)) if high is None else repeat(more, max(0, low - 1), high - 1)
    some = seq(item, rest)
    return some if low else maybe(some)


@kept
def both(one: Dfa, other: Dfa, limits: Limits | None = None) -> Dfa:
    """What two automata share; boundary flags of the first."""
    return intersect(one, other) if limits is None else intersect(one, other, limits=limits)


@kept
def without_texts(body: Dfa, values: tuple[str, ...], table: str, limits: Limits) -> Dfa:
    """The texts of `body` that stand for none of the values, however those are spelt."""
    if table == "raw":
        taken = literals((value.encode("utf-8", "surrogatepass") for value in values), limits=limits)
        return difference(body, taken, limits=limits)
    pattern = f"^(?:{'|'.join(map(_escaped, values))})$"
    return intersect(body, pattern_dfa(pattern, spelling=table, negate=True, limits=limits), limits=limits)


@kept
def _clear(body: Dfa, others: frozenset[str]) -> Dfa:
    return difference(body, read_as(others))


def _escaped(name: str) -> str:
    """A name as a pattern that matches it alone."""
    return "".join(f"\\u{{{ord(char):x}}}" if not char.isalnum() or not char.isascii() else char for char in name)
