"""Opening buckets: created where missing, adopted where there, and read back in either case (S0)."""

from __future__ import annotations

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
from crewlet.coordination import Slot
from crewlet.topics import bucket, bucket_stream, bucket_subject

__all__ = ["OpenedBucket", "bucket_config", "open_bucket", "settings_that_differ"]

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
    force, ``None`` for none. ``last_revision``: of its last write ever, removed ones included.
    """

    store: NatsRecordStore
    created: bool
    created_at: datetime
    age_s: float | None
    last_revision: int


async def open_bucket(
    jetstream: JetStream, slot: Slot, *, storage: Storage, ids: Ids, replicas: int = 1, clock: Clock | None = None
) -> OpenedBucket:
    """The bucket of ``slot``, adopted as it is where it exists; each setting that differs from ours is logged.

    Raises ``StartRefused`` where it has fewer replicas than configured, which no later moment would show until a
    member is lost; ``Unavailable`` when the broker does not answer.
    """
    wanted = bucket_config(slot, storage=storage, replicas=replicas)
    info = await _found_or_created(jetstream, wanted)
    if info.config.num_replicas < replicas:
        raise StartRefused(
            f"the bucket {bucket(slot.name)} has {info.config.num_replicas} replica(s) and stream.replicas asks for"
            f" {replicas}",
            f"nats stream update {wanted.name} --replicas={replicas}",
        )
    for setting, ours, theirs in settings_that_differ(wanted, info.config):
        _log.warning("bucket_setting_differs", bucket=bucket(slot.name), setting=setting, ours=ours, in_force=theirs)
    age_ns = info.config.max_age
    in_force = BucketInForce(slot=slot.name, age_s=age_ns / ns(1) if age_ns else None, created_at=info.created)
    return OpenedBucket(
        store=NatsRecordStore(jetstream, in_force, ids=ids, clock=clock or SystemClock()),
        created=info.did_create,
        created_at=info.created,
        age_s=in_force.age_s,
        last_revision=info.state.last_seq,
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
