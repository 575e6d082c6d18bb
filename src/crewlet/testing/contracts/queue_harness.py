"""What the queue's suite needs of a backend: clients that can die, time that can be moved, and a look at the broker."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

from crewlet import topics
from crewlet.events import Event
from crewlet.queue import EventQueue, QueueConfig, Subscription
from crewlet.testing.contracts.contract import Capability
from crewlet.testing.waiting import wait_until

__all__ = ["SCALED", "DeadLetter", "QueueHarness", "event"]

SCALED: Final = QueueConfig(
    ack_wait_s=3.0, max_deliver=4, nak_backoff_first_s=0.1, nak_backoff_max_s=0.4, event_retention_s=2 * 86400.0
)
"""The queue's clocks and budgets for a suite that waits for them in real time."""

_FIRST_EVENT_AT: Final = datetime(2026, 1, 1, tzinfo=UTC)
_CASES: Final = itertools.count(1)
_UNGUARDED_FRACTION: Final = 3


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One copy among the dead letters: the message as it was published, and where it came from."""

    payload: bytes
    topic: str
    group: str
    deliveries: int


class QueueHarness(ABC):
    """One case's view of one backend. Names are its own, so that cases may share a broker without meeting."""

    backend: ClassVar[str]
    absent: ClassVar[frozenset[Capability]] = frozenset()
    quiet_s: ClassVar[float] = 0.2
    """How long nothing may happen before a case believes that nothing will."""

    def __init__(self, config: QueueConfig = SCALED) -> None:
        self._case = next(_CASES)
        self.config = replace(config, ack_waits={self.unguarded(): config.ack_wait_s / _UNGUARDED_FRACTION})

    @abstractmethod
    async def client(self, node: str = "one") -> EventQueue:
        """A new client, as the process of ``node`` would have it."""

    @abstractmethod
    async def crash(self, client: EventQueue) -> None:
        """The client's process is killed: nothing is handed back, nothing is said."""

    @abstractmethod
    async def advance(self, seconds: float) -> None:
        """Let so much time pass: a jump where time is virtual."""

    @abstractmethod
    def now_s(self) -> float:
        """Elapsed time, in seconds, on the clock that :meth:`advance` moves."""

    @abstractmethod
    async def disturb(self) -> None:
        """Whatever this backend must survive without anybody noticing happens now; nothing where there is no such."""

    @abstractmethod
    async def publish_raw(self, topic: str, payload: bytes) -> None:
        """Put bytes of no event on a topic, behind the contract's back."""

    @abstractmethod
    async def retained(self, topic: str) -> int:
        """How many messages of ``topic`` the broker keeps, waiting or held."""

    @abstractmethod
    async def held(self, subscription: Subscription) -> int:
        """How many deliveries of a mailbox are out and not settled."""

    @abstractmethod
    async def dead_letters(self, subscription: Subscription) -> list[DeadLetter]:
        """What was buried for a mailbox, in order."""

    def inbox(self, seat: str = "ada") -> Subscription:
        """A seat's inbox that no other case uses."""
        handle = f"{seat}-{self._case}"
        return Subscription(topics.agent_inbox(handle), topics.inbox_group(handle))

    def unguarded(self) -> Subscription:
        """A mailbox of this case whose ack clock is a third of the others'."""
        return self.inbox("unguarded")

    def event_topic(self, kind: str) -> str:
        """A topic among the recorded events that no other case uses; ``kind`` may have dots."""
        return topics.event_topic(f"case{self._case}.{kind}")

    @property
    def namespace(self) -> str:
        """A namespace that is none of the engine's, and no other case's."""
        return f"suite{self._case}"

    async def quiet(self) -> None:
        """Long enough for whatever would happen to have happened."""
        await self.advance(self.quiet_s)

    async def emptied(self, subscription: Subscription) -> None:
        """Return once the broker keeps nothing of the mailbox's topic. Raises ``TimeoutError``."""

        async def empty() -> bool:
            return await self.retained(subscription.topic) == 0

        await wait_until(empty, what=f"an empty {subscription.topic}")


def event(event_id: str, *, age: int = 0, **payload: object) -> Event:
    """An event to be told apart by its id; of two, the one with the greater ``age`` (in seconds) is older."""
    return Event(id=event_id, type="probe", timestamp=_FIRST_EVENT_AT - timedelta(seconds=age), payload=payload)
