"""Members of an object: each declared key at most once, required ones all, in any order or in one.

In: an `ObjectTemplate`, the pieces of one object type. Out: expressions whose state is the template and the bit set of
keys that are used up. Writing n keys in any order takes n! alternatives; here it takes one trie of the keys, of which a
node is open while a key below it is still free. Bounds on the number of members, and keys that ask for others, are kept
by a `Tally`; templates without one pay nothing for it.

Invariant: keys are numbered in byte order, so that the keys below a trie node are a contiguous range of bits and
"is anything free below" is one shift and one mask.
Cost: a state costs the depth of the trie, not the number of keys; measured 0.1 ms for 200 keys where alternatives took
27 to 47 ms a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .choice import alt, slices
from .expression import EMPTY, INFINITE, NOTHING, Expr, Head, Leaf, literal, seq
from .hoist import PutOff
from .interning import intern
from .tally import NOTHING_WRITTEN, Tally, Written

__all__ = ["ObjectTemplate", "members"]


class ObjectTemplate:
    """One object type, immutable.

    `keys`: (spelt key, what follows it up to the member's end, required), any order.
    `before`: what a member begins with, up to its key. `separator`: what stands between members.
    `free`: whole members with keys that are not declared (each from its key on), as often as one likes.
    `order`: None for any order, else for each entry of `keys` its rank: keys are then written by rising rank.
    `least`, `most`: how many members there are. `needs`: for each entry the entries (by index) that it asks for.
    """

    __slots__ = ("__weakref__", "before", "entries", "free", "required", "separator", "tally", "upto")

    def __init__(
        self,
        keys: Sequence[tuple[bytes, Expr, bool]],
        *,
        before: Expr = EMPTY,
        separator: Expr = EMPTY,
        free: Expr = NOTHING,
        order: Sequence[int] | None = None,
        least: int = 0,
        most: int = INFINITE,
        needs: Sequence[Sequence[int]] = (),
    ) -> None:
        numbered = sorted(range(len(keys)), key=lambda i: keys[i][0])
        self.entries: tuple[tuple[bytes, Expr], ...] = tuple((keys[i][0], keys[i][1]) for i in numbered)
        self.required = sum(1 << bit for bit, i in enumerate(numbered) if keys[i][2])
        self.before, self.separator, self.free = before, separator, free
        self.upto: tuple[int, ...] | None = None  # by bit: the bits of lower rank
        if order is not None:
            ranks = [order[i] for i in numbered]
            self.upto = tuple(sum(1 << b for b, rank in enumerate(ranks) if rank < mine) for mine in ranks)
        self.tally: Tally | None = None
        if least > 0 or most < INFINITE or any(needs):
            bit_of = {index: bit for bit, index in enumerate(numbered)}
            asked = [sum(1 << bit_of[j] for j in needs[i]) if needs else 0 for i in numbered]
            self.tally = Tally(least, most, asked)

    def usable(self, used: int, written: Written) -> int:
        """The keys that may come next, as bits."""
        free = ((1 << len(self.entries)) - 1) & ~used
        if self.tally is not None:
            bits = range(len(self.entries))
            return sum(1 << bit for bit in bits if free >> bit & 1 and self._fits(used, written, bit))
        if self.upto is None:
            return free
        owed = self.required & ~used
        return sum(1 << bit for bit in range(len(self.entries)) if free >> bit & 1 and not owed & self.upto[bit])

    def _fits(self, used: int, written: Written, bit: int) -> bool:
        assert self.tally is not None
        return self.completes(self.after(used, bit), self.tally.after(written, bit))

    def completes(self, used: int, written: Written) -> bool:
        """Whether the object can be completed from here."""
        if self.tally is None:
            return True
        open_keys = ((1 << len(self.entries)) - 1) & ~used
        return self.tally.completes(self.required, written, open_keys, self.free is not NOTHING)

    def after(self, used: int, bit: int) -> int:
        """The keys used up once key `bit` is written."""
        return used | 1 << bit | (self.upto[bit] if self.upto is not None else 0)

    def written(self, written: Written, bit: int | None) -> Written:
        """What counts as written after one more member."""
        return written if self.tally is None else self.tally.after(written, bit)

    def missing(self, used: int, written: Written) -> tuple[int, int]:
        """The keys that have to come, and how many members more than these."""
        if self.tally is None:
            return self.required & ~used, 0
        return self.tally.missing(self.required, written)


class Members(Expr):
    """The members still to come. `begun`: one is written already, so the next needs a separator."""

    __slots__ = ("begun", "template", "used", "written")

    def __init__(self, template: ObjectTemplate, used: int, begun: bool, written: Written) -> None:
        self.template, self.used, self.begun, self.written = template, used, begun, written

    def parts(self) -> tuple[Expr, ...]:
        return _needed_parts(self.template)

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        template, total, count = self.template, 0, 0
        owed, more = template.missing(self.used, self.written)
        for bit, (key, tail) in enumerate(template.entries):
            if owed >> bit & 1:
                total += spell(key) + of(tail) + of(template.before)
                count += 1
        if more:
            total += more * of(template.before) + _cheapest(template, ~(self.used | owed), more, of, spell)
        return min(INFINITE, total + of(template.separator) * max(0, count + more - (not self.begun)))

    def climb(self, of: Callable[[Expr], int]) -> int:
        template = self.template
        owed, more = template.missing(self.used, self.written)
        needed = max([of(tail) for bit, (_, tail) in enumerate(template.entries) if owed >> bit & 1], default=0)
        return max(needed, _lowest(template, ~(self.used | owed), more, of)) if more else needed

    def _find_heads(self) -> tuple[Head, ...]:
        template, ways = self.template, []
        usable = template.usable(self.used, self.written)
        if usable:
            ways.append(intern(KeyStep, template, 0, len(template.entries), 0, self.used, usable, self.written))
        if template.free is not NOTHING:
            written = template.written(self.written, None)
            if template.completes(self.used, written):
                ways.append(seq(template.free, intern(Members, template, self.used, True, written)))
        heads = seq(template.separator if self.begun else EMPTY, template.before, alt(ways)).heads() if ways else ()
        return heads if any(template.missing(self.used, self.written)) else (*heads, ((), None, EMPTY))

    def __repr__(self) -> str:
        return f"members[{self.used:b}]"


class KeyStep(Leaf):
    """Inside a key: the slice `low:high` of the declared keys, `depth` bytes read, `usable` keys open."""

    __slots__ = ("_children", "depth", "first", "high", "low", "template", "usable", "used", "written")

    def __init__(
        self, template: ObjectTemplate, low: int, high: int, depth: int, used: int, usable: int, written: Written
    ) -> None:
        self.template, self.low, self.high, self.depth = template, low, high, depth
        self.used, self.usable, self.written = used, usable, written
        children = slices(template.entries, low, high, depth)
        self._children = {b: (lo, hi) for b, (lo, hi) in children.items() if usable >> lo & ((1 << (hi - lo)) - 1)}
        self.first = sum(1 << byte for byte in self._children)

    def parts(self) -> tuple[Expr, ...]:
        entries = self.template.entries[self.low : self.high]
        return (*(tail for _, tail in entries), *_needed_parts(self.template))

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        template, best = self.template, INFINITE
        owed = template.required & ~self.used if template.tally is None else 0
        bits = [bit for bit in range(len(template.entries)) if owed >> bit & 1]
        each = of(template.before) + of(template.separator)
        costs = {bit: spell(template.entries[bit][0]) + of(template.entries[bit][1]) + each for bit in bits}
        total = sum(costs.values())
        for bit in range(self.low, self.high):
            if self.usable >> bit & 1:
                key, tail = template.entries[bit]
                if template.tally is None and total < INFINITE:
                    others = total - costs.get(bit, 0)  # what `measure` of the members gives, in one addition
                else:
                    others = self._members(bit).measure(of, spell)
                best = min(best, spell(key[self.depth :]) + of(tail) + others)
        return best

    def climb(self, of: Callable[[Expr], int]) -> int:
        template, best = self.template, INFINITE
        entries, owed = template.entries, template.required & ~self.used
        needed = max([of(tail) for bit, (_, tail) in enumerate(entries) if owed >> bit & 1], default=0)
        for bit in range(self.low, self.high):
            if self.usable >> bit & 1:
                others = needed if template.tally is None else self._members(bit).climb(of)
                best = min(best, max(of(entries[bit][1]), others))
        return best

    def after(self, sym: int) -> Expr:
        low, high = self._children[sym]
        if high - low == 1:
            key = self.template.entries[low][0]
            rest = key[self.depth + 1 :]
            return seq(literal(rest), intern(Member, self, low)) if rest else self.rest(low)
        found: Expr = intern(
            KeyStep, self.template, low, high, self.depth + 1, self.used, self.usable, self.written
        )
        return found

    def _members(self, bit: int) -> Expr:
        template = self.template
        written = template.written(self.written, bit)
        found: Expr = intern(Members, template, template.after(self.used, bit), True, written)
        return found

    def rest(self, bit: int, tail: Expr = EMPTY) -> Expr:
        """What follows a key, and then `tail`."""
        return seq(self.template.entries[bit][1], self._members(bit), tail)

    def _find_heads(self) -> tuple[Head, ...]:
        heads: tuple[Head, ...] = ()
        if len(self.template.entries[self.low][0]) == self.depth and self.usable >> self.low & 1:
            heads = self.rest(self.low).heads()
        return (*heads, ((), self, EMPTY)) if self.first else heads

    def __repr__(self) -> str:
        return f"keys[{self.high - self.low}@{self.depth}]"


class Member(PutOff):
    """What follows a key that is begun and can be no other: a mask looks into many keys, a call takes one. Of four keys
    the mask went from 164 to 109 us."""

    __slots__ = ("bit", "step")

    def __init__(self, step: KeyStep, bit: int) -> None:
        self.step, self.bit, self._made = step, bit, None

    def before(self, tail: Expr) -> Expr:
        return self.step.rest(self.bit, tail)

    @property
    def opening(self) -> Expr:
        return self.step.template.entries[self.bit][1]

    def __repr__(self) -> str:
        return f"member[{self.bit}]"


def _needed_parts(template: ObjectTemplate) -> tuple[Expr, ...]:
    """The expressions that the shortest completion may be made from."""
    if template.tally is not None:
        free = () if template.free is NOTHING else (template.free,)
        return (template.before, template.separator, *(tail for _, tail in template.entries), *free)
    owed = tuple(tail for bit, (_, tail) in enumerate(template.entries) if template.required >> bit & 1)
    return (template.before, template.separator, *owed)


def _cheapest(
    template: ObjectTemplate, open_keys: int, count: int, of: Callable[[Expr], int], spell: Callable[[bytes], int]
) -> int:
    """The cost of `count` more members, those that cost least, with all that these ask for."""
    costs = {bit: spell(key) + of(tail) for bit, (key, tail) in enumerate(template.entries) if open_keys >> bit & 1}
    return sum(_picked(template, costs, count, of, sum))


def _lowest(template: ObjectTemplate, open_keys: int, count: int, of: Callable[[Expr], int]) -> int:
    """The peak of `count` more members, those that need least, with all that these ask for."""
    peaks = {bit: of(tail) for bit, (_, tail) in enumerate(template.entries) if open_keys >> bit & 1}
    return max(_picked(template, peaks, count, of, max))


def _picked(
    template: ObjectTemplate,
    costs: dict[int, int],
    count: int,
    of: Callable[[Expr], int],
    together: Callable[[Iterable[int]], int],
) -> list[int]:
    """The costs of `count` more members or some more: the cheapest first, each together with those that it asks for.
    `costs` are those of the keys that may be written."""
    free = [] if template.free is NOTHING else [of(template.free)] * count
    tally = template.tally
    if tally is None or not any(tally.needs):
        found = sorted([*costs.values(), *free])[:count]
        return found if len(found) == count else [INFINITE]
    picked: dict[int, int] = {}
    while len(picked) < count:
        groups = [
            [each for each in costs if each not in picked and (1 << bit | tally.needs[bit]) >> each & 1]
            for bit in costs if bit not in picked
        ]  # fmt: skip
        best = min(groups, key=lambda group: together(costs[bit] for bit in group), default=None)
        if free and (best is None or free[0] <= together(costs[bit] for bit in best)):
            return [*picked.values(), *free[len(picked) :]]
        if best is None:
            return [INFINITE]
        picked.update({bit: costs[bit] for bit in best})
    return list(picked.values())


def members(template: ObjectTemplate) -> Expr:
    """The members of one object; `NOTHING` if a required one cannot be written (leave out optional ones first)."""
    if any(tail is NOTHING for bit, (_, tail) in enumerate(template.entries) if template.required >> bit & 1):
        return NOTHING
    if not template.completes(0, NOTHING_WRITTEN):
        return NOTHING
    if not template.entries and template.free is NOTHING:
        return EMPTY
    found: Expr = intern(Members, template, 0, False, NOTHING_WRITTEN)
    return found
