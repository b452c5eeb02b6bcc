"""Constraints: a format, a vocabulary and a request, compiled.

In: the checked parts of a request. Out: an immutable `Constraint`: the automaton of the turn, its masks, a report of
what the schemas ask that the mask does not say. Many sessions share one, in any number of threads.

What belongs to a format and an alphabet alone (`MaskFormat`: the compiled rules, how values are spelt, schemas seen
before) is shared by all constraints that use them.
Cost: what is new in the request; a tool seen before, with the same options, costs one look-up.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

from ..automaton.depth import Depth
from ..automaton.expression import INFINITE, NOTHING, Expr, literal
from ..automaton.machine import Machine, State, Transition
from ..automaton.regions import terminal_dfa
from ..caches import charge, watch
from ..errors import RequestError, SchemaError, VocabularyError
from ..grammar.alphabet import Alphabet
from ..grammar.answer import AnswerPlace
from ..grammar.calls import arguments_of, name_terminal
from ..grammar.compile import Compiler, Holes, Reading
from ..grammar.rules import Grammar
from ..grammar.turn import TurnPolicy, compile_turn
from ..limits import Limits
from ..schema.compiler import SchemaOptions, compile_arguments, compile_value
from ..schema.report import CompiledSchema, Finding
from ..schema.surely import put_off, surely_written
from ..tokens.binding import TokenBinding
from ..tokens.distance import Distances
from ..tokens.mask_table import MaskTable
from ..tokens.masks import Mask, Masks
from ..tokens.vocabulary import Vocabulary
from ..tokens.wide import WideMasks
from .callids import CallIds
from .emitter import Emitter
from .request import Choice
from .session import Session
from .tools import Tools

__all__ = ["Constraint", "MaskFormat", "mask_format"]

_SORTED, _AS_GIVEN = json.JSONEncoder(sort_keys=True, default=str), json.JSONEncoder(default=str)
_SCHEMAS_KEPT = 1024  # compiled schemas of a format and alphabet
_SCHEMA_BYTES = 30  # that one holds, for each character of its text


class MaskFormat:
    """A grammar compiled for masks over one alphabet."""

    def __init__(self, grammar: Grammar, alphabet: Alphabet) -> None:
        self.grammar, self.alphabet = grammar, alphabet
        self.compiler = Compiler(grammar, alphabet, Reading.MASK)
        self._schemas: OrderedDict[tuple[str, SchemaOptions], CompiledSchema] = OrderedDict()
        self._held = 0  # characters of their texts
        watch(self)
        found = arguments_of(self.compiler)
        if found is None:
            raise RequestError(f"format {grammar.name!r} has no rule tool_call with arguments: calls cannot be forced")
        self.values, self.arguments = found
        self._name = name_terminal(grammar)
        pattern = grammar.terminals[self._name].pattern
        self._names = None if pattern is None else terminal_dfa(*pattern)

    def holes(self, name: str, arguments: Expr) -> Holes:
        """What makes the format's call rules those of one tool."""
        spelt = literal(name.encode())
        tags = self.compiler.tags
        return {
            "tool_name": tags("tool_name", spelt), "silent": tags("silent", spelt),
            "arguments": arguments, "object": arguments,
        }  # fmt: skip

    def check_name(self, name: str) -> None:
        """`SchemaError` if a tool of this name cannot be called in this format."""
        reason = ""
        if name in self.grammar.reserved:
            reason = f"the name has a meaning of its own here, as have {', '.join(sorted(self.grammar.reserved))}"
        elif any(marker in name for marker in self.grammar.markers):
            reason = "the name holds the letters of a marker"
        elif self._names is not None and not self._names.matches(name.encode("utf-8", "surrogatepass")):
            pattern = self.grammar.terminals[self._name].pattern
            reason = f"the format cannot spell it (names are /{pattern[0] if pattern else ''}/)"
        if reason:
            raise SchemaError(reason, tool=name, path="$", keyword="name", hint="rename the tool")

    def compile(self, name: str, schema: Any, options: SchemaOptions) -> CompiledSchema:
        """The arguments of a tool; equal schemas are compiled once, and plain ones when they are reached."""
        shape = self.arguments

        def made(text: str) -> CompiledSchema:
            containers = surely_written(schema, shape, options) if text else None
            if containers is None:
                return compile_arguments(schema, shape, tool=name, options=options)
            return put_off(  # from the text: the caller may change what was given, once the constraint stands
                lambda: compile_arguments(json.loads(text), shape, tool=name, options=options), containers, shape.before
            )

        return self._once(schema, options, "", made)

    def compile_answer(self, schema: Any, options: SchemaOptions) -> tuple[CompiledSchema, Holes]:
        """An answer that follows a schema, and what puts it in the place of content."""
        place = self._answer_place
        if place is None:
            hint = "its grammar has no line such as: //@ answer RULE"
            name = self.grammar.name
            raise RequestError(f"response_schema: format {name!r} does not say how data is answered; {hint}")
        made = self._once(schema, options, "answer", lambda _: compile_value(schema, place.spelling, options=options))
        return made, dict.fromkeys(place.terminals, made.expr)

    @cached_property
    def _answer_place(self) -> AnswerPlace | None:
        return AnswerPlace.of(self.compiler)

    def _once(
        self, schema: Any, options: SchemaOptions, kind: str, make: Callable[[str], CompiledSchema]
    ) -> CompiledSchema:
        """What `make` compiles, kept for equal schemas. It is given the schema as JSON text, "" if there is none."""
        try:
            text = (_SORTED if options.key_order == "any" else _AS_GIVEN).encode(schema)
        except (RecursionError, TypeError, ValueError):  # too deep, holds itself, keys of several kinds: an odd schema
            return make("")
        key = (kind + text, options)
        found = self._schemas.get(key)
        if found is None:
            found = make(text)
            if len(self._schemas) >= _SCHEMAS_KEPT:
                (old, _), _ = self._schemas.popitem(last=False)
                self._held -= len(old)
            self._schemas[key] = found
            self._held += len(key[0])
            charge(_SCHEMA_BYTES * len(key[0]))
        return found

    def memory_usage(self) -> int:
        """Bytes of the compiled schemas that are kept, about."""
        return _SCHEMA_BYTES * self._held

    def clear(self) -> None:
        """Forget them."""
        self._schemas, self._held = OrderedDict(), 0


@lru_cache(maxsize=32)
def mask_format(grammar: Grammar, alphabet: Alphabet) -> MaskFormat:
    return MaskFormat(grammar, alphabet)


@lru_cache(maxsize=8)
def distances_of(vocabulary: Vocabulary) -> Distances:
    return Distances(vocabulary)


@lru_cache(maxsize=8)
def _reserving(vocabulary: Vocabulary, stops: tuple[int, ...]) -> Vocabulary:
    return vocabulary.reserving(stops)


def _stop_id(stop: int | str, grammar: Grammar, vocabulary: Vocabulary) -> int:
    special = vocabulary.special_tokens
    if isinstance(stop, str):
        if stop not in special:
            raise VocabularyError(f"stop_tokens names {stop!r}, which is no special token of the vocabulary")
        stop = special[stop]
    if not 0 <= stop < len(vocabulary):
        raise VocabularyError(f"stop token {stop} is outside the vocabulary of {len(vocabulary)} tokens")
    needed = [*set(grammar.markers) - {*grammar.stops, *grammar.stops_after_call}]
    if stop in [special[marker] for marker in needed if marker in special]:
        name = vocabulary.token_bytes(stop).decode()
        raise RequestError(f"stop_tokens names {name!r}, which does not end a turn of {grammar.name} but stands in it")
    return int(stop)


class Constraint:
    """One compiled request. Made by `Format.constraint`."""

    def __init__(
        self,
        grammar: Grammar,
        vocabulary: Vocabulary,
        tools: Tools,
        choice: Choice,
        *,
        start: str,
        begun: bool,
        parallel_tool_calls: bool,
        reasoning: str,
        options: SchemaOptions,
        on_refused: str,
        response_schema: Any,
        stop_tokens: Sequence[int | str] | None,
        max_tokens: int | None,
        limits: Limits,
        remake: Callable[[SchemaOptions], Constraint],
        exporter: Callable[[Constraint, str], str],
    ) -> None:
        self.options, self._remake, self._exporter = options, remake, exporter
        stops = None if stop_tokens is None else tuple(_stop_id(stop, grammar, vocabulary) for stop in stop_tokens)
        self.mask_table = MaskTable.of(vocabulary)
        vocabulary = _reserving(vocabulary, stops) if stops else vocabulary
        self.grammar, self.vocabulary, self.tools, self.limits = grammar, vocabulary, tools, limits
        alphabet = Alphabet.of(grammar.markers, vocabulary.special_tokens)
        self._format = mask_format(grammar, alphabet)
        self._refused: list[Finding] = []
        self._compiled: dict[str, CompiledSchema] = {}
        holes = self._compile_tools(choice, options, on_refused)
        answer: Holes | None = None
        self._answer: CompiledSchema | None = None
        if response_schema is not None:
            self._answer, answer = self._format.compile_answer(response_schema, options)
        policy = TurnPolicy(
            content=not choice.required,
            min_calls=int(choice.required),
            max_calls=0 if not holes else None if parallel_tool_calls else 1,
            reasoning=reasoning,
        )
        expr = compile_turn(self._format.compiler, start, policy, holes, begun=begun, answer=answer)
        if expr is NOTHING:
            raise RequestError(f"nothing can be generated: rule {start!r} has no turn with {policy}")
        self.binding = self._bind(alphabet, stops)
        self.machine = Machine(expr, widths=alphabet.widths, limits=limits, depth=self._depth(), ordered=False)
        self.masks = Masks(self.binding, WideMasks.of(vocabulary))
        self.end_bits = 1 << alphabet.end | 1 << alphabet.end_after_call
        self.stop_mask: Mask = self.masks.only(self.binding.stops)
        self.distances = distances_of(vocabulary)
        # Where every byte has a token, what has an end can be spelt: a third of the time of an unseen request saved.
        if vocabulary.missing_bytes and self.distances.of_state(self.machine.start) >= INFINITE:
            raise VocabularyError(
                "no tokens spell any turn of this request: a byte that it needs has no token, or only a stop token"
            )
        self.max_tokens = max_tokens
        self.most = INFINITE - 1 if max_tokens is None and vocabulary.missing_bytes else max_tokens
        """Tokens of a turn; None where every token that the automaton reads can be followed to an end."""
        self._worst: WeakKeyDictionary[State, int] = WeakKeyDictionary()  # see is_ample
        self._landed: WeakKeyDictionary[State, tuple[int, Mask]] = WeakKeyDictionary()  # the last, see landing_mask
        if max_tokens is not None:
            least = self.distances.of_state(self.machine.start) - 1
            if least > max_tokens:
                raise RequestError(f"max_tokens={max_tokens} is too little: the shortest turn has {least} tokens")

    def _compile_tools(self, choice: Choice, options: SchemaOptions, on_refused: str) -> Mapping[str, Holes]:
        holes: dict[str, Holes] = {}
        refused: list[SchemaError] = []
        for name in choice.names:
            try:
                self._format.check_name(name)
                compiled = self._format.compile(name, self.tools.schema(name), options)
            except SchemaError as error:
                if choice.named or on_refused == "error":
                    raise
                refused.append(error)
                self._refused.append(Finding(name, error.path, error.keyword, "refused", error.message))
                continue
            self._compiled[name] = compiled
            holes[name] = self._format.holes(name, compiled.expr)
        if refused and choice.required and not holes:
            raise refused[0]
        return holes

    def _depth(self) -> Depth:
        """How many containers may be open, and how many a schema asks for at most before an end."""
        compiled = [*self._compiled.values(), *([] if self._answer is None else [self._answer])]
        return Depth(self.limits.depth, max((schema.containers for schema in compiled), default=0))

    def _bind(self, alphabet: Alphabet, given: Sequence[int] | None) -> TokenBinding:
        special = self.vocabulary.special_tokens
        stops, after_call = given, list[int]()
        if stops is None:
            stops = [special[name] for name in self.grammar.stops if name in special]
            after_call = [special[name] for name in self.grammar.stops_after_call if name in special]
        if not stops:
            names = ", ".join(self.grammar.stops)
            why = f"the vocabulary has none of the stop tokens {names}" if names else "the format has no stop tokens"
            raise VocabularyError(f"{why}; give stop_tokens=")
        return TokenBinding(self.vocabulary, alphabet, stops=stops, stops_after_call=after_call)

    def stop_transition(self, state: State, token: int) -> Transition | None:
        """Where a stop token leads from a state in which the turn may end."""
        alphabet = self.binding.alphabet
        for symbol in (alphabet.end, alphabet.end_after_call):
            if state.first >> symbol & 1 and token in self.binding.ids(symbol):
                return state.step(symbol)
        return None

    def is_ample(self, state: State, left: int) -> bool:
        """Whether any token that `state` allows can be ended within `left` tokens, itself included."""
        worst = self._worst.get(state)
        if worst is None:
            worst = self._worst[state] = self.masks.farthest(state, self.distances)
        return worst <= left

    def landing_mask(self, state: State, left: int) -> Mask:
        """The mask where `left` tokens are left before the stop token."""
        if self.is_ample(state, left):
            return self.masks.of(state)
        within = INFINITE - 1 if self.max_tokens is None else left  # without a budget any end will do
        found = self._landed.get(state)
        if found is None or found[0] != within:
            found = self._landed[state] = within, self.masks.within(state, self.distances, within)
        return found[1]

    def forced_tokens(self, state: State) -> list[int]:
        """The tokens that the automaton and the tokenizer leave no choice about."""
        out: list[int] = []
        while True:
            run, after = self._forced_run(state)
            ids = self._settled_tokens(run, after.first >= 1 << 256 and not after.first & ((1 << 256) - 1))
            for token in ids:
                transition = self.binding.transition(state, token)
                if transition is None:
                    return out
                out.append(token)
                state = transition.state
            if state is not after or after.first & (after.first - 1) or after.first & self.end_bits or not after.first:
                return out
            marker = self.binding.ids(after.first.bit_length() - 1)
            step = after.step(after.first.bit_length() - 1)
            if len(marker) != 1 or step is None:
                return out
            out.append(marker[0])
            state = step.state

    def _forced_run(self, state: State) -> tuple[bytes, State]:
        """The bytes without a choice from `state` on, and where they lead."""
        run = bytearray()
        while 0 < state.first < 1 << 256 and not state.first & (state.first - 1):
            byte = state.first.bit_length() - 1
            step = state.step(byte)
            if step is None:
                break
            run.append(byte)
            state = step.state
        return bytes(run), state

    def _settled_tokens(self, run: bytes, closed: bool) -> list[int]:
        """How the tokenizer spells `run`, up to where a longer token could begin that reaches past its end."""
        try:
            ids = self.vocabulary.encode(run.decode())
        except UnicodeDecodeError:
            return []
        limit = len(run)
        if not closed:
            limit = next((at for at in range(len(run)) if self.vocabulary.trie.walk(run[at:]) >= 0), len(run))
        out, at = [], 0
        for token in ids:
            at += len(self.vocabulary.token_bytes(token))
            if at > limit:
                break
            out.append(token)
        return out

    def emitter(self, ids: CallIds) -> Emitter:
        """A new emitter for one generation."""
        return Emitter(self.tools, casts=self.grammar.casts, call_id=ids, limits=self.limits)  # type: ignore[arg-type]

    def session(self, *, call_id: Callable[[], str] | None = None) -> Session:
        """Begin a generation. `call_id`: factory of call ids, random by default."""
        return Session(self, call_id)

    def ordered(self, key_order: str) -> Constraint:
        """The same request with the keys of objects in one order; itself if they stand in one already."""
        if self.options.key_order != "any":
            return self
        return self._remake(replace(self.options, key_order=key_order))

    def export(self, to: str) -> str:
        """What is allowed, as grammar text for another engine: `to` is "xgrammar", "gbnf" or "llguidance".

        Special tokens are tokens there, by their ids. Keys in any order are written in the declared one (pass
        `key_order="sorted"` for the other). Not in the text: `max_tokens`, how deep containers may nest, and the stop
        tokens that end any turn, which the engine adds of itself; those that follow a call are in it. `ExportError` if
        something cannot be said without allowing more or less.
        """
        return self._exporter(self, to)

    def report(self) -> list[Finding]:
        """Per tool, JSON path and keyword what the mask does of it: enforced, narrowed, relaxed or refused.

        What is said of the schema of the answer has the empty name in the place of a tool's.
        """
        found = [f.for_tool(name) for name, compiled in self._compiled.items() for f in compiled.findings]
        answer = [] if self._answer is None else [*self._answer.findings]
        return self._refused + found + answer

    def memory_usage(self) -> int:
        """Bytes held by this constraint alone, about: states and masks (rows of text are the vocabulary's)."""
        landed = sum(mask.memory_usage() for _, mask in list(self._landed.values()))
        return self.machine.memory_usage() + self.masks.memory_usage() + self.binding.memory_usage() + landed
