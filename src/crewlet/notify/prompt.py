"""What a source's notifications mean: with what they belong together, who is owed an answer, what of them is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from crewlet.base import limits
from crewlet.events.types import ExternalNotification

__all__ = ["Notice", "PlainPrompt", "Prompt", "is_cut", "notice_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notification as its source judges it, the same while it is routed and while it is merged.

    ``recipient`` is a seat's handle, or whatever the source knows it by before it is resolved. ``body`` is what was
    said outside; of a merged one, as much of it as the wake carries as its salient body.
    """

    recipient: str
    notification_type: str
    sender: str = ""
    body: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Prompt(Protocol):
    """One source's judgement. Every method is pure. Keys are the source's own; whoever uses them puts its name before.

    A partition key equals the conversation identity or is a finer cut of it: what is merged is one conversation.
    """

    def partition_key(self, notice: Notice) -> str:
        """What the notice may be merged with; empty where it stands alone."""
        ...

    def conversation_identity(self, notice: Notice) -> str:
        """The conversation that it belongs to for good; empty where it belongs to none."""
        ...

    def message_key(self, notice: Notice) -> str:
        """What the message is known by in its chat; empty where no thread could show it to a later turn."""
        ...

    def addressed(self, notice: Notice) -> bool:
        """Whether the recipient was spoken to, rather than told."""
        ...

    def reply(self, notice: Notice) -> str:
        """Who is owed an answer: ``none``, ``tool`` or ``engine``."""
        ...

    def requires_recon(self, notice: Notice) -> bool:
        """Whether it merely points at something that has to be looked up first."""
        ...

    def salient_body(self, notice: Notice) -> str:
        """What was said, without anything around it, of bounded length."""
        ...

    def told(self, notice: Notice) -> str:
        """What the seat is told, in full, with all that the source adds."""
        ...

    def digest_body(self, notice: Notice) -> str:
        """What an earlier message of a merged batch still has to say, given that the newest is told in full."""
        ...


class PlainPrompt:
    """A source that says nothing of its own: what it brings stands alone, and addresses nobody. Also a base."""

    def partition_key(self, notice: Notice) -> str:
        """Alone."""
        return ""

    def conversation_identity(self, notice: Notice) -> str:
        """None."""
        return ""

    def message_key(self, notice: Notice) -> str:
        """None."""
        return ""

    def addressed(self, notice: Notice) -> bool:
        """Nobody is."""
        return False

    def reply(self, notice: Notice) -> str:
        """Whoever addresses a seat is owed an answer where the message came from."""
        return "tool" if self.addressed(notice) else "none"

    def requires_recon(self, notice: Notice) -> bool:
        """It says all there is to say."""
        return False

    def salient_body(self, notice: Notice) -> str:
        """The beginning of what was said."""
        return notice.body[: limits.SALIENT_BODY_MAX_CHARS]

    def told(self, notice: Notice) -> str:
        """What was said."""
        return notice.body

    def digest_body(self, notice: Notice) -> str:
        """What was said: nothing of a later message takes its place."""
        return notice.body


def is_cut(salient_body: str) -> bool:
    """Whether a salient body may be a beginning only."""
    return len(salient_body) >= limits.SALIENT_BODY_MAX_CHARS


def notice_of(body: ExternalNotification) -> Notice:
    """The notice that a wake was made from."""
    return Notice(
        recipient=body.agent_handle,
        notification_type=body.notification_type,
        sender=body.sender,
        body=body.salient_body or body.body[: limits.SALIENT_BODY_MAX_CHARS],
        metadata=body.metadata,
    )
