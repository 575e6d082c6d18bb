"""A tiny engine for tests to kill: starts a broker on a directory, says its pids, and waits for ever.

``python engine_script.py DIRECTORY main|thread``: from which thread the broker is started.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

from crewlet.backends.nats import BrokerConfig, EmbeddedBroker


async def engine(directory: str) -> None:
    broker = EmbeddedBroker(BrokerConfig(store_dir=Path(directory), lock_wait_s=0.2))
    await broker.start()
    print(os.getpid(), broker.pid, broker.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[2] == "main":
        asyncio.run(engine(sys.argv[1]))
    else:
        # The starting thread ends at once, and the broker must not end with it.
        thread = threading.Thread(target=asyncio.run, args=(engine(sys.argv[1]),))
        thread.start()
        thread.join()
