"""The body of a request: bounded, JSON, an object.

In: a stream of bytes. Out: a dictionary, or an `ApiError` that says what is wrong with the body and at which place.
Invariant: never more than `limit` bytes are held. Cost: linear.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from starlette.requests import Request

from .errors import ApiError

__all__ = ["read_body", "read_object"]


async def read_body(request: Request, limit: int) -> bytes:
    """The bytes of the body; an error as soon as there are too many."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > limit:
            raise _too_large(limit)
    return bytes(body)


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. JSON to the letter: no NaN, no lone surrogates, no absurd depth."""
    try:
        value = json.loads(body, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode() if b"\\u" in body else None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise ApiError(f"the body is not JSON: {where}: {error.msg}", "$", code="invalid_json") from None
    except UnicodeDecodeError as error:
        raise ApiError(f"the body is not UTF-8: byte {error.start}", "$", code="invalid_json") from None
    except UnicodeEncodeError:
        raise ApiError("the body holds half of a surrogate pair", "$", code="invalid_json") from None
    except RecursionError:
        raise ApiError("the body is nested too deeply", "$", code="invalid_json") from None
    except ValueError as error:  # a number with thousands of digits
        raise ApiError(f"the body cannot be read: {error}", "$", code="invalid_json") from None
    if not isinstance(value, dict):
        raise ApiError(f"the body must be a JSON object, not {type(value).__name__}", "$")
    return value


def _refuse(name: str) -> NoReturn:
    raise ApiError(f"the body is not JSON: {name} is no JSON number", "$", code="invalid_json")


def _too_large(limit: int) -> ApiError:
    return ApiError(f"the body has more than {limit} bytes", "$", status=413, code="body_too_large")
