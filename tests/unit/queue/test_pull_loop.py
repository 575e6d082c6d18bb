"""The pull loop against a scripted broker, in virtual time: what it asks, when it asks again, when it stops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest

from crewlet.backends.nats.pull_loop import PullLoop
from crewlet.backends.nats.pull_requests import MailboxDeleted, MailboxMissing, PullTiming
from crewlet.backends.nats.wire import Message, Unsubscribe
from crewlet.base.errors import Unavailable
from crewlet.testing import wait_until

pytestmark = pytest.mark.virtual_time

TIMING = PullTiming(expires_s=30.0, heartbeat_s=3.0, silence_max_s=7.0)


class ScriptedBroker:
    """The far side of a wire: it keeps what was asked, and says what the test tells it to."""

    def __init__(self) -> None:
        self.connected = True
        self.max_payload_bytes = 1 << 20
        self.asked: list[str] = []
        self.open: dict[str, Callable[[Message], None]] = {}
        self.on_unsubscribe: Callable[[str], None] = lambda _inbox: None
        self._inboxes = 0
        self._down: list[Callable[[], None]] = []
        self._up: list[Callable[[], None]] = []

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        raise NotImplementedError

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if not self.connected:
            raise Unavailable("down")
        self.asked.append(reply)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        self.open[subject] = on_message

        async def unsubscribe() -> None:
            if subject in self.open:
                self.on_unsubscribe(subject)
                del self.open[subject]

        return unsubscribe

    def new_inbox(self) -> str:
        self._inboxes += 1
        return f"inbox.{self._inboxes}"

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        self._down.append(call)
        return lambda: self._down.remove(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        self._up.append(call)
        return lambda: self._up.remove(call)

    def say(self, inbox: str, status: str = "", description: str = "", payload: bytes = b"") -> None:
        self.open[inbox](Message(inbox, payload, {}, "", status, description))

    def end(self, inbox: str, *, left: int) -> None:
        self.open[inbox](Message(inbox, b"", {"Nats-Pending-Messages": str(left)}, "", "408", "Request Timeout"))

    def drop(self) -> None:
        self.connected = False
        for call in self._down:
            call()

    def come_back(self) -> None:
        self.connected = True
        for call in self._up:
            call()

    @property
    def listeners(self) -> int:
        return len(self._down) + len(self._up)


class Rig:
    def __init__(self) -> None:
        self.broker = ScriptedBroker()
        self.strays: list[bytes] = []
        self.quiet = 0
        self.pull = PullLoop(
            self.broker,
            "S",
            "c",
            strays=lambda message: self.strays.append(message.payload),
            quiet=self._quiet,
            timing=TIMING,
        )

    def _quiet(self) -> None:
        self.quiet += 1

    async def asking(self, times: int = 1) -> asyncio.Task[Message | None]:
        task = asyncio.get_running_loop().create_task(self.pull.next())
        await self.asked(times)
        return task

    async def asked(self, times: int) -> None:
        await wait_until(lambda: len(self.broker.asked) == times, what=f"{times} requests")


async def test_a_message_answers_the_request() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", payload=b"m1")

    message = await task
    assert message is not None
    assert message.payload == b"m1"


async def test_an_expired_request_is_made_again_on_the_same_inbox() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", "408", "Request Timeout")
    await rig.asked(2)
    rig.broker.say("inbox.1", payload=b"m1")

    assert await task is not None
    assert rig.broker.asked == ["inbox.1", "inbox.1"]


async def test_heartbeats_keep_a_request_alive_and_tell_of_quiet_once() -> None:
    rig = Rig()
    task = await rig.asking()

    for _ in range(9):
        await asyncio.sleep(3.0)
        rig.broker.say("inbox.1", "100", "Idle Heartbeat")
    rig.broker.say("inbox.1", payload=b"m1")

    assert await task is not None
    assert (rig.quiet, rig.broker.asked) == (1, ["inbox.1"])


async def test_a_silent_broker_is_asked_again_on_another_inbox() -> None:
    rig = Rig()
    task = await rig.asking()
    started_at = asyncio.get_running_loop().time()

    await rig.asked(2)
    waited_s = asyncio.get_running_loop().time() - started_at
    rig.broker.say("inbox.2", payload=b"m1")

    assert await task is not None
    assert 7.0 <= waited_s < 8.0
    assert [*rig.broker.open] == ["inbox.2"]


async def test_a_lost_link_is_waited_out_and_asked_on_another_inbox() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.drop()
    await asyncio.sleep(60.0)
    rig.broker.come_back()
    await rig.asked(2)
    rig.broker.say("inbox.2", payload=b"m1")

    assert await task is not None


async def test_a_deleted_mailbox_is_told() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", "409", "Consumer Deleted")

    with pytest.raises(MailboxDeleted):
        await task


async def test_a_mailbox_that_nobody_answers_for_is_told() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", "503")

    with pytest.raises(MailboxMissing):
        await task
    assert not rig.broker.open


@pytest.mark.parametrize(
    ("status", "description"),
    [("409", "Leadership Change"), ("409", "Exceeded MaxWaiting"), ("404", "No Messages"), ("499", "from the future")],
)
async def test_any_other_refusal_is_asked_again_after_a_pause(status: str, description: str) -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", status, description)
    await asyncio.sleep(0)
    assert len(rig.broker.asked) == 1
    await rig.asked(2)
    rig.broker.say("inbox.1", payload=b"m1")

    assert await task is not None


async def test_stopping_ends_the_wait_and_hands_on_what_was_on_its_way() -> None:
    rig = Rig()
    task = await rig.asking()
    rig.broker.on_unsubscribe = lambda inbox: rig.broker.say(inbox, payload=b"late")

    rig.pull.stop()

    assert await task is None
    assert (rig.strays, [*rig.broker.open]) == ([b"late"], [])


async def test_a_stopped_loop_asks_again_once_resumed() -> None:
    rig = Rig()
    rig.pull.stop()
    assert await rig.pull.next() is None

    rig.pull.resume()
    task = await rig.asking()
    rig.broker.say("inbox.1", payload=b"m1")

    assert await task is not None


async def test_a_message_that_came_as_its_waiter_was_cancelled_is_handed_on() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", payload=b"m1")
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert (rig.strays, [*rig.broker.open]) == ([b"m1"], [])


async def test_a_second_message_for_one_request_is_handed_on() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.broker.say("inbox.1", payload=b"m1")
    rig.broker.say("inbox.1", payload=b"m2")

    assert await task is not None
    assert rig.strays == [b"m2"]


async def test_a_closed_loop_listens_to_nothing() -> None:
    rig = Rig()
    task = await rig.asking()
    rig.pull.stop()
    await task

    await rig.pull.close()

    assert (rig.broker.listeners, [*rig.broker.open]) == (0, [])


async def test_what_a_request_was_granted_is_waited_for_though_its_end_came_first() -> None:
    rig = Rig()
    task = asyncio.get_running_loop().create_task(rig.pull.more(5))
    await rig.asked(1)

    rig.broker.say("inbox.1", payload=b"m0")
    rig.broker.end("inbox.1", left=3)
    rig.broker.say("inbox.1", payload=b"m1")

    assert [message.payload for message in await task] == [b"m0", b"m1"]
    assert rig.strays == []


async def test_what_was_granted_and_never_comes_is_not_waited_for_without_end() -> None:
    rig = Rig()
    task = asyncio.get_running_loop().create_task(rig.pull.more(5))
    await rig.asked(1)

    rig.broker.say("inbox.1", payload=b"m0")
    rig.broker.end("inbox.1", left=3)

    assert [message.payload for message in await task] == [b"m0"]
    assert rig.broker.open == {}


def collecting(rig: Rig, count: int, within_s: float = 0.0) -> asyncio.Task[list[Message]]:
    return asyncio.get_running_loop().create_task(rig.pull.more(count, within_s))


async def test_nothing_there_is_an_answer_and_its_inbox_serves_the_next_request() -> None:
    rig = Rig()
    task = collecting(rig, 5)
    await rig.asked(1)

    rig.broker.say("inbox.1", "404", "No Messages")

    assert await task == []
    waiting = await rig.asking(2)
    rig.broker.say("inbox.1", payload=b"m1")
    assert await waiting is not None


async def test_a_full_collection_needs_no_end() -> None:
    rig = Rig()
    task = collecting(rig, 2)
    await rig.asked(1)

    rig.broker.say("inbox.1", payload=b"m1")
    rig.broker.say("inbox.1", payload=b"m2")

    assert [message.payload for message in await task] == [b"m1", b"m2"]


async def test_stopping_a_collection_returns_what_came_and_hands_on_the_rest() -> None:
    rig = Rig()
    task = collecting(rig, 5, 60.0)
    await rig.asked(1)
    rig.broker.say("inbox.1", payload=b"m1")
    rig.broker.on_unsubscribe = lambda inbox: rig.broker.say(inbox, payload=b"m2")

    rig.pull.stop()

    assert [message.payload for message in await task] == [b"m1"]
    assert rig.strays == [b"m2"]
    assert rig.broker.open == {}


async def test_a_cancelled_collection_hands_on_what_it_had() -> None:
    rig = Rig()
    task = collecting(rig, 5, 60.0)
    await rig.asked(1)
    rig.broker.say("inbox.1", payload=b"m1")

    task.cancel()
    await asyncio.wait([task])

    assert task.cancelled()
    assert (rig.strays, rig.broker.open) == ([b"m1"], {})


async def test_a_lost_link_ends_a_collection_with_what_came() -> None:
    rig = Rig()
    task = collecting(rig, 5, 60.0)
    await rig.asked(1)
    rig.broker.say("inbox.1", payload=b"m1")

    rig.broker.drop()

    assert [message.payload for message in await task] == [b"m1"]


async def test_a_broker_that_says_nothing_ends_a_collection_after_its_window_and_the_patience() -> None:
    rig = Rig()
    loop = asyncio.get_running_loop()
    started_at = loop.time()

    assert await rig.pull.more(5, 10.0) == []

    assert loop.time() - started_at == pytest.approx(10.0 + TIMING.silence_max_s, abs=0.1)


@pytest.mark.parametrize("count", [0, 3])
async def test_a_stopped_loop_collects_nothing(count: int) -> None:
    rig = Rig()
    if count:
        rig.pull.stop()

    assert await rig.pull.more(count) == []
    assert rig.broker.asked == []


async def test_asking_anew_gives_up_the_request_that_waits() -> None:
    rig = Rig()
    task = await rig.asking()

    rig.pull.ask_anew()
    await rig.asked(2)

    assert rig.broker.asked == ["inbox.1", "inbox.2"]
    rig.broker.say("inbox.2", payload=b"m1")
    assert await task is not None
