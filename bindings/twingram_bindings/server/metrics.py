"""What a scraper is told: latencies of compiling, masks and parsing, tokens, requests, states and bytes.

In: seconds and counts as they happen. Out: the text that Prometheus reads. Each server has a registry of its own.
Cost: about a microsecond an observation.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

__all__ = ["Metrics"]

_SHORT = (5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 1e-3, 5e-3, 2.5e-2, 0.1)
_LONG = (5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 0.1, 0.25, 1.0, 2.5, 10.0, 60.0)


class Metrics:
    """`states` and `cached_bytes` are asked when the metrics are read."""

    def __init__(self, states: Callable[[], float], cached_bytes: Callable[[], float]) -> None:
        self.registry = registry = CollectorRegistry()
        self.requests = Counter("twingram_requests", "Answered requests", ["route", "status"], registry=registry)
        self.running = Gauge("twingram_requests_running", "Chat requests being worked on", registry=registry)
        self.disconnects = Counter("twingram_disconnects", "Generations that a client left", registry=registry)
        self.prompt_tokens = Counter("twingram_prompt_tokens", "Tokens of prompts", registry=registry)
        self.generated_tokens = Counter("twingram_generated_tokens", "Generated tokens", registry=registry)
        self.calls = Counter("twingram_tool_calls", "Complete tool calls", registry=registry)
        self.compile = _histogram("twingram_compile_seconds", "Request to first mask", _LONG, registry)
        self.mask = _histogram("twingram_mask_seconds", "The mask of one step", _SHORT, registry)
        self.parse = _histogram("twingram_parse_seconds", "A token accepted and its deltas", _SHORT, registry)
        self.first = _histogram("twingram_first_delta_seconds", "Request to first delta", _LONG, registry)
        self.total = _histogram("twingram_request_seconds", "Request to last byte", _LONG, registry)
        compiled = Gauge("twingram_states", "Automaton states of the compiled requests at hand", registry=registry)
        compiled.set_function(states)
        size = Gauge("twingram_cache_bytes", "Bytes of the compiled requests at hand, about", registry=registry)
        size.set_function(cached_bytes)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def _histogram(name: str, what: str, buckets: tuple[float, ...], registry: CollectorRegistry) -> Histogram:
    return Histogram(name, what, buckets=buckets, registry=registry)
