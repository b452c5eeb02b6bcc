"""Sessions and parsers: what a request asks, compiled; tags over a growing text made into deltas and messages.

In reading order: `tools`, `deltas`, `scopes`, `arguments`, `emitter`, `message`, `track`, `reader`, `parser`,
`request`, `constraint`, `session`, `batch`.
"""
