"""Tags: the zero-width marks from which all parser output is made.

A tag says that a role of the grammar starts, ends, or was given up *here*. It never says which one of several equal
things it is (a key starts, not key number 7), so alternatives that differ in letters only carry equal tags and stay one
expression. Tags are interned: compare them with `is`.

Source: V. Laurikari, "NFAs with Tagged Transitions, their Conversion to Deterministic Automata" (2000).
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["COMMIT", "CUT", "DROPPED", "LEVEL", "Tag", "TagKind", "close_tag", "open_tag", "tag"]


class TagKind(IntEnum):
    OPEN = 0  # the role starts here
    CLOSE = 1  # the role ends here
    ABORT = 2  # the innermost open scope of this role is broken; its text from the opening tag on is an error
    STOP = 3  # the turn ends here: role is the stop marker's text, or a class of final states
    COMMIT = 4  # this reading stands: readings lower in the order die
    CUT = 5  # the output ended here, where no reading may end
    DROPPED = 6  # readings were given up here, for there were too many
    LEVEL = 7  # a container ends that no role speaks of: it is counted, and nothing fires


class Tag:
    """One interned mark. `role` is a role of the grammar language, such as `string` or `tool_call`."""

    __slots__ = ("kind", "role")

    kind: TagKind
    role: str

    def __init__(self, kind: TagKind, role: str) -> None:
        self.kind, self.role = kind, role

    def __repr__(self) -> str:
        return f"{self.kind.name.lower()}({self.role})"


_TAGS: dict[tuple[TagKind, str], Tag] = {}  # as many as a grammar has roles, never cleared


def tag(kind: TagKind, role: str) -> Tag:
    """The tag of this kind and role, always the same object."""
    return _TAGS.setdefault((kind, role), Tag(kind, role))


def open_tag(role: str) -> Tag:
    return tag(TagKind.OPEN, role)


def close_tag(role: str) -> Tag:
    return tag(TagKind.CLOSE, role)


COMMIT = tag(TagKind.COMMIT, "")
CUT = tag(TagKind.CUT, "")
DROPPED = tag(TagKind.DROPPED, "")
LEVEL = tag(TagKind.LEVEL, "")
