"""vLLM: tool and reasoning parsers as a plugin, and forced calls in a format's own syntax.

    vllm serve MODEL --enable-auto-tool-choice \\
        --tool-parser-plugin twingram_bindings.vllm.parsers --tool-call-parser twingram_gemma4 \\
        --reasoning-parser-plugin twingram_bindings.vllm.parsers --reasoning-parser twingram_gemma4

`parsers` registers, for each format, `twingram_FORMAT` (forced choice as grammar text for vLLM's own structured output)
and `twingram_FORMAT_masks` (masks of Twingram, by the processor in `masks`). Nothing is imported here.
"""

from __future__ import annotations

__all__: list[str] = []
