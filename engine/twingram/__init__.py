"""Twingram: one grammar a format, compiled to an automaton that is both the streaming parser and the token mask.

    import twingram as tg

    fmt = tg.load_format("...")                  # tg.list_formats() names them
    message = fmt.parse(text, tools=tools)       # content, reasoning, calls
    session = fmt.constraint(tools, "required", vocabulary=vocab).session()

The README has the map of the modules, in reading order.
"""

from .caches import cache_usage, set_cache_budget
from .errors import (
    ExportError,
    GrammarError,
    LimitExceeded,
    RequestError,
    SchemaError,
    TwingramError,
    VocabularyError,
)
from .format import Format, list_formats, load_format
from .limits import Limits
from .schema.report import Finding
from .session.batch import Batch
from .session.constraint import Constraint
from .session.deltas import CallArguments, CallEnd, CallStart, Content, Delta, ParseError, Reasoning
from .session.message import Call, Message
from .session.openai import openai_chunks
from .session.parser import Parser
from .session.session import Session
from .tokens.mask_table import MaskPage, MaskTable
from .tokens.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "Call",
    "CallArguments",
    "CallEnd",
    "CallStart",
    "Constraint",
    "Content",
    "Delta",
    "ExportError",
    "Finding",
    "Format",
    "GrammarError",
    "LimitExceeded",
    "Limits",
    "MaskPage",
    "MaskTable",
    "Message",
    "ParseError",
    "Parser",
    "Reasoning",
    "RequestError",
    "SchemaError",
    "Session",
    "TwingramError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "cache_usage",
    "list_formats",
    "load_format",
    "openai_chunks",
    "set_cache_budget",
]
