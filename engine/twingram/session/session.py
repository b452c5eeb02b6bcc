"""A session: one constrained generation, mask and parser in one.

In: token ids. Out: masks and deltas. The state that gives the mask is the state that the deltas come from.

Methods have the names that servers already call. A token that the mask forbids is a return value, not an exception; a
wrong argument raises. Sessions are small: a state, a track, the text so far. They share compiled, immutable data only.
Invariants: a mask is never empty; `accept_token` is true exactly for the tokens in the mask; rollback and the same
tokens again give the same state, masks and deltas.
Cost: a token at a state seen before is one look-up; its mask is given by reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..automaton.machine import Machine, State, Transition
from ..automaton.tags import Tag
from ..tokens.binding import TokenBinding
from ..tokens.bitmask import WORD, row_of
from ..tokens.mask_table import MaskPage
from ..tokens.masks import Mask, Masks
from .callids import CallIds
from .deltas import Delta
from .message import Message, MessageBuilder
from .reader import Reader
from .track import ROOT, collect

if TYPE_CHECKING:
    from .constraint import Constraint

__all__ = ["Session"]


class Session:
    """One generation under a constraint. Made by `Constraint.session`."""

    __slots__ = (
        "_closed", "_emitter", "_ids", "_masks", "_reader", "binding", "constraint", "is_terminated", "mask_page",
    )  # fmt: skip

    def __init__(self, constraint: Constraint, call_id: Callable[[], str] | None = None) -> None:
        self.constraint = constraint
        self.binding: TokenBinding = constraint.binding
        self._masks: Masks = constraint.masks
        self._ids = CallIds(call_id)
        self.mask_page: MaskPage = constraint.mask_table.page
        """The page of the mask table that the last `mask_id` points into."""
        self.is_terminated = False
        self._begin()

    def _begin(self) -> None:
        constraint = self.constraint
        self._reader = Reader(constraint.machine.start, constraint.emitter(self._ids))
        self._reader.keep()
        self.is_terminated = self._closed = False

    # -- masks ---------------------------------------------------------------------------------------------------------

    def current_mask(self) -> Mask:
        """The mask as it is kept, shared with all sessions that stand at an equal state."""
        if self.is_terminated:
            return self.constraint.stop_mask
        if self.constraint.most is None:
            return self._masks.of(self._reader.state)
        return self._mask_at(self._reader.state, 0)

    def _mask_at(self, state: State, ahead: int) -> Mask:
        """The mask of a state `ahead` tokens from here."""
        most = self.constraint.most
        if most is None:
            return self._masks.of(state)
        return self.constraint.landing_mask(state, most - self._reader.steps - ahead)

    def mask(self) -> NDArray[np.int32]:
        """The packed row of allowed tokens: int32, shape (ceil(len(vocabulary) / 32),), shared and read-only."""
        return self.current_mask().row

    def fill_bitmask(self, bitmask: Any, row: int = 0) -> None:
        """Write the mask into `bitmask[row]`: int32, numpy or a torch tensor on the CPU, shape (rows, words)."""
        target = bitmask[row]
        mask = self.current_mask()
        if not isinstance(target, np.ndarray) or target.dtype is not WORD or len(target) << 5 < mask.size:
            target = row_of(target, mask.size)
        mask.fill(target)

    def mask_id(self) -> int:
        """The mask as an int32 id: afterwards `session.mask_page.rows()[id]` is its row.

        The id holds within that page, which is one epoch of the vocabulary's table of masks; see `tokens.mask_table`.
        Ask for the id first and for the page then: a new id may begin a new page.
        """
        self.mask_page, (found,) = self.constraint.mask_table.number((self.current_mask(),))
        return found

    def allowed_tokens(self) -> NDArray[np.int32]:
        """Ids of the allowed tokens, rising."""
        return self.current_mask().allowed()

    # -- tokens --------------------------------------------------------------------------------------------------------

    def accept_token(self, token: int) -> bool:
        """Go on with a token. False: it is not allowed, and nothing has changed."""
        reader = self._reader
        state = reader.state
        transition = state.pieces.get(token)
        if transition is not None and self.constraint.most is None:  # met before, and no stop token: these are
            reader.take(transition)  # not kept there
            return True
        transition = self._transition(state, token)
        if transition is None or not self._lands(state, token, 0):
            return False
        reader.take(transition)
        if token in self.binding.stops:
            self.is_terminated = True
        return True

    def _transition(self, state: State, token: int) -> Transition | None:
        binding = self.binding
        if not 0 <= token < self._masks.size:
            return None
        if token in binding.stops:
            if not state.first:  # terminated: only stop tokens go on, and lead nowhere else
                return Transition(state, None)
            return self.constraint.stop_transition(state, token)
        return binding.transition(state, token)

    def _lands(self, state: State, token: int, ahead: int) -> bool:
        """Whether the turn can still be ended, and within the budget, after `token`, `ahead` tokens from here."""
        most = self.constraint.most
        if most is None or token in self.binding.stops:
            return True
        left = most - self._reader.steps - ahead
        return self.constraint.is_ample(state, left) or token in self.constraint.landing_mask(state, left)

    def accept_tokens(self, tokens: Iterable[int]) -> int:
        """Go on with several tokens; how many were accepted before the first that is not allowed."""
        count = 0
        for token in tokens:
            if not self.accept_token(token):
                break
            count += 1
        return count

    def validate_tokens(self, tokens: Iterable[int]) -> int:
        """How many of the tokens could be accepted in a row; nothing changes."""
        state, count = self._reader.state, 0
        for token in tokens:
            transition = self._transition(state, token)
            if transition is None or not self._lands(state, token, count):
                break
            state, count = transition.state, count + 1
        return count

    def draft_masks(self, draft: Sequence[int]) -> list[Mask]:
        """The masks along a draft of k tokens, k + 1 of them: before its first token, ..., after its last.

        Nothing changes. After the first token that is not allowed, the rest are masks that allow everything: what
        stands there is thrown away.
        """
        constraint, state, masks = self.constraint, self._reader.state, [self.current_mask()]
        for ahead, token in enumerate(draft):
            transition = self._transition(state, token)
            if transition is None or not self._lands(state, token, ahead):
                return masks + [constraint.mask_table.everything] * (len(draft) - ahead)
            state = transition.state
            masks.append(self._mask_at(state, ahead + 1) if state.first else constraint.stop_mask)
        return masks

    def fill_draft_bitmask(self, bitmask: Any, draft: Sequence[int], row: int = 0) -> None:
        """Write `draft_masks` into `bitmask[row : row + k + 1]`, a row each: int32, numpy or a torch tensor on the CPU,
        shape (rows, words)."""
        target = bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy()
        masks = self.draft_masks(draft)
        row_of(target[0], masks[0].size)
        if not 0 <= row <= len(target) - len(masks):
            raise ValueError(f"a bitmask of {len(target)} rows has no room for {len(masks)} from row {row} on")
        for at, mask in enumerate(masks, row):
            mask.fill(target[at])

    def draft_mask_ids(self, draft: Sequence[int]) -> NDArray[np.int32]:
        """`draft_masks` as ids into `session.mask_page`: int32, shape (k + 1,)."""
        self.mask_page, ids = self.constraint.mask_table.number(self.draft_masks(draft))
        return np.array(ids, dtype=np.int32)

    def jump_forward(self) -> list[int]:
        """The tokens that are forced from here, if any; they are not accepted yet.

        Only tokens that the tokenizer would write whatever follows: where a token could reach past the forced text, it
        is left to the model.
        """
        if self.is_terminated:
            return []
        forced = self.constraint.forced_tokens(self._reader.state)
        return forced if self.constraint.most is None else forced[: self.validate_tokens(forced)]

    def rollback(self, count: int) -> None:
        """Undo the last `count` accepted tokens."""
        if not 0 <= count <= self._reader.steps:
            raise ValueError(f"cannot roll back {count} tokens: {self._reader.steps} have been accepted")
        if not count:
            return
        self._reader.rollback(count)
        self._closed = False
        self.is_terminated = not self._reader.state.first

    def fork(self) -> Session:
        """A copy that goes on by itself."""
        copy = Session.__new__(Session)
        copy.constraint, copy.binding, copy._masks, copy._ids = self.constraint, self.binding, self._masks, self._ids
        copy._reader, copy._closed, copy.is_terminated = self._reader.fork(), self._closed, self.is_terminated
        copy.mask_page = self.mask_page
        return copy

    def reset(self) -> None:
        """Back to the beginning, for another generation."""
        self._ids = self._ids.renewed()
        self._begin()

    # -- where it stands -----------------------------------------------------------------------------------------------

    @property
    def is_accepting(self) -> bool:
        """Whether the turn may end here (a stop token is allowed)."""
        return self.is_terminated or bool(self._reader.state.first & self.constraint.end_bits)

    def min_tokens_to_end(self) -> int:
        """A number of tokens within which the turn can be ended, the stop token not counted. It falls by at least one
        along some allowed token."""
        return 0 if self.is_terminated else self.constraint.distances.of_state(self._reader.state) - 1

    # -- output --------------------------------------------------------------------------------------------------------

    def take_deltas(self) -> list[Delta]:
        """Parser output since the last call."""
        out = self._reader.deltas()
        if self.is_terminated and not self._closed:
            self._closed = True
            out += self._reader.finish(None)
            self._reader.keep()
        self._reader.told()
        return out

    @property
    def message(self) -> Message:
        """The message so far, whatever has been taken of it."""
        builder = MessageBuilder()
        builder.extend(self._reader.replay(self.constraint.emitter(self._ids), ended=self.is_terminated))
        return builder.message

    @property
    def text(self) -> bytes:
        """The decoded text of the accepted tokens, stop tokens left out."""
        return bytes(self._reader.text)

    def tags(self) -> list[list[tuple[Tag, int]]]:
        """For each reading of the text so far the tags that it has fired, with their places."""
        return [collect(node, ROOT) for node in self._reader.tracks()]

    @property
    def machine(self) -> Machine:
        return self.constraint.machine

    @property
    def state(self) -> State:
        """The automaton's state, for those who want to look at it."""
        return self._reader.state


# What a batch does to each of its sessions, written out: a call for each would be a third of the time.


def masks_of(sessions: Iterable[Session | None], everything: Mask) -> list[Mask]:
    """The `current_mask` of each; `everything` where there is none."""
    masks: list[Mask] = []
    for session in sessions:
        if session is None:
            masks.append(everything)
        elif session.is_terminated or session.constraint.most is not None:
            masks.append(session.current_mask())
        else:
            state = session._reader.state
            kept = state.mask
            masks.append(kept if isinstance(kept, Mask) else session._masks.of(state))
    return masks


def accept_each(sessions: Iterable[Session | None], tokens: Iterable[int]) -> list[bool]:
    """`accept_token` of each; True where there is none."""
    accepted: list[bool] = []
    for session, token in zip(sessions, tokens, strict=True):
        if session is None:
            accepted.append(True)
            continue
        reader = session._reader
        transition = reader.state.pieces.get(token)
        if transition is None or session.constraint.most is not None:
            accepted.append(session.accept_token(token))
        else:
            reader.take(transition)
            accepted.append(True)
    return accepted
