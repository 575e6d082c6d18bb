"""How a client of the twin tells its broker what became of a delivery: at once, or once the line is up again."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import structlog

from crewlet.backends.memory.queue_line import Line
from crewlet.backends.memory.queue_mail import Held
from crewlet.backends.memory.queue_mailbox import MemoryMailbox
from crewlet.backends.memory.queue_outcomes import Acknowledge, Bury, HandBack, PutBehind, Verdict, verdict
from crewlet.base import limits
from crewlet.base.tasks import Tasks
from crewlet.queue import Outcome, QueueConfig

__all__ = ["Settlement"]

_log = structlog.get_logger(__name__)


class Settlement:
    """Settles for every attachment of one client."""

    def __init__(self, line: Line, tasks: Tasks, config: QueueConfig) -> None:
        self._line = line
        self._tasks = tasks
        self._config = config

    async def settle(
        self, mailbox: MemoryMailbox, holdings: Iterable[Held], outcome: Outcome, *, unheard: bool = False
    ) -> None:
        """Report one outcome for all of ``holdings``, each by its own budget; ``unheard``: no handler was given them.

        Where the broker does not hear of it, the ack clocks decide.
        """

        def decide(held: Held) -> Verdict:
            return verdict(outcome, held.mail.deliveries, self._config)

        await self._tell(mailbox, [*holdings], decide, unheard=unheard)

    async def bury(self, mailbox: MemoryMailbox, held: Held, reason: str) -> None:
        """Dead-letter a message that no delivery can help, whatever budget it has left."""
        await self._tell(mailbox, [held], lambda _: Bury(reason))

    def give_back(self, mailbox: MemoryMailbox, holdings: list[Held], outcome: Outcome) -> None:
        """Settle what no handler was given without waiting: now where the line is up, else in the background."""
        if not holdings:
            return
        if self._line.is_up:
            for held in holdings:
                _act(mailbox, held, verdict(outcome, held.mail.deliveries, self._config), unheard=True)
        elif not self._line.ended:
            self._tasks.start("give_back", self.settle(mailbox, holdings, outcome, unheard=True))

    async def _tell(
        self,
        mailbox: MemoryMailbox,
        holdings: list[Held],
        decide: Callable[[Held], Verdict],
        *,
        unheard: bool = False,
    ) -> None:
        if not await self._heard():
            for held in holdings:
                _log.warning("delivery_unconfirmed", topic=mailbox.subscription.topic, seq=held.mail.message.sequence)
            return
        for held in holdings:
            _act(mailbox, held, decide(held), unheard=unheard)

    async def _heard(self) -> bool:
        return self._line.is_up or await self._line.healed(limits.SETTLE_ATTEMPTS_MAX * limits.LINK_WAIT_S)


def _act(mailbox: MemoryMailbox, held: Held, verdict: Verdict, *, unheard: bool = False) -> None:
    match verdict:
        case Acknowledge():
            mailbox.acknowledge(held)
        case HandBack():
            mailbox.hand_back(held)
        case PutBehind():
            mailbox.put_behind(held)
        case Bury(reason=reason):
            mailbox.bury(held, reason, unheard=unheard)
