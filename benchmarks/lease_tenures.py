"""What a lease costs beside its own requests sent bare, beside thousands of others, and beside etcd."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import uvloop
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError

from benchmarks import etcd_peer
from benchmarks.figures import Figure, Measurement, Sizes, figure
from benchmarks.queue_rig import Side, bare_client, in_turns, many_at_once
from crewlet import topics
from crewlet.backends.nats import EmbeddedBroker, JetStream, open_bucket
from crewlet.base.clock import SystemClock
from crewlet.base.ids import RandomIds
from crewlet.coordination import KvLeases, Lease, Slot
from crewlet.coordination.lease_record import LeaseRecord
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing.brokers import connected_wire, running_broker

__all__ = ["MEASUREMENTS"]

_FEW: Final = 10
_TTL_S: Final = 3600.0
_OWNER: Final = "node-0:9f3c1e70"
_RENEWED_AT_ONCE: Final = 100
_TIMES_BARE: Final = 1.3
_TIMES_FEW: Final = 1.2
_BARE_SHARE: Final = 0.7
_BARE: Final = "nats-py: the same requests, one after another"
_PAIRS: Final = "nats-py: read from the leader and update, 100 in flight"

_names = (f"s{number}" for number in itertools.count())
_Call = Callable[[], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class _Rig:
    """Leases on buckets of their own, and the names of the two that a seat's tenure is written to."""

    leases: KvLeases
    bucket: str
    counters: str


def _leases(sizes: Sizes) -> Sequence[Figure]:
    return uvloop.run(_measure(sizes))


async def _measure(sizes: Sizes) -> Sequence[Figure]:
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        bare = await stack.enter_async_context(bare_client(broker))
        few, many = [await stack.enter_async_context(_rig(broker, name)) for name in ("few", "many")]
        await _hold(bare, few, _FEW)
        await _hold(bare, many, sizes.leases_held)
        sides: list[Side] = [
            partial(_our_tenures, few, sizes.tenures),
            partial(_our_tenures, many, sizes.tenures),
            partial(_bare_tenures, bare, few, sizes.tenures),
        ]
        if etcd_peer.is_installed():
            etcd = await stack.enter_async_context(etcd_peer.etcd_client())
            sides.append(partial(_etcd_tenures, etcd, sizes.tenures))
        taken = [seconds / sizes.tenures * 1e3 for seconds in await in_turns(sizes.slices, *sides)]
        renewals = await _renewals(bare, few, sizes)
    few_ms, many_ms, bare_ms = taken[:3]
    return [
        figure("lease_tenure_ms", few_ms, "ms", floor=bare_ms, floor_name=_BARE, bound=_TIMES_BARE * bare_ms),
        figure(
            "lease_tenure_of_many_ms",
            many_ms,
            "ms",
            floor=few_ms,
            floor_name=f"the same beside {_FEW} leases",
            bound=_TIMES_FEW * few_ms,
        ),
        figure(
            "lease_tenure_etcd_ms",
            few_ms,
            "ms",
            peer=taken[3] if len(taken) > 3 else None,
            peer_name=etcd_peer.TOLD if etcd_peer.is_installed() else f"{etcd_peer.TOLD}: not installed",
        ),
        renewals,
    ]


@asynccontextmanager
async def _rig(broker: EmbeddedBroker, name: str) -> AsyncGenerator[_Rig]:
    clock, ids = SystemClock(), RandomIds()
    slots = [_own(slot, name) for slot in (replace(LEASES, age_s=_TTL_S), DUTIES, EPOCHS)]
    async with connected_wire(broker) as wire:
        api = JetStream(wire)
        stores = [(await open_bucket(api, slot, storage=broker.storage, ids=ids, clock=clock)).store for slot in slots]
        leases = KvLeases(leases=stores[0], duties=stores[1], epochs=stores[2], clock=clock, ids=ids)
        try:
            yield _Rig(leases, topics.bucket(slots[0].name), topics.bucket(slots[2].name))
        finally:
            await leases.close()


def _own(slot: Slot, name: str) -> Slot:
    return replace(slot, name=f"{slot.name}_{name}")


async def _hold(bare: JetStreamContext, rig: _Rig, number: int) -> None:
    """So many seats are held by somebody else."""

    async def held() -> None:
        name = next(_names)
        await bare.publish(topics.bucket_subject(rig.bucket, f"seat.{name}"), _record(name))

    await many_at_once([held] * number, _RENEWED_AT_ONCE)


async def _our_tenures(rig: _Rig, number: int) -> float:
    """Each on a fresh seat, all of them released afterwards, outside the clock."""
    names = [next(_names) for _ in range(number)]
    await _claimed(rig, next(_names))  # the gate's view is awake from here on
    held: list[Lease] = []
    began_s = time.perf_counter()
    for name in names:
        held.append(await _claimed(rig, name))  # noqa: PERF401 - one after another
    took_s = time.perf_counter() - began_s
    for lease in held:
        await rig.leases.release(lease)
    return took_s


async def _claimed(rig: _Rig, name: str) -> Lease:
    lease = await rig.leases.claim(f"seat:{name}", owner=_OWNER, ttl_s=_TTL_S, preferred="node-0")
    assert isinstance(lease, Lease)
    return lease


async def _bare_tenures(bare: JetStreamContext, rig: _Rig, number: int) -> float:
    names = [next(_names) for _ in range(number)]
    began_s = time.perf_counter()
    for name in names:
        await _bare_tenure(bare, rig, name)
    took_s = time.perf_counter() - began_s
    for name in names:
        await bare.publish(topics.bucket_subject(rig.bucket, f"seat.{name}"), b"", headers={"KV-Operation": "DEL"})
    return took_s


async def _bare_tenure(bare: JetStreamContext, rig: _Rig, name: str) -> None:
    """What a tenure asks of the broker, in its order: the gate is judged by the bucket's last write, twice."""
    lease, counter = (topics.bucket_subject(bucket, f"seat.{name}") for bucket in (rig.bucket, rig.counters))
    await _absent(bare, rig.bucket, lease)
    await _last_write(bare, rig.bucket)
    claimed = await _written(bare, rig.bucket, lease, _record(name), 0)
    await _last_write(bare, rig.bucket)
    await _absent(bare, rig.counters, counter)
    await _written(bare, rig.counters, counter, _record(name), 0)
    await _written(bare, rig.bucket, lease, _record(name), claimed)


async def _absent(bare: JetStreamContext, bucket: str, subject: str) -> None:
    try:
        await bare.get_last_msg(topics.bucket_stream(bucket), subject)
    except NotFoundError:
        return


async def _last_write(bare: JetStreamContext, bucket: str) -> None:
    stream = topics.bucket_stream(bucket)
    await bare.get_msg(stream, (await bare.stream_info(stream)).state.last_seq)


async def _written(bare: JetStreamContext, bucket: str, subject: str, value: bytes, expected: int) -> int:
    ack = await bare.publish(subject, value, headers={"Nats-Expected-Last-Subject-Sequence": str(expected)})
    await bare.get_msg(topics.bucket_stream(bucket), ack.seq)
    return ack.seq


async def _etcd_tenures(etcd: etcd_peer.EtcdClient, number: int) -> float:
    names = [next(_names) for _ in range(number)]
    began_s = time.perf_counter()
    for name in names:
        assert await etcd.claim(f"seat/{name}", int(_TTL_S), _record(name))
    return time.perf_counter() - began_s


async def _renewals(bare: JetStreamContext, rig: _Rig, sizes: Sizes) -> Figure:
    leases = [await _claimed(rig, next(_names)) for _ in range(_RENEWED_AT_ONCE)]
    subjects = [topics.bucket_subject(rig.bucket, f"seat.{next(_names)}") for _ in leases]
    for subject in subjects:
        await bare.publish(subject, _record(subject))

    async def renew(lease: Lease) -> None:
        assert await rig.leases.renew(lease, ttl_s=_TTL_S) is not None

    async def update(subject: str) -> None:
        found = await bare.get_last_msg(topics.bucket_stream(rig.bucket), subject)
        expected = {"Nats-Expected-Last-Subject-Sequence": str(found.seq)}
        await bare.publish(subject, found.data or b"", headers=expected)

    ours_s, bare_s = await in_turns(
        sizes.slices,
        lambda: _timed([partial(renew, lease) for lease in leases], sizes.renewals),
        lambda: _timed([partial(update, subject) for subject in subjects], sizes.renewals),
    )
    ours_us, bare_us = (seconds / sizes.renewals * 1e6 for seconds in (ours_s, bare_s))
    return figure("lease_renewal_us", ours_us, "µs", floor=bare_us, floor_name=_PAIRS, bound=bare_us / _BARE_SHARE)


async def _timed(calls: Sequence[_Call], number: int) -> float:
    """All of them again and again, each once at a time."""
    began_s = time.perf_counter()
    for _ in range(number // len(calls)):
        await many_at_once(calls, _RENEWED_AT_ONCE)
    return time.perf_counter() - began_s


def _record(name: str) -> bytes:
    said = LeaseRecord(resource=f"seat:{name}", owner=_OWNER, ttl_s=_TTL_S, epoch=1, protocol=4, preferred="node-0")
    return encode_record(said)


MEASUREMENTS: Final = (
    Measurement(
        "leases",
        {
            "lease_tenure_ms": "a seat claimed: three writes, judged twice by the gate, each write synced",
            "lease_tenure_of_many_ms": "the same beside ten thousand held leases",
            "lease_tenure_etcd_ms": "the same, beside etcd",
            "lease_renewal_us": "a lease renewed, 100 in flight",
        },
        _leases,
    ),
)
