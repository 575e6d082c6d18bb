"""What becomes of one delivery: acknowledged, handed back, or buried as a dead letter; confirmed by the broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import structlog

from crewlet.backends.nats.consumer_settings import DeliveryMark
from crewlet.backends.nats.jetstream_api import JetStream
from crewlet.backends.nats.jetstream_types import ApiError, ns
from crewlet.backends.nats.queue_dead_letters import DeadLetters
from crewlet.backends.nats.queue_link import LinkWatch
from crewlet.backends.nats.wire import Message
from crewlet.base import limits
from crewlet.base.errors import Unavailable
from crewlet.events import MalformedEvent, decode
from crewlet.queue import (
    Ack,
    Defer,
    Outcome,
    QueueConfig,
    Subscription,
    UnheardLetter,
    UnheardListeners,
    nak_backoff_s,
)

__all__ = ["Acknowledge", "Bury", "HandBack", "Settlement", "Verdict", "headroom", "verdict"]

_log = structlog.get_logger(__name__)

_ACK: Final = b"+ACK"
_NAK: Final = b"-NAK"
_TERM: Final = b"+TERM"
_WORKING: Final = b"+WPI"


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Gone from the mailbox."""


@dataclass(frozen=True, slots=True)
class HandBack:
    """It comes again: at the head at once, or behind the waiting mail after ``delay_s``."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Bury:
    """Its budget is spent: a copy goes to the dead letters and the message is terminated."""

    reason: str


Verdict = Acknowledge | HandBack | Bury


def headroom(deliveries: int, config: QueueConfig) -> int:
    """How many further deliveries a message has; ``deliveries`` counts this one (E-043)."""
    return max(config.max_deliver - deliveries, 0)


def verdict(outcome: Outcome, deliveries: int, config: QueueConfig) -> Verdict:
    """What an outcome means for a message on its ``deliveries``-th delivery (E-033, E-036, E-039, E-041)."""
    if isinstance(outcome, Ack):
        return Acknowledge()
    if headroom(deliveries, config) == 0:
        kind = "deferred" if isinstance(outcome, Defer) else "failed"
        return Bury(f"{kind} on delivery {deliveries} of {config.max_deliver}: {outcome.reason}")
    if isinstance(outcome, Defer):
        return HandBack(0.0)
    return HandBack(nak_backoff_s(config, deliveries))


class Settlement:
    """Tells the broker, and hears that it was understood."""

    def __init__(
        self, api: JetStream, link: LinkWatch, dead_letters: DeadLetters, config: QueueConfig, unheard: UnheardListeners
    ) -> None:
        self._api = api
        self._wire = api.wire
        self._link = link
        self._dead_letters = dead_letters
        self._config = config
        self._unheard = unheard

    async def settle(
        self,
        subscription: Subscription,
        message: Message,
        mark: DeliveryMark,
        outcome: Outcome,
        *,
        unheard: bool = False,
    ) -> None:
        """Report an outcome; where nobody confirms it, that is logged and the ack clock decides.

        ``unheard``: no handler was given the delivery, so that where it was the last, whoever listens is told.
        """
        decided = verdict(outcome, mark.deliveries, self._config)
        await self._act(subscription, message, mark, decided, unheard=unheard)

    async def bury(self, subscription: Subscription, message: Message, mark: DeliveryMark, reason: str) -> None:
        """Dead-letter a message that no delivery can help, whatever budget it has left."""
        await self._act(subscription, message, mark, Bury(reason))

    async def still_working(self, message: Message) -> None:
        """Start the ack clock of this delivery again; lost without harm when the link is down."""
        try:
            await self._wire.publish(message.reply, _WORKING)
        except Unavailable as error:
            _log.debug("ack_clock_not_extended", error=str(error))

    async def _act(
        self,
        subscription: Subscription,
        message: Message,
        mark: DeliveryMark,
        verdict: Verdict,
        *,
        unheard: bool = False,
    ) -> None:
        match verdict:
            case Acknowledge():
                await self._confirmed(message, mark, _ACK)
            case HandBack(delay_s=delay_s):
                await self._confirmed(message, mark, _nak(delay_s))
            case Bury(reason=reason):
                if await self._dead_letters.keep(subscription, message, mark, reason):
                    if unheard:
                        # Before the last word: if we end here, the broker tells the fleet of the message.
                        await self._tell_unheard(subscription, message, reason)
                    await self._confirmed(message, mark, _TERM)
                else:
                    await self._confirmed(message, mark, _nak(nak_backoff_s(self._config, mark.deliveries)))

    async def _tell_unheard(self, subscription: Subscription, message: Message, reason: str) -> None:
        try:
            event = decode(message.payload)
        except MalformedEvent:
            return
        await self._unheard.tell(UnheardLetter(subscription=subscription, event=event, reason=reason))

    async def _confirmed(self, message: Message, mark: DeliveryMark, word: bytes) -> None:
        why = ""
        # Each word may be said twice: the broker acts on the first and confirms both.
        for attempt in range(limits.SETTLE_ATTEMPTS_MAX):
            try:
                await self._wire.request(message.reply, word, timeout_s=limits.SETTLE_TIMEOUT_S)
            except Unavailable as error:
                why = str(error)
                await self._link.settled(attempt)
                if await self._forgotten(mark):
                    why = "the broker does not know of this delivery any more"
                    break
            else:
                return
        _log.warning("delivery_unconfirmed", word=word.decode(), subject=message.reply, why=why)

    async def _forgotten(self, mark: DeliveryMark) -> bool:
        """A killed broker may have lost its last deliveries: it does not answer for them, and makes them again."""
        try:
            info = await self._api.consumer_info(mark.stream, mark.consumer)
        except (Unavailable, ApiError):
            return False
        return info is None or info.delivered.consumer_seq < mark.consumer_seq


def _nak(delay_s: float) -> bytes:
    if delay_s <= 0:
        return _NAK
    return _NAK + b" " + msgspec.json.encode({"delay": ns(delay_s)})
