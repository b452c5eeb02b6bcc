"""The track of a reading: for each thread, the tags it has fired, and what all threads agree on.

In: transitions of the automaton, one after the other. Out: the tags that are decided, and up to where the text is.

While all threads have fired the same, all that is fired is certain and nothing has to be kept. A `Fork` is what is
known from where they first differ. It depends on the transitions since then alone, so it is kept at the first of them,
and what was read before is followed by looking forks up.

Each thread's tags are a linked list that shares its past with the others, so a split costs nothing and an old track
can be kept for rollback by keeping three references. What is decided is the common past of all live threads; text is
decided up to the first tag after it in any of them. A node knows its depth and jumps to an ancestor far up, so that the
common past of two lists is found in logarithmic time: a reading may wait for hundreds of thousands of tags.
Invariants: nodes are immutable; readings that have fired the same since they parted share their nodes.
Cost: a step through forks that are kept is one look-up (a new one took 3 us); else a tag costs one small object.

Source: E. W. Myers, "An applicative random-access stack" (1983), for the jump pointers.
"""

from __future__ import annotations

from ..automaton.machine import Transition
from ..automaton.moves import Fired, Move
from ..automaton.tags import Tag
from .acts import acts_of

__all__ = ["ROOT", "Fork", "Node", "collect", "common", "extend", "first_after"]

_NEAR = 64  # bytes from where a fork began: what is decided later hardly comes twice
_FEW = 16  # tags that are open in all readings together
_Shape = tuple[tuple[tuple[int, Tag, int], ...], ...]  # for each reading (number, tag, place) of its nodes
_Moved = dict[tuple[_Shape, tuple[Fired, ...], int], "Fork"]


class Node:
    """One fired tag and all before it. The root stands for nothing fired."""

    __slots__ = ("before", "depth", "jump", "position", "tag")

    def __init__(self, before: Node | None, tag: Tag | None, position: int) -> None:
        self.before, self.tag, self.position = before, tag, position
        if before is None:
            self.depth, self.jump = 0, self
            return
        self.depth = before.depth + 1
        jump = before.jump
        # Myers' rule: equal strides twice in a row make one of double length.
        self.jump = jump.jump if before.depth - jump.depth == jump.depth - jump.jump.depth else before


ROOT = Node(None, None, 0)


class Fork:
    """What threads have fired since they first differed: positions count from where the first step began.

    `news` are the tags that the last step made certain, `upto` is the first that is not (None if all are). `level`:
    all is certain again, whether one thread is left or several that have fired the same. `acts` are the news as acts.
    `anew`: positions count from where the last step began, for that was the first one. `moved`: they count from so much
    further on than in the fork before.
    """

    __slots__ = ("_after", "_near", "acts", "anew", "level", "moved", "news", "nodes", "shared", "upto")

    def __init__(
        self, nodes: tuple[Node, ...], news: tuple[Fired, ...], near: _Moved, *, anew: bool = False, moved: int = 0
    ) -> None:
        self.nodes, self.news, self.anew, self.moved = nodes, news, anew, moved
        self.shared = common(nodes)
        self.upto = first_after(nodes, self.shared)
        self.acts = acts_of(news)
        self.level = self.upto is None
        self._after: dict[tuple[Transition, int], Fork] = {}  # a step, and where it begins: the fork after it
        self._near = near  # those that have moved, of all that began with one step

    def after(self, step: Transition, at: int) -> Fork:
        """One step that fires something later, which begins at `at`.

        Where all readings that live on had fired nothing of their own, a fork begins anew: so readings that begin and
        die at each byte (endless `<`) are one step that is kept, not a longer and longer fork. Where such readings
        overlap (endless `[`, before which `[[` is tried), the place moves on from which positions count.
        """
        known = self._after.get((step, at))
        if known is None:
            nodes, shared, moves = self.nodes, self.shared, step.moves
            assert moves is not None, "a step that fires nothing is not followed"
            if all(nodes[move.source] is shared for move in moves):
                known = Fork.of(step)
            else:
                known = self._moved_on(extend(nodes, moves, at), step)
            if at <= _NEAR:
                step.state.machine.keep_fork(None)
                self._after[step, at] = known
        return known

    def _moved_on(self, nodes: tuple[Node, ...], step: Transition) -> Fork:
        """The fork of these lists; what is open in them counts from where the first of it lies, if it is not much."""
        shared = common(nodes)
        upto, news = first_after(nodes, shared), collect(shared, self.shared)
        if not upto or sum(node.depth - shared.depth for node in nodes) > _FEW:
            return Fork(nodes, tuple(news), self._near)
        shape = _shape(nodes, shared, upto)
        moved = tuple((tag, place - upto) for tag, place in news)
        known = self._near.get((shape, moved, upto))
        if known is None:
            step.state.machine.keep_fork(None)
            known = Fork(_lists(shape), moved, self._near, moved=upto)
            self._near[shape, moved, upto] = known
        return known

    @classmethod
    def of(cls, step: Transition) -> Fork:
        """One step from where all was certain."""
        known: Fork | None = step.fork
        if known is None:
            assert step.moves is not None
            threads = 1 + max(move.source for move in step.moves)
            nodes = extend((ROOT,) * threads, step.moves, 0)
            known = cls(nodes, tuple(collect(common(nodes), ROOT)), {}, anew=True)
            step.state.machine.keep_fork(step)
            step.fork = known
        return known


def _shape(nodes: tuple[Node, ...], shared: Node, since: int) -> _Shape:
    """The lists behind the common past, their nodes numbered, so that what they share is seen."""
    numbers: dict[Node, int] = {}
    rows = []
    for node in nodes:
        row: list[tuple[int, Tag, int]] = []
        while node is not shared:
            assert node.tag is not None
            assert node.before is not None
            row.append((numbers.setdefault(node, len(numbers)), node.tag, node.position - since))
            node = node.before
        rows.append(tuple(reversed(row)))
    return tuple(rows)


def _lists(shape: _Shape) -> tuple[Node, ...]:
    """The same lists from the root."""
    made: dict[int, Node] = {}
    out = []
    for row in shape:
        node = ROOT
        for number, tag, place in row:
            node = made[number] = made.get(number) or Node(node, tag, place)
        out.append(node)
    return tuple(out)


def extend(nodes: tuple[Node, ...], moves: tuple[Move, ...], position: int) -> tuple[Node, ...]:
    """The lists after a transition that began at `position`. Readings that fire the same go on sharing their past."""
    if len(moves) == 1:
        node = nodes[moves[0].source]
        for tag, offset in moves[0].tags:
            node = Node(node, tag, position + offset)
        return (node,)
    made: dict[tuple[Node, Tag, int], Node] = {}
    out = []
    for source, tags in moves:
        node = nodes[source]
        for tag, offset in tags:
            key = (node, tag, offset)
            found = made.get(key)
            if found is None:
                found = made[key] = Node(node, tag, position + offset)
            node = found
        out.append(node)
    return tuple(out)


def ancestor(node: Node, depth: int) -> Node:
    """The list as it was when it had `depth` tags."""
    while node.depth > depth:
        node = node.jump if node.jump.depth >= depth else node.before  # type: ignore[assignment]
    return node


def common(nodes: tuple[Node, ...]) -> Node:
    """The longest past that all lists share."""
    shared = nodes[0]
    for other in nodes[1:]:
        depth = min(shared.depth, other.depth)
        shared, other = ancestor(shared, depth), ancestor(other, depth)
        while shared is not other:
            if shared.jump is not other.jump:
                shared, other = shared.jump, other.jump
            else:
                shared, other = shared.before, other.before  # type: ignore[assignment]
    return shared


def first_after(nodes: tuple[Node, ...], shared: Node) -> int | None:
    """The place of the first tag after the shared past in any list; None if there is none."""
    places = [ancestor(node, shared.depth + 1).position for node in nodes if node is not shared]
    return min(places, default=None)


def collect(node: Node, since: Node) -> list[tuple[Tag, int]]:
    """The tags after `since`, which must be in the past of `node`, in order."""
    out: list[tuple[Tag, int]] = []
    while node is not since:
        if node.tag is not None:
            out.append((node.tag, node.position))
        assert node.before is not None
        node = node.before
    out.reverse()
    return out
