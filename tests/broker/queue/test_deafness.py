"""An attachment whose request the broker does not know of: noticed, said, asked anew."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import JetStream, JetStreamQueue, connect
from crewlet.backends.nats.pull_requests import PullTiming
from crewlet.testing.contracts.queue_handlers import Recorder
from tests.broker.queue.rig import INBOX, SCALED, Company, event
from tests.broker.queue.wires import Forgetful

pytestmark = pytest.mark.slow

QUICK = PullTiming(expires_s=120.0, heartbeat_s=50.0, silence_max_s=120.0, deaf_check_s=0.4, deaf_confirm_s=0.1)


@pytest.mark.parametrize("losses", [1, 2])
async def test_an_attachment_that_waits_for_nothing_attaches_itself_anew_and_says_so(
    company: Company, losses: int
) -> None:
    connection = await connect(company.broker.urls, seed=company.broker.seed)
    wire = Forgetful(connection, losses)
    queue = JetStreamQueue(
        wire, JetStream(wire), node="one", config=SCALED, storage=company.broker.storage, timing=QUICK
    )
    handler = Recorder()
    try:
        await queue.start()
        await queue.subscribe(INBOX, handler)
        await queue.publish(INBOX.topic, event("m1"))

        with capture_logs() as logs:
            await handler.handled(1)

        said = [line for line in logs if line["event"] == "attachment_deaf"]
        assert len(said) == losses
        assert handler.headrooms == [3]
    finally:
        await queue.close()
        await connection.close()


async def test_one_that_waits_for_mail_is_left_alone(company: Company) -> None:
    connection = await connect(company.broker.urls, seed=company.broker.seed)
    queue = JetStreamQueue(
        connection, JetStream(connection), node="one", config=SCALED, storage=company.broker.storage, timing=QUICK
    )
    handler = Recorder()
    try:
        await queue.start()
        await queue.subscribe(INBOX, handler)

        with capture_logs() as logs:
            for number in range(8):
                await queue.publish(INBOX.topic, event(f"m{number}"))
                await handler.handled(number + 1)

        assert not [line for line in logs if line["event"] == "attachment_deaf"]
    finally:
        await queue.close()
        await connection.close()
