"""SGLang: tool-call detectors and a grammar backend, registered through its own registries.

    python -m sglang.launch_server --model-path MODEL \\
        --tool-call-parser twingram_gemma4 --grammar-backend twingram_gemma4

`register` is the plugin: SGLang calls it by the entry point group `sglang.srt.plugins` when it starts. Nothing of
SGLang is imported before.
"""

from __future__ import annotations

__all__ = ["register"]


def register() -> None:
    """Make a detector and a grammar backend `twingram_FORMAT` known for each format."""
    from . import detector, grammar  # noqa: PLC0415 - they import SGLang, which calls this

    detector.register()
    grammar.register()
