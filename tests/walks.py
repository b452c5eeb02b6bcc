"""Shared by the property tests: the formats under test, a small vocabulary, requests, and random walks through masks.

In: the name of a format and a seeded source of chance. Out: requests that may be contradictory on purpose, and turns
whose every token was taken from a mask. Invariant: a walk ends. A uniform choice would hardly ever leave a text, so a
share of the steps, and every step of a long walk, goes downhill: to a token after which the end is nearer. The number
of walks comes from the environment: `TWINGRAM_WALKS` (the heavy tests walk 2,000 times).
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from numpy.typing import NDArray

import twingram as tg

from .oracle import FORMATS as SPOKEN
from .oracle import OracleState, Request, Symbol, Unsupported, initial, make_request
from .oracle.generate import plain_schema, random_tools
from .oracle.patterns import pattern

__all__ = [
    "FORMATS", "RUNES", "Asked", "Walk", "Walker", "alternatives", "asked", "budgets", "call_ids", "damaged",
    "json_prefix", "loaded", "oracle_of", "sessions", "small", "small_symbols", "small_trie", "stops", "symbols_of",
    "trie_of", "validator_of", "viable_tokens", "violations", "walked",
]  # fmt: skip

FORMATS = ("gemma4", "atem", "runes")
RUNES = Path(__file__).parent / "formats" / "runes.lark"
SPACE = "".join(char for char in map(chr, range(0x3001)) if char.isspace())  # what \s is in a grammar
WALKS = int(os.environ.get("TWINGRAM_WALKS", "36"))
MANY = 2000
STOPS = {"gemma4": ("<turn|>", "<eos>"), "atem": ("<|eot|>", "<|end_of_text|>"), "runes": ("[[end]]",)}
STOPS_AFTER_CALL = {"gemma4": ("<|tool_response>",), "atem": (), "runes": ()}
CALLS = {"gemma4": "<|tool_call>", "atem": "<atem:invoke", "runes": "[[call]]"}

# Tokens that straddle what matters: markers, closers, quotes, separators, characters of several bytes.
_PIECES = r"""
call: call thought assistant to= to=self =user =self name= invoke parameter atem: </atem: <atem: </atem:parameter
</atem:parameter> </atem:invoke> </atem:function_calls> function_calls <| |> <|" "|> <|"|> <tool tool_call <tool_call
_call|> <|tool channel <|channel> <channel <turn|> <eos> eos> <|e om|> ot|> <|eom|> a<|eom|> start|> message|> [[ ]] [[/
s]] [[s [[s]] call]] [[call]]f [[/ end]] }, }} ]} ], [[1 ,b ,a a: b: city: n:1 :[ :{ {} [] {"a {"a": ": ", "b "} " \u
\ud83d \u00e9 \n \\ \" \/ 10 00 -1 0. .5 e+ E-1 e1 1e 99 true false null yes no nil ; = | ab ing city filePath units
limit get_weather search fs.read add-item call:f f{ celsius null, true} "> ="a ="city"> x< <b> é 漢 😀 é漢 à <é
"""
_PARTS = (b"\xc3", b"\xa9a", b"\xe6\xbc", b"\xf0\x9f", b"\xf0\x9f\x98", b"\x98\x80", b"<\xf0", b" \xe6", b"\xff\xfe")
_SPACED = (
    b" to=", b" to=self", b" to=user", b"; ", b" | ", b", ", b": ", b"  ", b" a", b'parameter name="', b' name="',
    b">\n", b"\n\n", b"\n<", b'">\n', b"thought\n", b"</atem:parameter>\n", b">\n<atem:",
)  # fmt: skip
_MANY_ALLOWED = 512
Flags = NDArray[np.bool_]  # by token id
_LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)+"')
_EDGES = frozenset(b'<>|[]{}()"=:;,/\\\n')


@cache
def loaded(name: str) -> tg.Format:
    return tg.Format.from_file(RUNES) if name == "runes" else tg.load_format(name)


@cache
def small(name: str) -> tg.Vocabulary:
    """Some 450 tokens: every byte, awkward pieces, and the format's markers; other formats' markers are mere text."""
    words = [piece.encode() for piece in _PIECES.split()]
    special = dict.fromkeys([*SPOKEN[name].MARKERS, *STOPS[name], *STOPS_AFTER_CALL[name], "<pad>"])
    others = [marker.encode() for other in FORMATS for marker in SPOKEN[other].MARKERS if marker not in special]
    pieces = [*words, *_PARTS, *_SPACED, *others[::3]]
    tokens = dict.fromkeys([*(bytes((byte,)) for byte in range(256)), *pieces])
    return tg.Vocabulary.from_tokens(list(tokens), {marker: len(tokens) + at for at, marker in enumerate(special)})


def budgets(most: int = MANY) -> list[Any]:
    """How many walks: few by default, many in the heavy suite."""
    return [pytest.param(WALKS, id="few"), pytest.param(most, id="many", marks=pytest.mark.heavy)]


def damaged(text: str, rng: random.Random, wounds: Sequence[str]) -> str:
    """A turn with one to three wounds: something is cut out, doubled, moved, or one of `wounds` is put in."""
    for _ in range(rng.randint(1, 3)):
        low = rng.randint(0, len(text))
        high = min(len(text), low + rng.choice((1, 1, 2, 5, 20)))
        kind = rng.random()
        if kind < 0.4:
            text = text[:low] + text[high:]
        elif kind < 0.55:
            text = text[:high] + text[low:]
        elif kind < 0.65:
            text = text[:low] + text[high:] + text[low:high]
        else:
            text = text[:low] + rng.choice(wounds) + text[low:]
    return text


def call_ids() -> Callable[[], str]:
    """A factory that always gives the same ids."""
    numbers = count()
    return lambda: f"call_{next(numbers)}"


# Requests


@dataclass(frozen=True)
class Asked:
    """A request as a client would send it."""

    name: str
    tools: Sequence[Mapping[str, Any]]
    choice: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def constraint(self, vocabulary: tg.Vocabulary) -> tg.Constraint:
        return loaded(self.name).constraint(self.tools, self.choice, vocabulary=vocabulary, **self.options)

    def request(self) -> Request:
        options = self.options
        return make_request(
            self.tools,
            self.choice,
            parallel=options.get("parallel_tool_calls", True),
            reasoning=options.get("reasoning", "allow"),
            key_order=options.get("key_order", "any"),
            additional=options.get("additional_properties", "declared"),
            resumed=bool(options.get("prompt_tail")),
            key_space=SPACE,
        )

    @property
    def parsing(self) -> dict[str, Any]:
        """What a parser must be told of it."""
        return {"tools": self.tools, "prompt_tail": self.options.get("prompt_tail", ""), "call_id": call_ids()}

    def schema(self, tool: str) -> Any:
        return next(t["function"]["parameters"] for t in self.tools if t["function"]["name"] == tool)


def asked(name: str, rng: random.Random) -> Asked:
    """A random request. It may ask for what nothing satisfies."""
    tools = random_tools(rng, rng.choice((1, 1, 2, 3)), depth=rng.choice((1, 2)), odd_keys=name != "runes")
    named = {"type": "function", "function": {"name": rng.choice(tools)["function"]["name"]}}
    choice = rng.choice(("required", "required", "auto", "none", named, named))
    options: dict[str, Any] = {
        "parallel_tool_calls": rng.random() < 0.6,
        "reasoning": rng.choice(("allow", "allow", "forbid", "require")),
        "key_order": rng.choice(("any", "any", "sorted", "declared")),
        "additional_properties": rng.choice(("declared", "declared", "schema")),
    }
    if name == "gemma4" and rng.random() < 0.15:
        options["prompt_tail"] = "<|channel>thought\n"
    return Asked(name, tools, choice, options)


def oracle_of(question: Asked) -> OracleState | None:
    """The oracle's start. `Unsupported` where it takes no side."""
    if question.options.get("prompt_tail") and question.options.get("reasoning") == "forbid":
        raise Unsupported("a thought that is open and forbidden")
    if question.options.get("additional_properties", "declared") == "declared":
        for each in question.tools:
            schema = each["function"]["parameters"]
            if schema.get("properties") == {} and schema.get("additionalProperties"):
                raise Unsupported("no properties, and any others")
    return initial(question.name, question.request())


# Tokens as the oracle sees them


@cache
def small_symbols(name: str) -> tuple[tuple[Symbol, ...] | None, ...]:
    return symbols_of(name, small(name))


def symbols_of(name: str, vocabulary: tg.Vocabulary) -> tuple[tuple[Symbol, ...] | None, ...]:
    """By id: the symbols that a token is; None for a special token that means nothing to the format."""
    known = frozenset(SPOKEN[name].MARKERS)
    special = {number: text for text, number in vocabulary.special_tokens.items()}
    out: list[tuple[Symbol, ...] | None] = []
    for token in range(len(vocabulary)):
        if vocabulary.is_special(token):
            text = special.get(token)
            out.append((text,) if text in known else None)
        else:
            out.append(tuple(vocabulary.token_bytes(token)) or None)
    return tuple(out)


Spelt = dict[Symbol | None, Any]  # a trie: symbol -> trie; under None the tokens that end here


@cache
def small_trie(name: str) -> Spelt:
    return trie_of(symbols_of(name, small(name)))


def trie_of(spelt: Sequence[tuple[Symbol, ...] | None]) -> Spelt:
    root: Spelt = {}
    for token, steps in enumerate(spelt):
        if steps is not None:
            node = root
            for symbol in steps:
                node = node.setdefault(symbol, {})
            node.setdefault(None, []).append(token)
    return root


def viable_tokens(oracle: OracleState, trie: Spelt) -> set[int]:
    """The tokens that the oracle can follow."""
    found: set[int] = set()
    todo = [(oracle, trie)]
    while todo:
        state, node = todo.pop()
        for symbol, below in node.items():
            if symbol is None:
                found.update(below)
            elif (after := state.advance(symbol)) is not None:
                todo.append((after, below))
    return found


def stops(name: str, vocabulary: tg.Vocabulary, *, called: bool) -> frozenset[int]:
    """The stop tokens that are allowed where a turn may end."""
    texts = STOPS[name] + (STOPS_AFTER_CALL[name] if called else ())
    return frozenset(vocabulary.special_tokens[text] for text in texts if text in vocabulary.special_tokens)


# Walks


@dataclass(frozen=True)
class Walk:
    """The tokens of one turn, its stop token included."""

    asked: Asked
    constraint: tg.Constraint
    tokens: tuple[int, ...]

    @property
    def text(self) -> str:
        """The decoded turn, without the stop token."""
        return self.constraint.vocabulary.decode(self.tokens[:-1]).decode()


class Walker:
    """Draws walks over one vocabulary."""

    def __init__(self, vocabulary: tg.Vocabulary, rng: random.Random, *, soft: int = 60, hard: int = 4000) -> None:
        self.vocabulary, self.rng, self.soft, self.hard = vocabulary, rng, soft, hard
        self._marks = _landmarks(vocabulary)
        self._hints: tuple[Any, Flags] | None = None
        self._nearer: tuple[Any, dict[Any, list[int]]] = (None, {})  # by state, of one machine

    def walk(self, session: tg.Session) -> list[int]:
        """The tokens from where the session stands to the end of the turn."""
        tokens: list[int] = []
        while not session.is_terminated:
            assert len(tokens) < self.hard, "the walk does not end"
            token = self.next(session, landing=len(tokens) >= self.soft)
            assert session.accept_token(token), f"token {token} is in the mask and not accepted"
            tokens.append(token)
        return tokens

    def next(self, session: tg.Session, *, landing: bool) -> int:
        """Some token of the mask; with `landing` one that brings the end nearer."""
        stopping = session.constraint.binding.stops
        ends = sorted(stopping) if session.is_accepting else []
        if ends and (landing or self.rng.random() < 0.4):
            return self.rng.choice([token for token in ends if session.validate_tokens([token])])
        if landing or self.rng.random() < 0.15:
            return self.downhill(session)
        allowed, kind = session.allowed_tokens(), self.rng.random()
        wanted = self._marks.special if kind < 0.1 else self._marks.edges if kind < 0.5 else None
        some = allowed if wanted is None else allowed[wanted[allowed]]
        some = some if len(some) and not stopping.issuperset(some[:4].tolist()) else allowed
        return int(some[self.rng.randrange(len(some))])

    def downhill(self, session: tg.Session) -> int:
        """A token that brings the end nearer, one of the best.

        Where many are allowed, only bytes, special tokens and parts of the formats' and the schemas' texts are tried.
        """
        machine, known = self._nearer
        if machine is not session.machine:
            known = {}
            self._nearer = session.machine, known
        if session.constraint.max_tokens is not None:  # then it is not for the state alone to say
            return self.rng.choice(self._downhill(session))
        if session.state not in known:
            known[session.state] = self._downhill(session)
        return self.rng.choice(known[session.state])

    def _downhill(self, session: tg.Session) -> list[int]:
        allowed, stopping = session.allowed_tokens(), session.constraint.binding.stops
        if len(allowed) > _MANY_ALLOWED:
            allowed = allowed[self._marks.leading[allowed] | self._spelt_by(session)[allowed]]
        here = session.min_tokens_to_end()
        probe, best, nearest = session.fork(), list[int](), here
        for token in allowed.tolist():
            if token in stopping:
                continue
            probe.accept_token(token)
            distance = probe.min_tokens_to_end()
            probe.rollback(1)
            if distance < nearest:
                nearest, best = distance, [token]
            elif distance == nearest and best:
                best.append(token)
        if not best:
            best = [token for token in allowed.tolist() if token in stopping]
            assert best, f"no token leads nearer to the end, which is said to be {here} tokens away"
        return best

    def _spelt_by(self, session: tg.Session) -> Flags:
        """The tokens that are a part of a text in the tools' definitions."""
        tools = session.constraint.tools.definitions
        if self._hints is None or self._hints[0] != tools:
            texts = {text.encode() for tool in tools for text in _texts(tool.definition)}
            ids, flags = self._marks.ids, np.zeros(len(self.vocabulary), dtype=np.bool_)
            flags[[ids[part] for text in texts for part in _parts(text) if part in ids]] = True
            self._hints = tools, flags
        return self._hints[1]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        yield json.dumps(value, ensure_ascii=False)
    for part in value if isinstance(value, (list, Mapping)) else ():
        yield from _texts(part)
        if isinstance(value, Mapping):
            yield from _texts(value[part])


def _parts(data: bytes, longest: int = 40) -> Iterator[bytes]:
    ends = (low + longest for low in range(len(data)))
    return (data[low:high] for low, end in enumerate(ends) for high in range(low + 1, min(end, len(data)) + 1))


@dataclass(frozen=True)
class _Landmarks:
    """Tokens that matter: special ones, ones that lead somewhere, ones with a letter of structure; ids by spelling."""

    vocabulary: tg.Vocabulary
    special: Flags
    leading: Flags
    edges: Flags
    ids: Mapping[bytes, int]


_KNOWN: dict[int, _Landmarks] = {}  # by id of the vocabulary, which is kept with them


def _landmarks(vocabulary: tg.Vocabulary) -> _Landmarks:
    if id(vocabulary) not in _KNOWN:
        spelt = [vocabulary.token_bytes(token) for token in range(len(vocabulary))]
        special = np.array([vocabulary.is_special(token) for token in range(len(vocabulary))])
        leading = np.array([len(data) == 1 or data in _literals() for data in spelt]) | special
        edges = np.array([not _EDGES.isdisjoint(data) for data in spelt]) & ~special
        ids = {data: token for token, data in enumerate(spelt) if not special[token]}
        _KNOWN[id(vocabulary)] = _Landmarks(vocabulary, special, leading, edges, ids)
    return _KNOWN[id(vocabulary)]


@cache
def _literals() -> frozenset[bytes]:
    """All parts of what stands in double quotes in the grammars, and of what tags that follow each other spell."""
    texts = ["</atem:parameter>\n<atem:parameter name=\"", "</atem:parameter>\n</atem:invoke>\n</atem:function_calls>"]
    for name in available():
        rules = [line for line in loaded(name).grammar.source.splitlines() if line[:1].islower() or line[:1] == "_"]
        texts += [json.loads(found) for line in rules for found in _LITERAL.findall(line)]
    return frozenset(part for text in texts for part in _parts(text.encode()))


def available() -> list[str]:
    """The formats that can be loaded: a process may have no grammars but the made-up one."""
    return [name for name in FORMATS if name == "runes" or name in tg.list_formats()]


def sessions(
    name: str, rng: random.Random, vocabulary: tg.Vocabulary, each: int
) -> Iterator[tuple[Asked, tg.Constraint]]:
    """Requests that can be met, each as often as it is to be walked."""
    while True:
        question = asked(name, rng)
        try:
            constraint = question.constraint(vocabulary)
        except (tg.SchemaError, tg.RequestError):
            continue  # whether it is right to refuse is tested in test_promises_mask.py
        for _ in range(each):
            yield question, constraint


@cache
def walked(name: str, walks: int, seed: int = 0) -> tuple[Walk, ...]:
    """So many walks through the masks of random requests, four to a request."""
    rng = random.Random(f"{name} {seed}")
    walker = Walker(small(name), rng)
    found = []
    for _, (question, constraint) in zip(range(walks), sessions(name, rng, small(name), 4), strict=False):
        found.append(Walk(question, constraint, tuple(walker.walk(constraint.session()))))
    return tuple(found)


def alternatives(data: bytes, spellings: Mapping[bytes, int], rng: random.Random, longest: int = 16) -> list[int]:
    """Some way to spell the bytes with ordinary tokens, drawn at random."""
    out, at = [], 0
    while at < len(data):
        sizes = [size for size in range(1, longest + 1) if data[at : at + size] in spellings and at + size <= len(data)]
        size = rng.choice(sizes)
        out.append(spellings[data[at : at + size]])
        at += size
    return out


# Judges


def _ecma(_: Any, wanted: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    try:
        fine = not isinstance(value, str) or pattern(wanted).matches(value)
    except Unsupported:
        return
    if not fine:
        yield ValidationError(f"{value!r} does not match {wanted!r}")


_Validator = extend(Draft202012Validator, {"pattern": _ecma})  # patterns as ECMA-262 has them, not as Python does


def validator_of(schema: Any, *, formats: bool = False) -> Validator:
    """An outside validator; with `formats` it checks those that it knows."""
    return _Validator(plain_schema(schema), format_checker=_Validator.FORMAT_CHECKER if formats else None)


def violations(schema: Any, value: Any) -> list[str]:
    """What an outside validator has against a value."""
    return [error.message for error in validator_of(schema).iter_errors(value)]


_ENDINGS = ("", '"', '0"', '00"', '000"', '0000"', 'n"', "0", "e", "ue", "rue", "lse", "alse", "se", "l", "ll", "ull")


def json_prefix(text: str) -> bool:
    """Whether the text begins some JSON object: it can be completed to one."""
    return any(_closes(text + ending + more) for ending in _ENDINGS for more in ("", ":0", "0", '"":0'))


def _closes(text: str) -> bool:
    """Whether the text is JSON once its open containers are closed."""
    stack, quoted, escaped = [], False, False
    for char in text:
        if quoted:
            quoted = escaped or char != '"'
            escaped = not escaped and char == "\\"
        elif char == '"':
            quoted = True
        elif char in "[{":
            stack.append("]" if char == "[" else "}")
        elif char in "]}" and (not stack or stack.pop() != char):
            return False
    if quoted:
        return False
    try:
        return isinstance(json.loads((text or "{}") + "".join(reversed(stack))), dict)
    except ValueError:
        return False
