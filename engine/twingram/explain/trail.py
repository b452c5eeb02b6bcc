"""The trail of a reading: which roles are open, in whose call, at which JSON path.

In: the tags of one reading, in order, with their places in the text. Out: a `Trail`; it is a value, so that the ways to
go on from one reading can each be followed for themselves.
Invariant: the path is that of the value being written, or of the object whose next key is being written.
Cost: linear in the tags, and in the open scopes for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..automaton.tags import Tag, TagKind
from ..schema.report import step
from ..session.casts import SPACE, unescape

__all__ = ["Trail", "trail_of"]

_VALUES = frozenset({"object", "array", "string", "number", "true", "false", "null", "bare"})
_BODIES = frozenset({"text", "escaped"})

Step = str | int


class _Container(NamedTuple):
    """An open object or array: the key, or the number of the item, that is being written (None between two)."""

    role: str
    key: Step | None = None
    items: int = 0  # that were begun


class Trail(NamedTuple):
    """Where a reading stands."""

    roles: tuple[tuple[str, int], ...] = ()  # open roles from the outside in, with where each begins
    tool: str | None = None
    containers: tuple[_Container, ...] = ()
    body: tuple[str, int, int] | None = None  # role, start and end of the last body that closed in the open leaf

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(role for role, _ in self.roles)

    @property
    def steps(self) -> tuple[Step, ...] | None:
        """The way from the arguments to the value; None outside of the arguments."""
        if not self.containers:
            return None
        return tuple(container.key for container in self.containers if container.key is not None)

    @property
    def path(self) -> str | None:
        """The same as a JSON path."""
        steps = self.steps
        if steps is None:
            return None
        return "$" + "".join(f"[{each}]" if isinstance(each, int) else step(each) for each in steps)

    def after(self, tags: Iterable[tuple[Tag, int]], text: bytes) -> Trail:
        """Once these tags have fired."""
        trail = self
        for tag, position in tags:
            if tag.kind is TagKind.OPEN:
                trail = trail._opened(tag.role, position)
            elif tag.kind is TagKind.CLOSE:
                trail = trail._closed(tag.role, position, text)
        return trail

    def _opened(self, role: str, position: int) -> Trail:
        trail = self._replace(roles=(*self.roles, (role, position)))
        if role not in _BODIES:
            trail = trail._replace(body=None)
        if role not in _VALUES or any(name == "string" for name in self.names):
            return trail
        containers = self.containers
        if containers and containers[-1].role == "array":
            top = containers[-1]
            containers = (*containers[:-1], top._replace(key=top.items, items=top.items + 1))
        if role in ("object", "array"):
            containers = (*containers, _Container(role))
        return trail._replace(containers=containers)

    def _closed(self, role: str, position: int, text: bytes) -> Trail:
        if not self.roles or self.roles[-1][0] != role:
            return self
        start = self.roles[-1][1]
        trail = self._replace(roles=self.roles[:-1])
        if role in _BODIES:
            return trail._replace(body=(role, start, position))
        if role == "tool_name":
            return trail._replace(tool=text[start:position].decode("utf-8", "replace"))
        if role == "tool_call":
            return trail._replace(tool=None, containers=())
        if role == "key":
            return trail._at(self._key(start, position, text))
        if role in ("object", "array"):
            trail = trail._replace(containers=trail.containers[:-1])
        return trail._at(None) if role in _VALUES else trail

    def _at(self, key: Step | None) -> Trail:
        if not self.containers:
            return self
        return self._replace(containers=(*self.containers[:-1], self.containers[-1]._replace(key=key)))

    def _key(self, start: int, end: int, text: bytes) -> str:
        role, start, end = self.body or ("", start, end)
        key = text[start:end].decode("utf-8", "replace")
        return unescape(key)[0] if role == "escaped" else key if role else key.strip(SPACE)


def trail_of(tags: Iterable[tuple[Tag, int]], text: bytes) -> Trail:
    """The trail of a reading from its beginning."""
    return Trail().after(tags, text)
