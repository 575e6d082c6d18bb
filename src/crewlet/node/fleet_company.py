"""Which document the fleet runs: the pointer in the ``config`` slot, followed by every node, and told of by each."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import ConfigError, CrewletError, Unavailable
from crewlet.base.fence import Posture
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination import (
    CONFIG_POINTER_PATTERN,
    ActiveConfig,
    ConfigPointer,
    ConfigPointers,
    NodeStatus,
    NodeStatuses,
    RecordStore,
    Revision,
)

__all__ = ["FleetCompany", "FleetCompanyParts", "TakeCurrent", "revision_of"]

_log = structlog.get_logger(__name__)

_REVISION_CHARS = 16


TakeCurrent = Callable[[Callable[[], Awaitable[ActiveConfig]]], Awaitable[ActiveConfig]]
"""Asks what is current, with no other change between the answer and the act, and applies it; returns what it was told.

Raises ``ConfigError``, ``Unavailable``.
"""


def revision_of(document: str) -> str:
    """What a document is called: the same text has the same name everywhere."""
    return hashlib.sha256(document.encode()).hexdigest()[:_REVISION_CHARS]


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCompanyParts:
    """What following stands on: the two slots, and who this node is."""

    config: RecordStore
    status: RecordStore
    node_id: str
    posture: Posture
    clock: Clock
    ids: Ids


class FleetCompany:
    """One node's hand on the pointer. What it applied is ``number``, set by whoever applies."""

    def __init__(self, parts: FleetCompanyParts) -> None:
        self._parts = parts
        self._pointers = ConfigPointers(parts.config)
        self._statuses = NodeStatuses(parts.status)
        self._tasks = Tasks("fleet_company", self._died)
        self._told_anew = asyncio.Event()
        self._number: Callable[[], int] = int
        self._document: Callable[[], str] = str
        self._error = ""
        self._unfollowed = ""
        self._applied_revision: str = ""
        self._reported_number = 0

    async def first(self, document: str) -> ActiveConfig:
        """What the fleet runs as this node starts; where it runs nothing yet, this node's own document from now on.

        Raises ``Unavailable``.
        """
        active = await self._pointers.publish(self._pointer(document, f"node:{self._parts.node_id}"))
        self._applied_revision = active.pointer.revision_id
        return active

    async def activate(self, document: str, by: str) -> int:
        """Make this document the fleet's, in place of the one that this node runs; returns its number.

        Raises ``Conflict`` where the fleet runs another, ``Unavailable``: then it may be the fleet's all the same.
        """
        return (await self._pointers.activate(self._pointer(document, by), expected=Revision(self._number()))).epoch

    async def confirm_current(self) -> None:
        """Return where this node runs what the fleet runs. Raises ``Unavailable`` where it does not, or cannot tell."""
        active = await self._pointers.current()
        if active is None or active.epoch != self._number():
            raise Unavailable("this node does not run the company's current document yet")

    async def reported(self) -> dict[str, NodeStatus]:
        """What each node last said of what it applied, by node. Raises ``Unavailable``."""
        return {status.node: status for status in await self._statuses.all()}

    def problems(self) -> tuple[str, ...]:
        """What a person should know."""
        return tuple(each for each in (self._error, self._unfollowed) if each)

    def start(self, number: Callable[[], int], document: Callable[[], str], take: TakeCurrent) -> None:
        """Have ``take`` apply whatever becomes current, and report what is applied, until :meth:`close`."""
        self._number, self._document = number, document
        self._tasks.start("follow", self._follow(take))
        self._tasks.start("report", self._report())

    async def close(self) -> None:
        """Follow and report no more."""
        await self._tasks.close()

    async def _follow(self, take: TakeCurrent) -> None:
        pause_s = limits.COMPANY_FOLLOW_BACKOFF_FIRST_S
        while True:
            opened_s = self._parts.clock.elapsed_s()
            try:
                # The watch tells that something changed; what stands is the leader's to say.
                async with self._parts.config.watch(CONFIG_POINTER_PATTERN) as watch:
                    while True:
                        await self._take_current(take)
                        self._unfollowed = ""
                        await watch.next()
            except CrewletError as error:
                self._unfollowed = "" if self._error else f"the fleet's company is not followed just now: {error}"
                _log.warning("company_not_followed", retry_s=pause_s, error=str(error))
            lasted = self._parts.clock.elapsed_s() - opened_s > limits.COMPANY_FOLLOW_BACKOFF_MAX_S
            pause_s = limits.COMPANY_FOLLOW_BACKOFF_FIRST_S if lasted else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, limits.COMPANY_FOLLOW_BACKOFF_MAX_S)

    async def _take_current(self, take: TakeCurrent) -> None:
        try:
            active = await take(self._current)
        except ConfigError as error:
            self._error = f"the fleet's company cannot be run here: {error}"
            self._told_anew.set()
            raise
        if active.epoch != self._reported_number or self._error:
            self._told_anew.set()
        self._applied_revision, self._error = active.pointer.revision_id, ""

    async def _current(self) -> ActiveConfig:
        """What the fleet runs. A bucket that was lost with a broker's memory gets this node's document again."""
        active = await self._pointers.current()
        if active is not None:
            return active
        _log.warning("company_pointer_lost", number=self._number())
        return await self._pointers.publish(self._pointer(self._document(), f"node:{self._parts.node_id}"))

    async def _report(self) -> None:
        while True:
            self._told_anew.clear()
            status = self._status()
            try:
                await self._statuses.report(status)
                self._reported_number = status.epoch
            except Unavailable as error:
                _log.warning("company_status_not_reported", error=str(error))
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.STATUS_REPORT_EVERY_S):
                    await self._told_anew.wait()

    def _status(self) -> NodeStatus:
        return NodeStatus(
            node=self._parts.node_id,
            epoch=self._number(),
            revision_id=self._applied_revision,
            status="error" if self._error else "ok",
            posture=self._parts.posture.name,
            reported_at=self._parts.clock.now(),
            error=self._error,
        )

    def _pointer(self, document: str, by: str) -> ConfigPointer:
        return ConfigPointer(
            activation_id=self._parts.ids.hex(16),
            revision_id=revision_of(document),
            activated_by=by,
            activated_at=self._parts.clock.now(),
            document=document,
        )

    def _died(self, task: str, failure: BaseException) -> None:
        self._unfollowed = f"the fleet's company is not followed any more: {task}: {failure!r}"
