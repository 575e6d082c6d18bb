"""Opening buckets: created where missing, adopted where there, and read back in either case (S0)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from crewlet.backends.nats.bucket_in_force import BucketInForce
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import STREAM_NAME_IN_USE, ApiError, Storage, StreamConfig, StreamInfo, ns
from crewlet.backends.nats.records import NatsRecordStore
from crewlet.base import limits
from crewlet.base.clock import Clock, SystemClock
from crewlet.base.errors import StartRefused, Unavailable
from crewlet.base.ids import Ids
from crewlet.base.tasks import each_at_once
from crewlet.coordination import Slot
from crewlet.coordination.slots import LEASES
from crewlet.topics import bucket, bucket_stream, bucket_subject

__all__ = ["OpenedBucket", "bucket_config", "open_bucket", "open_buckets", "settings_that_differ"]

_log = structlog.get_logger(__name__)

_DUPLICATE_WINDOW_S: Final = 120.0
_COMPARED: Final = (
    "subjects",
    "retention",
    "storage",
    "discard",
    "max_consumers",
    "max_age",
    "max_msgs_per_subject",
    "deny_delete",
    "allow_rollup_hdrs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedBucket:
    """A bucket ready for use.

    ``created``: it did not exist before. ``created_at``: when it was made, on the broker's clock. ``age_s``: the age in
    force, ``None`` for none. ``last_revision``: of its last write ever, removed ones included; where it is not ``led``,
    as far as one member's own copy goes, which may lack what was confirmed.
    """

    store: NatsRecordStore
    created: bool
    created_at: datetime
    age_s: float | None
    last_revision: int
    led: bool = True


async def open_buckets(
    jetstream: JetStream,
    slots: Sequence[Slot],
    *,
    storage: Storage,
    ids: Ids,
    replicas: int = 1,
    clock: Clock | None = None,
) -> dict[str, OpenedBucket]:
    """The bucket of each slot, by the slot's name; raises as :func:`open_bucket` does, and then none is of use."""
    opened: dict[str, OpenedBucket] = {}

    async def open_one(slot: Slot) -> None:
        opened[slot.name] = await open_bucket(jetstream, slot, storage=storage, ids=ids, replicas=replicas, clock=clock)

    await each_at_once(slots, open_one, at_once=limits.BUCKETS_OPENED_AT_ONCE)
    return opened


async def open_bucket(
    jetstream: JetStream, slot: Slot, *, storage: Storage, ids: Ids, replicas: int = 1, clock: Clock | None = None
) -> OpenedBucket:
    """The bucket of ``slot``, adopted as it is where it exists; each setting that differs from ours is logged.

    Only an age is changed, and only raised, where the slot says that it grows. Raises ``StartRefused`` where there are
    fewer replicas than configured, which no later moment would show until a member is lost; ``Unavailable`` when the
    broker does not answer.
    """
    wanted = bucket_config(slot, storage=storage, replicas=replicas)
    info = await _found_or_created(jetstream, wanted)
    if info.config.num_replicas < replicas:
        raise StartRefused(
            f"the bucket {bucket(slot.name)} has {info.config.num_replicas} replica(s) and stream.replicas asks for"
            f" {replicas}",
            f"nats stream update {wanted.name} --replicas={replicas}",
        )
    if slot.grows and _is_younger(info.config.max_age, wanted.max_age):
        info = await _raised(jetstream, wanted, info)
    in_force = BucketInForce(slot=slot.name, age_s=_age_s(info.config), created_at=info.created, dated=slot.dated)
    _tell_differences(slot, wanted, info.config)
    return OpenedBucket(
        store=NatsRecordStore(jetstream, in_force, ids=ids, clock=clock or SystemClock()),
        created=info.did_create,
        created_at=info.created,
        age_s=in_force.age_s,
        last_revision=info.state.last_seq,
        led=info.led,
    )


def bucket_config(slot: Slot, *, storage: Storage, replicas: int) -> StreamConfig:
    """The stream behind a slot."""
    name = bucket(slot.name)
    window_s = _DUPLICATE_WINDOW_S if slot.age_s is None else min(_DUPLICATE_WINDOW_S, slot.age_s)
    return StreamConfig(
        name=bucket_stream(name),
        subjects=[bucket_subject(name, ">")],
        description=slot.why,
        storage=storage,
        discard="new",
        num_replicas=replicas,
        # Unset, a listing's consumers would count against the server's own default.
        max_consumers=limits.BROKER_MAX_CONSUMERS,
        max_age=0 if slot.age_s is None else ns(slot.age_s),
        max_msgs_per_subject=1,
        duplicate_window=ns(window_s),
        # For the tools that read buckets; this engine never uses a direct get.
        allow_direct=True,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )


def settings_that_differ(wanted: StreamConfig, found: StreamConfig) -> list[tuple[str, object, object]]:
    """Each setting that matters here and is not in force as wanted: its name, ours, theirs."""
    pairs = [(name, getattr(wanted, name), getattr(found, name)) for name in _COMPARED]
    return [(name, ours, theirs) for name, ours, theirs in pairs if ours != theirs]


def _tell_differences(slot: Slot, wanted: StreamConfig, found: StreamConfig) -> None:
    for setting, ours, theirs in settings_that_differ(wanted, found):
        if slot.name == LEASES.name and setting == "max_age":
            _log.warning("coord_kv_lease_ttl_differs", configured_s=_age_s(wanted), in_force_s=_age_s(found))
        else:
            _log.warning(
                "bucket_setting_differs", bucket=bucket(slot.name), setting=setting, ours=ours, in_force=theirs
            )


def _age_s(config: StreamConfig) -> float | None:
    return config.max_age / ns(1) if config.max_age else None


def _is_younger(age_ns: int, wanted_ns: int) -> bool:
    """Whether records go sooner than wanted; 0 is for ever."""
    return age_ns != 0 and (wanted_ns == 0 or age_ns < wanted_ns)


async def _raised(jetstream: JetStream, wanted: StreamConfig, found: StreamInfo) -> StreamInfo:
    """The bucket with our age. A peer may have raised it further meanwhile, so what is in force is read afterwards."""
    try:
        await jetstream.stream_change(wanted.name, {"max_age": wanted.max_age})
        raised = await jetstream.stream_info(wanted.name)
    except ApiError as error:
        raise StartRefused(f"the broker refuses to raise the age of {wanted.name}: {error.description}") from error
    if raised is None:
        raise Unavailable(f"{wanted.name}: there and gone again")
    _log.info("bucket_age_raised", stream=wanted.name, from_s=_age_s(found.config), to_s=_age_s(raised.config))
    return raised


async def _found_or_created(jetstream: JetStream, wanted: StreamConfig) -> StreamInfo:
    try:
        found = await jetstream.stream_info(wanted.name)
        if found is not None:
            return found
        return await _created_or_raced(jetstream, wanted)
    except ApiError as error:
        raise StartRefused(f"the broker refuses the bucket {wanted.name}: {error.description}") from error


async def _created_or_raced(jetstream: JetStream, wanted: StreamConfig) -> StreamInfo:
    try:
        return await jetstream.stream_create(wanted)
    except ApiError as error:
        if error.err_code != STREAM_NAME_IN_USE:
            raise
    # Another node created it meanwhile, configured otherwise.
    found = await jetstream.stream_info(wanted.name)
    if found is None:
        raise Unavailable(f"{wanted.name}: there and gone again")
    return found
