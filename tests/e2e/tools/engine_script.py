"""An engine that only has tool servers: prints what it started, then waits to be killed."""

from __future__ import annotations

import asyncio
import sys
import threading
from pathlib import Path

import structlog

from crewlet.tools import ToolHost, ToolServerSpec


async def main(script: str) -> None:
    host = ToolHost(environment={"PATH": "/usr/bin:/bin"})
    spec = ToolServerSpec(name="tree", command=sys.executable, args=(script,), startup_timeout_s=20)
    await host.start_shared([spec])
    print("ready" if host.status()[0].started else host.status()[0].error, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    target = str(Path(__file__).with_name(sys.argv[1]))
    if len(sys.argv) > 2 and sys.argv[2] == "thread":
        thread = threading.Thread(target=asyncio.run, args=(main(target),))
        thread.start()
        thread.join()
    else:
        asyncio.run(main(target))
