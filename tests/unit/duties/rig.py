"""Nodes that run duties over one set of buckets, and who was at work when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from crewlet.base.fence import Fence
from crewlet.duties import Chore, Duty, DutyRunner, DutyStatus, DutyTimes
from tests.unit.coordination.lease_rig import Process, Rig, SleepyClock

__all__ = ["TIMES", "Fleet", "Node", "Work", "elapsed_s"]

TIMES = DutyTimes("audit", every_s=60.0, ttl_s=180.0)


def elapsed_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Work:
    """One duty's work as all nodes do it: which node began it when, and whether two were ever at it together."""

    lasts_s: float = 1.0
    begun: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    ended: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    at_work: set[str] = field(default_factory=set[str])
    doubled: list[frozenset[str]] = field(default_factory=list[frozenset[str]])
    failing: dict[str, BaseException] = field(default_factory=dict[str, BaseException])
    stubborn: bool = False
    fences: list[Fence] = field(default_factory=list[Fence])

    async def by(self, node: str, fence: Fence) -> None:
        self.begun.append((node, elapsed_s()))
        self.at_work.add(node)
        self.fences.append(fence)
        if len(self.at_work) > 1:
            self.doubled.append(frozenset(self.at_work))
        try:
            if node in self.failing:
                raise self.failing[node]
            await self._last()
        finally:
            self.at_work.discard(node)
        self.ended.append((node, elapsed_s()))

    async def _last(self) -> None:
        until_s = elapsed_s() + self.lasts_s
        while elapsed_s() < until_s:
            try:
                await asyncio.sleep(until_s - elapsed_s())
            except asyncio.CancelledError:
                if not self.stubborn:
                    raise

    def nodes(self) -> list[str]:
        """Who worked, in order."""
        return [node for node, _ in self.begun]


@dataclass
class Node:
    """One process that runs duties."""

    name: str
    process: Process
    runner: DutyRunner

    def cut(self, *, off: bool) -> None:
        for store in self.process.stores:
            store.link.cut = off

    def status(self, name: str = TIMES.name) -> DutyStatus:
        return next(each for each in self.runner.status() if each.name == name)


class Fleet:
    """The buckets, and the nodes over them."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.work = Work()
        self.nodes: list[Node] = []

    @property
    def clock(self) -> SleepyClock:
        return self.rig.clock

    def node(self, name: str, *, roles: Iterable[str] = ("seats", "workers")) -> Node:
        """A node that runs nothing yet."""
        process = self.rig.process(name)
        runner = DutyRunner(process.leases, owner=process.owner, node_id=name, clock=self.clock, roles=roles)
        self.nodes.append(Node(name, process, runner))
        return self.nodes[-1]

    def started(
        self,
        name: str,
        *,
        times: DutyTimes = TIMES,
        withheld: Callable[[], str] = str,
        roles: Iterable[str] = ("seats", "workers"),
        chores: Sequence[Chore] = (),
    ) -> Node:
        """A node that runs the duty."""
        node = self.node(name, roles=roles)

        async def work(fence: Fence) -> None:
            await self.work.by(name, fence)

        node.runner.start([Duty(times=times, work=work, withheld=withheld)], chores)
        return node

    async def killed(self, node: Node) -> None:
        """The process is gone: it says nothing, and its tasks with it."""
        node.cut(off=True)
        self.nodes.remove(node)
        await node.runner._tasks.close()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        self.work.at_work.discard(node.name)

    async def close(self) -> None:
        for node in self.nodes:
            await node.runner.stop()
        await self.rig.stack.aclose()
