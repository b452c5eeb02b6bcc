"""Checks of a grammar when it is loaded: what would make it hang, mean nothing, or mean two things.

In: a `Grammar`. Out: nothing, or a `GrammarError` with the place and a way to mend it.

* a pattern that cannot be read, or a text region that nothing fits,
* a rule that can begin with itself (the automaton would unfold it without end),
* a rule that no start reaches (most often a misspelt name),
* a call without a name or arguments,
* a rule of answers that spells no values,
* a text that two canonical readings give different output for, found by a bounded search and shown.

Cost: graph walks over the rules; the search stops after `_STATES` states, about 50 ms.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from ..automaton import expression
from ..automaton.machine import Machine, State
from ..automaton.regex import RegexError
from ..automaton.regions import parse_region, terminal_dfa
from ..errors import GrammarError
from ..limits import DEFAULT_LIMITS
from .alphabet import Alphabet
from .answer import content_terminals
from .canonical import value_roles
from .compile import Reading, names_in
from .reading import parser_machine
from .rules import Choice, Grammar, Group, Literal, Loop, Node, Rule, Terminal, Use

__all__ = ["ambiguity", "check", "check_ambiguity", "check_rules", "explore", "steps_of"]

_STATES = 200  # states that the search for ambiguities looks at
_COMMON = b" \na0\"<[{"  # bytes tried beside those of the grammar's own literals


def check(grammar: Grammar) -> None:
    """Raise `GrammarError` for the first fault found."""
    check_rules(grammar)
    check_ambiguity(grammar)


def check_rules(grammar: Grammar) -> None:
    """The checks that look at the rules alone."""
    _check_patterns(grammar)
    _check_recursion(grammar)
    _check_calls(grammar)
    _check_answer(grammar)
    _check_reached(grammar)


def check_ambiguity(grammar: Grammar) -> None:
    """The check that runs the automaton."""
    witness = ambiguity(grammar)
    if witness is not None:
        raise GrammarError(
            f"two canonical readings of one text give different output: {witness!r}", file=grammar.file,
            hint="give one alternative a negative priority, or let a terminal exclude what begins the other",
        )


def _fault(grammar: Grammar, rule: Rule | Terminal, message: str, hint: str) -> GrammarError:
    own = not rule.space
    line, column = rule.place.line, rule.place.column
    if line is None and own:  # a rule of names alone: the reader of the notation gives no places
        begin = re.search(rf"^[?!]*{re.escape(rule.name)}\b", grammar.source, re.MULTILINE)
        line, column = (grammar.source.count("\n", 0, begin.start()) + 1, 1) if begin else (None, None)
    return GrammarError(
        message, file=grammar.file, source=grammar.source if own else None, line=line, column=column, hint=hint
    )


def _check_patterns(grammar: Grammar) -> None:
    for terminal in grammar.terminals.values():
        for kind, pattern, flags in (piece for pieces in terminal.pieces for piece in pieces):
            if kind != "re":
                continue
            try:
                region = parse_region(pattern, flags)
                if region is None:
                    terminal_dfa(pattern, flags)
            except RegexError as error:
                hint = error.hint or "docs/grammars.md says which patterns there are"
                what = f"terminal {terminal.name}: {error.construct}, at position {error.position} of its pattern"
                raise _fault(grammar, terminal, what, hint) from error
            if region is not None and b"" in region.literals:
                raise _fault(
                    grammar, terminal, f"terminal {terminal.name}: no text fits, since the empty text ends it",
                    "write what ends the text after (?!",
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
    todo = [start.rule for start in grammar.starts] + [recover.then for recover in grammar.recovers] + [grammar.answer]
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


def _check_answer(grammar: Grammar) -> None:
    """An answer that follows a schema needs a rule of values, and a text region under `content` to stand in."""
    if not grammar.answer:
        return
    rule = grammar.rules[grammar.answer]
    if not value_roles(grammar.answer, grammar):
        raise _fault(
            grammar, rule, f"the rule of answers is to list rules of values, but it is: {rule}",
            "%import .json.value -> answer_value, and the line: //@ answer answer_value",
        )
    if not content_terminals(grammar):
        raise _fault(grammar, rule, "answers need a text region under a rule content", "content: TEXT")


def ambiguity(grammar: Grammar) -> str | None:
    """A text that two canonical readings disagree on, if a bounded search finds one."""
    for start in grammar.starts:
        machine = parser_machine(grammar, start.rule, Alphabet.of(grammar.markers), Reading.STRICT, DEFAULT_LIMITS)
        for state, text in explore(machine, steps_of(grammar), _STATES):
            if sum(ending is not None for ending in state.ends) > 1:
                return text.decode("utf-8", "replace")
    return None


def steps_of(grammar: Grammar) -> bytes:
    """The bytes that a search through the states of a grammar tries."""
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


def explore(machine: Machine, tried: bytes, most: int) -> Iterator[tuple[State, bytes]]:
    """States and a text that leads to each, nearest first, until `most` are known. A step is a byte of `tried`, or the
    whole of a literal that may come next."""
    todo: deque[tuple[State, bytes]] = deque([(machine.start, b"")])
    seen = {machine.start}
    while todo:
        state, text = todo.popleft()
        yield state, text
        for data in _steps(state, tried) if len(seen) < most else ():
            step = state.run(data)
            if step is not None and step.state not in seen:
                seen.add(step.state)
                todo.append((step.state, text + data))


def _steps(state: State, tried: bytes) -> Iterator[bytes]:
    leaves = dict.fromkeys(leaf for thread in state.threads for _, leaf, _ in thread.heads())
    yield from (leaf.data for leaf in leaves if isinstance(leaf, expression.Literal))
    yield from (bytes((byte,)) for byte in tried if state.first >> byte & 1)
