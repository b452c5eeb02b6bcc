"""The turn as one request wants it: which roles may occur, and how often.

In: a mask `Compiler`, a start rule, a `TurnPolicy`, for each tool the holes that make it that tool's call, and perhaps
those that make content an answer of a given form. Out: one expression for the whole turn, closed by the end symbols.

`tool_choice` is not a second grammar. The start rule is walked together with a small count (has there been a call, a
thought, an answer), and what the policy forbids is left out on the way: each part of the rule gives, for each count it
may end with, the expression that leads there. Counts only rise, so loops unroll to a fixed depth and the result is
finite. Invariant: below a call's own rule nothing is walked; the part of a rule that mentions a tool's name is compiled
once, with holes, and filled for each tool, so a name said twice is the same name.
Cost: a few hundred nodes a request; what differs between tools is found by `alt`'s factoring, not by copying states.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ..automaton.capture import replaced
from ..automaton.choice import alt
from ..automaton.expression import EMPTY, INFINITE, NOTHING, Expr, repeat, seq, symbol
from ..automaton.interning import intern
from .compile import Compiler, Holes, names_in
from .holes import hole, row_of
from .rules import Branch, Choice, Group, Loop, Node, Rule, Use

__all__ = ["TurnPolicy", "compile_turn"]

Count: TypeAlias = "tuple[int, int, int]"  # (calls, thoughts, answers), each 0 or 1 for "at least one"
Ways: TypeAlias = "dict[Count, Expr]"  # where a part may end -> the expression that leads there


@dataclass(frozen=True)
class TurnPolicy:
    """What may occur in a turn."""

    content: bool = True
    min_calls: int = 0  # 0 or 1
    max_calls: int | None = None  # 0, 1, or None for any number
    reasoning: str = "allow"  # "allow" | "require" | "forbid"


def compile_turn(
    compiler: Compiler,
    start: str,
    policy: TurnPolicy,
    tools: Mapping[str, Holes],
    *,
    begun: bool = False,
    answer: Holes | None = None,
) -> Expr:
    """The turn's expression. `begun`: the prompt ends inside a thought, which counts as one. `answer`: content is this,
    once, and stands in a turn without calls; a turn has one or the other."""
    key = ("turn", start, policy, begun)
    kept = compiler.kept.get(key) if answer is None else None
    if kept is None:
        kept = _template(compiler, start, policy, begun, answer)
        if kept[0].shortest >= INFINITE:
            return NOTHING
        if answer is None:
            compiler.kept[key] = kept
    turn, calls = kept
    return replaced(turn, {call: call.filled(tools) for call in calls})


def _template(
    compiler: Compiler, start: str, policy: TurnPolicy, begun: bool, answer: Holes | None
) -> tuple[Expr, tuple[EachTool, ...]]:
    """The turn with places for the calls, which is all that differs between requests of one policy."""
    walk = _Walk(compiler, policy, answer)
    ways = walk.use(start, (0, int(begun), 0), False)
    ends = []
    for (calls, thoughts, answers), expr in ways.items():
        if calls < policy.min_calls or (policy.reasoning == "require" and not thoughts):
            continue
        if answer is not None and not calls and not answers:
            continue
        stop = symbol(compiler.alphabet.end)
        ends.append(seq(expr, alt((stop, symbol(compiler.alphabet.end_after_call))) if calls else stop))
    return alt(ends), tuple(walk.calls)


class EachTool(Expr):
    """The place of a call to any of the tools: `row` with its holes filled for each of them."""

    __slots__ = ("lead", "pieces", "row")

    def __init__(self, row: Expr) -> None:
        self.row = row
        parts = row_of(row)
        first = next((i for i, part in enumerate(parts) if _is_open(part)), 0)
        self.lead = seq(*parts[:first])  # what stands before the first hole is shared by all
        self.pieces = _pieces(parts[first:])

    def measure(self, of: Callable[[Expr], int], spell: Callable[[bytes], int]) -> int:
        return 0

    def filled(self, tools: Mapping[str, Holes]) -> Expr:
        """The calls of all the tools."""
        ways = []
        for holes in tools.values():
            places = {_PLACES[role]: made for role, made in holes.items()}
            ways.append(seq(*[
                piece if not open_ else places[piece] if piece in places else replaced(piece, places)
                for piece, open_ in self.pieces
            ]))  # fmt: skip
        return seq(self.lead, alt(ways))

    def __repr__(self) -> str:
        return f"each tool: {self.row!r}"


def _pieces(parts: Sequence[Expr]) -> tuple[tuple[Expr, bool], ...]:
    """The parts, and whether there is a hole in them; neighbours without any put together."""
    pieces: list[tuple[Expr, bool]] = []
    for part in reversed(parts):
        open_ = _is_open(part)
        if not open_ and pieces and not pieces[-1][1]:
            pieces[-1] = seq(part, pieces[-1][0]), False
        else:
            pieces.append((part, open_))
    return tuple(reversed(pieces))


def _is_open(part: Expr) -> bool:
    """Whether there is a hole in it."""
    return replaced(part, dict.fromkeys(_PLACES.values(), EMPTY)) is not part


class _Walk:
    """One compilation of a turn."""

    def __init__(self, compiler: Compiler, policy: TurnPolicy, answer: Holes | None) -> None:
        self.compiler, self.policy, self.answer = compiler, policy, answer
        self.calls: dict[EachTool, None] = {}  # the places of calls, in order
        self.rules = compiler.grammar.rules
        self._plain = {name for name in self.rules if not self._reaches(name, set())}

    def _reaches(self, name: str, seen: set[str]) -> bool:
        """Whether a rule can lead to a role that the policy counts."""
        rule = self.rules.get(name)
        if rule is None or name in seen:
            return False
        seen.add(name)
        if _counted(rule, None):
            return True
        return any(
            branch.role in _COUNTED or any(self._reaches(use.name, seen) for use in names_in(branch.node))
            for branch in rule.choice.branches
        )

    def use(self, name: str, count: Count, inside: bool) -> Ways:
        """The ways through a rule."""
        if name in self._plain:
            return _one(count, self.compiler.node(Use(name), self._holes(inside)))
        rule = self.rules[name]
        if rule.parsed_only:
            return {}
        if rule.role == "tool_call":
            return self._call(count, self.compiler.rule(rule.name, _PLACES), inside)
        if rule.role in _COUNTED:
            return self._counted_role(rule.role, count, self.compiler.rule(name, self._holes(inside, rule.role)))
        return self._branches(rule.choice.branches, count, inside)

    def _branches(self, branches: Sequence[Branch], count: Count, inside: bool) -> Ways:
        return _union([self._branch(branch, count, inside) for branch in branches])

    def _branch(self, branch: Branch, count: Count, inside: bool) -> Ways:
        if branch.role == "tool_call":
            return self._call(count, self.compiler.node(Choice((branch,)), _PLACES), inside)
        if branch.role in _COUNTED:
            made = self.compiler.node(Choice((branch,)), self._holes(inside, branch.role))
            return self._counted_role(branch.role or "", count, made)
        if not inside and self._names_a_tool(branch.node):
            if not self._may_call(count):
                return {}
            return {at: self._each_tool(expr) for at, expr in self.node(branch.node, count, True).items()}
        return self.node(branch.node, count, inside)

    def _names_a_tool(self, node: Node) -> bool:
        """Whether a tool's name stands in this very branch, so that it belongs to one tool as a whole."""
        return any(self._is_name(use.name) for use in names_in(node))

    def _is_name(self, name: str) -> bool:
        rule = self.rules.get(name)
        if rule is None:
            return False
        return rule.role in ("tool_name", "silent")

    def _holes(self, inside: bool, role: str | None = None) -> Holes:
        holes = _PLACES if inside else {}
        return {**holes, **self.answer} if role == "content" and self.answer is not None else holes

    def _each_tool(self, expr: Expr) -> Expr:
        if expr is NOTHING:
            return NOTHING
        place: EachTool = intern(EachTool, expr)
        self.calls.setdefault(place)
        return place

    def _may_call(self, count: Count) -> bool:
        most = self.policy.max_calls
        if self.answer is not None and count[2]:
            return False
        return most is None or most > count[0]

    def _call(self, count: Count, body: Expr, inside: bool) -> Ways:
        if not self._may_call(count):
            return {}
        return _one((1, *count[1:]), body if inside else self._each_tool(body))

    def _counted_role(self, role: str, count: Count, body: Expr) -> Ways:
        calls, thoughts, answers = count
        if role == "content" and self.answer is not None:
            return _one((calls, thoughts, 1), body) if self.policy.content and not calls and not answers else {}
        if role == "content":
            return _one(count, body) if self.policy.content else {}
        return {} if self.policy.reasoning == "forbid" else _one((calls, 1, answers), body)

    def node(self, node: Node, count: Count, inside: bool) -> Ways:
        """The ways through a node."""
        match node:
            case Use(name=name) if name in self.rules:
                return self.use(name, count, inside)
            case Group(parts=parts):
                ways: Ways = {count: EMPTY}
                for part in parts:
                    ways = _then(ways, partial(self._onward, part, inside))
                return ways
            case Choice(branches=branches):
                return self._branches(branches, count, inside)
            case Loop(node=inner, low=0, high=1):
                return _union([self.node(inner, count, inside), {count: EMPTY}])
            case Loop(node=inner, low=low, high=None):
                return self._loop(inner, low, count, inside)
            case _:
                return _one(count, self.compiler.node(node, self._holes(inside)))

    def _onward(self, node: Node, inside: bool, count: Count) -> Ways:
        return self.node(node, count, inside)

    def _loop(self, inner: Node, low: int, count: Count, inside: bool) -> Ways:
        """`inner` `low` times or more. Counts rise, so a way out of a count never comes back to it."""
        if low:
            once = self.node(inner, count, inside)
            return _then(once, lambda at: self._loop(inner, 0, at, inside))
        step = self.node(inner, count, inside)
        stay = repeat(step.pop(count, NOTHING), 0, INFINITE)
        onward = _then(step, lambda at: self._loop(inner, 0, at, inside))
        return {at: seq(stay, expr) for at, expr in _union([onward, {count: EMPTY}]).items()}


_COUNTED = frozenset({"content", "reasoning", "tool_call"})
_PLACES = {role: hole(role) for role in ("tool_name", "silent", "arguments", "object")}


def _counted(rule: Rule, role: str | None) -> bool:
    return (role or rule.role) in _COUNTED


def _one(count: Count, expr: Expr) -> Ways:
    return {} if expr is NOTHING else {count: expr}


def _union(ways: Sequence[Ways]) -> Ways:
    found: dict[Count, list[Expr]] = {}
    for way in ways:
        for count, expr in way.items():
            found.setdefault(count, []).append(expr)
    return {count: alt(exprs) for count, exprs in found.items()}


def _then(ways: Ways, follow: Callable[[Count], Ways]) -> Ways:
    out = []
    for count, expr in ways.items():
        out.append({at: seq(expr, rest) for at, rest in follow(count).items()})
    return _union(out)
