"""A vocabulary seen through an alphabet: which token is which symbol, and how a token moves a state.

In: a `Vocabulary`, an `Alphabet`, the ids of the stop tokens. Out: `TokenBinding`: `symbol(id)` for tokens that are one
symbol, `ids(symbol)` the other way round, and `transition(state, id)`, kept at the state.
Invariant: a special token is a symbol or it is nothing; its letters are never read as text by a constraint. A parser
reads special tokens that the format does not know as their letters (`spelt=True`).
Cost: a transition seen before is one dictionary look-up; a new one costs a step for each byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..automaton.machine import STEP_BYTES, State, Transition
from ..caches import charge, watch
from ..grammar.alphabet import Alphabet
from .vocabulary import Vocabulary

__all__ = ["TokenBinding", "prompt_symbols"]


_TEXT_BYTES = 120
_TAIL = 64  # tokens of a prompt that are looked at


class TokenBinding:
    """Immutable once made; shared by all sessions of one compiled object."""

    __slots__ = ("__weakref__", "_ids", "_symbols", "_texts", "alphabet", "spelt", "stops", "vocabulary")

    def __init__(
        self,
        vocabulary: Vocabulary,
        alphabet: Alphabet,
        *,
        stops: Sequence[int] = (),
        stops_after_call: Sequence[int] = (),
        spelt: bool = False,
    ) -> None:
        self.vocabulary, self.alphabet, self.spelt = vocabulary, alphabet, spelt
        self.stops = frozenset((*stops, *stops_after_call))
        self._symbols: dict[int, int] = {}
        self._texts: dict[int, bytes] = {}  # of the tokens met so far
        watch(self)
        self._ids: dict[int, tuple[int, ...]] = {alphabet.end: tuple(stops)}
        self._ids[alphabet.end_after_call] = tuple(stops_after_call)
        for marker in alphabet.symbolic:
            number, token = alphabet.number(marker), vocabulary.special_tokens.get(marker)
            if number is not None and token is not None and token not in self.stops:
                self._symbols[token] = number
                self._ids[number] = (token,)

    def symbol(self, token: int) -> int | None:
        """The symbol that a token is, None for an ordinary token."""
        return self._symbols.get(token)

    def ids(self, symbol: int) -> tuple[int, ...]:
        """The tokens that are this symbol."""
        return self._ids.get(symbol, ())

    def symbols_of(self) -> Mapping[int, tuple[int, ...]]:
        return self._ids

    def text(self, token: int) -> bytes:
        """The decoded text of a token: the letters of a special one."""
        try:
            return self._texts[token]
        except KeyError:
            found = self._texts[token] = self.vocabulary.token_bytes(token)
            charge(_TEXT_BYTES)
            return found

    def memory_usage(self) -> int:
        """Bytes of the texts that are kept."""
        return _TEXT_BYTES * len(self._texts)

    def clear(self) -> None:
        """Forget them."""
        self._texts = {}

    def transition(self, state: State, token: int) -> Transition | None:
        """Where `state` goes with an ordinary token or a marker; None if it cannot go on. Stop tokens are not asked."""
        try:
            return state.pieces[token]
        except KeyError:
            found = state.pieces[token] = self._transition(state, token)
            charge(STEP_BYTES)
            return found

    def _transition(self, state: State, token: int) -> Transition | None:
        symbol = self._symbols.get(token)
        if symbol is not None:
            step = state.step(symbol)
            return None if step is None else Transition(step.state, step.moves, self.text(token))
        data = self.text(token)
        if not data or (self.vocabulary.is_special(token) and not self.spelt):
            return None
        return state.run(data)


def prompt_symbols(tokens: Sequence[int], vocabulary: Vocabulary, markers: Sequence[str]) -> str:
    """The end of a prompt as text in which the letters of a marker are the special token: typed ones are broken up."""
    special = [marker for marker in markers if marker in vocabulary.special_tokens]
    out, run = [], b""
    for token in [*tokens[-_TAIL:], None]:
        if token is not None and not vocabulary.is_special(token):
            run += vocabulary.token_bytes(token)
            continue
        typed = run.decode("utf-8", "replace")
        for marker in special:
            typed = typed.replace(marker, f"{marker[0]}\0{marker[1:]}")
        out += [typed, "" if token is None else vocabulary.token_bytes(token).decode()]
        run = b""
    return "".join(out)
