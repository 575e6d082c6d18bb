"""An attachment whose request the broker does not know of: noticed, said, asked anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from structlog.testing import capture_logs

from crewlet.backends.nats import Connection, JetStream, JetStreamQueue, Wire, connect
from crewlet.backends.nats.pull_loop import PullTiming
from crewlet.backends.nats.wire import Message, Unsubscribe
from tests.broker.queue.rig import INBOX, SCALED, Company, Recorder, event

pytestmark = pytest.mark.slow

QUICK = PullTiming(expires_s=120.0, heartbeat_s=50.0, silence_max_s=120.0, deaf_check_s=0.4, deaf_confirm_s=0.1)


class Forgetful(Wire):
    """A link on which one mailbox's next requests are lost, as they are when a leader changes."""

    def __init__(self, inner: Connection, losses: int) -> None:
        self._inner = inner
        self.losses = losses

    @property
    def connected(self) -> bool:
        return self._inner.connected

    @property
    def max_payload_bytes(self) -> int:
        return self._inner.max_payload_bytes

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: Mapping[str, str] | None = None, timeout_s: float
    ) -> Message:
        return await self._inner.request(subject, payload, headers=headers, timeout_s=timeout_s)

    async def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        if "CONSUMER.MSG.NEXT.CREWLET_AGENT" in subject and self.losses:
            self.losses -= 1
            return
        await self._inner.publish(subject, payload, reply=reply, headers=headers)

    async def subscribe(self, subject: str, on_message: Callable[[Message], None]) -> Unsubscribe:
        return await self._inner.subscribe(subject, on_message)

    def new_inbox(self) -> str:
        return self._inner.new_inbox()

    def on_disconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._inner.on_disconnected(call)

    def on_reconnected(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._inner.on_reconnected(call)


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
