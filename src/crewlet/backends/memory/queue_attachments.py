"""The attachments of one client of the twin: which mailboxes it works, held by what, let go how."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from crewlet.backends.memory.queue_attachment import QUIESCED, Attachment
from crewlet.queue import Subscription

__all__ = ["Attachments"]

MakeAttachment = Callable[[Collection[object]], Awaitable[Attachment]]
"""Makes an attachment that begins under the stops it is given; not started."""


class _Attaching:
    """The place of an attachment that is being made."""


class Attachments:
    """The verbs of the contract that act on one client's attachments; each acts before it returns, and needs no line.

    Stops are kept here while nothing is attached, and by the attachment afterwards.
    """

    def __init__(self) -> None:
        self._attached: dict[Subscription, Attachment | _Attaching] = {}
        self._early_stops: dict[Subscription, set[object]] = {}

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._attached

    def started(self) -> list[Attachment]:
        """Those that work now."""
        return [attachment for attachment in self._attached.values() if isinstance(attachment, Attachment)]

    def get(self, subscription: Subscription) -> Attachment | None:
        """The one that works this mailbox, or ``None``."""
        attachment = self._attached.get(subscription)
        return attachment if isinstance(attachment, Attachment) else None

    async def attach(self, subscription: Subscription, make: MakeAttachment) -> None:
        """Attach and start; a no-op where a detach came meanwhile. Raises ``ValueError`` if attached already."""
        if subscription in self._attached:
            raise ValueError(f"{subscription.topic} ({subscription.group}) is attached here already")
        place = self._attached[subscription] = _Attaching()
        try:
            attachment = await make(self._early_stops.setdefault(subscription, set()))
        except BaseException:
            if self._attached.get(subscription) is place:
                del self._attached[subscription]
                self._forget_no_stops(subscription)
            raise
        if self._attached.get(subscription) is place:
            self._early_stops.pop(subscription, None)
            self._attached[subscription] = attachment
            attachment.start()

    def stop(self, subscription: Subscription, why: object) -> None:
        """Take no mail for this reason, from now on or from the attach on."""
        if attachment := self.get(subscription):
            attachment.stop(why)
        else:
            self._early_stops.setdefault(subscription, set()).add(why)

    def go_on(self, subscription: Subscription, why: object) -> None:
        """This reason stands no more."""
        if attachment := self.get(subscription):
            attachment.go_on(why)
        elif early := self._early_stops.get(subscription):
            early.discard(why)
            self._forget_no_stops(subscription)

    def quiesce(self, subscription: Subscription) -> None:
        """Take no mail; a no-op where nothing is attached."""
        if subscription in self._attached:
            self.stop(subscription, QUIESCED)

    async def detach(self, subscription: Subscription) -> None:
        """Close the attachment and drop its holds."""
        self._early_stops.pop(subscription, None)
        attachment = self._attached.pop(subscription, None)
        if isinstance(attachment, Attachment):
            await attachment.detach()

    async def close(self) -> None:
        """Detach everything."""
        await asyncio.gather(*(self.detach(subscription) for subscription in [*self._attached]))

    def forget(self, attachment: Attachment) -> None:
        """Its mailbox was deleted under it."""
        if self._attached.get(attachment.subscription) is attachment:
            del self._attached[attachment.subscription]

    def crash(self) -> None:
        """All of them end, and nothing is handed back."""
        crashed = self.started()
        self._attached.clear()
        self._early_stops.clear()
        for attachment in crashed:
            attachment.crash()

    def _forget_no_stops(self, subscription: Subscription) -> None:
        # One that is being attached reads its set when it begins.
        if subscription not in self._attached and not self._early_stops.get(subscription):
            self._early_stops.pop(subscription, None)
