"""What a stream should be, and in what one that is there differs."""

from __future__ import annotations

import msgspec
import pytest

from crewlet import topics
from crewlet.backends.nats.jetstream_types import ApiError, lacks_room
from crewlet.backends.nats.streams import on_demand_stream, purpose_streams, stream_differences
from crewlet.queue import QueueConfig

AGENT, NOTIFICATIONS, EVENTS, CONFIG, DLQ, JOURNAL = purpose_streams(QueueConfig(), "file")


def test_a_stream_as_wanted_does_not_differ() -> None:
    assert stream_differences(EVENTS, EVENTS) == {}


def test_the_brokers_way_to_say_unlimited_is_no_difference() -> None:
    unlimited = msgspec.structs.replace(EVENTS, max_bytes=0)
    told = msgspec.structs.replace(unlimited, max_msgs=-1, max_bytes=-1, max_msgs_per_subject=-1)

    assert stream_differences(unlimited, told) == {}


def test_a_bound_that_would_drop_mail_is_a_difference() -> None:
    assert stream_differences(AGENT, msgspec.structs.replace(AGENT, max_msgs=10)) == {"max_msgs": (-1, 10)}


@pytest.mark.parametrize(("found", "differs"), [(-1, True), (1000, True), (1_000_000, False)])
def test_only_too_few_consumers_are_a_difference(found: int, differs: bool) -> None:
    assert bool(stream_differences(AGENT, msgspec.structs.replace(AGENT, max_consumers=found))) is differs


def test_a_window_never_exceeds_the_age() -> None:
    short = purpose_streams(QueueConfig(event_retention_s=60.0), "file")

    assert all(not stream.max_age or stream.duplicate_window <= stream.max_age for stream in short)


@pytest.mark.parametrize(
    ("topic", "subjects"), [("foo.bar", ["foo", "foo.>"]), ("crewlet.x.y", ["crewlet.x", "crewlet.x.>"])]
)
def test_a_foreign_namespace_is_covered_whole(topic: str, subjects: list[str]) -> None:
    stream = on_demand_stream(topic, QueueConfig(), "file")

    assert (stream.subjects, stream.retention) == (subjects, "interest")


def test_no_stream_is_made_for_several_namespaces() -> None:
    with pytest.raises(ValueError, match="namespaces"):
        on_demand_stream("crewlet.>", QueueConfig(), "file")


def test_the_purposes_are_the_six_that_are_named() -> None:
    assert [stream.name for stream in (AGENT, NOTIFICATIONS, EVENTS, CONFIG, DLQ, JOURNAL)] == [
        topics.STREAM_AGENT,
        topics.STREAM_NOTIFICATIONS,
        topics.STREAM_EVENTS,
        topics.STREAM_CONFIG,
        topics.STREAM_DLQ,
        topics.STREAM_JOURNAL,
    ]


@pytest.mark.parametrize(
    ("code", "words", "is_room"),
    [
        (10047, "insufficient storage resources available", True),
        (10028, "insufficient memory resources available", True),
        (10002, "resource limits exceeded for account", True),
        (10005, "no suitable peers for placement, insufficient storage", True),
        (10005, "no suitable peers for placement, 1 offline", False),
        (10052, "invalid subject", False),
    ],
)
def test_a_stream_is_made_smaller_only_where_its_size_is_the_reason(code: int, words: str, is_room: bool) -> None:
    refused = ApiError("$JS.API.STREAM.CREATE.X", code=500, err_code=code, description=words)

    assert lacks_room(refused) is is_room
