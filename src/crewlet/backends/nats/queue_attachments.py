"""The attachments of one process: which mailboxes it works, held by what, let go how."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from crewlet.backends.nats.consumer_mailboxes import Mailboxes
from crewlet.backends.nats.queue_attachment import QUIESCED, Attachment
from crewlet.queue import Subscription

__all__ = ["Attachments"]

_RELEASING: Final = " releasing"

MakeAttachment = Callable[[Collection[str]], Awaitable[Attachment]]
"""Makes an attachment that begins under the named holds; not started."""


class _Attaching:
    """The place of an attachment that is being made."""


class Attachments:
    """The verbs of the contract that act on this process's attachments."""

    def __init__(self, mailboxes: Mailboxes) -> None:
        self._mailboxes = mailboxes
        self._attached: dict[Subscription, Attachment | _Attaching] = {}
        self._early_holds: dict[Subscription, set[str]] = {}

    def __contains__(self, subscription: Subscription) -> bool:
        return subscription in self._attached

    def started(self) -> list[Attachment]:
        """Those that work now."""
        return [attachment for attachment in self._attached.values() if isinstance(attachment, Attachment)]

    async def attach(self, subscription: Subscription, make: MakeAttachment) -> None:
        """Attach and start; a no-op where a detach came meanwhile. Raises ``ValueError`` if attached already."""
        if subscription in self._attached:
            raise ValueError(f"{subscription.topic} ({subscription.group}) is attached here already")
        place = self._attached[subscription] = _Attaching()
        try:
            attachment = await make(self._early_holds.setdefault(subscription, set()))
        except BaseException:
            if self._attached.get(subscription) is place:
                del self._attached[subscription]
                self._forget_no_holds(subscription)
            raise
        if self._attached.get(subscription) is place:
            # Else it was detached again before it had begun.
            self._attached[subscription] = attachment
            self._early_holds.pop(subscription, None)
            attachment.start()

    def forget(self, attachment: Attachment) -> None:
        """Its mailbox was deleted under it."""
        if self._attached.get(attachment.subscription) is attachment:
            del self._attached[attachment.subscription]

    async def hold(self, subscription: Subscription, name: str) -> None:
        """Fetch nothing while this stands; see ``EventQueue``."""
        if attachment := self._started(subscription):
            await attachment.hold(name)
        else:
            self._early_holds.setdefault(subscription, set()).add(name)

    async def lift(self, subscription: Subscription, name: str) -> None:
        """End one hold; see ``EventQueue``."""
        if attachment := self._started(subscription):
            attachment.lift(name)
        elif early := self._early_holds.get(subscription):
            early.discard(name)
            self._forget_no_holds(subscription)

    async def quiesce(self, subscription: Subscription) -> None:
        """Stop fetching; see ``EventQueue``."""
        if subscription in self._attached:
            await self.hold(subscription, QUIESCED)

    async def unquiesce(self, subscription: Subscription) -> None:
        """Fetch again; see ``EventQueue``."""
        await self.lift(subscription, QUIESCED)

    async def wait_idle(self, subscription: Subscription) -> None:
        """Wait for the handler and the report of its outcome; see ``EventQueue``. Not from inside that handler."""
        if attachment := self._started(subscription):
            await attachment.wait_idle()

    async def detach(self, subscription: Subscription) -> None:
        """Close the attachment and drop its holds; see ``EventQueue``."""
        self._early_holds.pop(subscription, None)
        attachment = self._attached.pop(subscription, None)
        if isinstance(attachment, Attachment):
            await attachment.detach()

    async def release_held(self, subscription: Subscription) -> None:
        """Give back a dead holder's deliveries; an attachment of ours stops fetching and finishes its work first."""
        attachment = self._started(subscription)
        if attachment is None:
            await self._mailboxes.release_held(subscription)
            return
        # One at a time: the end of one release must not let work begin in the middle of another.
        async with attachment.releasing:
            await attachment.hold(_RELEASING)
            try:
                await attachment.wait_idle()
                await self._mailboxes.release_held(subscription)
            finally:
                attachment.lift(_RELEASING)

    async def close(self) -> None:
        """Detach everything."""
        await asyncio.gather(*(self.detach(subscription) for subscription in [*self._attached]))

    def _started(self, subscription: Subscription) -> Attachment | None:
        attachment = self._attached.get(subscription)
        return attachment if isinstance(attachment, Attachment) else None

    def _forget_no_holds(self, subscription: Subscription) -> None:
        # One that is being attached reads its set when it begins.
        if subscription not in self._attached and not self._early_holds.get(subscription):
            self._early_holds.pop(subscription, None)
