"""Where each outside surface's reconcile pass got to, the same from every node (S0)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec.structs import replace

from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import Stored, change_stored, list_stored, read_stored

__all__ = ["Finding", "IntegrationPhase", "IntegrationStatus", "Integrations", "asked_to_disconnect", "passed"]


class IntegrationPhase(StrEnum):
    """How far a surface is set up."""

    UNCONFIGURED = "unconfigured"
    AWAITING_ADMIN = "awaiting_admin"
    PROVISIONING = "provisioning"
    ACTIVATING = "activating"
    DEGRADED = "degraded"
    READY = "ready"
    DISCONNECTING = "disconnecting"


class Finding(SharedRecord, frozen=True, kw_only=True):
    """One thing that a pass found about a surface, and where a person can act on it."""

    kind: str
    subject: str = ""
    detail: str = ""
    action_url: str = ""


class IntegrationStatus(SharedRecord, frozen=True, kw_only=True):
    """One surface: what its last pass found, the address it was set up against, and whether it is to be taken down."""

    surface: str
    phase: IntegrationPhase
    actor: str = "none"
    detail: str = ""
    action_url: str = ""
    outcome: str = ""
    attempts: int = 0
    last_error: str = ""
    last_attempt_at: datetime | None = None
    settled_at: datetime | None = None
    next_attempt_at: datetime | None = None
    findings: tuple[Finding, ...] = ()
    address: str = ""
    disconnect_asked_at: datetime | None = None
    disconnect_asked_by: str = ""


def passed(standing: IntegrationStatus | None, found: IntegrationStatus) -> IntegrationStatus:
    """What a pass leaves: its findings, and every request to disconnect, also one that came while it ran."""
    if standing is None:
        return found
    return replace(
        found,
        disconnect_asked_at=standing.disconnect_asked_at,
        disconnect_asked_by=standing.disconnect_asked_by,
        unknown=standing.unknown,
    )


def asked_to_disconnect(status: IntegrationStatus, *, at: datetime, by: str) -> IntegrationStatus:
    """The status with the request; the first one stands."""
    if status.disconnect_asked_at is not None:
        return status
    return replace(status, disconnect_asked_at=at, disconnect_asked_by=by)


class Integrations:
    """The status of each surface. A row stands until its surface leaves the company document, never by age.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A status that cannot be read is not
    "never set up": the pass is left out, or it would provision again what is already there.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def get(self, surface: str) -> Stored[IntegrationStatus] | None:
        """The status and its revision, or ``None`` where no pass has ended yet."""
        return await read_stored(self._store, IntegrationStatus, _key(surface))

    async def every(self) -> list[Stored[IntegrationStatus]]:
        """The status of every surface."""
        return await list_stored(self._store, IntegrationStatus, "surface.>")

    async def record(self, found: IntegrationStatus) -> IntegrationStatus:
        """What a pass found stands; nothing is written where that is what stood. Returns what stands."""
        stands = await change_stored(
            self._store, IntegrationStatus, _key(found.surface), lambda standing: passed(standing, found)
        )
        assert stands is not None, "a pass is never refused"
        return stands.record

    async def ask_disconnect(self, surface: str, *, at: datetime, by: str) -> IntegrationStatus | None:
        """The request stands beside whatever a pass finds; ``None`` where the surface has no status."""
        stands = await change_stored(
            self._store,
            IntegrationStatus,
            _key(surface),
            lambda standing: None if standing is None else asked_to_disconnect(standing, at=at, by=by),
        )
        return None if stands is None else stands.record

    async def forget(self, surface: str, *, expected: Revision) -> None:
        """The row that was read is gone; one that is gone is no error. Raises ``Conflict`` where it changed since."""
        await self._store.delete(_key(surface), expected=expected)


def _key(surface: str) -> str:
    return f"surface.{key_token(surface)}"
