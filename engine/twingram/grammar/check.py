"""Checks of a grammar when it is loaded: what would make it hang, mean nothing, or mean two things.

In: a `Grammar`. Out: nothing, or a `GrammarError` with the place and a way to mend it.

* a rule that can begin with itself (the automaton would unfold it without end),
* a rule that no start reaches (most often a misspelt name),
* a call without a name or arguments,
* a text that two canonical readings give different output for, found by a bounded search and shown.

Cost: graph walks over the rules; the search stops after `_STATES` states, about 50 ms.
"""

from __future__ import annotations

from collections import deque

from ..automaton.machine import Machine, State
from ..errors import GrammarError
from ..limits import DEFAULT_LIMITS
from .alphabet import Alphabet
from .compile import Reading, names_in
from .reading import parser_machine
from .rules import Choice, Grammar, Group, Literal, Loop, Node, Rule, Use

__all__ = ["ambiguity", "check"]

_STATES = 200  # states that the search for ambiguities looks at
_COMMON = b" \na0\"<[{"  # bytes tried beside those of the grammar's own literals


def check(grammar: Grammar) -> None:
    """Raise `GrammarError` for the first fault found."""
    _check_recursion(grammar)
    _check_reached(grammar)
    _check_calls(grammar)
    witness = ambiguity(grammar)
    if witness is not None:
        raise GrammarError(
            f"two canonical readings of one text give different output: {witness!r}", file=grammar.file,
            hint="give one alternative a negative priority, or let a terminal exclude what begins the other",
        )


def _fault(grammar: Grammar, rule: Rule, message: str, hint: str) -> GrammarError:
    place = rule.place
    return GrammarError(
        message, file=grammar.file, source=grammar.source if not rule.space else None,
        line=place.line, column=place.column, hint=hint,
    )


def _check_recursion(grammar: Grammar) -> None:
    nullable = _nullable(grammar)
    edges = {name: _beginnings(rule, grammar, nullable) for name, rule in grammar.rules.items()}
    for name in grammar.rules:
        seen, todo = set(), list(edges[name])
        while todo:
            at = todo.pop()
            if at == name:
                raise _fault(
                    grammar, grammar.rules[name], f"rule {name!r} can begin with itself",
                    "write a repetition (x* or x (\",\" x)*) instead of left recursion",
                )
            if at not in seen:
                seen.add(at)
                todo += edges[at]


def _nullable(grammar: Grammar) -> set[str]:
    """The rules that can be empty."""
    found: set[str] = set()
    changed = True
    while changed:
        changed = False
        for name, rule in grammar.rules.items():
            if name not in found and any(_empty(branch.node, found) for branch in rule.choice.branches):
                found.add(name)
                changed = True
    return found


def _empty(node: Node, nullable: set[str]) -> bool:
    match node:
        case Literal(text=text):
            return not text
        case Use(name=name):
            return name in nullable
        case Group(parts=parts):
            return all(_empty(part, nullable) for part in parts)
        case Choice(branches=branches):
            return any(_empty(branch.node, nullable) for branch in branches)
        case Loop(node=inner, low=low):
            return low == 0 or _empty(inner, nullable)
    return False


def _beginnings(rule: Rule, grammar: Grammar, nullable: set[str]) -> set[str]:
    """The rules that can stand first in a rule."""
    out: set[str] = set()

    def walk(node: Node) -> None:
        match node:
            case Use(name=name) if name in grammar.rules:
                out.add(name)
            case Group(parts=parts):
                for part in parts:
                    walk(part)
                    if not _empty(part, nullable):
                        break
            case Choice(branches=branches):
                for branch in branches:
                    walk(branch.node)
            case Loop(node=inner):
                walk(inner)
            case _:
                pass

    for branch in rule.choice.branches:
        walk(branch.node)
    return out


def _check_reached(grammar: Grammar) -> None:
    reached: set[str] = set()
    todo = [start.rule for start in grammar.starts] + [recover.then for recover in grammar.recovers]
    while todo:
        name = todo.pop()
        if name in reached or name not in grammar.rules:
            continue
        reached.add(name)
        for branch in grammar.rules[name].choice.branches:
            todo += [use.name for use in names_in(branch.node)]
    for name, rule in grammar.rules.items():
        if name not in reached and not rule.space:
            raise _fault(
                grammar, rule, f"no start rule leads to rule {name!r}",
                "use it somewhere, or take it out; is its name spelt alike in both places?",
            )


def _check_calls(grammar: Grammar) -> None:
    for rule in grammar.rules.values():
        if rule.role != "tool_call":
            continue
        below, todo = set(), [rule.name]
        while todo:
            name = todo.pop()
            if name in below or name not in grammar.rules:
                continue
            below.add(name)
            todo += [use.name for branch in grammar.rules[name].choice.branches for use in names_in(branch.node)]
        roles = {grammar.rules[name].role for name in below}
        for wanted in ("tool_name", "object"):
            if wanted not in roles:
                raise _fault(
                    grammar, rule, f"a tool_call holds no {wanted}", "see docs/grammars.md for the roles of a call"
                )


def ambiguity(grammar: Grammar) -> str | None:
    """A text that two canonical readings disagree on, if a bounded search finds one."""
    for start in grammar.starts:
        machine = parser_machine(grammar, start.rule, Alphabet.of(grammar.markers), Reading.STRICT, DEFAULT_LIMITS)
        found = _search(machine, _steps_of(grammar))
        if found is not None:
            return found
    return None


def _steps_of(grammar: Grammar) -> bytes:
    letters = set(_COMMON)
    for rule in grammar.rules.values():
        for branch in rule.choice.branches:
            letters |= _letters(branch.node)
    return bytes(sorted(letters))


def _letters(node: Node) -> set[int]:
    match node:
        case Literal(text=text):
            return set(text.encode()[:1])
        case Group(parts=parts):
            return set().union(*map(_letters, parts))
        case Choice(branches=branches):
            return set().union(*(_letters(branch.node) for branch in branches))
        case Loop(node=inner):
            return _letters(inner)
    return set()


def _search(machine: Machine, tried: bytes) -> str | None:
    """Breadth first over states; a run of one way only is followed to its end at once."""
    todo: deque[tuple[State, bytes]] = deque([(machine.start, b"")])
    seen = {machine.start}
    while todo and len(seen) < _STATES:
        state, text = todo.popleft()
        if sum(ending is not None for ending in state.ends) > 1:
            return text.decode("utf-8", "replace")
        only = state.first & (state.first - 1) == 0 and state.first
        for byte in (only.bit_length() - 1,) if only and only < 1 << 256 else tried:
            step = state.step(byte) if state.first >> byte & 1 else None
            if step is not None and step.state not in seen:
                seen.add(step.state)
                todo.append((step.state, text + bytes((byte,))))
    return None
