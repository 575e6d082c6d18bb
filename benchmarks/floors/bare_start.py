"""A bare event loop, broker and client, from nothing to the first answered request.

As a program, its arguments are the broker's program, its configuration file, the directory that it writes its port
into, and the login's seed. It says ``answered``, and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import nats
import uvloop

_POLL_S = 0.005


@asynccontextmanager
async def answering(program: str, config: str, ports: str, seed: str) -> AsyncGenerator[None]:
    """A broker that has answered its first request."""
    broker = subprocess.Popen([program, "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: ASYNC220 - nothing else runs on this loop
    try:
        while not (port := _port(Path(ports))):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(_POLL_S)
        client = await nats.connect(f"nats://127.0.0.1:{port}", nkeys_seed_str=seed)  # pyright: ignore[reportUnknownMemberType]
        await client.jetstream().account_info()  # pyright: ignore[reportUnknownMemberType]
        yield
        await client.close()
    finally:
        broker.terminate()
        broker.wait()


async def _main() -> None:
    async with answering(*sys.argv[1:]):
        print("answered", flush=True)
        await asyncio.to_thread(sys.stdin.read)


def _port(directory: Path) -> str:
    for path in directory.glob("*.ports"):
        with contextlib.suppress(OSError, ValueError, LookupError):
            return json.loads(path.read_text())["nats"][0].rpartition(":")[2]
    return ""


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_main())
