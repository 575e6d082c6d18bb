"""One durable mailbox of the twin's broker: the order of its mail, who holds what, and the ack clock."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection, Iterable
from itertools import chain
from typing import Final, Protocol

from crewlet.backends.memory.queue_mail import Held, Holder, Mail, StoredMessage
from crewlet.backends.memory.queue_stream import MemoryStream
from crewlet.base import limits
from crewlet.queue import QueueConfig, Subscription

__all__ = ["MemoryMailbox", "ack_clock_end_s"]


class Bury(Protocol):
    """Keeps a letter; false where there is no room. ``unheard``: no handler speaks for the last delivery."""

    def __call__(
        self, subscription: Subscription, mail: Mail, reason: str, *, unheard: bool, holder_lost: bool
    ) -> bool:
        """Keep it."""
        ...


_EXTENSIONS_PER_ACK_WAIT: Final = 3


def ack_clock_end_s(since_s: float, now_s: float, ack_wait_s: float) -> float:
    """When the clock of a delivery runs out whose holder stopped to extend it at ``now_s``.

    A holder at work starts the clock again every third of it, so between two thirds and the whole of it is left.
    """
    every_s = ack_wait_s / _EXTENSIONS_PER_ACK_WAIT
    return since_s + math.floor((now_s - since_s) / every_s) * every_s + ack_wait_s


class MemoryMailbox:
    """The mail of one topic for one group.

    What was handed back or released is served first, in the order in which it came back; then what was never
    delivered, and among it, at the place where it failed, what a handler could not work (E-034 to E-036). A holder
    that can be reached is taken to be at work, so no clock runs for what it holds; one that let go, died or was cut
    off loses it when the clock runs out. Holders that wait for mail are woken one at a time, the longest waiting
    first.
    """

    def __init__(
        self,
        subscription: Subscription,
        stream: MemoryStream,
        config: QueueConfig,
        *,
        bury: Bury,
    ) -> None:
        self.subscription = subscription
        self.config = config
        self.deleted = False
        self._stream = stream
        self._bury = bury
        self._returned: deque[Mail] = deque()
        self._waiting: deque[Mail] = deque()
        self._held: dict[int, Held] = {}
        self._clocks: dict[int, asyncio.TimerHandle] = {}
        self._holders: dict[Holder, None] = {}
        self._askers: dict[Holder, None] = {}
        # Deliver-all: what the stream keeps for others is this mailbox's too.
        for message in stream.of_topic(subscription.topic):
            stream.owe(message)
            self._waiting.append(Mail(message))

    @property
    def _ack_wait_s(self) -> float:
        return self.config.ack_wait_of(self.subscription)

    @property
    def asker_count(self) -> int:
        """How many holders are waiting for mail."""
        return len(self._askers)

    @property
    def waiting(self) -> list[Mail]:
        """What nobody holds, in the order in which it will be served."""
        self._stream.drop_aged()
        return [mail for mail in chain(self._returned, self._waiting) if mail.message in self._stream]

    @property
    def held(self) -> list[Mail]:
        """What somebody holds, by sequence."""
        holdings = sorted(self._held.values(), key=_sequence)
        return [Mail(held.mail.message, held.mail.deliveries, held.holder.node) for held in holdings]

    def has_mail(self) -> bool:
        """Whether a holder could take something now."""
        self._drop_aged()
        return bool(self._returned or self._waiting) and len(self._held) < limits.ACK_PENDING_MAX

    def put(self, message: StoredMessage) -> None:
        """A new message, behind everything."""
        self._waiting.append(Mail(message))
        self._wake_next()

    def attach(self, holder: Holder) -> None:
        """``holder`` may take mail from now on, and is told of the mailbox's deletion."""
        self._holders[holder] = None

    def ask(self, holder: Holder) -> None:
        """Wake ``holder`` once there is mail for it."""
        self._askers[holder] = None

    def ask_no_more(self, holder: Holder) -> None:
        """``holder`` takes nothing for now; what it may have been woken for is the next one's."""
        self._askers.pop(holder, None)
        self._wake_next()

    def take(self, holder: Holder, count: int) -> list[Held]:
        """Up to ``count`` messages, in order, each with one delivery more and held by ``holder`` from now on.

        Fewer where they would be more than ``limits.DRAIN_MAX_BYTES``, but for the first.
        """
        taken: list[Held] = []
        now_s = asyncio.get_running_loop().time()
        room_bytes = limits.DRAIN_MAX_BYTES
        while len(taken) < count and self.has_mail():
            line = self._returned or self._waiting
            room_bytes -= len(line[0].message.payload)
            if taken and room_bytes < 0:
                break
            mail = line.popleft()
            held = Held(Mail(mail.message, mail.deliveries + 1), holder, now_s)
            self._held[mail.message.sequence] = held
            taken.append(held)
        self._wake_next()
        return taken

    def acknowledge(self, held: Held) -> None:
        """Done with, also where its clock ran out meanwhile: the broker takes a late word as well as one in time."""
        message = held.mail.message
        if self._held.pop(message.sequence, None) is None:
            back = self._find(message.sequence)
            if back is None:
                return
        self._forget(message)

    def hand_back(self, held: Held) -> None:
        """At the head, behind what was handed back before it; nothing where it is no longer the holder's."""
        if self._let_go(held):
            self._returned.append(held.mail)
            self._wake_next()

    def put_behind(self, held: Held) -> None:
        """Behind all that is waiting now; nothing where it is no longer the holder's."""
        if self._let_go(held):
            self._waiting.append(held.mail)
            self._wake_next()

    def bury(self, held: Held, reason: str, *, unheard: bool = False, holder_lost: bool = False) -> None:
        """Among the dead letters, and gone from here; nothing where it is no longer the holder's.

        ``unheard`` and ``holder_lost`` are for whoever listens to such letters. Where the dead letters take no more it
        stays held by nobody, and is tried again when its clock runs out.
        """
        sequence = held.mail.message.sequence
        if self._held.get(sequence) is not held:
            return
        self._stop_clock(held)
        if self._bury(self.subscription, held.mail, reason, unheard=unheard, holder_lost=holder_lost):
            del self._held[sequence]
            self._forget(held.mail.message)
        else:
            loop = asyncio.get_running_loop()
            self._clocks[sequence] = loop.call_later(self._ack_wait_s, self._run_out, held)

    def leave(self, holder: Holder) -> None:
        """``holder`` is no longer attached; the clocks of what it still holds run."""
        self._holders.pop(holder, None)
        self.lose(holder)

    def lose(self, holder: Holder) -> None:
        """``holder`` cannot be reached: it asks for nothing, and nobody extends the clocks of what it holds."""
        self.ask_no_more(holder)
        loop = asyncio.get_running_loop()
        for sequence, held in self._held.items():
            if held.holder is holder and sequence not in self._clocks:
                end_s = ack_clock_end_s(held.since_s, loop.time(), self._ack_wait_s)
                self._clocks[sequence] = loop.call_at(end_s, self._run_out, held)

    def find(self, in_hand: Iterable[Held]) -> None:
        """A holder can be reached again and goes on to extend the clocks of what it has in hand."""
        for held in in_hand:
            if self._held.get(held.mail.message.sequence) is held:
                self._stop_clock(held)

    def release_held(self) -> None:
        """Give back at once, in the order of the stream, whatever anybody holds."""
        self._give_back(sorted(self._held.values(), key=_sequence))

    def delete(self) -> None:
        """Drop the mail and tell those who are attached."""
        self.deleted = True
        for timer in self._clocks.values():
            timer.cancel()
        mails = [*self._returned, *self._waiting, *(held.mail for held in self._held.values())]
        for store in (self._returned, self._waiting, self._held, self._clocks, self._askers):
            store.clear()
        for mail in mails:
            self._stream.settled(mail.message)
        for holder in [*self._holders]:
            holder.mailbox_deleted()
        self._holders.clear()

    def _run_out(self, held: Held) -> None:
        self._give_back([held])

    def _give_back(self, holdings: Collection[Held]) -> None:
        for held in holdings:
            deliveries, most = held.mail.deliveries, self.config.max_deliver
            if deliveries >= most:
                # The broker would keep it for nobody: whoever watches its advisories buries it.
                self.bury(held, f"never settled on delivery {deliveries} of {most}", unheard=True, holder_lost=True)
            else:
                self.hand_back(held)

    def _let_go(self, held: Held) -> bool:
        sequence = held.mail.message.sequence
        if self._held.get(sequence) is not held:
            return False
        del self._held[sequence]
        self._stop_clock(held)
        return True

    def _forget(self, message: StoredMessage) -> None:
        timer = self._clocks.pop(message.sequence, None)
        if timer is not None:
            timer.cancel()
        self._stream.settled(message)
        self._wake_next()

    def _stop_clock(self, held: Held) -> None:
        timer = self._clocks.pop(held.mail.message.sequence, None)
        if timer is not None:
            timer.cancel()

    def _find(self, sequence: int) -> Mail | None:
        for line in (self._returned, self._waiting):
            for mail in line:
                if mail.message.sequence == sequence:
                    line.remove(mail)
                    return mail
        return None

    def _drop_aged(self) -> None:
        if self._stream.kept.age_s is None:
            return
        self._stream.drop_aged()
        for line in (self._returned, self._waiting):
            while line and line[0].message not in self._stream:
                line.popleft()

    def _wake_next(self) -> None:
        if self._askers and self.has_mail():
            holder = next(iter(self._askers))
            del self._askers[holder]
            holder.wake()


def _sequence(held: Held) -> int:
    return held.mail.message.sequence
