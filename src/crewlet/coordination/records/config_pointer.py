"""Which company revision is current: one record, whose own revision is the epoch of the configuration (S0)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeGuard

from msgspec.structs import replace

from crewlet.base.errors import Conflict
from crewlet.coordination.contract import RecordStore, Revision
from crewlet.coordination.records.codec import SharedRecord, encode_record
from crewlet.coordination.records.stored import first_stored, read_stored

__all__ = ["CONFIG_POINTER_PATTERN", "ActiveConfig", "ConfigPointer", "ConfigPointers", "pointed"]

CONFIG_POINTER_PATTERN: Final = "company.activation"
"""What to watch for activations."""
_KEY: Final = CONFIG_POINTER_PATTERN
_LATER: Final = timedelta(milliseconds=1)
_NO_EPOCH: Final = Revision(0)


class ConfigPointer(SharedRecord, frozen=True, kw_only=True):
    """One activation: which revision, by whom, when. ``activation_id`` tells it from another of the same revision.

    ``document`` is the revision itself, as it was written; empty where it has to be had elsewhere. What another build
    keeps beside these fields is carried over to the next activation.
    """

    activation_id: str
    revision_id: str
    activated_by: str
    activated_at: datetime
    summary: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class ActiveConfig:
    """What is current, under which epoch."""

    pointer: ConfigPointer
    epoch: Revision


def pointed(standing: ConfigPointer | None, wanted: ConfigPointer) -> ConfigPointer:
    """``wanted`` as it follows ``standing``: dated after it, whatever the clocks of the two nodes say."""
    if standing is None:
        return wanted
    at = max(wanted.activated_at, standing.activated_at + _LATER)
    return replace(wanted, activated_at=at, unknown={**standing.unknown, **wanted.unknown})


class ConfigPointers:
    """The company's one pointer. An epoch of 0 stands for none.

    Nothing here fails open or closed by itself: every verb raises ``Unavailable``, and who asked goes on with the
    revision that it has applied. An activation that was not heard of may be asked for again under the same
    ``activation_id`` and the same expected epoch: it is found to have happened, or happens.
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store

    async def current(self) -> ActiveConfig | None:
        """What is current, or ``None`` where the company has none yet."""
        standing = await read_stored(self._store, ConfigPointer, _KEY)
        return None if standing is None else ActiveConfig(standing.record, standing.revision)

    async def activate(self, wanted: ConfigPointer, *, expected: Revision) -> ActiveConfig:
        """Move the pointer from ``expected``. Raises ``Conflict`` where another epoch is current."""
        standing = await self.current()
        if _is_of(standing, wanted):
            return standing
        current = _NO_EPOCH if standing is None else standing.epoch
        if current != expected:
            raise Conflict(_KEY, expected=expected, current=current)
        try:
            return await self._write(pointed(standing and standing.pointer, wanted), expected)
        except Conflict:
            # An earlier attempt of this very activation may have arrived just now, long after it was given up.
            standing = await self.current()
            if _is_of(standing, wanted):
                return standing
            raise

    async def publish(self, wanted: ConfigPointer) -> ActiveConfig:
        """Point to ``wanted`` where the company has no pointer; returns what is current then, ours or another's."""
        first = await first_stored(self._store, _KEY, wanted)
        return ActiveConfig(first.record, first.revision)

    async def _write(self, pointer: ConfigPointer, expected: Revision) -> ActiveConfig:
        value = encode_record(pointer)
        if expected == _NO_EPOCH:
            return ActiveConfig(pointer, (await self._store.create(_KEY, value)).revision)
        return ActiveConfig(pointer, (await self._store.update(_KEY, value, expected=expected)).revision)


def _is_of(standing: ActiveConfig | None, wanted: ConfigPointer) -> TypeGuard[ActiveConfig]:
    return standing is not None and standing.pointer.activation_id == wanted.activation_id
