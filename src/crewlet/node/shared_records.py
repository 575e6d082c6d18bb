"""The shared records as a person reads them: any slot, by class or by key, sealed values left sealed."""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import msgspec

from crewlet.base import limits
from crewlet.coordination import SLOTS, Record, RecordStore, Slot, checked_key, checked_pattern, key_token
from crewlet.node.face import NoSuchSlot
from crewlet.node.record_views import RecordPage, RecordView, SlotView

__all__ = ["StoredRecords"]


class StoredRecords:
    """Reads over the stores of a node, by slot. ``notes`` say of a slot what its records alone do not."""

    def __init__(self, stores: Mapping[str, RecordStore], notes: Mapping[str, str] | None = None) -> None:
        self._stores = stores
        self._notes = dict(notes or {})

    def slots(self) -> tuple[SlotView, ...]:
        """Every slot that this node has open, in the table's order, with the ages in force."""
        return tuple(self._slot_view(slot) for slot in SLOTS if slot.name in self._stores)

    async def page(self, slot: str, key_class: str = "", *, after: str = "", limit: int) -> RecordPage:
        """The records of a class, by key; of every class that the slot's keys are known to have, where none is named.

        Raises ``NoSuchSlot``, ``Unavailable``; ``ValueError`` where the class can be none, or one has to be named.
        """
        known = self._known(slot)
        classes = (key_class,) if key_class else known.classes
        if not classes:
            raise ValueError(f"class: the keys of {slot} begin with a name from outside; name one")
        by_class = await asyncio.gather(*(self._of_class(slot, each) for each in classes))
        records = [record for of_class in by_class for record in of_class]
        records.sort(key=lambda record: record.key)
        start = bisect.bisect_right([record.key for record in records], after) if after else 0
        shown = records[start : start + limit]
        more = len(records) > start + limit
        return RecordPage(
            records=tuple(_view(known, record) for record in shown),
            next=shown[-1].key if more else None,
            note=self._notes.get(slot, ""),
        )

    async def get(self, slot: str, key: str) -> RecordView | None:
        """One record by its key, ``class:name`` understood as well. Raises ``NoSuchSlot``, ``Unavailable``."""
        known = self._known(slot)
        kind, colon, name = key.partition(":")
        record = await self._stores[slot].get(checked_key(f"{kind}.{key_token(name)}" if colon else key))
        return None if record is None else _view(known, record)

    async def _of_class(self, slot: str, key_class: str) -> Sequence[Record]:
        if "." in key_class:
            raise ValueError(f"class: {key_class!r} is more than the first part of a key")
        store = self._stores[slot]
        whole = await store.get(checked_pattern(key_class))
        return [*([] if whole is None else [whole]), *await store.list(f"{key_class}.>")]

    def _known(self, name: str) -> Slot:
        for slot in SLOTS:
            if slot.name == name and name in self._stores:
                return slot
        raise NoSuchSlot(name, [slot.name for slot in SLOTS if slot.name in self._stores])

    def _slot_view(self, slot: Slot) -> SlotView:
        return SlotView(
            name=slot.name,
            age_s=self._stores[slot.name].age_s,
            why=slot.why,
            classes=slot.classes,
            note=self._notes.get(slot.name, ""),
        )


def _view(slot: Slot, record: Record) -> RecordView:
    return RecordView(
        key=record.key,
        revision=record.revision,
        written_at=record.written_at,
        size_bytes=len(record.value),
        sealed=slot.sealed,
        value=None if slot.sealed else _readable(record.value),
    )


def _readable(value: bytes) -> object:
    try:
        said = msgspec.json.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return value.decode("utf-8", "replace")
    return said if _is_shallow(said) else value.decode("utf-8", "replace")


def _is_shallow(said: object) -> bool:
    """Whether it can be written as JSON again: what prints it unfolds much less than what reads it."""
    level: list[object] = [said]
    for _ in range(limits.RECORD_SHOWN_DEPTH_MAX):
        level = [part for each in level for part in _parts(each)]
        if not level:
            return True
    return False


def _parts(said: object) -> Collection[object]:
    if isinstance(said, dict):
        return cast("dict[str, object]", said).values()
    return cast("list[object]", said) if isinstance(said, list) else ()
