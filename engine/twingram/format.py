"""Formats: the way in. A format is one grammar file, and everything else comes from it.

In: the name of a format that comes with the package, or a file of one's own. Out: parsers, messages and constraints.
Invariant: parser and mask are compiled from the same rules; a `Format` is immutable and can be shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from .automaton.bound import bound
from .automaton.machine import Machine, State
from .errors import RequestError
from .export import exported
from .grammar.alphabet import Alphabet
from .grammar.check import check
from .grammar.compile import Reading
from .grammar.declared import Declared, meaning
from .grammar.reading import parser_machine
from .grammar.rules import Grammar, Start
from .grammar.source import load, load_file
from .limits import DEFAULT_LIMITS, Limits
from .resources import format_names, grammar_path
from .schema.compiler import SchemaOptions
from .session.constraint import Constraint
from .session.message import Message
from .session.parser import Parser
from .session.request import count_or_none, flag, one_of, read_choice, stop_list
from .session.tools import Tools
from .session.warming import TOOLS, write
from .tokens.binding import TokenBinding, prompt_symbols
from .tokens.vocabulary import Vocabulary
from .uncollected import UNCOLLECTED

__all__ = ["Format", "list_formats", "load_format"]

_WARMING_TURNS = 3

ToolList = Iterable[Mapping[str, Any]] | Tools | None


class Format:
    """One model family's way of writing a turn."""

    def __init__(self, grammar: Grammar) -> None:
        check(grammar)
        self.grammar = grammar

    @classmethod
    def from_file(cls, path: str | Path) -> Format:
        """A format from a grammar file. Raises `GrammarError` with the place and a way to mend it."""
        return cls(load_file(path))

    @classmethod
    def from_text(cls, source: str, name: str = "<grammar>") -> Format:
        """A format from the text of a grammar."""
        return cls(load(source, name))

    @property
    def name(self) -> str:
        return self.grammar.name

    def __repr__(self) -> str:
        return f"<Format {self.name} from {self.grammar.file}>"

    def warm(self, vocabulary: Vocabulary) -> Format:
        """Make what the first calls of a process would have to make: the vocabulary's tables of text, the automata of
        the parsers and their first states. Returns the format itself.

        Takes about 0.1 s where the disk cache has the tables; call it once after loading, before requests come. Raises
        what `constraint` would raise of the vocabulary.
        """
        turns: list[list[int]] = [[]]
        roles = {rule.role for rule in self.grammar.rules.values()}
        if "tool_call" in roles:
            for choice, reasoning in (("required", "forbid"), ("required", "require"), ("auto", "allow")):
                if reasoning == "require" and "reasoning" not in roles:
                    continue
                constraint = self.constraint(TOOLS, choice, vocabulary=vocabulary, reasoning=reasoning)
                turns += [write(constraint, turn) for turn in range(_WARMING_TURNS)]
        for turn in turns:
            self.parse(turn, TOOLS, vocabulary=vocabulary)
            self.parse(vocabulary.decode(turn).decode("utf-8", "replace"), TOOLS)
        return self

    # -- parse ---------------------------------------------------------------------------------------------------------

    def parser(
        self,
        tools: ToolList = None,
        vocabulary: Vocabulary | None = None,
        *,
        strict: bool = False,
        salvage: bool = False,
        prompt_tail: str | Sequence[int] = "",
        call_id: Callable[[], str] | None = None,
        unknown_tools: str = "pass",
        limits: Limits = DEFAULT_LIMITS,
    ) -> Parser:
        """A streaming parser for one turn.

        `strict`: read the canonical form only. `salvage`: also read calls without any marker. `prompt_tail`: how the
        prompt ends, which decides where the turn starts. `unknown_tools`: "pass" them on, or give their markup as
        "text". A parser with a `vocabulary` can be fed tokens.
        """
        one_of("unknown_tools", unknown_tools, ("pass", "text"))
        flag("strict", strict)
        flag("salvage", salvage)
        _is_a("limits", limits, Limits)
        if vocabulary is not None:
            _is_a("vocabulary", vocabulary, Vocabulary)
        if strict and salvage:
            raise RequestError("strict=True and salvage=True contradict each other")
        reading = Reading.STRICT if strict else Reading.SALVAGE if salvage else Reading.LENIENT
        start, known = self._start(prompt_tail, vocabulary).rule, Tools.parse(tools)
        declared = known.conditions() if self.grammar.conditions and known.given and not strict else None

        def of_text() -> State:
            return _reads_text(self.grammar, start, reading, limits, declared)()

        def of_tokens() -> tuple[State, TokenBinding]:
            assert vocabulary is not None
            first, binding = _reads_tokens(self.grammar, start, vocabulary, reading, limits, declared)
            return first(), binding

        return Parser(
            of_text, of_tokens if vocabulary is not None else None, tools=known,
            casts=self.grammar.casts, call_id=call_id, limits=limits, unknown_tools=unknown_tools,
        )  # fmt: skip

    def parse(self, output: str | Sequence[int], tools: ToolList = None, **options: Any) -> Message:
        """Read a whole turn: text, or a list of token ids with `vocabulary=`. Options as for `parser`."""
        if isinstance(output, (bytes, bytearray)) or not isinstance(output, Iterable):
            raise TypeError(f"parse takes text or a list of token ids, not {type(output).__name__}")
        parser = self.parser(tools, **options)
        if isinstance(output, str):
            parser.feed(output)
        else:
            parser.feed_tokens(output)
        parser.finish()
        return parser.message

    def _start(self, prompt_tail: str | Sequence[int], vocabulary: Vocabulary | None) -> Start:
        """The start rule whose `after` the prompt ends with; the longest one wins, the first rule is the default.

        In a prompt of tokens a marker is its special token: its letters, as a user may have typed them, are text.
        """
        if isinstance(prompt_tail, (bytes, bytearray)) or not isinstance(prompt_tail, (str, Sequence)):
            raise TypeError(f"prompt_tail is the end of the prompt, text or tokens, not {type(prompt_tail).__name__}")
        if not prompt_tail:
            return self.grammar.starts[0]
        if isinstance(prompt_tail, str):
            ends = prompt_tail.endswith
        elif vocabulary is None:
            raise RequestError("prompt_tail as tokens needs vocabulary=")
        else:
            ends = prompt_symbols(prompt_tail, vocabulary, self.grammar.markers).endswith
        fitting = [start for start in self.grammar.starts if start.after and ends(start.after)]
        return max(fitting, key=lambda start: len(start.after), default=self.grammar.starts[0])

    # -- constrain -----------------------------------------------------------------------------------------------------

    def constraint(
        self,
        tools: ToolList = None,
        tool_choice: Any = None,
        *,
        vocabulary: Vocabulary,
        parallel_tool_calls: bool = True,
        reasoning: str = "allow",
        key_order: str = "any",
        stop_tokens: Sequence[int | str] | None = None,
        prompt_tail: str | Sequence[int] = "",
        additional_properties: str = "declared",
        on_unsupported: str = "relax",
        on_refused: str = "exclude",
        response_schema: Mapping[str, Any] | bool | None = None,
        check_formats: bool = True,
        max_tokens: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Constraint:
        """Compile a request into masks.

        `tool_choice`: "auto", "none", "required", a named function, or allowed_tools. `reasoning`: "allow", "require"
        or "forbid". `response_schema`: a JSON Schema of the answer itself, which is then JSON; with tools under "auto"
        the turn is such an answer or calls. `check_formats`: whether `format` restricts texts or only describes them.
        `max_tokens`: the turn is ended within this budget, the stop token not counted.
        Raises `RequestError`, `SchemaError`, `VocabularyError` or `LimitExceeded`.
        """
        one_of("reasoning", reasoning, ("allow", "require", "forbid"))
        one_of("key_order", key_order, ("any", "declared", "sorted"))
        one_of("additional_properties", additional_properties, ("declared", "schema"))
        one_of("on_unsupported", on_unsupported, ("relax", "error"))
        one_of("on_refused", on_refused, ("exclude", "error"))
        flag("parallel_tool_calls", parallel_tool_calls)
        flag("check_formats", check_formats)
        _is_a("vocabulary", vocabulary, Vocabulary)
        _is_a("limits", limits, Limits)
        if response_schema is not None and not isinstance(response_schema, (Mapping, bool)):
            raise RequestError(f"response_schema is a JSON Schema, not {type(response_schema).__name__}")
        known = Tools.parse(tools)
        start = self._start(prompt_tail, vocabulary)
        options = SchemaOptions(
            key_order=key_order,
            additional_properties=additional_properties,
            on_unsupported=on_unsupported,
            formats=check_formats,
            limits=limits,
        )
        choice, stops = read_choice(tool_choice, known), stop_list(stop_tokens)
        most = count_or_none("max_tokens", max_tokens)

        def made(options: SchemaOptions) -> Constraint:
            return Constraint(
                self.grammar, vocabulary, known, choice, start=start.rule, begun=start is not self.grammar.starts[0],
                parallel_tool_calls=parallel_tool_calls, reasoning=reasoning, options=options, on_refused=on_refused,
                response_schema=response_schema, stop_tokens=stops, max_tokens=most, limits=limits,
                remake=made, exporter=exported,
            )  # fmt: skip

        with UNCOLLECTED:
            return made(options)


def _is_a(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a twingram.{kind.__name__}, not {type(value).__name__}")


# A parser is made for each turn: what it shares with others is found in one look-up, for 0.4 us in place of 2.3.


@lru_cache(maxsize=256)
def _reads_text(
    grammar: Grammar, start: str, reading: Reading, limits: Limits, declared: Declared | None
) -> Callable[[], State]:
    alphabet = Alphabet.of(grammar.markers)
    machine = parser_machine(grammar, start, alphabet, reading, limits, conditions=declared is not None)
    return _start(grammar, machine, declared)


@lru_cache(maxsize=256)
def _reads_tokens(
    grammar: Grammar, start: str, vocabulary: Vocabulary, reading: Reading, limits: Limits, declared: Declared | None
) -> tuple[Callable[[], State], TokenBinding]:
    alphabet, mark = Alphabet.of(grammar.markers, vocabulary.special_tokens), vocabulary.fingerprint
    machine = parser_machine(grammar, start, alphabet, reading, limits, mark, declared is not None)
    return _start(grammar, machine, declared), _parser_binding(grammar, vocabulary, alphabet)


def _start(grammar: Grammar, machine: Machine, declared: Declared | None) -> Callable[[], State]:
    """Where the turns of some tools begin in the automaton that is the same for all."""
    if declared is None:
        return lambda: machine.start
    (thread,) = machine.start.threads
    threads = (bound(thread, meaning(declared, grammar.conditions)),)
    return lambda: machine.state(threads)


@lru_cache(maxsize=64)
def _parser_binding(grammar: Grammar, vocabulary: Vocabulary, alphabet: Alphabet) -> TokenBinding:
    special = vocabulary.special_tokens
    stops = [special[name] for name in (*grammar.stops, *grammar.stops_after_call) if name in special]
    return TokenBinding(vocabulary, alphabet, stops=stops, spelt=True)


@lru_cache(maxsize=16)
def load_format(name: str) -> Format:
    """A format that comes with the package, by name. `GrammarError` lists the names there are."""
    return Format.from_file(grammar_path(name))


def list_formats() -> list[str]:
    """The names of the formats that come with the package."""
    return format_names()
