"""How long the steps of a boot are tried, by whom the broker is shared with."""

from __future__ import annotations

import asyncio

import pytest

from crewlet.base.errors import Unavailable
from crewlet.config import StreamConfig
from crewlet.node.bring_up import bring_up_s, brought_up


def stream(kind: str, *, replicas: int = 1) -> StreamConfig:
    assert kind in {"embedded", "nats"}
    return StreamConfig(
        type="nats" if kind == "nats" else "embedded",
        store_dir=None,
        sync_interval_s=None,
        event_retention_s=3600.0,
        replicas=replicas,
    )


def test_a_broker_of_this_nodes_own_that_does_not_answer_ends_the_boot_at_once() -> None:
    assert bring_up_s(stream("embedded")) == 0.0


def test_a_broker_that_other_nodes_boot_on_is_waited_for_and_one_of_many_for_longer() -> None:
    assert 0.0 < bring_up_s(stream("nats")) < bring_up_s(stream("nats", replicas=3))


@pytest.mark.virtual_time
async def test_a_step_that_finds_the_broker_busy_is_done_again_until_its_time_is_over() -> None:
    tried_at_s: list[float] = []
    loop = asyncio.get_running_loop()

    async def busy() -> None:
        tried_at_s.append(loop.time())
        await asyncio.sleep(5.0)
        raise Unavailable("no answer")

    with pytest.raises(Unavailable):
        await brought_up("mailboxes", busy, within_s=bring_up_s(stream("nats")))

    assert len(tried_at_s) > 3
    assert tried_at_s[-1] - tried_at_s[0] <= bring_up_s(stream("nats"))
