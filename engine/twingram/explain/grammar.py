"""What a grammar file says, for its author.

In: a `Grammar` whose rules are sound. Out: a `GrammarReport`: roles, starts, markers, what is only parsed, how many
states a bounded search meets, the text that the most readings stay side by side for, the text that two canonical
readings disagree on with both readings, and warnings that no single rule shows.
Cost: the search, about a tenth of a second for each start and reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..automaton.machine import Machine, State
from ..automaton.tags import Tag, TagKind
from ..grammar.alphabet import Alphabet
from ..grammar.canonical import canonical_rules
from ..grammar.check import explore, steps_of
from ..grammar.compile import Reading
from ..grammar.reading import parser_machine
from ..grammar.regions import region_warnings
from ..grammar.rules import COMMIT_RULE, ROLES, TEXT_ROLES, Grammar, Rule
from ..limits import DEFAULT_LIMITS
from ..session.track import ROOT, Node, collect, common, extend, first_after

__all__ = ["Ambiguity", "GrammarReport", "Search", "report_lines", "report_on"]

_READINGS = (Reading.STRICT, Reading.LENIENT)
_STATES = 1000  # states that a search looks at
_GOES_ON = b"xxxx"  # text that ends nothing


@dataclass(frozen=True, slots=True)
class Search:
    """What a search from one start met. `threads`: the most readings side by side, and a text for them."""

    start: str
    reading: str
    states: int
    complete: bool
    threads: int
    threads_after: str


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """A text that has more than one reading: each with its tags written into the text."""

    text: str
    readings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GrammarReport:
    """All that there is to say of a grammar."""

    grammar: Grammar
    roles: tuple[tuple[str, tuple[str, ...]], ...]  # role, rules
    parsed_only: tuple[str, ...]
    on_request: tuple[str, ...]
    searches: tuple[Search, ...]
    ambiguity: Ambiguity | None
    held: Ambiguity | None
    warnings: tuple[str, ...]


def report_on(grammar: Grammar) -> GrammarReport:
    """Look at everything. `check.check_rules` must have passed."""
    own = [rule for rule in grammar.rules.values() if rule.name != COMMIT_RULE]
    canonical = canonical_rules(grammar)
    requested = [rule.name for rule in own if rule.on_request]
    return GrammarReport(
        grammar=grammar,
        roles=tuple(_roles(own)),
        parsed_only=tuple(rule.name for rule in own if rule.name not in canonical and not rule.on_request),
        on_request=tuple(requested),
        searches=tuple(_searches(grammar, [*_READINGS, *([Reading.SALVAGE] if requested else [])])),
        ambiguity=_ambiguity(grammar),
        held=_held(grammar),
        warnings=tuple(region_warnings(grammar)),
    )


def _roles(rules: list[Rule]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for role in sorted(ROLES):
        named = tuple(rule.name for rule in rules if role in (rule.role, *(each.role for each in rule.choice.branches)))
        if named:
            yield role, named


def _machine(grammar: Grammar, start: str, reading: Reading) -> Machine:
    return parser_machine(grammar, start, Alphabet.of(grammar.markers), reading, DEFAULT_LIMITS)


def _searches(grammar: Grammar, readings: list[Reading]) -> Iterator[Search]:
    for start in grammar.starts:
        for reading in readings:
            states, threads, after = 0, 0, b""
            for state, text in explore(_machine(grammar, start.rule, reading), steps_of(grammar), _STATES):
                states += 1
                if len(state.threads) > threads:
                    threads, after = len(state.threads), text
            yield Search(
                start.rule, reading.value, states, states < _STATES, threads, after.decode("utf-8", "backslashreplace")
            )


def _ambiguity(grammar: Grammar) -> Ambiguity | None:
    for start in grammar.starts:
        machine = _machine(grammar, start.rule, Reading.STRICT)
        for state, text in explore(machine, steps_of(grammar), _STATES):
            if sum(ending is not None for ending in state.ends) > 1:
                shown = text.decode("utf-8", "backslashreplace")
                state, nodes = _read(machine, text)
                ways = [(node, end) for node, end in zip(nodes, state.ends, strict=True) if end is not None]
                return Ambiguity(shown, tuple(dict.fromkeys(_tagged(text, node, end) for node, end in ways)))
    return None


def _held(grammar: Grammar) -> Ambiguity | None:
    """A text that nothing is given of however it goes on: it is being read in several ways, none of which can fail."""
    for start in grammar.starts:
        machine = _machine(grammar, start.rule, Reading.LENIENT)
        for state, text in explore(machine, steps_of(grammar), _STATES):
            more = text + _GOES_ON
            if len(state.threads) < 2 or state.run(_GOES_ON) is None:
                continue
            after, nodes = _read(machine, more)
            step = after.step(_GOES_ON[-1])
            stays = step is not None and step.state is after and step.moves is None and len(after.threads) > 1
            if stays and first_after(nodes, common(nodes)) is not None and _is_text(nodes[0]):
                shown = more.decode("utf-8", "backslashreplace")
                return Ambiguity(shown, tuple(dict.fromkeys(_tagged(more, node, ()) for node in nodes)))
    return None


def _is_text(node: Node) -> bool:
    """Whether a reading is inside a text that is given as it comes."""
    tags = [tag for tag, _ in collect(node, ROOT) if tag.kind in (TagKind.OPEN, TagKind.CLOSE)]
    if not tags or tags[-1].kind is not TagKind.OPEN:
        return False
    return tags[-1].role in TEXT_ROLES or (len(tags) > 1 and tags[-2].role == "string")


def _read(machine: Machine, text: bytes) -> tuple[State, tuple[Node, ...]]:
    """The state after a text, and for each reading what it has fired."""
    state, nodes = machine.start, (ROOT,) * len(machine.start.threads)
    for position, byte in enumerate(text):
        step = state.step(byte)
        assert step is not None, "the text came from a search"
        if step.moves is not None:
            nodes = extend(nodes, step.moves, position)
        state = step.state
    return state, nodes


def _tagged(text: bytes, node: Node, ending: Iterable[Tag]) -> str:
    """The text with the roles of a reading in brackets."""
    out, done = [], 0
    for tag, position in [*collect(node, ROOT), *((tag, len(text)) for tag in ending)]:
        out.append(text[done:position].decode("utf-8", "backslashreplace"))
        done = position
        if tag.kind is TagKind.OPEN:
            out.append(f"⟨{tag.role}:")
        elif tag.kind is TagKind.CLOSE:
            out.append("⟩")
    out.append(text[done:].decode("utf-8", "backslashreplace"))
    return "".join(out)


def report_lines(report: GrammarReport) -> Iterator[str]:
    """The report as text."""
    grammar = report.grammar
    yield f"format       {grammar.name} {grammar.version}, {grammar.file}"
    for start in grammar.starts:
        yield f"start        {start.rule}" + (f" after {start.after!r}" if start.after else "")
    yield f"stop         {_listed(grammar.stops)}"
    if grammar.stops_after_call:
        yield f"stop         {_listed(grammar.stops_after_call)} after a call"
    stops = {*grammar.stops, *grammar.stops_after_call}
    yield f"markers      {_listed(marker for marker in grammar.markers if marker not in stops)}"
    tables = "".join(f", escapes {table} in {space or 'this file'}" for space, table in grammar.escapes.items())
    yield f"casts        {grammar.casts}{tables}"
    if grammar.reserved:
        yield f"reserved     {_listed(sorted(grammar.reserved))}"
    for recover in grammar.recovers:
        until = ", ".join(f"{text!r} {'consumed' if consumed else 'kept'}" for text, consumed in recover.until)
        yield f"recover      {recover.role} until {until} then {recover.then}"
    if not grammar.recovers:
        yield "recover      nothing: behind what cannot be read, the rest of the turn is an error"
    for role, rules in report.roles:
        yield f"role         {role}: {', '.join(rules)}"
    yield f"parsed only  {', '.join(report.parsed_only) or 'nothing'}"
    if report.on_request:
        yield f"on request   {', '.join(report.on_request)}"
    yield from _findings(report)


def _findings(report: GrammarReport) -> Iterator[str]:
    for search in report.searches:
        more = "" if search.complete else " and more"
        yield (
            f"search       {search.start}, {search.reading}: {search.states} states{more}; at most {search.threads} "
            f"reading{'s' if search.threads > 1 else ''} side by side"
            + (f", after {search.threads_after!r}" if search.threads > 1 else "")
        )
    if report.ambiguity is None:
        yield "ambiguity    none found"
    else:
        yield f"ambiguity    {report.ambiguity.text!r} has canonical readings that differ:"
        for reading in report.ambiguity.readings:
            yield f"               {reading!r}"
    if report.held is not None:
        yield f"held back    {report.held.text!r} and more is given only later, for it may be:"
        for reading in report.held.readings:
            yield f"               {reading!r}"
    for warning in report.warnings:
        yield f"warning      {warning}"
    if not report.warnings:
        yield "warnings     none"


def _listed(texts: Iterable[str]) -> str:
    return " ".join(texts) or "none"
