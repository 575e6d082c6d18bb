"""Under which keys of the leases an older build wrote last, told write by write: to read them all takes too long."""

from __future__ import annotations

import msgspec

from crewlet.coordination import LEASE_PROTOCOL, Change

__all__ = ["LowerWrites"]


class _Said(msgspec.Struct, frozen=True):
    protocol: int = 0


class LowerWrites:
    """``keys``: those whose last write was one at a lower protocol than ours; its record may have lapsed since."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}

    def tell(self, change: Change) -> None:
        """Somebody wrote."""
        record = change.record
        if record is not None and msgspec.json.decode(record.value, type=_Said).protocol < LEASE_PROTOCOL:
            self.keys[change.key] = None
        else:
            self.keys.pop(change.key, None)

    def end(self) -> None:
        """The store is cut off: nothing is written meanwhile, so nothing is missed."""
