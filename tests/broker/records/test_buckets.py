"""Opening buckets on a real broker: made, adopted, raised, refused; each setting is what the table says."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import JetStream, open_bucket, open_buckets
from crewlet.backends.nats.buckets import bucket_config
from crewlet.backends.nats.jetstream_types import StreamConfig, ns
from crewlet.base import limits
from crewlet.base.errors import StartRefused
from crewlet.base.ids import RandomIds
from crewlet.coordination import CHANNELS, LEDGER, SLOTS, Slot, leases_slot
from crewlet.coordination.slots import DUTIES, EPOCHS, LEASES
from crewlet.testing.clusters import Cluster
from crewlet.topics import bucket, bucket_stream

SLOT = Slot("tested", 3600.0, "a slot of the tests")
IDS = RandomIds()


async def test_a_bucket_is_opened_with_the_age_of_its_slot(jetstream: JetStream) -> None:
    ledger = await open_bucket(jetstream, LEDGER, storage="file", ids=IDS)
    channels = await open_bucket(jetstream, CHANNELS, storage="file", ids=IDS)

    assert (ledger.age_s, ledger.created) == (7 * 24 * 3600.0, True)
    assert (channels.age_s, channels.created) == (None, True)


@pytest.mark.spec("C-111")
async def test_a_bucket_that_is_there_is_adopted_as_it_is_and_the_difference_told(jetstream: JetStream) -> None:
    await open_bucket(jetstream, Slot("tested", 60.0, "the first node's opinion"), storage="file", ids=IDS)

    with capture_logs() as logs:
        adopted = await open_bucket(jetstream, SLOT, storage="file", ids=IDS)

    assert (adopted.age_s, adopted.created) == (60.0, False)
    differing = [entry for entry in logs if entry["event"] == "bucket_setting_differs"]
    assert [(each["setting"], each["ours"], each["in_force"]) for each in differing] == [
        ("max_age", ns(3600), ns(60)),
    ]


@pytest.mark.spec("C-116")
async def test_a_retention_changes_when_its_bucket_is_deleted_and_by_no_restart(jetstream: JetStream) -> None:
    for _ in range(2):
        await open_bucket(jetstream, leases_slot(30.0), storage="file", ids=IDS)
        assert (await open_bucket(jetstream, leases_slot(45.0), storage="file", ids=IDS)).age_s == 30.0

    await jetstream.stream_delete(bucket_stream(bucket(LEASES.name)))

    assert (await open_bucket(jetstream, leases_slot(45.0), storage="file", ids=IDS)).age_s == 45.0


@pytest.mark.spec("C-121")
async def test_epochs_are_kept_for_ever(jetstream: JetStream) -> None:
    opened = await open_bucket(jetstream, EPOCHS, storage="file", ids=IDS)

    info = await jetstream.stream_info(bucket_stream(bucket(EPOCHS.name)))
    assert info is not None
    assert (opened.age_s, info.config.max_age, info.config.deny_delete) == (None, 0, True)


async def test_what_is_opened_is_what_was_asked_for(jetstream: JetStream) -> None:
    with capture_logs() as logs:
        await open_bucket(jetstream, SLOT, storage="file", ids=IDS)
        await open_bucket(jetstream, SLOT, storage="file", ids=IDS)

    assert [entry for entry in logs if entry["event"] == "bucket_setting_differs"] == []


async def test_a_second_opening_finds_the_revision_of_the_first(jetstream: JetStream) -> None:
    opened = await open_bucket(jetstream, SLOT, storage="file", ids=IDS)
    await opened.store.create("a", b"1")

    again = await open_bucket(jetstream, SLOT, storage="file", ids=IDS)

    assert (opened.last_revision, again.last_revision) == (0, 1)


@pytest.mark.spec("C-112", "C-119")
async def test_a_lease_ttl_that_differs_is_named_and_lived_by(jetstream: JetStream) -> None:
    await open_bucket(jetstream, leases_slot(30.0), storage="file", ids=IDS)

    with capture_logs() as logs:
        adopted = await open_bucket(jetstream, leases_slot(45.0), storage="file", ids=IDS)

    (said,) = [entry for entry in logs if entry["log_level"] == "warning"]
    assert (said["event"], said["configured_s"], said["in_force_s"]) == ("coord_kv_lease_ttl_differs", 45.0, 30.0)
    assert adopted.age_s == adopted.store.age_s == 30.0


@pytest.mark.spec("C-112")
async def test_a_lease_ttl_that_is_the_same_is_not_mentioned(jetstream: JetStream) -> None:
    await open_bucket(jetstream, leases_slot(30.0), storage="file", ids=IDS)

    with capture_logs() as logs:
        await open_bucket(jetstream, leases_slot(30.0), storage="file", ids=IDS)

    assert [entry["event"] for entry in logs] == []


@pytest.mark.spec("C-120")
@pytest.mark.parametrize(
    ("found_s", "in_force_s"), [(60.0, limits.MAX_DUTY_TTL_S), (limits.MAX_DUTY_TTL_S + 60, limits.MAX_DUTY_TTL_S + 60)]
)
async def test_the_age_of_duties_is_raised_and_never_lowered(
    jetstream: JetStream, found_s: float, in_force_s: float
) -> None:
    before = await open_bucket(jetstream, Slot("duties", found_s, "another build's opinion"), storage="file", ids=IDS)
    record = await before.store.create("worker.w", b"1")

    opened = await open_bucket(jetstream, DUTIES, storage="file", ids=IDS)

    again = await open_bucket(jetstream, DUTIES, storage="file", ids=IDS)
    assert opened.age_s == opened.store.age_s == again.age_s == in_force_s
    assert await opened.store.get("worker.w") == record


@pytest.mark.spec("C-120")
async def test_duties_that_live_for_ever_are_left_alone(jetstream: JetStream) -> None:
    await open_bucket(jetstream, Slot("duties", None, "another build's opinion"), storage="file", ids=IDS)

    assert (await open_bucket(jetstream, DUTIES, storage="file", ids=IDS)).age_s is None


@pytest.mark.spec("C-106", "C-144")
async def test_every_slot_of_the_table_has_a_bucket_of_its_own_with_its_own_age(jetstream: JetStream) -> None:
    opened = await open_buckets(jetstream, SLOTS, storage="memory", ids=IDS)

    assert {name: found.age_s for name, found in opened.items()} == {slot.name: slot.age_s for slot in SLOTS}
    assert {*await jetstream.stream_names()} == {bucket_stream(bucket(slot.name)) for slot in SLOTS}


async def test_of_several_buckets_one_that_is_refused_refuses_all(jetstream: JetStream) -> None:
    await open_bucket(jetstream, LEASES, storage="memory", ids=IDS)

    with pytest.raises(StartRefused, match="crewlet_"):
        await open_buckets(jetstream, SLOTS, storage="memory", ids=IDS, replicas=3)


@pytest.mark.spec("C-117")
async def test_a_bucket_with_fewer_copies_than_configured_is_refused_with_both_counts(jetstream: JetStream) -> None:
    await open_bucket(jetstream, SLOT, storage="file", ids=IDS)

    with pytest.raises(StartRefused, match=r"has 1 replica.*asks for 3"):
        await open_bucket(jetstream, SLOT, storage="file", ids=IDS, replicas=3)


async def test_more_copies_than_one_broker_can_hold_are_refused_in_words(jetstream: JetStream) -> None:
    with pytest.raises(StartRefused, match="replicas"):
        await open_bucket(jetstream, SLOT, storage="file", ids=IDS, replicas=3)


async def test_of_two_nodes_that_open_at_once_both_get_the_bucket(jetstream: JetStream) -> None:
    other = Slot("tested", 60.0, "another opinion")

    both = await asyncio.gather(*(open_bucket(jetstream, slot, storage="file", ids=IDS) for slot in (SLOT, other)))

    assert len({opened.age_s for opened in both}) == 1


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.spec("C-117", "C-118")
async def test_more_copies_pass_and_raising_them_is_all_that_a_refused_node_needs(
    members: Cluster, members_api: JetStream
) -> None:
    slot = Slot("few_copies", None, "a slot of the tests")
    before = await open_bucket(members_api, slot, storage="file", ids=IDS)
    record = await before.store.create("a", b"1")
    with pytest.raises(StartRefused, match=r"has 1 replica.*asks for 3") as refused:
        await open_bucket(members_api, slot, storage="file", ids=IDS, replicas=3)
    stream = bucket_stream(bucket(slot.name))
    assert refused.value.remedy == f"nats stream update {stream} --replicas=3"

    await members_api.stream_change(stream, {"num_replicas": 3})

    opened = await open_bucket(members_api, slot, storage="file", ids=IDS, replicas=3)
    fewer = await open_bucket(members_api, slot, storage="file", ids=IDS, replicas=1)
    assert await opened.store.get("a") == await fewer.store.get("a") == record
    assert (opened.created_at, fewer.created_at) == (before.created_at, before.created_at)
    # What was opened before goes on, whoever leads.
    await members.step_down(members_api, stream)
    assert (await before.store.update("a", b"2", expected=record.revision)).revision == 2


def test_every_setting_is_explicit() -> None:
    config = bucket_config(SLOT, storage="file", replicas=3)

    assert config == StreamConfig(
        name="KV_crewlet_tested",
        subjects=["$KV.crewlet_tested.>"],
        description="a slot of the tests",
        storage="file",
        discard="new",
        num_replicas=3,
        max_consumers=limits.BROKER_MAX_CONSUMERS,
        max_age=ns(3600),
        max_msgs_per_subject=1,
        duplicate_window=ns(120),
        allow_direct=True,
        allow_rollup_hdrs=True,
        deny_delete=True,
    )
