"""The token table: every token's bytes in one block.

In: a list of byte strings, and which ids are special. Out: `TokenTable`, the plain data that all sources of
vocabularies produce and the disk cache keeps.
Invariant: `offsets` never falls, starts at 0 and ends at `len(blob)`; token i is `blob[offsets[i]:offsets[i + 1]]`;
an empty token is an id that nothing may emit. A special token's bytes are its text in UTF-8.
Cost: two arrays and one bytes object, whatever the number of tokens, so that the garbage collector has nothing to scan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from ..errors import VocabularyError

__all__ = ["TokenTable"]


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """Bytes of all tokens, and the set of special ids as one flag a token."""

    blob: bytes
    offsets: NDArray[np.int32]
    special: NDArray[np.bool_]

    @classmethod
    def of(cls, tokens: Sequence[bytes], special: Iterable[int] = ()) -> TokenTable:
        lengths = np.fromiter(map(len, tokens), dtype=np.int64, count=len(tokens))
        offsets = np.zeros(len(tokens) + 1, dtype=np.int32)
        np.cumsum(lengths, out=offsets[1:])
        flags = np.zeros(len(tokens), dtype=np.bool_)
        flags[np.fromiter(special, dtype=np.int64)] = True
        return cls(b"".join(tokens), offsets, flags)

    def __len__(self) -> int:
        return len(self.special)

    def token(self, token_id: int) -> bytes:
        return self.blob[self.offsets[token_id] : self.offsets[token_id + 1]]

    def special_tokens(self) -> dict[str, int]:
        """Text to id, in id order. Of two special tokens with one text the lower id keeps it."""
        found: dict[str, int] = {}
        for token_id in np.flatnonzero(self.special).tolist():
            found.setdefault(self.token(token_id).decode("utf-8", "replace"), token_id)
        found.pop("", None)  # an id that once was special and whose name moved elsewhere
        return found

    def resized(self, size: int) -> TokenTable:
        """The same ids cut or padded to `size`; the new ones spell nothing."""
        if size == len(self):
            return self
        offsets = np.full(size + 1, min(self.offsets[min(size, len(self))], len(self.blob)), dtype=np.int32)
        special = np.zeros(size, dtype=np.bool_)
        kept = min(size, len(self))
        offsets[: kept + 1] = self.offsets[: kept + 1]
        special[:kept] = self.special[:kept]
        return TokenTable(self.blob[: int(offsets[-1])], offsets, special)

    def with_special(self, names: Mapping[str, int]) -> TokenTable:
        """Each id of `names` becomes the special token of that text; an id that had this text before is nameless."""
        changed = {token_id: text.encode("utf-8") for text, token_id in names.items()}
        taken = set(changed.values())
        for token_id in np.flatnonzero(self.special).tolist():
            if self.token(token_id) in taken:
                changed.setdefault(token_id, b"")
        if not changed:
            return self
        parts, lengths, done = [], np.diff(self.offsets), 0
        for token_id in sorted(changed):
            parts += [self.blob[done : self.offsets[token_id]], changed[token_id]]
            done = int(self.offsets[token_id + 1])
            lengths[token_id] = len(changed[token_id])
        parts.append(self.blob[done:])
        offsets = np.zeros_like(self.offsets)
        np.cumsum(lengths, out=offsets[1:])
        special = self.special.copy()
        special[list(changed)] = True
        return TokenTable(b"".join(parts), offsets, special)

    def missing_bytes(self) -> list[int]:
        """The byte values that no ordinary token of one byte spells."""
        single = np.flatnonzero((np.diff(self.offsets) == 1) & ~self.special)
        spelt = np.frombuffer(self.blob, dtype=np.uint8)[self.offsets[single]]
        return [int(value) for value in np.setdiff1d(np.arange(256), spelt)]

    def fingerprint(self) -> bytes:
        digest = blake2b(b"twingram token table 1", digest_size=16)
        for part in (self.offsets, self.special):
            digest.update(np.ascontiguousarray(part).data)
        digest.update(self.blob)
        return digest.digest()

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """As the disk cache keeps it."""
        return {"blob": np.frombuffer(self.blob, dtype=np.uint8), "offsets": self.offsets, "special": self.special}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]]) -> TokenTable:
        return cls(
            arrays["blob"].tobytes(),
            arrays["offsets"].astype(np.int32, copy=False),
            arrays["special"].astype(np.bool_, copy=False),
        )

    def checked(self, allow_partial: bool) -> TokenTable:
        """Itself, unless some byte has no token: then a text may come to a point that no token can continue."""
        missing = [] if allow_partial else self.missing_bytes()
        if missing:
            shown = ", ".join(f"0x{value:02x}" for value in missing[:8]) + (", ..." if len(missing) > 8 else "")
            raise VocabularyError(
                f"the vocabulary has no ordinary token for {len(missing)} of the 256 byte values ({shown}), so some "
                "texts cannot be spelt; pass allow_partial=True to use it all the same"
            )
        return self
