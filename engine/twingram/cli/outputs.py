"""What a command prints: deltas and messages as JSON, errors as one line.

In: values of the library. Out: text, one line each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields

import twingram as tg
from twingram.errors import GrammarError, TwingramError

__all__ = [
    "STATUSES", "decoded", "delta_text", "finding_words", "json_text", "message_text", "note_letters", "one_line",
]  # fmt: skip

STATUSES = ("enforced", "narrowed", "relaxed", "refused")


def decoded(vocabulary: tg.Vocabulary, tokens: Sequence[int]) -> str:
    return b"".join(map(vocabulary.token_bytes, tokens)).decode("utf-8", "replace")


def delta_text(delta: tg.Delta) -> str:
    return json_text({"kind": delta.kind, **{field.name: getattr(delta, field.name) for field in fields(delta)}})


def message_text(message: tg.Message) -> str:
    """The message as JSON. A call's value is the text of its arguments as it stands, so numbers keep their digits."""
    calls = ", ".join(
        f'{{"index": {call.index}, "id": {json_text(call.id)}, "name": {json_text(call.name)}, '
        f'"arguments": {json_text(call.arguments)}, "value": {call.arguments}}}'
        for call in message.calls
    )
    incomplete = [
        {"index": call.index, "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.incomplete_calls
    ]
    errors = [{"text": error.text, "reason": error.reason} for error in message.errors]
    return (
        f'{{"content": {json_text(message.content)}, "reasoning": {json_text(message.reasoning)}, "calls": [{calls}], '
        f'"incomplete_calls": {json_text(incomplete)}, "errors": {json_text(errors)}}}'
    )


def finding_words(finding: tg.Finding) -> Iterator[str]:
    """Where, which keyword, what became of it, and why."""
    yield from (word for word in (finding.tool, finding.path, finding.keyword) if word)
    yield f"{finding.status}: {finding.reason}" if finding.reason else finding.status


def note_letters(fmt: tg.Format, vocabulary: tg.Vocabulary) -> None:
    """Say on standard error which markers of a format the vocabulary does not have as special tokens."""
    letters = [marker for marker in fmt.grammar.markers if marker not in vocabulary.special_tokens]
    if letters:
        print(
            f"twingram: note: no special token of the vocabulary is {', '.join(letters)}: written in letters "
            "(--special-token TEXT=ID names one)", file=sys.stderr,
        )  # fmt: skip


def json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def one_line(error: TwingramError) -> str:
    text = str(error)
    if isinstance(error, GrammarError) and error.caret:
        text = text.replace(f"{error.caret}\n", "").replace(error.caret, "")
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
