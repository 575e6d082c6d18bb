"""Leases over three record stores: the tenures of seats and nodes, all others', and the epochs (S0, S1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from crewlet.base import limits
from crewlet.base.clock import Clock
from crewlet.base.errors import Conflict, Unavailable
from crewlet.base.ids import Ids
from crewlet.base.tasks import Tasks
from crewlet.coordination.contract import RecordStore
from crewlet.coordination.lease_claim import LeaseClaim
from crewlet.coordination.lease_names import check_ttl, is_under_lease_ttl, kind_pattern, lease_key, resource_kind
from crewlet.coordination.lease_record import StoredLease, Wanted, renewed, stored_lease
from crewlet.coordination.leases import LEASE_PROTOCOL, ClaimRefused, Hint, Lease, RefusalRule
from crewlet.coordination.protocol_gate import ProtocolGate
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.epochs import Epochs
from crewlet.coordination.renewed_tenures import RenewedTenures

__all__ = ["KvLeases"]

_log = structlog.get_logger(__name__)

_GATED = "seat"


@dataclass(frozen=True, slots=True)
class _Released:
    """A tenure that this process began to release, until it has lapsed for certain."""

    epoch: int
    forget_at_s: float


class KvLeases:
    """Leases as the fleet shares them; see ``Leases`` for what each verb promises.

    A new tenure is three writes: the record in its claiming state, the counter, and the token into the record. Every
    read is the leader's. What ends a tenure is the deadline of its record on the store's own clock; the bucket's age
    takes away what nobody renews (C-107, C-108).
    """

    def __init__(
        self,
        *,
        leases: RecordStore,
        duties: RecordStore,
        epochs: RecordStore,
        clock: Clock,
        ids: Ids,
        protocol: int = LEASE_PROTOCOL,
    ) -> None:
        self._leases = leases
        self._duties = duties
        self._epochs = Epochs(epochs)
        self._clock = clock
        self._ids = ids
        self._protocol = protocol
        self._gate = ProtocolGate(leases, protocol=protocol)
        self._tasks = Tasks("leases")
        self._released: dict[str, _Released] = {}
        self._renewed = RenewedTenures()

    async def claim(
        self,
        resource: str,
        *,
        owner: str,
        ttl_s: float,
        preferred: str = "",
        data: Mapping[str, Any] | None = None,
    ) -> Lease | ClaimRefused:
        """Take ``resource`` where nobody holds it."""
        began_s = self._clock.elapsed_s()
        self._check_ttl(resource, ttl_s)
        wanted = Wanted(
            resource=resource,
            owner=owner,
            ttl_s=ttl_s,
            claim=self._ids.hex(16),
            preferred=preferred,
            protocol=self._protocol,
            data=data or {},
        )
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            answer = await self._claim(wanted, began_s)
            if answer is not None:
                return answer
        raise Unavailable(f"{resource!r}: claimed and given back under every attempt to claim it")

    async def renew(self, lease: Lease, *, ttl_s: float, data: Mapping[str, Any] | None = None) -> Lease | None:
        """Extend a live tenure of this owner and epoch.

        A thousand seats are renewed every few seconds, so what this process wrote last is not read again: the write
        goes over that very revision or fails, and then the leader is asked what stands.
        """
        self._check_ttl(lease.resource, ttl_s)
        store = self._store_of(lease.resource)
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            standing = await self._last_renewed(lease) or await self._standing(lease)
            self._renewed.forget(lease.resource)
            if standing is None or self._is_released(lease):
                return None
            said, over = renewed(standing.said, ttl_s=ttl_s, data=data), standing.record
            try:
                # Most renewals say nothing new: those write the same bytes again.
                value = over.value if said is standing.said else encode_record(said)
                record = await store.update(over.key, value, expected=over.revision)
            except Conflict:
                continue
            written = StoredLease(record, said)
            self._renewed.remember(written)
            return written.as_lease()
        raise Unavailable(f"{lease.resource!r}: its lease changed under every attempt to renew it")

    async def release(self, lease: Lease) -> None:
        """End this tenure, if it still stands, as a voluntary release."""
        self._remember_released(lease)
        self._renewed.forget(lease.resource)
        standing = await self._standing(lease)
        if standing is not None:
            # The counter first: a release that dies in between leaves a lease that lapses, after a clean end.
            await self._epochs.mark_released(lease.resource, epoch=lease.epoch)
            await self._remove(lease, standing)
        self._released.pop(lease.resource, None)

    async def holder(self, resource: str) -> Lease | None:
        """The live lease of ``resource``, or ``None``."""
        live = await self._live(resource)
        return None if live is None else live.as_lease()

    async def held(self, kind: str) -> list[Lease]:
        """Every live lease of one kind."""
        pattern = kind_pattern(kind)
        store = self._leases if is_under_lease_ttl(kind) else self._duties
        listed = [stored_lease(record) for record in await store.list(pattern)]
        if not listed:
            return []
        now = await store.time()
        return [each.as_lease() for each in listed if not now.is_surely_past(each.ends_at)]

    async def hints(self, kind: str) -> list[Hint]:
        """What is remembered of every resource of this kind."""
        return await self._epochs.hints(kind)

    async def close(self) -> None:
        """Stop the gate's view. A give-back under way is ended; what it had not taken back lapses."""
        await self._gate.close()
        await self._tasks.close()

    async def _claim(self, wanted: Wanted, began_s: float) -> Lease | ClaimRefused | None:
        """One attempt; ``None`` where somebody else's write came first."""
        store, key = self._store_of(wanted.resource), lease_key(wanted.resource)
        found = await store.get(key)
        if found is not None:
            stored = stored_lease(found)
            if not (await store.time()).is_surely_past(stored.ends_at):
                return ClaimRefused(RefusalRule.HELD, stored.said.owner)
        is_gated = resource_kind(wanted.resource) == _GATED
        if is_gated and (refused := await self._judged()) is not None:
            return refused
        claim = LeaseClaim(
            wanted,
            store=store,
            epochs=self._epochs,
            judge=self._judged if is_gated else None,
            clock=self._clock,
            began_s=began_s,
            tasks=self._tasks,
        )
        return await claim.take(found)

    async def _remove(self, lease: Lease, standing: StoredLease) -> None:
        store = self._store_of(lease.resource)
        for _ in range(limits.RECORD_CHANGE_ATTEMPTS_MAX):
            try:
                return await store.delete(standing.record.key, expected=standing.record.revision)
            except Conflict:
                # A renewal of ours was under way.
                again = await self._standing(lease)
                if again is None:
                    return None
                standing = again
        raise Unavailable(f"{lease.resource!r}: its lease changed under every attempt to release it")

    async def _judged(self) -> ClaimRefused | None:
        lower = await self._gate.lowest()
        return None if lower is None else ClaimRefused(RefusalRule.PROTOCOL, lower.owner, lower.protocol)

    async def _last_renewed(self, lease: Lease) -> StoredLease | None:
        """What this process wrote last of this tenure, unless that may have lapsed: then the leader has to say."""
        written = self._renewed.of(lease)
        if written is None:
            return None
        now = await self._store_of(lease.resource).time()
        return None if now.is_maybe_past(written.ends_at) else written

    async def _live(self, resource: str) -> StoredLease | None:
        store = self._store_of(resource)
        record = await store.get(lease_key(resource))
        if record is None:
            return None
        stored = stored_lease(record)
        return None if (await store.time()).is_surely_past(stored.ends_at) else stored

    async def _standing(self, lease: Lease) -> StoredLease | None:
        """The tenure that ``lease`` was granted, while it is live."""
        live = await self._live(lease.resource)
        return live if live is not None and live.is_tenure(lease) else None

    def _store_of(self, resource: str) -> RecordStore:
        return self._leases if is_under_lease_ttl(resource_kind(resource)) else self._duties

    def _check_ttl(self, resource: str, ttl_s: float) -> None:
        lease_ttl_s, duty_ttl_s = self._leases.age_s, self._duties.age_s
        check_ttl(
            resource,
            ttl_s,
            lease_ttl_s=limits.MAX_DUTY_TTL_S if lease_ttl_s is None else lease_ttl_s,
            duty_ttl_s=limits.MAX_DUTY_TTL_S if duty_ttl_s is None else min(duty_ttl_s, limits.MAX_DUTY_TTL_S),
        )

    def _remember_released(self, lease: Lease) -> None:
        # A release that fails half way has told the counter that nothing was left behind. Renewed and lost after that,
        # the tenure would leave its mail held with nobody to know it: so this process renews it no more.
        now_s = self._clock.elapsed_s()
        self._released.pop(lease.resource, None)
        while self._released and next(iter(self._released.values())).forget_at_s <= now_s:
            del self._released[next(iter(self._released))]
        self._released[lease.resource] = _Released(lease.epoch, now_s + limits.MAX_DUTY_TTL_S)

    def _is_released(self, lease: Lease) -> bool:
        past = self._released.get(lease.resource)
        return past is not None and past.epoch == lease.epoch
