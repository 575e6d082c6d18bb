"""When a refused write speaks against the broker, and when it does not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from crewlet.base.errors import MailboxFull, Unavailable
from crewlet.events import Event
from crewlet.node.broker_writes import BrokerWrites
from crewlet.testing.waiting import wait_until

EVENT = Event(id="e", type="probe", timestamp=datetime(2030, 1, 1, tzinfo=UTC))


class Refusing:
    """A queue that refuses with ``error``, until it is taken away."""

    def __init__(self, error: Unavailable) -> None:
        self.error: Unavailable | None = error

    async def publish(self, topic: str, event: Event) -> Event:
        if self.error is not None:
            raise self.error
        return event


async def trouble_after(error: Unavailable, *, connected: bool = True, then_works: bool = False) -> str:
    """What is said of the broker after one write that was refused, and perhaps one that was not."""
    queue: Any = Refusing(error)
    access: Any = SimpleNamespace(connection=SimpleNamespace(connected=connected), broker=None)
    writes = BrokerWrites(queue, access)
    with pytest.raises(type(error)):
        await writes.publish("a.topic", EVENT)
    if then_works:
        queue.error = None
        await writes.publish("a.topic", EVENT)
    await writes.close()
    return writes.trouble


async def test_a_write_that_nobody_took_over_a_link_that_stands_speaks_against_the_broker() -> None:
    assert "takes no writes" in await trouble_after(Unavailable("no answer"))


async def test_a_link_that_is_down_says_nothing_of_the_broker() -> None:
    assert await trouble_after(Unavailable("no answer"), connected=False) == ""


async def test_a_full_mailbox_says_nothing_of_the_broker() -> None:
    assert await trouble_after(MailboxFull("a.topic", "maximum bytes exceeded")) == ""


async def test_a_full_disk_speaks_against_the_broker() -> None:
    assert "no space left" in await trouble_after(MailboxFull("a.topic", "no space left", at_limit=False))


async def test_a_write_that_is_taken_ends_the_trouble() -> None:
    assert await trouble_after(Unavailable("no answer"), then_works=True) == ""


def reviving() -> list[str]:
    """What still tries to bring a broker back."""
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("broker_writes:")]


@dataclass
class Broker:
    """An embedded broker whose disk has room."""

    directory: Path
    is_member: bool
    keeps_on_disk: bool = True
    restarts: int = 0

    async def restart(self) -> None:
        self.restarts += 1


@pytest.mark.parametrize(("is_member", "restarts"), [(False, 1), (True, 0)])
async def test_a_member_is_not_started_again_for_what_another_one_may_have_refused(
    tmp_path: Path, is_member: bool, restarts: int
) -> None:
    broker = Broker(tmp_path, is_member)
    queue: Any = Refusing(Unavailable("insufficient resources"))
    access: Any = SimpleNamespace(connection=SimpleNamespace(connected=True), broker=broker)
    writes = BrokerWrites(queue, access)

    with pytest.raises(Unavailable):
        await writes.publish("a.topic", EVENT)
    trouble = writes.trouble
    await wait_until(lambda: broker.restarts > 0 or not reviving(), what="an end of what follows")
    await writes.close()

    assert broker.restarts == restarts
    assert ("crewlet fleet" in trouble) is is_member
