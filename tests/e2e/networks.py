"""A network of its own for each node of a test, joined by a switch that the test can pull plugs from.

Network namespaces, which end with the processes that stand for them. The machine's own network is not touched; where
the test is not root, a user namespace of its own lets it do all this.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from crewlet.testing.waiting import wait_until

_RELAY = Path(__file__).with_name("socket_relay.py")
_NOBODY = "02:00:00:00:00:ff"


class Networks:
    """The switch and what is plugged into it: node ``index`` has the address :meth:`address` of it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._processes: list[asyncio.subprocess.Process] = []
        self._enter: tuple[str, ...] = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")

    @staticmethod
    def address(index: int) -> str:
        """The address of a node; of what runs beside the switch, for -1."""
        return f"10.9.0.{index + 2}"

    async def start(self) -> None:
        """Make the switch and plug every node into it."""
        make = ("unshare", "--net", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")))
        await self._stand(*make)
        switch = self.within(-1)
        for command in (
            "ip link set lo up",
            "ip link add switch type bridge",
            f"ip addr add {self.address(-1)}/24 dev switch",
            "ip link set switch up",
        ):
            await _done(*switch, *command.split())
        for index in range(self._count):
            await self._plug_in(index)

    async def _plug_in(self, index: int) -> None:
        node = await self._stand("nsenter", f"--target={self._processes[0].pid}", *self._enter, "unshare", "--net")
        await _done(*self.within(-1), *f"ip link add plug{index} type veth peer name wire netns {node}".split())
        await _done(*self.within(-1), *f"ip link set plug{index} master switch up".split())
        for command in ("ip link set lo up", f"ip addr add {self.address(index)}/24 dev wire", "ip link set wire up"):
            await _done(*self.within(index), *command.split())

    def within(self, index: int) -> tuple[str, ...]:
        """The words before a command that is to run in a node's network; beside the switch for -1."""
        return ("nsenter", f"--target={self._processes[index + 1].pid}", *self._enter, "--net")

    async def cut(self, index: int) -> None:
        """Pull a node's plug at the switch: whatever is sent is lost, and nobody is told."""
        await _done(*self.within(-1), *f"ip link set plug{index} nomaster".split())

    async def heal(self, index: int) -> None:
        """Put it back."""
        await _done(*self.within(-1), *f"ip link set plug{index} master switch".split())

    async def cut_off_from(self, index: int, other: int) -> None:
        """What one node sends to one other is lost on the way; both speak with the rest as before."""
        reach = f"ip neigh replace {self.address(other)} lladdr {_NOBODY} nud permanent dev wire"
        await _done(*self.within(index), *reach.split())

    async def heal_towards(self, index: int, other: int) -> None:
        """Let it through again."""
        await _done(*self.within(index), *f"ip neigh del {self.address(other)} dev wire".split())

    async def relay(self, index: int, port: int, socket: Path) -> None:
        """Let who has ``socket`` reach a port of a node's own loopback, whatever becomes of the plug."""
        process = await asyncio.create_subprocess_exec(
            *self.within(index), sys.executable, str(_RELAY), str(socket), str(port), stdin=asyncio.subprocess.PIPE
        )
        self._processes.append(process)
        await wait_until(socket.exists, what="the relay")

    async def close(self) -> None:
        """End all of it."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _stand(self, *make: str) -> int:
        """A process that keeps a namespace: it ends when its input does, and so with this test."""
        known = {_network_of("self"), *(_network_of(str(each.pid)) for each in self._processes)}
        process = await asyncio.create_subprocess_exec(*make, "cat", stdin=asyncio.subprocess.PIPE)
        self._processes.append(process)

        def moved() -> bool:
            assert process.returncode is None, f"{make[0]} cannot make a network namespace here"
            return _network_of(str(process.pid)) not in known

        await wait_until(moved, what="a network namespace")
        return process.pid


def _network_of(pid: str) -> int:
    """Which network a process is in: a number that tells it from the others."""
    return Path("/proc", pid, "ns", "net").stat().st_ino


async def _done(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(10):
        _, err = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}: {err.decode()}"


@asynccontextmanager
async def separate_networks(count: int) -> AsyncGenerator[Networks]:
    """A network for each of ``count`` nodes, gone at the end.

    Other systems than Linux have none of this and skip. A Linux machine without the tools, or that forbids
    namespaces, skips too, unless it is one that checks the project (``CI`` is set): there it fails.
    """
    networks = Networks(count)
    try:
        try:
            assert sys.platform == "linux", "no network namespaces here"
            assert all(map(shutil.which, ("unshare", "nsenter", "ip"))), "unshare, nsenter and ip are needed"
            await networks.start()
        except (AssertionError, OSError) as error:
            if sys.platform == "linux" and os.environ.get("CI"):
                raise
            pytest.skip(str(error))
        yield networks
    finally:
        await networks.close()
