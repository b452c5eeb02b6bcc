"""Log records as one JSON object a line, on standard error.

In: records; what is in `extra={"fields": {...}}` becomes members. Out: text. No prompt and no answer is ever logged.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone

__all__ = ["JsonLines", "logger"]

logger = logging.getLogger("twingram.server")


class JsonLines(logging.Formatter):
    """One object a record: time, level, event, and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)
