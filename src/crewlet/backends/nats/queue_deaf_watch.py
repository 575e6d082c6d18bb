"""Finds attachments that believe they wait for mail while the broker knows of no request of theirs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from crewlet.backends.nats.consumer_mailboxes import Mailboxes
from crewlet.backends.nats.jetstream_types import ConsumerInfo
from crewlet.backends.nats.pull_requests import PullTiming
from crewlet.backends.nats.queue_attachment import Attachment
from crewlet.base.errors import CrewletError

__all__ = ["DeafWatch"]

_log = structlog.get_logger(__name__)


class DeafWatch:
    """Looks at each attachment that has asked for long and got nothing, and attaches it anew where it is deaf.

    After a change of leaders a consumer may look healthy, have mail and know of nobody who waits for it.
    """

    def __init__(self, attached: Callable[[], list[Attachment]], mailboxes: Mailboxes, timing: PullTiming) -> None:
        self._attached = attached
        self._mailboxes = mailboxes
        self._timing = timing

    async def run(self) -> None:
        """Look every so often, at one after another: a thousand waiting mailboxes must cost next to nothing."""
        while True:
            await asyncio.sleep(self._timing.deaf_check_s)
            for attachment in self._attached():
                await self._look_at(attachment)

    async def _look_at(self, attachment: Attachment) -> None:
        try:
            since = attachment.asking_since
            if since is None or self._now() - since < self._timing.deaf_check_s:
                return
            if not _is_deaf(await self._mailboxes.info(attachment.subscription)):
                return
            # One request may have run out at this very moment and the next be on its way.
            await asyncio.sleep(self._timing.deaf_confirm_s)
            info = await self._mailboxes.info(attachment.subscription)
            if info is None or not _is_deaf(info) or attachment.asking_since != since:
                return
            _log.error(
                "attachment_deaf",
                topic=attachment.subscription.topic,
                pending=info.num_pending,
                held=info.num_ack_pending,
                asking_for_s=round(self._now() - since, 1),
            )
            attachment.ask_anew()
        except CrewletError as error:
            _log.debug("attachment_unseen", topic=attachment.subscription.topic, error=str(error))

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def _is_deaf(info: ConsumerInfo | None) -> bool:
    return info is not None and info.num_waiting == 0 and info.num_pending + info.num_ack_pending > 0
