"""Requests as constraints, the newest kept.

In: a checked request. Out: a `Constraint`, shared by all requests that ask for the same, or an `ApiError` with the JSON
path of the schema that cannot be had.
Invariants: a schema marked `strict` is enforced keyword by keyword or refused; of any other, what is not enforced is
logged. Thread-safe. Cost: compiling, or one look-up; at most `_KEPT` constraints and `_BYTES` bytes are held.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from threading import Lock

import twingram as tg

from .backend import Backend
from .errors import ApiError, of_twingram, schema_path
from .logs import logger
from .request import ChatRequest

__all__ = ["Compiled"]

_KEPT = 128
_BYTES = 256 << 20


class Compiled:
    """The constraints of one back end."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._lock = Lock()
        self._kept: OrderedDict[str, tg.Constraint] = OrderedDict()

    def constraint(self, request: ChatRequest, prompt_tail: str, max_tokens: int) -> tg.Constraint:
        key = json.dumps(
            [
                request.tools, request.tool_choice, request.parallel_tool_calls, request.response_schema,
                request.reasoning, sorted(request.strict), max_tokens, prompt_tail,
            ]
        )  # fmt: skip
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found
        made = self._compile(request, prompt_tail, max_tokens)
        with self._lock:
            self._kept[key] = made
            while len(self._kept) > 1 and (len(self._kept) > _KEPT or self._held() > _BYTES):
                self._kept.popitem(last=False)
        return made

    def states(self) -> int:
        with self._lock:
            return sum(len(constraint.machine) for constraint in self._kept.values())

    def held_bytes(self) -> int:
        with self._lock:
            return self._held()

    def _held(self) -> int:
        return sum(constraint.memory_usage() for constraint in self._kept.values())

    def _compile(self, request: ChatRequest, prompt_tail: str, max_tokens: int) -> tg.Constraint:
        try:
            constraint = self._backend.format.constraint(
                request.tools,
                tool_choice=request.tool_choice,
                vocabulary=self._backend.vocabulary,
                parallel_tool_calls=request.parallel_tool_calls,
                reasoning=request.reasoning,
                prompt_tail=prompt_tail,
                on_refused="error",
                response_schema=request.response_schema,
                max_tokens=max_tokens,
            )
        except tg.TwingramError as error:
            about_answer = not request.names and request.response_schema is not None
            field = "max_tokens" if "max_tokens" in str(error) else "response_format" if about_answer else "tools"
            raise of_twingram(error, request.names, field) from None
        self._look_at(constraint.report(), request)
        return constraint

    def _look_at(self, report: list[tg.Finding], request: ChatRequest) -> None:
        relaxed = [finding for finding in report if finding.status == "relaxed"]
        for finding in relaxed:
            if finding.tool in request.strict:
                where = schema_path(finding.tool, finding.path, request.names)
                raise ApiError(
                    f"{where}: {finding.keyword} cannot be enforced, and the schema is strict: {finding.reason}",
                    where, code="invalid_schema",
                )  # fmt: skip
        if relaxed:
            places = [f"{schema_path(f.tool, f.path, request.names)} {f.keyword}" for f in relaxed[:8]]
            fields = {"count": len(relaxed), "first": places}
            logger.log(logging.WARNING, "schema_relaxed", extra={"fields": fields})
