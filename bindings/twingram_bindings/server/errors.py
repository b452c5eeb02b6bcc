"""Refusals in the shape that clients of Chat Completions know.

In: what is wrong and where in the request. Out: a status and `{"error": {"message", "type", "param", "code"}}`, where
`param` is the JSON path of the culprit.
"""

from __future__ import annotations

import re
from typing import Any

import twingram as tg

__all__ = ["ApiError", "of_twingram"]


class ApiError(Exception):
    """An answer that is an error."""

    def __init__(
        self,
        message: str,
        param: str | None = None,
        *,
        status: int = 400,
        code: str | None = None,
        kind: str = "invalid_request_error",
    ) -> None:
        super().__init__(message)
        self.message, self.param, self.status, self.code, self.kind = message, param, status, code, kind

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


_PLACE = re.compile(r"(tools(?:\[\d+\])?(?:\.\w+)*)\b")


def of_twingram(error: tg.TwingramError, tools: list[str], param: str) -> ApiError:
    """An error of the library as an answer. `tools`: the JSON path of each tool's schema is made from these names'
    places; `param`: the field of the request that is at fault where the error does not say."""
    if isinstance(error, tg.SchemaError):
        return ApiError(str(error), schema_path(error.tool, error.path, tools), code="invalid_schema")
    if isinstance(error, tg.LimitExceeded):
        return ApiError(str(error), param, code="limit_exceeded")
    place = _PLACE.match(str(error))
    return ApiError(str(error), place.group(1) if place else param)


def schema_path(tool: str, path: str, tools: list[str]) -> str:
    """Where in the request this place of a tool's schema stands; of the answer's schema, where the tool is ''."""
    if tool in tools:
        return f"tools[{tools.index(tool)}].function.parameters{path.removeprefix('$')}"
    return f"response_format.json_schema.schema{path.removeprefix('$')}"
