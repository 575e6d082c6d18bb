"""Start every node of a folder that `crewlet init --fleet` wrote, in the foreground; Ctrl-C drains and ends them all.

    python examples/fleet/start.py FOLDER

Each line is led by the name of the node that said it. A node that ends by itself is told, and the others go on: kill
one to see its seats move. A second Ctrl-C ends at once what is left.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

CREWLET = str(Path(sys.executable).with_name("crewlet"))
LINE_MAX_BYTES = 1024 * 1024


def main(folder: Path) -> int:
    """Run the nodes of a folder until the last has ended."""
    names = [file.stem for file in sorted(folder.glob("node-*.yaml"))]
    if not names:
        print(f"{folder} has no node files; write some with: crewlet init --fleet 3 {folder}", file=sys.stderr)
        return 2
    return asyncio.run(run(folder, names))


async def run(folder: Path, names: list[str]) -> int:
    """Start them, tell what they say, and pass on who wants them to end."""
    running: dict[str, asyncio.subprocess.Process] = {}
    for name in names:
        running[name] = await asyncio.create_subprocess_exec(
            CREWLET,
            "run",
            "-c",
            str(folder / f"{name}.yaml"),
            "--company",
            str(folder / "company.yaml"),
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            limit=LINE_MAX_BYTES,
            # A Ctrl-C at the terminal comes here alone, and is passed on once.
            start_new_session=True,
        )

    def pass_on() -> None:
        for process in running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGINT)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, pass_on)
    codes = await asyncio.gather(*(tell(name, process) for name, process in running.items()))
    return 0 if not any(codes) else 1


async def tell(name: str, process: asyncio.subprocess.Process) -> int:
    """Say what a node says, and how it ended."""
    assert process.stdout is not None
    async for line in process.stdout:
        print(f"{name} | {line.decode(errors='replace').rstrip()}", flush=True)
    code = await process.wait()
    print(f"{name} | ended with {code} (was {process.pid})", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
