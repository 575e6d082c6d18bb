"""Detached runs: a box that costs money, a conversation that waits for it, and the seat that owns both (S0, S1)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from crewlet.base.errors import Conflict, Fenced, Unavailable
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord, encode_record
from crewlet.coordination.records.stored import change_stored, list_stored, read_stored, remove_stored

__all__ = ["RunStatus", "SandboxRun", "SandboxRuns", "run_given_back", "run_resumed", "run_suspended"]


class RunStatus(StrEnum):
    """Where a run stands. A settled run has no record."""

    LAUNCHING = "launching"
    RUNNING = "running"
    RESUMED = "resumed"
    AWAITING_CLARIFICATION = "awaiting_clarification"
    RESEED = "reseed"


class SandboxRun(SharedRecord, frozen=True, kw_only=True):
    """One run, by the turn that launched it; another launch of that turn has another ``launch_id``.

    ``owner`` is an incarnation, ``owner_epoch`` the epoch of its tenure of the seat. ``conversation`` is what the turn
    goes on from, in the turn engine's own words. ``charged_by`` names who charged the run's tokens; empty: nobody did.
    """

    turn_id: str
    launch_id: str
    handle: str
    status: RunStatus
    owner: str
    owner_epoch: int
    cell: str
    started_at: datetime
    updated_at: datetime
    box: str = ""
    conversation: dict[str, Any] | None = None
    resumed_from: RunStatus | None = None
    charged_by: str = ""
    question: str = ""
    paused_at: datetime | None = None
    pause_ttl_s: float | None = None


def run_suspended(run: SandboxRun, conversation: dict[str, Any], *, at: datetime) -> SandboxRun | None:
    """The run once its turn has let go of it: the conversation and the status in one write. ``None``: not launching."""
    if run.status is not RunStatus.LAUNCHING:
        return None
    return replace(run, status=RunStatus.RUNNING, conversation=conversation, updated_at=at)


def run_resumed(run: SandboxRun, launch_id: str, *, at: datetime) -> SandboxRun | None:
    """The run claimed by one resume; ``None`` where another has it, or another launch stands under its turn."""
    if run.launch_id != launch_id or run.status in {RunStatus.LAUNCHING, RunStatus.RESUMED}:
        return None
    return replace(run, status=RunStatus.RESUMED, resumed_from=run.status, updated_at=at)


def run_given_back(run: SandboxRun, *, at: datetime) -> SandboxRun | None:
    """The run whose resume failed, where it stood before the claim; ``None`` where none is claimed."""
    if run.status is not RunStatus.RESUMED or run.resumed_from is None:
        return None
    return replace(run, status=run.resumed_from, resumed_from=None, updated_at=at)


class SandboxRuns:
    """The runs of the company, by seat and turn.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A run that cannot be read is neither
    gone nor over: its seat stays held and its box is left alone until the store answers.

    Each verb that writes takes the epoch that its caller acts under and raises ``Fenced`` where the record's outranks
    it, so a former holder's late write bounces (S-073). Who acts for no tenure passes the epoch of the record that it
    decided on.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def open(self, run: SandboxRun) -> SandboxRun:
        """The run is recorded; returns what stands, which is an earlier record where this is a repeat.

        Raises ``Fenced`` where a later tenure's run stands for that turn, ``Conflict`` where another launch's does.
        """
        key = _key(run.handle, run.turn_id)
        try:
            await self._store.create(key, encode_record(run))
        except Conflict:
            standing = await self.get(run.handle, run.turn_id)
            if standing is None:
                raise Unavailable(f"the run of turn {run.turn_id} went while it was opened") from None
            _check(standing, run.owner_epoch)
            if standing.launch_id != run.launch_id:
                raise
            return standing
        return run

    async def get(self, handle: str, turn_id: str) -> SandboxRun | None:
        """The run as it stands, or ``None`` where it is settled or never was."""
        standing = await read_stored(self._store, SandboxRun, _key(handle, turn_id))
        return None if standing is None else standing.record

    async def of_seat(self, handle: str) -> list[SandboxRun]:
        """Every run of a seat that is not settled."""
        return [each.record for each in await list_stored(self._store, SandboxRun, f"run.{key_token(handle)}.*")]

    async def every(self) -> list[SandboxRun]:
        """Every run of the company that is not settled."""
        return [each.record for each in await list_stored(self._store, SandboxRun, "run.>")]

    async def change(
        self, handle: str, turn_id: str, step: Callable[[SandboxRun], SandboxRun | None], *, epoch: int
    ) -> SandboxRun | None:
        """Take the run a pure ``step`` further; ``None`` where it refused, or the run is settled. Raises ``Fenced``."""

        def fenced(run: SandboxRun | None) -> SandboxRun | None:
            if run is None:
                return None
            _check(run, epoch)
            return step(run)

        changed = await change_stored(self._store, SandboxRun, _key(handle, turn_id), fenced)
        return None if changed is None else changed.record

    async def take_over(self, handle: str, turn_id: str, *, owner: str, epoch: int) -> SandboxRun | None:
        """The run belongs to this tenure; ``None`` where it is settled. Raises ``Fenced``."""
        return await self.change(handle, turn_id, lambda run: replace(run, owner=owner, owner_epoch=epoch), epoch=epoch)

    async def mark_charged(self, handle: str, turn_id: str, *, by: str, epoch: int) -> bool:
        """Whether it is ``by`` who charges the run's tokens: nobody else marked it, and it is not settled.

        A repeat by the same name gets the same answer, whatever became of the first one. Raises ``Fenced``.
        """
        run = await self.change(
            handle, turn_id, lambda run: run if run.charged_by else replace(run, charged_by=by), epoch=epoch
        )
        return run is not None and run.charged_by == by

    async def settle(self, handle: str, turn_id: str, *, epoch: int) -> SandboxRun | None:
        """The run is over and its record gone; returns what it was, ``None`` where it was gone. Raises ``Fenced``."""

        def may(run: SandboxRun) -> bool:
            _check(run, epoch)
            return True

        return await remove_stored(self._store, SandboxRun, _key(handle, turn_id), may)


def _check(run: SandboxRun, epoch: int) -> None:
    if run.owner_epoch > epoch:
        raise Fenced(f"the run of turn {run.turn_id} belongs to epoch {run.owner_epoch}, after {epoch}: {run.owner}")


def _key(handle: str, turn_id: str) -> str:
    return f"run.{key_token(handle)}.{key_token(turn_id)}"
