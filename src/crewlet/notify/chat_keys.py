"""How a chat's messages belong together: what may be merged, and which conversation it is. The same for every chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ChatPlace", "chat_identity", "chat_partition"]

_DIRECT: Final = frozenset({"im", "mpim"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatPlace:
    """Where a message stands: its channel, its own time stamp, its thread's root where it is in one.

    ``channel_type`` is empty where the chat did not say it.
    """

    channel: str
    ts: str
    thread: str = ""
    channel_type: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether it was said to few people alone: a direct message, or a group's."""
        return self.channel_type in _DIRECT if self.channel_type else self.channel.startswith("D")

    @property
    def root(self) -> str:
        """The root of its thread: itself, where it stands at the top."""
        return self.thread or self.ts


def chat_partition(place: ChatPlace) -> str:
    """The channel for what is said at the top of a direct conversation, else the thread (E-068).

    Four direct messages typed in a row are one ask. A direct thread keeps its own key, so that no merged trigger
    answers into the wrong thread; in a shared channel two asks at the top have nothing to do with each other.
    """
    if place.is_direct and place.root == place.ts:
        return place.channel
    return f"{place.channel}:{place.root}"


def chat_identity(place: ChatPlace) -> str:
    """A direct conversation is one however it is threaded; elsewhere the thread is the conversation (E-070)."""
    return place.channel if place.is_direct else chat_partition(place)
