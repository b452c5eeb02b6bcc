"""Options of a schema compilation: what a request may choose.

In: plain values. Out: one frozen, hashable `SchemaOptions`; a value that is none of the choices is refused at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..limits import DEFAULT_LIMITS, Limits

__all__ = ["SchemaOptions"]

_CHOICES = {
    "key_order": ("any", "declared", "sorted"),
    "additional_properties": ("declared", "schema"),
    "on_unsupported": ("relax", "error"),
}


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """How a schema is read."""

    key_order: str = "any"
    """Declared keys come in any order, as they are listed (`declared`), or by their lower-case form (`sorted`)."""
    additional_properties: str = "declared"
    """`declared`: where a schema lists properties, only they are written. `schema`: what the schema says."""
    on_unsupported: str = "relax"
    """`relax`: a keyword that cannot be enforced is reported. `error`: it is refused."""
    formats: bool = True
    """Whether `format` restricts texts, or only describes them."""
    limits: Limits = field(default=DEFAULT_LIMITS)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is one of {', '.join(choices)}, not {getattr(self, name)!r}")
