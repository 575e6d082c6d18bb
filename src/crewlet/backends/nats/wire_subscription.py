"""A subscription that outlives links: a subject, who is told, and the link that carries it now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
from nats import errors as nats_errors

from crewlet.backends.nats.frames import check_pattern
from crewlet.backends.nats.link import Interest, Link, translated
from crewlet.backends.nats.wire import Message
from crewlet.base.errors import Unavailable

__all__ = ["WireSubscription"]

_log = structlog.get_logger(__name__)


class WireSubscription:
    """One entry of a connection's table. Raises ``ValueError`` for what is no subject."""

    def __init__(self, subject: str, on_message: Callable[[Message], None]) -> None:
        # Known before any link is asked to carry it: one that cannot be carried would keep every link from standing.
        check_pattern(subject)
        self.link: Link | None = None
        self._subject = subject
        self._on_message = on_message
        self._interest: Interest | None = None

    def attach(self, link: Link) -> None:
        """Carry it on this link from now on."""
        self.link = link
        try:
            self._interest = link.subscribe(self._subject, self._on_message)
        except (nats_errors.Error, OSError) as error:
            # A link that fails here is on its way out; the next one takes the whole table again.
            _log.debug("subscribe_failed", subject=self._subject, error=repr(translated(error, self._subject)))

    async def detach(self, drained: Callable[[], Awaitable[None]]) -> None:
        """End the interest; ``drained`` is awaited before nothing more is handed over."""
        interest, self._interest = self._interest, None
        if interest is None or self.link is None or not self.link.connected:
            return
        try:
            interest.withdraw()
            await drained()
        except (nats_errors.Error, OSError, Unavailable) as error:
            _log.debug("unsubscribe_failed", subject=self._subject, error=repr(error))
        finally:
            interest.forget()
