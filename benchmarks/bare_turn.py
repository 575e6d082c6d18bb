"""What recording a turn costs without the engine: its messages published by the bare client and put into a table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import nats

__all__ = ["bare_turn_cpu_s"]

_STREAM = "BENCH_FLOOR"
_PREPARED = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "CREATE TABLE message (id INTEGER PRIMARY KEY, body)",
)


async def bare_turn_cpu_s(url: str, seed: str, database: Path, messages: Sequence[bytes], turns: int) -> float:
    """Seconds of processor time for the messages of one turn, over ``turns`` repetitions."""
    client = await nats.connect(url, nkeys_seed_str=seed)  # pyright: ignore[reportUnknownMemberType]
    stream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    await stream.add_stream(name=_STREAM, subjects=["bench.floor"])  # pyright: ignore[reportUnknownMemberType]
    connection: Any = apsw.Connection(str(database))  # its types are partly unknown
    for statement in _PREPARED:
        connection.execute(statement).fetchall()
    began_s = time.process_time()
    for _ in range(turns):
        for message in messages:
            await stream.publish("bench.floor", message)
            connection.execute("INSERT INTO message (body) VALUES (?)", (message,))
    took_s = time.process_time() - began_s
    connection.close()
    await stream.delete_stream(_STREAM)
    await client.close()
    return took_s / turns
