"""The exceptions to the house rules, each with its reason; an entry that is no longer needed fails the tests."""

from __future__ import annotations

__all__ = ["BROAD_HANDLERS", "CLOCKS_AND_CHANCE", "TEXTS_LIKE_BROKER_NAMES"]

BROAD_HANDLERS: dict[str, str] = {
    "backends/nats/connection.py": "a failing listener must not keep the others, or the next dial, from happening",
    "backends/nats/link.py": "an error would end the client's read loop and leave the whole node deaf",
}
"""Modules with a supervisor that may catch everything."""

CLOCKS_AND_CHANCE: dict[str, str] = {}
"""Modules outside base that may read the machine's clock."""

TEXTS_LIKE_BROKER_NAMES: dict[str, str] = {
    "CREWLET_API_TOKEN": "an environment variable",
}
"""Texts in the code that begin like a name of the broker and are none, wherever they stand."""
