"""Cooldowns: what is shared of a key, and how a node learns what its peers learned."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore
from crewlet.base import limits
from crewlet.coordination import COOLDOWNS, Cooldown, CooldownPull, Cooldowns
from crewlet.coordination.records.codec import encode_record
from crewlet.coordination.records.cooldowns import extended
from crewlet.llm.bag import Bag, Bench, bag_of
from crewlet.llm.contract import FailureKind
from crewlet.llm.provider_config import Cooldowns as CooldownLengths
from crewlet.testing import VirtualClock

KEYS = ("sk-first-key", "sk-second-key")
AT = datetime(2030, 1, 1, tzinfo=UTC)
RESTS = Cooldown(provider_key="fast", hint="0123456789ab", until=AT, reason="rate_limited", reported_by="north")


class Node:
    """A node's bag of keys under one entry, and what it pulls into it."""

    def __init__(self, bucket: MemoryBucket, *, entry: str = "fast") -> None:
        self.store = MemoryRecordStore(bucket)
        self.cooldowns = Cooldowns(self.store)
        self.clock = VirtualClock()
        self.bag: Bag = bag_of(entry, KEYS, CooldownLengths())
        self.pull = CooldownPull(self.cooldowns, self.learn, self.clock)

    def learn(self, cooldown: Cooldown) -> bool:
        mine = [slot for slot in self.bag.slots if slot.credential.hint == cooldown.hint]
        if cooldown.provider_key != self.bag.provider_key or not mine:
            return False
        if mine[0].until is not None and mine[0].until >= cooldown.until:
            return False
        reason = FailureKind(cooldown.reason)
        self.bag = self.bag.benched(Bench(cooldown.provider_key, cooldown.hint, cooldown.until, reason))
        return True

    def fails(self, secret: str, *, after_s: float) -> Bench:
        """The vendor refuses the key here, and nobody else hears of it."""
        credential = next(slot.credential for slot in self.bag.slots if slot.credential.secret == secret)
        bench = self.bag.bench_for(credential, FailureKind.RATE_LIMITED, self.clock.now(), reset_after_s=after_s)
        assert bench is not None
        self.bag = self.bag.benched(bench)
        return bench

    async def tells(self, bench: Bench) -> None:
        """And the fleet hears of it."""
        await self.cooldowns.publish(
            Cooldown(
                provider_key=bench.provider_key,
                hint=bench.hint,
                until=bench.until,
                reason=bench.reason.value,
                reported_by="north",
            )
        )

    def serves(self) -> set[str]:
        """The keys that do not rest."""
        return {slot.credential.secret for slot in self.bag.slots if not slot.rests(self.clock.now())}


@pytest.fixture
async def bucket() -> MemoryBucket:
    return MemoryBucket(COOLDOWNS, VirtualClock())


@pytest.mark.parametrize(("minutes", "stands"), [(-1, 0), (0, 0), (1, 1)])
def test_a_cooldown_is_extended_and_never_shortened(minutes: int, stands: int) -> None:
    wanted = replace(RESTS, until=AT + timedelta(minutes=minutes), reported_by="south")

    assert extended(RESTS, wanted).until == AT + timedelta(minutes=stands)


@pytest.mark.spec("C-102")
@pytest.mark.virtual_time
async def test_a_record_holds_twelve_digits_of_a_keys_hash_and_nothing_of_the_key(bucket: MemoryBucket) -> None:
    node = Node(bucket)
    await node.tells(node.fails(KEYS[0], after_s=3600))

    [cooldown] = await node.cooldowns.all()
    [record] = await node.store.list("credential.>")

    assert cooldown.hint == hashlib.sha256(KEYS[0].encode()).hexdigest()[:12]
    assert KEYS[0].encode() not in encode_record(cooldown) + record.key.encode()


@pytest.mark.spec("C-127")
@pytest.mark.virtual_time
async def test_no_cooldown_outlives_its_record(bucket: MemoryBucket) -> None:
    node = Node(bucket)

    bench = node.fails(KEYS[0], after_s=1e9)

    assert COOLDOWNS.age_s == (bench.until - node.clock.now()).total_seconds() == 24 * 3600.0


@pytest.mark.spec("C-103", "C-104")
@pytest.mark.virtual_time
async def test_a_node_that_starts_learns_at_once_and_says_so(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    bench = peer.fails(KEYS[0], after_s=3600)
    await peer.tells(bench)
    await asyncio.sleep(600)

    with capture_logs() as logs:
        pulling = asyncio.ensure_future(node.pull.run())
        await asyncio.sleep(0.001)
        pulling.cancel()

    assert node.serves() == {KEYS[1]}
    [told] = logs
    assert (told["event"], told["provider"], told["hint"]) == ("credential_cooled_by_peer", "fast", bench.hint)
    assert told["remaining_s"] == pytest.approx(3000, abs=1)


@pytest.mark.spec("C-096")
@pytest.mark.virtual_time
async def test_a_node_learns_within_fifteen_seconds_and_says_so_once(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    pulling = asyncio.ensure_future(node.pull.run())
    await asyncio.sleep(1)
    await peer.tells(peer.fails(KEYS[0], after_s=3600))

    with capture_logs() as logs:
        await asyncio.sleep(13)
        before = node.serves()
        await asyncio.sleep(2)
        after = node.serves()
        await asyncio.sleep(60)
    pulling.cancel()

    assert limits.COOLDOWNS_PULLED_EVERY_S == 15.0
    assert (before, after) == (set(KEYS), {KEYS[1]})
    assert [entry["event"] for entry in logs] == ["credential_cooled_by_peer"]


@pytest.mark.spec("C-098")
@pytest.mark.virtual_time
async def test_a_key_serves_again_at_the_instant_on_record_however_often_it_was_read(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    await peer.tells(peer.fails(KEYS[0], after_s=3600))
    pulling = asyncio.ensure_future(node.pull.run())

    await asyncio.sleep(3599)
    before = node.serves()
    await asyncio.sleep(2)
    after = node.serves()
    await asyncio.sleep(60)
    pulling.cancel()

    assert (before, after, node.serves()) == ({KEYS[1]}, set(KEYS), set(KEYS))


@pytest.mark.spec("C-099")
@pytest.mark.virtual_time
async def test_a_pull_takes_back_nothing_that_a_node_learned_by_itself(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    node.fails(KEYS[0], after_s=3600)
    node.fails(KEYS[1], after_s=3600)
    await peer.tells(peer.fails(KEYS[0], after_s=60))

    await node.pull.pull()
    await asyncio.sleep(120)

    assert node.serves() == set()


@pytest.mark.spec("C-100")
@pytest.mark.virtual_time
async def test_a_pull_that_cannot_read_changes_nothing_and_the_next_one_can(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    node.fails(KEYS[0], after_s=3600)
    await peer.tells(peer.fails(KEYS[1], after_s=3600))
    node.store.link.cut = True
    pulling = asyncio.ensure_future(node.pull.run())

    with capture_logs() as logs:
        await asyncio.sleep(1)
    cut_off = node.serves()
    node.store.link.cut = False
    await asyncio.sleep(15)
    pulling.cancel()

    assert cut_off == {KEYS[1]}
    assert [entry["event"] for entry in logs] == ["cooldowns_unreadable"]
    assert node.serves() == set()


@pytest.mark.virtual_time
async def test_a_store_that_never_answers_ends_no_pull_loop(bucket: MemoryBucket) -> None:
    peer, node = Node(bucket), Node(bucket)
    await peer.tells(peer.fails(KEYS[0], after_s=3600))
    node.store.link.silent = True
    pulling = asyncio.ensure_future(node.pull.run())
    await asyncio.sleep(100)
    node.store.link.silent = False

    await asyncio.sleep(35)

    assert not pulling.done()
    assert node.serves() == {KEYS[1]}
    pulling.cancel()


@pytest.mark.spec("C-101")
@pytest.mark.virtual_time
async def test_a_key_that_rests_under_one_entry_serves_under_another(bucket: MemoryBucket) -> None:
    fast, smart = Node(bucket), Node(bucket, entry="smart")
    await fast.tells(fast.fails(KEYS[0], after_s=3600))

    await smart.pull.pull()

    assert smart.serves() == set(KEYS)


@pytest.mark.spec("C-095")
@pytest.mark.virtual_time
async def test_a_store_that_never_answers_holds_a_publish_up_for_two_seconds(bucket: MemoryBucket) -> None:
    node = Node(bucket)
    node.store.link.silent = True

    began_s = node.clock.elapsed_s()
    with capture_logs() as logs:
        await node.tells(node.fails(KEYS[0], after_s=3600))

    assert node.clock.elapsed_s() - began_s == pytest.approx(2.0)
    assert [entry["event"] for entry in logs] == ["cooldown_not_published"]


@pytest.mark.virtual_time
async def test_closing_ends_the_writes_that_go_on_and_lets_their_callers_go_on(bucket: MemoryBucket) -> None:
    node = Node(bucket)
    node.store.link.silent = True
    calling = asyncio.ensure_future(node.tells(node.fails(KEYS[0], after_s=3600)))
    await asyncio.sleep(0.01)

    await node.cooldowns.close()

    await calling
    assert len(asyncio.all_tasks()) == 1
