"""The `tokenizers` library behind our own interfaces.

In: a tokenizer description or a regular expression. Out: an `Encoder`; a function that cuts text into pieces.
Invariant: the encoder takes the letters of special tokens as text and adds nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Split

from ..errors import VocabularyError

__all__ = ["LibraryEncoder", "splitter"]


class _Reported:
    """Turns what the library raises, which is a bare `Exception`, into an error of ours."""

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is Exception or kind is ValueError:
            raise VocabularyError(f"{self._what}: {error}") from error


class LibraryEncoder:
    """A whole tokenizer, as its description says, for ordinary text."""

    def __init__(self, description: str, source: str) -> None:
        with _Reported(f"{source}: the tokenizers library cannot read it"):
            self._tokenizer = Tokenizer.from_str(description)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def encode(self, data: bytes) -> list[int]:
        return list(self._tokenizer.encode(data.decode("utf-8"), add_special_tokens=False).ids)


def splitter(pattern: str) -> Callable[[bytes], list[bytes]]:
    """Cuts UTF-8 text at the matches of a regular expression (Oniguruma's syntax, which has Unicode classes)."""
    with _Reported("pattern= is not a regular expression"):
        split = Split(Regex(pattern), behavior="isolated")

    def cut(data: bytes) -> list[bytes]:
        return [piece.encode("utf-8") for piece, _ in split.pre_tokenize_str(data.decode("utf-8"))]

    return cut
