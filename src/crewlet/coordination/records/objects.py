"""Which store the company's files are in, agreed once, and what its collector last found (S0)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.keys import key_token
from crewlet.coordination.records.codec import SharedRecord
from crewlet.coordination.records.stored import change_stored, first_stored, list_stored, read_stored

__all__ = ["CollectorReport", "ObjectBackend", "Objects", "reported"]

_BACKEND_KEY: Final = "backend"


class ObjectBackend(SharedRecord, frozen=True, kw_only=True):
    """The store that the first node named: ``nats``, or ``s3:<endpoint>/<bucket>/<prefix>``. No credentials."""

    location: str
    recorded_by: str
    recorded_at: datetime


class CollectorReport(SharedRecord, frozen=True, kw_only=True):
    """What one pass of the collector found; ``kind`` tells its passes apart (a collection, an audit)."""

    kind: str
    node: str
    started_at: datetime
    finished_at: datetime
    counts: dict[str, int] = {}
    missing: tuple[str, ...] = ()
    error: str = ""

    def __post_init__(self) -> None:
        if len(self.missing) > limits.OBJECTS_MISSING_NAMED_MAX:
            raise ValueError(f"a report names at most {limits.OBJECTS_MISSING_NAMED_MAX} missing objects")


def reported(standing: CollectorReport | None, report: CollectorReport) -> CollectorReport:
    """The later of two reports of one kind: the duty moves, and who lost it may report late."""
    if standing is None:
        return report
    if standing.finished_at > report.finished_at:
        return standing
    return replace(report, unknown=standing.unknown)


class Objects:
    """The company's one file store, and its collector's reports.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``. A node that cannot learn where the
    files are does not start on a guess: files in two stores would be files lost.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def agree(self, backend: ObjectBackend) -> ObjectBackend:
        """The company's files are at ``backend.location``, as the first node that asked said; returns its record.

        Raises ``StartRefused`` naming both where they are elsewhere.
        """
        stands = await first_stored(self._store, _BACKEND_KEY, backend)
        if stands.record.location != backend.location:
            raise StartRefused(
                f"this node keeps the company's files in {backend.location!r}, the fleet in"
                f" {stands.record.location!r}, as {stands.record.recorded_by} recorded",
                "configure the same store on every node; to move the files, copy them while the fleet is down, then"
                " remove the record",
            )
        return stands.record

    async def backend(self) -> ObjectBackend | None:
        """Where the company's files are, or ``None`` where no node has said yet."""
        standing = await read_stored(self._store, ObjectBackend, _BACKEND_KEY)
        return None if standing is None else standing.record

    async def report(self, report: CollectorReport) -> CollectorReport:
        """The report stands, unless a later one of its kind does; returns what stands."""
        stands = await change_stored(
            self._store, CollectorReport, f"collector.{key_token(report.kind)}", lambda before: reported(before, report)
        )
        assert stands is not None, "a report is never refused"
        return stands.record

    async def reports(self) -> list[CollectorReport]:
        """The latest report of each kind of pass."""
        return [each.record for each in await list_stored(self._store, CollectorReport, "collector.*")]
