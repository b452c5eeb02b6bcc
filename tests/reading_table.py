"""`python -m tests.reading_table` writes docs/reading.md from the rows of `deviations.py`."""

from __future__ import annotations

from pathlib import Path

from .deviations import PEERS, ROWS, Row

__all__ = ["PAGE", "page"]

PAGE = "docs/reading.md"

_HEAD = """\
# What is read, and how

Models drift from their format: a closer is missing, quotes appear, a marker is left out. A parser with default options
reads what can be read in one way only. What cannot be read is a `ParseError` with its text, and reading goes on with
the next thing that can be. Nothing is dropped in silence, and no call is invented.

* A lenient reading begins only where the canonical form is already broken. A canonical reading beats every other one.
* `strict=True` reads the canonical form alone; the rest becomes errors. `salvage=True` also reads calls that hold no
  marker at all.
* The tools given to the parser decide where names or keys matter: a bare call, a raw value, a namespace, a name that is
  written twice or has a parameter's name glued to it. Without tools any name counts, and no key.
* A call that did not come to its end is never among `calls`. It is in `incomplete_calls`, with the prefix of its
  arguments.
* Fed token ids, a marker is the special token and nothing else: the same letters as ordinary tokens are text, in
  content and in strings. Fed text, a marker inside a quoted string is text too.
* A prompt may end inside a thought or a header. `prompt_tail=` takes the prompt's text, or its tokens where the parser
  has a vocabulary.
* What follows a stop marker is not the model's turn, and is ignored.
* Output that ends in the middle of markup is an error with that markup. `finish(reason="length")` says why it ended.
  Within a call that has begun, which is incomplete then, the error has no text, and its reason names the markup.

In the tables, `call f {...}` is a complete call with its arguments, `cut` an incomplete one, `error` the text of a
`ParseError`. The columns to the right say what other programs gave for such output: vLLM 0.33.0, SGLang 0.5.23,
ExecuTorch's server, Ollama (fb307609) and transformers 5.24.0. Ollama's code was read, the others were run; `-` means
that it was not looked at. Where a cell says "call", the call is the one that Twingram gives. Each row is a test, so the
column of Twingram is what the present version gives.
"""


def page() -> str:
    parts = [_HEAD]
    for name, title in (("gemma4", "gemma4"), ("atem", "atem")):
        rows = [row for row in ROWS if row.format == name]
        shown = [peer for at, peer in enumerate(PEERS) if any(row.peers[at] != "-" for row in rows)]
        head = ["deviation", "output", "Twingram", *shown]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        lines += ["| " + " | ".join(_cells(row, shown)) + " |" for row in rows]
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    parts.append("`functiongemma` reads the same as `gemma4`, with its own markers and without thoughts.\n")
    return "\n".join(parts)


def _cells(row: Row, shown: list[str]) -> list[str]:
    what = row.what + "".join(f", `{key}={value}`" for key, value in row.options.items() if key not in row.what)
    peers = [_plain(text) for peer, text in zip(PEERS, row.peers, strict=True) if peer in shown]
    return [_plain(what), _code(row.text), _code(row.gives), *peers]


def _code(text: str) -> str:
    text = text.replace("\n", "\\n").replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("{}", "`{}`")


if __name__ == "__main__":
    (Path(__file__).resolve().parents[1] / PAGE).write_text(page(), encoding="utf-8")
