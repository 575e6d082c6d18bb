"""The fencing counters: one per resource ever claimed, which never goes back and never expires (C-062, S-008)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import structlog
from msgspec.structs import replace

from crewlet.base import limits
from crewlet.base.errors import Conflict, Unavailable
from crewlet.coordination.contract import Record, RecordStore
from crewlet.coordination.lease_names import kind_pattern, lease_key
from crewlet.coordination.leases import Hint
from crewlet.coordination.records.codec import SharedRecord, decode_record, encode_record

__all__ = ["EpochRecord", "Epochs", "Minted", "minted"]

_log = structlog.get_logger(__name__)

_Applies: TypeAlias = "Callable[[EpochRecord], bool]"


class EpochRecord(SharedRecord, frozen=True, kw_only=True):
    """The last epoch minted for a resource, by which claim, and the node that wanted it.

    ``released`` is the newest epoch of which it is known that nothing was left behind: its tenure ended by a voluntary
    release, or its claim never became a tenure that anybody acted on and the one before had ended so.
    """

    resource: str
    epoch: int
    preferred: str = ""
    released: int = 0
    claim: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was left behind by the last tenure."""
        return self.epoch > 0 and self.released == self.epoch


@dataclass(frozen=True, slots=True)
class Minted:
    """A new epoch; ``after_lapse`` unless the tenure before it is known to have ended by a voluntary release."""

    epoch: int
    after_lapse: bool


def minted(before: EpochRecord | None, *, resource: str, claim: str, preferred: str, above: int) -> EpochRecord:
    """The counter one further, past ``above`` too; it says as before which epoch was released last."""
    if before is None:
        return EpochRecord(resource=resource, epoch=above + 1, preferred=preferred, claim=claim)
    epoch = max(before.epoch, above) + 1
    return replace(before, epoch=epoch, preferred=preferred or before.preferred, claim=claim)


class _Hinted(msgspec.Struct, frozen=True):
    """Of a counter, what a hint tells: every pass that has something to claim walks all of them."""

    resource: str
    epoch: int
    preferred: str = ""


def _hint(value: bytes) -> Hint:
    try:
        said = msgspec.json.decode(value, type=_Hinted)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Unavailable(f"a counter cannot be read: {error}") from error
    return Hint(said.resource, said.epoch, said.preferred)


class Epochs:
    """The counters. Every verb raises ``Unavailable`` where the store did not say.

    What this process has seen of a counter it remembers: one that comes back lower has lost its bucket, and goes on
    above what was seen, loudly, since a token given out twice is no fence (S-008).
    """

    def __init__(self, store: RecordStore) -> None:
        self._store = store
        self._seen: dict[str, int] = {}

    async def mint(self, resource: str, *, claim: str, preferred: str) -> Minted:
        """The next epoch, which nobody ever had. What a failed claim minted is a gap (S-013)."""
        key = lease_key(resource)
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            found = await self._store.get(key)
            before = None if found is None else decode_record(EpochRecord, found.value)
            above = self._checked(resource, before)
            after = minted(before, resource=resource, claim=claim, preferred=preferred, above=above)
            if await self._replaced(key, found, after):
                self._remember(resource, after.epoch)
                is_clean = before is not None and before.is_clean and before.epoch >= above
                return Minted(after.epoch, after_lapse=not is_clean)
        raise Unavailable(f"{resource!r}: its counter changed under every attempt to move it")

    async def mark_released(self, resource: str, *, epoch: int) -> None:
        """The tenure of ``epoch`` ends by a voluntary release, unless a later epoch was minted: then it is not said."""
        await self._mark(resource, lambda said: said.epoch == epoch)

    async def mark_gap(self, resource: str, *, claim: str) -> None:
        """Nobody acts on what this claim minted: if nothing was left behind before it, nothing is now."""
        await self._mark(resource, lambda said: said.claim == claim and 0 < said.released == said.epoch - 1)

    async def hints(self, kind: str) -> list[Hint]:
        """Every counter of one kind."""
        return [_hint(record.value) for record in await self._store.list(kind_pattern(kind))]

    async def _mark(self, resource: str, applies: _Applies) -> None:
        key = lease_key(resource)
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            found = await self._store.get(key)
            said = None if found is None else decode_record(EpochRecord, found.value)
            if said is None or said.is_clean or not applies(said):
                return
            if await self._replaced(key, found, replace(said, released=said.epoch)):
                return
        raise Unavailable(f"{resource!r}: its counter changed under every attempt to mark it")

    async def _replaced(self, key: str, found: Record | None, after: EpochRecord) -> bool:
        try:
            if found is None:
                await self._store.create(key, encode_record(after))
            else:
                await self._store.update(key, encode_record(after), expected=found.revision)
        except Conflict:
            return False
        return True

    def _checked(self, resource: str, before: EpochRecord | None) -> int:
        """The epoch that the next one must be above."""
        found, seen = 0 if before is None else before.epoch, self._seen.get(resource, 0)
        if found < seen:
            _log.error("epoch_counter_went_back", resource=resource, seen=seen, found=found)
        return seen

    def _remember(self, resource: str, epoch: int) -> None:
        self._seen.pop(resource, None)
        self._seen[resource] = epoch
        while len(self._seen) > limits.EPOCHS_REMEMBERED_MAX:
            del self._seen[next(iter(self._seen))]
