"""When a refused write speaks against the broker, and when it does not."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from crewlet.base.errors import MailboxFull, Unavailable
from crewlet.events import Event
from crewlet.node.broker_writes import BrokerWrites

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
