"""What the builders of one compilation share.

In: a document, the options of a request. Out: one `Context`: the report, the options, the resolver of references and
the checker of given values.
"""

from __future__ import annotations

from typing import Any

from .branches import Resolver
from .options import SchemaOptions
from .report import Report
from .satisfies import Checker

__all__ = ["Context"]


class Context:
    """One compilation's surroundings."""

    __slots__ = ("checker", "containers", "document", "limits", "options", "report", "resolver")

    def __init__(self, document: Any, options: SchemaOptions, tool: str) -> None:
        self.document, self.options, self.limits = document, options, options.limits
        self.report = Report(tool, strict=options.on_unsupported == "error")
        self.resolver = Resolver(document, self.report, self.limits)
        self.containers = 0  # that are described so far
        self.checker = Checker(self.resolver, self.report, self.limits, formats=options.formats)
