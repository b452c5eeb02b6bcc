"""The comparison of interfaces finds each kind of change."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import pytest

from .interfaces import interface_faults


class Base:
    flag = False

    @abstractmethod
    def accept(self, token: int) -> None: ...

    def rollback(self, count: int) -> None:
        """Many engines mark what is left open like this."""
        raise NotImplementedError("rollback")

    def ready(self, why: str = "") -> bool:
        return True

    @staticmethod
    def apply(logits: Any, mask: Any, *, width: int = 0) -> None:
        raise NotImplementedError

    @property
    def size(self) -> int:
        return 0


def made(**members: Any) -> type:
    """A class of ours: the right members, and these instead."""

    def accept(self: Any, token: int, more: int = 0) -> None: ...
    def rollback(self: Any, count: int) -> None: ...
    def ready(self: Any, why: str = "") -> bool: ...
    def apply(logits: Any, mask: Any, *, width: int = 0) -> None: ...

    right = {"accept": accept, "rollback": rollback, "ready": ready, "apply": staticmethod(apply),
             "size": property(lambda self: 1), "flag": True}  # fmt: skip
    kept = {name: member for name, member in {**right, **members}.items() if member is not None}
    return type("Own", (), {**kept, "__module__": "twingram_bindings.own"})


def test_what_fits_is_right() -> None:
    assert interface_faults(made(), Base) == []
    assert interface_faults(made(ready=None, size=None), Base) == []
    assert interface_faults(made(accept=lambda self, *args: None, apply=staticmethod(lambda *a, **b: None)), Base) == []
    assert interface_faults(made(other=1), Base, more=["other"]) == []


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"accept": None, "accepts": lambda self, token: None}, "Base.accept is not answered"),
        ({"rollback": None}, "Base.rollback is not answered"),
        ({"apply": None}, "Base.apply is not answered"),
        ({"accepts": lambda self, token: None}, "accepts is not in the interface"),
        ({"accept": lambda self, ids: None}, "accept argument 1 is called 'ids', not 'token'"),
        ({"accept": lambda self: None}, "accept takes no 'token'"),
        ({"accept": lambda self, token, more: None}, "accept wants 'more', which nobody passes"),
        ({"ready": lambda self, why: True}, "ready wants 'why', which may be left out"),
        ({"apply": staticmethod(lambda mask, logits, *, width=0: None)}, "argument 0 is called 'mask', not 'logits'"),
        ({"apply": staticmethod(lambda logits, mask: None)}, "apply takes no 'width'"),
        ({"apply": lambda logits, mask, *, width=0: None}, "apply is a method, not a staticmethod"),
        ({"size": lambda self: 1}, "size is a method, not a property"),
    ],
)
def test_what_does_not_fit_is_named(members: dict[str, Any], fault: str) -> None:
    assert any(fault in found for found in interface_faults(made(**members), Base))


def test_what_has_to_be_there() -> None:
    assert interface_faults(made(), Base, more=["finish"]) == ["finish is not there"]
    assert interface_faults(made(), Base, calls=["__call__"]) == ["__call__ is not there"]
