"""Buckets in a broker's memory go with the broker; where it comes back they are made again, empty, and loudly (S0)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from crewlet.backends.nats import NatsRecordStore, bucket_config
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.base.tasks import each_at_once
from crewlet.coordination import Slot
from crewlet.node.broker_access import BrokerAccess

__all__ = ["RemadeBuckets"]

_log = structlog.get_logger(__name__)


class RemadeBuckets:
    """Looks after each new link whether the buckets are there still, and makes those that are not.

    Only for streams in memory. Otherwise a bucket that is gone is refused until the node starts anew, since it may yet
    be given back; here nobody can, and a node that refused would count no token and hold no seat until it is noticed.
    """

    def __init__(
        self, access: BrokerAccess, slots: Sequence[Slot], stores: Mapping[str, NatsRecordStore], *, replicas: int
    ) -> None:
        self._wire = access.connection
        self._stores = stores
        self._configs = {slot.name: bucket_config(slot, storage=access.storage, replicas=replicas) for slot in slots}
        self._linked = asyncio.Event()

    async def run(self) -> None:
        """Go on until cancelled."""
        unhook = self._wire.on_reconnected(self._linked.set)
        try:
            while True:
                await self._linked.wait()
                self._linked.clear()
                try:
                    await each_at_once(self._configs, self._remake, at_once=limits.BUCKETS_OPENED_AT_ONCE)
                except Unavailable as error:
                    _log.warning("buckets_not_remade", error=str(error))
                    await asyncio.sleep(limits.BUCKETS_REMADE_AGAIN_S)
                    self._linked.set()
        finally:
            unhook()

    async def _remake(self, name: str) -> None:
        config = self._configs[name]
        if await self._stores[name].remake(config):
            _log.error("bucket_recreated", bucket=config.name, lost="everything it held")
