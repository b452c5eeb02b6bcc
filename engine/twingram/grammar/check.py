"""Checks of a grammar when it is loaded: what would make it hang, mean nothing, or mean two things.

In: a `Grammar`. Out: nothing, or a `GrammarError` with the place and a way to mend it.

* a pattern that cannot be read, a text region that nothing fits, a terminal that can be empty,
* a text or a sync point that ends at a marker and at what stands around it,
* a rule that can begin with itself (the automaton would unfold it without end), or leads back to itself where calls
  and thoughts are counted or a tool is put in,
* a rule that no start reaches (most often a misspelt name),
* a call that could be read and never be written, see `calls`,
* a rule of answers that spells no values,
* a text that two canonical readings give different output for, found by a bounded search and shown.

Cost: graph walks over the rules; the search stops after `_STATES` states, about 50 ms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ..automaton import expression
from ..automaton.dfa import difference
from ..automaton.machine import Machine, State
from ..automaton.regex import RegexError, tree_dfa
from ..automaton.regions import exclude_dfa, is_nearly_region, parse_region, terminal_dfa
from ..errors import GrammarError
from ..limits import DEFAULT_LIMITS
from .alphabet import Alphabet
from .answer import content_terminals
from .calls import check_calls
from .canonical import NO_PARTS, canonical, canonical_rules, value_roles
from .compile import Reading, names_in
from .reading import parser_machine
from .regions import overlaps
from .rules import CLOSED_RULES, COMMIT_RULE, END_RULE, Choice, Grammar, Group, Literal, Loop, Node, Rule, Terminal, Use

__all__ = ["ambiguity", "check", "check_ambiguity", "check_rules", "explore", "steps_of"]

_STATES = 200  # states that the search for ambiguities looks at
_COUNTED = frozenset({"content", "reasoning", "tool_call"})  # what a request counts
_FILLED = frozenset({"tool_name", "silent", "arguments", "object"})  # what a request puts in
_COMMON = b" \na0\"<[{"  # bytes tried beside those of the grammar's own literals


def check(grammar: Grammar) -> None:
    """Raise `GrammarError` for the first fault found."""
    check_rules(grammar)
    check_ambiguity(grammar)


def check_rules(grammar: Grammar) -> None:
    """The checks that look at the rules alone."""
    _check_patterns(grammar)
    _check_empty_terminals(grammar)
    _check_generated_regions(grammar)
    _check_markers(grammar)
    _check_recursion(grammar)
    _check_turns(grammar)
    _check_known_rules(grammar)
    _check_conditions(grammar)
    check_calls(grammar)
    _check_answer(grammar)
    _check_reached(grammar)


def check_ambiguity(grammar: Grammar) -> None:
    """The check that runs the automaton."""
    witness = ambiguity(grammar)
    if witness is not None:
        warnings = overlaps(grammar)
        hint = "give one alternative a negative priority, or let a terminal exclude what begins the other"
        raise GrammarError(
            f"two canonical readings of one text give different output: {witness!r}", file=grammar.file,
            hint=f"{hint}; {warnings[0]}" if warnings else hint,
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
                raise grammar.fault(terminal, what, hint) from error
            if region is None and is_nearly_region(pattern, flags):
                raise grammar.fault(
                    terminal, f"terminal {terminal.name} is nearly a text region, and would be read as a mere pattern",
                    f"{terminal.name}: /((?!END|END).)+/s, the flag s included; it may stand behind one (?!BEGINNING)",
                )
            if region is None:
                continue
            if b"" in region.literals or (region.unlike is not None and tree_dfa(region.unlike).matches(b"")):
                raise grammar.fault(
                    terminal, f"terminal {terminal.name}: no text fits, since the empty text ends it",
                    "write what ends the text after (?!",
                )


def _check_empty_terminals(grammar: Grammar) -> None:
    """A terminal that a rule uses reads something."""
    branches = [branch for rule in grammar.rules.values() for branch in rule.choice.branches]
    used = {use.name for branch in branches for use in names_in(branch.node)}
    for terminal in grammar.terminals.values():
        if terminal.name in used and _reads_nothing(terminal):
            name = terminal.name
            raise grammar.fault(
                terminal, f"terminal {name} can be the empty text",
                f"let it read one character or more, and write [{name}] where it may be left out",
            )


def _check_generated_regions(grammar: Grammar) -> None:
    """What ends a text that is generated begins with fixed text: masks keep clear of that."""
    rules = [grammar.rules[name] for name in canonical_rules(grammar)]
    nodes = [canonical(branch.node, grammar) for rule in rules for branch in rule.choice.branches]
    used = {use.name for node in nodes if node is not None for use in names_in(node)}
    for terminal in grammar.terminals.values():
        region = parse_region(*terminal.pattern) if terminal.pattern and terminal.name in used else None
        if region is not None and b"" in region.prefixes:
            raise grammar.fault(
                terminal, f"terminal {terminal.name}: what ends it does not begin with a fixed text",
                "begin each alternative after (?! with plain letters, or write one /pattern/ of the text itself",
            )


def _check_markers(grammar: Grammar) -> None:
    """A marker may be one token: a text ends at it alone, not at it and what stands around it."""
    markers = frozenset(marker.encode() for marker in grammar.markers)
    without = exclude_dfa(markers, strict=False)
    for terminal in grammar.terminals.values():
        region = parse_region(*terminal.pattern) if terminal.pattern is not None else None
        for tree, exact in () if region is None else zip(region.terminators, region.literals, strict=True):
            if exact not in markers and difference(tree_dfa(tree), without).start:
                raise grammar.fault(
                    terminal, f"terminal {terminal.name}: an end that holds a marker and more",
                    "a marker may be one token: write it alone after (?!, and what stands around it in the rule",
                )
    for recover in grammar.recovers:
        for text, _ in recover.until:
            if len(grammar.pieces(text)) > 1:
                raise GrammarError(
                    f"recover {recover.role}: a sync point that holds a marker and more: {text!r}", file=grammar.file,
                    hint="a marker may be one token: write it alone",
                )


def _reads_nothing(terminal: Terminal) -> bool:
    """Whether a terminal can be the empty text."""

    def empty(kind: str, body: str, flags: str) -> bool:
        if kind == "str":
            return not body
        region = parse_region(body, flags)
        return not region.least if region is not None else terminal_dfa(body, flags).matches(b"")

    return any(all(empty(*piece) for piece in pieces) for pieces in terminal.pieces)


def _check_recursion(grammar: Grammar) -> None:
    nullable = _nullable(grammar)
    edges = {name: _beginnings(rule, grammar, nullable) for name, rule in grammar.rules.items()}
    for name in grammar.rules:
        seen, todo = set(), list(edges[name])
        while todo:
            at = todo.pop()
            if at == name:
                raise grammar.fault(
                    grammar.rules[name], f"rule {name!r} can begin with itself",
                    "write a repetition (x* or x (\",\" x)*) instead of left recursion",
                )
            if at not in seen:
                seen.add(at)
                todo += edges[at]


def _check_turns(grammar: Grammar) -> None:
    """A request counts calls, thoughts and answers, and puts a tool into its call: neither leads round in circles."""
    calls = [rule.name for rule in grammar.rules.values() if rule.role == "tool_call"]
    for names, ends in (([start.rule for start in grammar.starts], _COUNTED), (calls, _FILLED)):
        found = _circle(names, ends, grammar)
        if found is not None:
            where = "in the rules of a turn" if ends is _COUNTED else "in a call, outside its arguments"
            raise grammar.fault(
                found, f"rule {found.name!r} leads back to itself {where}",
                "write a repetition (x* or x (\",\" x)*) instead",
            )


def _circle(names: list[str], ends: frozenset[str], grammar: Grammar) -> Rule | None:
    """A rule below `names` that leads back to itself, what stands under the roles `ends` left aside; of those that
    lead to such a role at all, where it is a matter of counting."""
    done: set[str] = set()
    path: list[tuple[str, list[str]]] = [("", list(names))]
    while path:
        name, below = path[-1]
        if not below:
            done.add(name)
            path.pop()
            continue
        at = below.pop()
        rule = grammar.rules.get(at)
        if rule is None or at in done or rule.parsed_only or (at not in names and rule.role in ends):
            continue
        if at in [each for each, _ in path]:
            if ends is _FILLED or _leads_to(at, ends, grammar):
                return rule
            continue
        nodes = [canonical(branch.node, grammar) for branch in rule.choice.branches if branch.role not in ends]
        path.append((at, [use.name for node in nodes if node is not None for use in names_in(node)]))
    return None


def _leads_to(name: str, roles: frozenset[str], grammar: Grammar) -> bool:
    """Whether a rule has another below it that stands for one of the roles."""
    seen, todo = set[str](), [name]
    while todo:
        rule = grammar.rules.get(todo.pop())
        if rule is not None and rule.name not in seen:
            seen.add(rule.name)
            if rule.role in roles or any(branch.role in roles for branch in rule.choice.branches):
                return True
            todo += [use.name for branch in rule.choice.branches for use in names_in(branch.node)]
    return False


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
            raise grammar.fault(
                rule, f"no start rule leads to rule {name!r}",
                "use it somewhere, or take it out; is its name spelt alike in both places?",
            )


def _check_known_rules(grammar: Grammar) -> None:
    """The rules that the engine knows by name say nothing themselves."""
    for name in (COMMIT_RULE, END_RULE, *CLOSED_RULES):
        rule = grammar.rules.get(name)
        if rule is not None and any(branch.node != NO_PARTS for branch in rule.choice.branches):
            raise grammar.fault(rule, f"rule {name!r} has a body", f"it is known by its name: {name}:")


def _check_conditions(grammar: Grammar) -> None:
    for name in sorted(grammar.conditions):
        rule = grammar.rules.get(name)  # a terminal has none, and no role
        if rule is None or rule.role not in ("tool_name", "silent", "key"):
            raise GrammarError(
                f"_declared{{{name}}}: there is no list of what is declared for this rule", file=grammar.file,
                hint="a condition stands around a rule whose role is tool_name or key, or around a silent name",
            )


def _check_answer(grammar: Grammar) -> None:
    """An answer that follows a schema needs a rule of values, and a text region under `content` to stand in."""
    if not grammar.answer:
        return
    rule = grammar.rules[grammar.answer]
    if not value_roles(grammar.answer, grammar):
        raise grammar.fault(
            rule, f"the rule of answers is to list rules of values, but it is: {rule}",
            "%import .json.value -> answer_value, and the line: //@ answer answer_value",
        )
    terminals = content_terminals(grammar)
    if not terminals:
        raise grammar.fault(rule, "answers need a text region under a rule content", "content: TEXT")
    for name in terminals:
        pattern = grammar.terminals[name].pattern
        region = parse_region(*pattern) if pattern is not None else None
        if region is not None and region.unlike is not None:
            raise grammar.fault(
                grammar.terminals[name], f"an answer may begin as terminal {name} must not",
                "leave out what stands in front of the region, or the line answer",
            )


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
    return bytes(sorted({*_COMMON, *(text.encode()[0] for text in grammar.literals() if text)}))


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
