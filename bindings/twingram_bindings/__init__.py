"""Adapters between Twingram and the programs that run models: one module a program, each only a change of protocol.

Nothing is imported here. A module imports its program when it is itself imported, so that installing Twingram never
asks for a server. The engine never imports from this package.
"""

from __future__ import annotations

__all__: list[str] = []
