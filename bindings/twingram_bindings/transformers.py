"""Generation with `transformers`: a logits processor, a stopping criterion, and a streamer that yields deltas.

    processor = TwingramLogitsProcessor(constraint)
    sequences = model.generate(**prompt, logits_processor=[processor], eos_token_id=processor.stop_token_ids)
    processor.messages(sequences)

In: what `generate` hands to such objects: the ids of all rows so far, and their scores. Out: scores in which tokens
that may not follow are minus infinity; messages. Nothing of `transformers` is imported: its interfaces are calls.

Rows are matched with sessions by their ids, not by their places, so beams that are dropped, doubled or cut back
(beam search, several sequences a prompt, draft tokens that are refused) find their session again: by a step, a fork or
a rollback. Invariant: the session of a row has accepted exactly the row's generated ids, up to its stop token.
Cost: a mask a row and a step; matching is one comparison of ids a row as long as rows keep their places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

import twingram as tg

__all__ = ["TwingramLogitsProcessor", "TwingramStoppingCriteria", "TwingramStreamer"]

torch: Any = import_module("torch")
_Ids = NDArray[np.int64]


class _Row:
    """One sequence: its session, the ids that the session has accepted, and whether the next one was refused."""

    __slots__ = ("ids", "refused", "session", "taken")

    def __init__(self, session: tg.Session, ids: _Ids) -> None:
        self.session, self.ids = session, ids
        self.taken, self.refused = 0, False

    def fork(self) -> _Row:
        copy = _Row(self.session.fork(), self.ids)
        copy.taken, copy.refused = self.taken, self.refused
        return copy

    def common(self, ids: _Ids) -> int:
        """How many of its ids `ids` begins with."""
        size = min(len(ids), len(self.ids))
        differ = np.flatnonzero(self.ids[:size] != ids[:size])
        return int(differ[0]) if len(differ) else size

    def go_to(self, ids: _Ids, common: int) -> None:
        """Stand after `ids`, of which the first `common` are the same as before."""
        if common < self.taken:
            self.session.rollback(self.taken - common)
            self.taken, self.refused = common, False
        elif common < len(self.ids):
            self.refused = self.refused and common > self.taken
        while self.taken < len(ids) and not self.refused and not self.session.is_terminated:
            if self.session.accept_token(int(ids[self.taken])):
                self.taken += 1
            else:
                self.refused = True
        self.ids = ids


class TwingramLogitsProcessor:
    """Masks the scores of one `generate` call.

    `constraint`: one for all prompts of the batch, or a list with one for each (None: that prompt is not constrained).
    A processor belongs to one generation; `reset()` makes it ready for another.
    """

    supports_continuous_batching = False

    def __init__(self, constraint: tg.Constraint | Sequence[tg.Constraint | None]) -> None:
        self._shared = constraint if isinstance(constraint, tg.Constraint) else None
        self._each = () if isinstance(constraint, tg.Constraint) else tuple(constraint)
        self.reset()

    def reset(self) -> None:
        """Forget the generation."""
        self._rows: list[_Row | None] = []
        self._prompts: set[bytes] = set()  # their ids

    @property
    def stop_token_ids(self) -> list[int]:
        """The ids that end a turn, for `eos_token_id`. Without it `generate` would not know where to stop."""
        constraints = [self._shared] if self._shared is not None else [each for each in self._each if each is not None]
        return sorted({stop for each in constraints for stop in each.binding.stops})

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        rows = self._follow(input_ids.cpu().numpy())
        allowed = np.ones(scores.shape, dtype=bool)
        for at, row in enumerate(rows):
            if row is not None:
                allowed[at] = self._allowed(row, scores.shape[-1])
        forbidden = torch.from_numpy(~allowed).to(scores.device)
        return scores.masked_fill(forbidden, -float("inf"))

    def _allowed(self, row: _Row, width: int) -> NDArray[np.bool_]:
        session = row.session
        bits = np.unpackbits(session.mask().view(np.uint8), bitorder="little")
        if row.refused:  # a beam of score minus infinity, or a token that somebody else forced: it may only stop
            bits = np.zeros_like(bits)
            bits[list(session.binding.stops)] = 1
        found = np.zeros(width, dtype=bool)
        size = min(width, len(bits))
        found[:size] = bits[:size]
        if not found.any():
            raise ValueError(f"no allowed token has a score: the model scores {width} ids, the vocabulary has more")
        return found

    def messages(self, sequences: Any) -> list[tg.Message | None]:
        """What each sequence says, prompts included in the ids as `generate` returns them; None without a constraint.
        """
        rows = self._follow(sequences.cpu().numpy())
        return [None if row is None else row.session.message for row in rows]

    def sessions(self) -> list[tg.Session | None]:
        """The sessions of the rows as of the last step, in order. Fork one before you go on with it."""
        return [None if row is None else row.session for row in self._rows]

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _follow(self, ids: _Ids) -> list[_Row | None]:
        """Match the rows with the sessions at hand, and bring these up to date."""
        if not self._prompts:
            self._begin(ids)
        length = len(next(iter(self._prompts))) // ids.itemsize
        share, rest = divmod(len(ids), max(1, len(self._each)))
        if rest or any(row[:length].tobytes() not in self._prompts for row in ids):
            raise ValueError("these ids do not go on from the prompts of this processor; call reset() between two")
        before, known = self._rows, len(self._rows) // max(1, len(self._each))
        generated = ids[:, length:].copy()
        ways = [self._nearest(before, at, at // share * known, known, row) for at, row in enumerate(generated)]
        users = Counter(source for source, _ in ways)
        rows: list[_Row | None] = []
        for row, (source, common) in zip(generated, ways, strict=True):
            found = before[source]
            users[source] -= 1
            if found is not None:
                found = found.fork() if users[source] else found  # the last user may have it
                found.go_to(row, common)
            rows.append(found)
        self._rows = rows
        return rows

    def _begin(self, ids: _Ids) -> None:
        if self._each and len(ids) % len(self._each):
            raise ValueError(f"{len(ids)} rows for {len(self._each)} constraints")
        self._prompts = {row.tobytes() for row in ids}
        none = ids[0, :0]
        self._rows = [None if each is None else _Row(each.session(), none) for each in self._each or [self._shared]]

    def _nearest(self, rows: Sequence[_Row | None], at: int, low: int, count: int, ids: _Ids) -> tuple[int, int]:
        """Of the rows of the same constraint the one that has most in common with `ids`; that in its own place if it is
        as good."""
        best, most = low, -1
        own = [at] if low <= at < low + count else []
        for source in (*own, *range(low, low + count)):
            row = rows[source]
            common = 0 if row is None else row.common(ids)
            if common > most:
                best, most = source, common
            if row is not None and common == len(row.ids) == len(ids) - 1:
                break
        return best, most


class TwingramStoppingCriteria:
    """Ends a row after a stop token of its constraint, for callers of `generate` that cannot pass `eos_token_id`."""

    def __init__(self, processor: TwingramLogitsProcessor) -> None:
        self._stops = torch.tensor(processor.stop_token_ids)

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        return torch.isin(input_ids[:, -1], self._stops.to(input_ids.device))


class TwingramStreamer:
    """Reads tokens as they are generated and yields deltas: `generate(..., streamer=streamer)` in one thread, and
    `for delta in streamer` in another. With `on_delta` each delta is handed over at once instead.

    `parser`: `fmt.parser(tools, vocabulary=vocabulary)`. One sequence, as with every streamer.
    """

    def __init__(
        self,
        parser: tg.Parser,
        on_delta: Callable[[tg.Delta], None] | None = None,
        *,
        skip_prompt: bool = True,
        timeout: float | None = None,
    ) -> None:
        self.parser, self._skip, self._timeout = parser, skip_prompt, timeout
        self._queue: SimpleQueue[tg.Delta | None] = SimpleQueue()
        self._give = on_delta or self._queue.put

    def put(self, value: Any) -> None:
        """What `generate` calls with the prompt, then with each token."""
        if value.ndim > 1 and value.shape[0] > 1:
            raise ValueError("a streamer reads one sequence, not a batch")
        if self._skip:
            self._skip = False
            return
        for delta in self.parser.feed_tokens(value.reshape(-1).tolist()):
            self._give(delta)

    def end(self) -> None:
        """What `generate` calls at the end."""
        for delta in self.parser.finish():
            self._give(delta)
        self._queue.put(None)

    def __iter__(self) -> Iterator[tg.Delta]:
        while (delta := self._queue.get(timeout=self._timeout)) is not None:
            yield delta
