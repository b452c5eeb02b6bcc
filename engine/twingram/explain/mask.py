"""What a mask allows at a point of a turn, and why.

In: a session that stands at that point (`read_prefix` leads a new one there). Out: an `Explanation`: for each reading
of the text so far the open roles, the JSON path and the schemas that speak of it; each way to go on, as the automaton
itself has it; what that comes to in tokens.
Invariant: nothing here is worked out a second time. Roles come from the tags that make the deltas, ways from the heads
that make the mask, counts from the mask.
Cost: a walk over the tags of the turn; for people, not for servers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import RequestError
from ..grammar.canonical import canonical_rules
from ..grammar.rules import Grammar, Rule
from ..schema.keywords import ANNOTATIONS
from ..session.session import Session
from ..tokens.vocabulary import Vocabulary
from .leaves import describe, spelt
from .places import places
from .trail import Trail, trail_of

__all__ = ["Explanation", "Reading", "SchemaPlace", "Way", "explain", "mask_lines", "read_prefix"]

_NOT_SHOWN = ANNOTATIONS | {"properties", "$ref", "allOf", "anyOf", "oneOf", "items", "$defs", "definitions"}
_LONGEST = 60  # characters of a keyword's value


@dataclass(frozen=True, slots=True)
class Way:
    """One way to go on: the roles that are open then, from the outside in, the JSON path, and what comes."""

    roles: tuple[str, ...]
    path: str | None
    what: str


@dataclass(frozen=True, slots=True)
class SchemaPlace:
    """A schema that speaks of the value: its path, its keywords, and what the mask does not do of them."""

    path: str
    keywords: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the text so far."""

    roles: tuple[str, ...]
    rules: tuple[str, ...]  # of the innermost role, as the grammar file has them
    tool: str | None
    path: str | None
    schemas: tuple[SchemaPlace, ...]
    ways: tuple[Way, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What may follow. `sample` are (id, text) of allowed tokens, `markers` the special ones among them, all."""

    text: bytes
    readings: tuple[Reading, ...]
    allowed: int
    tokens: int
    markers: tuple[str, ...]
    sample: tuple[tuple[int, bytes], ...]
    forced: tuple[int, ...]
    to_end: int
    may_end: bool
    ended: bool


def read_prefix(session: Session, text: str) -> None:
    """Lead a session through a text: markers written out mean their tokens, the rest is split as the tokenizer does, or
    byte by byte where that split is not allowed. `RequestError` says where the text leaves what is allowed."""
    vocabulary = session.constraint.vocabulary
    special = {
        marker: vocabulary.special_tokens[marker]
        for marker in session.constraint.grammar.markers
        if marker in vocabulary.special_tokens
    }
    done = 0
    for piece in _pieces(text, special):
        ids = [special[piece]] if piece in special else vocabulary.encode(piece)
        if session.validate_tokens(ids) == len(ids):
            session.accept_tokens(ids)
        else:
            _read_bytes(session, piece if piece not in special else "", vocabulary)
            read = len(session.text) - done
            if read < len(piece.encode()):
                before, rest = session.text.decode("utf-8", "replace"), piece.encode()[read:].decode("utf-8", "replace")
                raise RequestError(
                    f"the prefix leaves the grammar at byte {done + read}: {rest[:40]!r} cannot follow {before[-40:]!r}"
                )
        done += len(piece.encode())


def _pieces(text: str, special: Mapping[str, int]) -> Iterator[str]:
    names = sorted(special, key=len, reverse=True)
    parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text) if names else [text]
    return (part for part in parts if part)


def _read_bytes(session: Session, piece: str, vocabulary: Vocabulary) -> None:
    trie = vocabulary.trie
    for byte in piece.encode():
        node = trie.child(0, byte)
        if node < 0 or trie.token_start[node] == trie.token_start[node + 1]:
            return
        if not session.accept_token(int(trie.token_ids[trie.token_start[node]])):
            return


def explain(session: Session, sample: int = 20) -> Explanation:
    """What may follow where `session` stands."""
    vocabulary = session.constraint.vocabulary
    allowed = session.allowed_tokens()
    special = [int(token) for token in allowed if vocabulary.is_special(int(token))]
    return Explanation(
        text=session.text,
        readings=() if session.is_terminated else tuple(_readings(session)),
        allowed=len(allowed),
        tokens=len(vocabulary),
        markers=tuple(vocabulary.token_bytes(token).decode("utf-8", "replace") for token in special),
        sample=tuple((token, vocabulary.token_bytes(token)) for token in _spread(allowed.tolist(), special, sample)),
        forced=tuple(session.jump_forward()),
        to_end=session.min_tokens_to_end(),
        may_end=session.is_accepting,
        ended=session.is_terminated,
    )


def _spread(allowed: list[int], special: list[int], most: int) -> list[int]:
    """The special tokens, then others from all over the vocabulary."""
    left = max(0, most - len(special))
    ordinary = [token for token in allowed if token not in special] if left else []
    stride = max(1, len(ordinary) / left) if left else 1
    return [*special[:most], *(ordinary[int(at * stride)] for at in range(min(left, len(ordinary))))]


def _readings(session: Session) -> Iterator[Reading]:
    text, constraint = session.text, session.constraint
    for tags, thread in zip(session.tags(), session.state.threads, strict=True):
        trail = trail_of(tags, text)
        ways: dict[Way, None] = {}
        for early, leaf, _ in thread.heads():
            if leaf is not None:
                after = trail.after([(tag, len(text)) for tag in early], text)
                ways[Way(after.names, after.path, describe(leaf, session.binding))] = None
        schemas = tuple(_schemas(session, trail))
        rules = tuple(map(str, _rules_of(constraint.grammar, trail.names)))
        yield Reading(trail.names, rules, trail.tool, trail.path, schemas, tuple(ways))


def _rules_of(grammar: Grammar, roles: tuple[str, ...]) -> list[Rule]:
    """The canonical rules of the innermost role that has any; without one, where a turn begins."""
    known = canonical_rules(grammar)
    for role in reversed(roles):
        named = [rule for name, rule in grammar.rules.items() if name in known and _has_role(rule, role)]
        own = [rule for rule in named if not rule.space]
        if named:
            return own or named
    return [grammar.rules[grammar.starts[0].rule]]


def _has_role(rule: Rule, role: str) -> bool:
    return rule.role == role or any(branch.role == role for branch in rule.choice.branches)


def _schemas(session: Session, trail: Trail) -> Iterator[SchemaPlace]:
    if trail.tool is None or trail.steps is None:
        return
    constraint = session.constraint
    findings = [finding for finding in constraint.report() if finding.tool == trail.tool]
    for schema, path in places(constraint.tools.schema(trail.tool), trail.steps):
        notes = tuple(
            f"{finding.keyword}: {finding.status}, {finding.reason}"
            for finding in findings
            if finding.path == path and finding.status != "enforced"
        )
        yield SchemaPlace(path, ", ".join(_keywords(schema)), notes)


def _keywords(schema: Mapping[str, Any]) -> Iterator[str]:
    for keyword, value in schema.items():
        if keyword not in _NOT_SHOWN:
            text = json.dumps(value, ensure_ascii=False, default=str)
            yield f"{keyword} {text if len(text) <= _LONGEST else text[: _LONGEST - 3] + '...'}"
    names = schema.get("properties")
    if isinstance(names, Mapping):
        yield f"properties {', '.join(map(str, names))}"


def mask_lines(explanation: Explanation) -> Iterator[str]:
    """The explanation as text."""
    yield f"after      {spelt(explanation.text)}"
    for number, reading in enumerate(explanation.readings):
        if len(explanation.readings) > 1:
            yield f"reading {number + 1} of {len(explanation.readings)}"
        yield f"inside     {' > '.join(reading.roles) or 'the turn, no role'}"
        for rule in reading.rules:
            yield f"rule       {rule}"
        if reading.tool is not None:
            yield f"tool       {reading.tool}"
        if reading.path is not None:
            yield f"path       {reading.path}"
        for place in reading.schemas:
            yield f"schema     {place.path}: {place.keywords or 'anything'}"
            for note in place.notes:
                yield f"             {note}"
        for way in reading.ways:
            inside = " > ".join(way.roles) or "no role"
            at = f" at {way.path}" if way.path is not None and way.path != reading.path else ""
            yield f"may follow {way.what}" + (f"   in {inside}{at}" if way.roles != reading.roles or at else "")
    yield from _token_lines(explanation)


def _token_lines(explanation: Explanation) -> Iterator[str]:
    yield f"allowed    {explanation.allowed} of {explanation.tokens} tokens"
    if explanation.markers:
        yield f"special    {' '.join(explanation.markers)}"
    if explanation.sample:
        yield f"sample     {' '.join(spelt(data) for _, data in explanation.sample)}"
    if explanation.ended:
        yield "end        the turn is over"
        return
    if explanation.forced:
        yield f"forced     {len(explanation.forced)} tokens: {' '.join(map(str, explanation.forced))}"
    yield f"end        {'may end here' if explanation.may_end else f'{explanation.to_end} tokens away at the nearest'}"
