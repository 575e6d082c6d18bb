"""How long a member's boot waits, and what it says when it gives up."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from crewlet.backends.nats.cluster_waits import refuse_second_of_a_name, wait_current, wait_for_peers
from crewlet.backends.nats.wire import Message, Unsubscribe, Wire
from crewlet.base.errors import StartRefused, Unavailable

pytestmark = pytest.mark.virtual_time

ACCOUNT = "$JS.API.INFO"
HEALTH = "$SYS.REQ.SERVER.PING.HEALTHZ"
STREAMS = "$JS.API.STREAM.LIST"


class ScriptedWire(Wire):
    """Answers each question as its script says by then: it is asked with how often that was asked before."""

    def __init__(self, **scripts: Callable[[int], dict[str, Any] | None]) -> None:
        self._scripts = scripts
        self.asked: dict[str, int] = {}

    @property
    def connected(self) -> bool:
        return True

    @property
    def max_payload_bytes(self) -> int:
        return 1024

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        before = self.asked.get(subject, 0)
        self.asked[subject] = before + 1
        answer = self._scripts[subject.rpartition(".")[2].lower()](before)
        if answer is None:
            raise Unavailable(f"{subject}: no answer")
        return Message(subject=subject, reply="", payload=json.dumps(answer).encode(), headers={})

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        raise NotImplementedError

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        raise NotImplementedError

    def new_inbox(self) -> str:
        raise NotImplementedError

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        raise NotImplementedError


def health(*lacks: str, name: str = "north") -> dict[str, Any]:
    status = "unavailable" if lacks else "ok"
    return {"server": {"name": name}, "data": {"status": status, "errors": [{"error": each} for each in lacks]}}


def copy_of(lag: int) -> dict[str, Any]:
    """The list of streams, of which one has a copy here that lacks so many entries."""
    replicas = [{"name": "north", "lag": lag, "current": True}]
    stream = {
        "config": {"name": "MAIL"},
        "created": "2030-01-01T00:00:00Z",
        "cluster": {"leader": "south", "replicas": replicas},
    }
    return {"total": 1, "streams": [stream]}


def words_of(*lines: str) -> Callable[[], Any]:
    async def last_words() -> list[str]:
        return [*lines]

    return last_words


async def test_a_majority_is_waited_for() -> None:
    wire = ScriptedWire(info=lambda before: None if before < 20 else {})

    await wait_for_peers(wire, cluster="fleet", peers=["south:1"], last_words=words_of(), timeout_s=60.0)

    assert wire.asked == {ACCOUNT: 21}


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ((), "start the other members"),
        (('[ERR] rid:20 - authentication error - User "member"',), "stream.cluster.secret"),
        (("[ERR] rid:24 - Route Error 'Authorization Violation'",), "stream.cluster.secret"),
        (('[ERR] rid:17 - Remote server has a duplicate name: "north"',), "node.id"),
    ],
)
async def test_without_one_the_start_is_refused_with_what_the_brokers_log_tells(
    words: tuple[str, ...], remedy: str
) -> None:
    wire = ScriptedWire(info=lambda _: None)

    with pytest.raises(StartRefused, match=r"south:1, west:1") as refused:
        await wait_for_peers(
            wire, cluster="fleet", peers=["south:1", "west:1"], last_words=words_of(*words), timeout_s=60.0
        )

    assert remedy in refused.value.remedy


async def test_a_member_whose_name_a_living_one_has_is_refused_whatever_the_majority() -> None:
    """It would vote, and confirm, as the one that keeps what it lacks."""
    told = words_of('[ERR] rid:17 - Remote server has a duplicate name: "north"')

    with pytest.raises(StartRefused, match="north") as refused:
        await refuse_second_of_a_name(member="north", last_words=told)

    assert "node.id" in refused.value.remedy


async def test_what_the_member_says_itself_counts_not_what_its_leaders_say() -> None:
    wire = ScriptedWire(healthz=lambda before: health("MAIL") if before < 30 else health(), list=lambda _: copy_of(0))

    await wait_current(wire, member="north", wire=wire, quiet_s=60.0)

    assert wire.asked[HEALTH] == 31


async def test_another_members_answer_is_none() -> None:
    wire = ScriptedWire(
        healthz=lambda before: health(name="northeast") if before < 3 else health(), list=lambda _: copy_of(0)
    )

    await wait_current(wire, member="north", wire=wire, quiet_s=60.0)

    assert wire.asked[HEALTH] == 4


async def test_a_member_that_comes_nearer_is_waited_for_however_long_it_takes() -> None:
    wire = ScriptedWire(
        healthz=lambda before: health("MAIL") if before < 3000 else health(), list=lambda before: copy_of(3000 - before)
    )

    await wait_current(wire, member="north", wire=wire, quiet_s=5.0)

    assert wire.asked[HEALTH] == 3001


async def test_one_that_stands_still_is_refused_naming_what_it_lacks() -> None:
    wire = ScriptedWire(healthz=lambda _: health("MAIL is not current"), list=lambda _: copy_of(7))

    with pytest.raises(StartRefused, match="MAIL is not current"):
        await wait_current(wire, member="north", wire=wire, quiet_s=60.0)
