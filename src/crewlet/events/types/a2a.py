"""One agent asking another: the record of it, and the two wakes that carry it."""

from __future__ import annotations

from typing import ClassVar

from crewlet.events.body import Body, register

__all__ = ["A2aChannelClosed", "A2aChannelOpened", "A2aMessage", "A2aMessageSent", "A2aRequest"]


@register
class A2aRequest(Body, frozen=True, kw_only=True, omit_defaults=True):
    """The wake on the target's inbox: a colleague asks. Not stored; the channel's events are."""

    event_type: ClassVar[str] = "a2a_request"
    channel_id: str
    requester: str
    target: str
    brief: str

    def summary(self) -> str:
        """Who asks whom what."""
        return f"{self.requester} asks {self.target}: {self.brief[:120]}"

    def actor(self) -> str:
        """Who asks."""
        return self.requester


@register
class A2aMessage(Body, frozen=True, kw_only=True, omit_defaults=True):
    """The wake on the asker's inbox: the colleague answered. Not stored; the channel's events are.

    ``task``, ``answers_channel`` and ``reply`` come from the turn that asked, so that the woken one can finish it.
    """

    event_type: ClassVar[str] = "a2a_message"
    channel_id: str
    requester: str
    responder: str
    brief: str
    content: str
    failed: bool = False
    task: str = ""
    answers_channel: str = ""
    reply: str = "none"

    def summary(self) -> str:
        """Who answered whom."""
        return f"{self.responder} answered {self.requester}: {self.content[:120]}"

    def actor(self) -> str:
        """Who answered."""
        return self.responder


@register
class A2aChannelOpened(Body, frozen=True, kw_only=True, omit_defaults=True):
    """An ask began."""

    event_type: ClassVar[str] = "a2a_channel_opened"
    channel_id: str
    requester: str
    target: str
    participants: tuple[str, ...] = ()
    turn_id: str = ""
    work_key: str = ""

    def summary(self) -> str:
        """Who opened a channel to whom."""
        return f"{self.requester} opened a channel to {self.target}"

    def actor(self) -> str:
        """Who asks."""
        return self.requester


@register
class A2aMessageSent(Body, frozen=True, kw_only=True, omit_defaults=True):
    """The ask, or its answer, as it was sent."""

    event_type: ClassVar[str] = "a2a_message_sent"
    channel_id: str
    sender: str
    recipient: str
    content: str
    turn_id: str = ""
    work_key: str = ""

    def summary(self) -> str:
        """Who wrote what to whom."""
        return f"{self.sender} to {self.recipient}: {self.content[:120]}"

    def actor(self) -> str:
        """The sender."""
        return self.sender


@register
class A2aChannelClosed(Body, frozen=True, kw_only=True, omit_defaults=True):
    """An ask ended. ``closed_by``, ``turn_id`` and ``work_key`` are empty when nobody's turn closed it."""

    event_type: ClassVar[str] = "a2a_channel_closed"
    channel_id: str
    participants: tuple[str, ...] = ()
    message_count: int = 0
    duration_ms: int = 0
    closed_by: str = ""
    turn_id: str = ""
    work_key: str = ""

    def summary(self) -> str:
        """Who closed it."""
        return f"{self.closed_by or 'the system'} closed the channel of {' and '.join(self.participants)}"

    def actor(self) -> str:
        """Who closed it."""
        return self.closed_by
