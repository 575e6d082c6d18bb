"""Two sources that no vendor stands behind: a board of issues and a chat with threads, driven by what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.events.types import RawWebhook
from crewlet.notify import (
    ChatPlace,
    Notice,
    PayloadRefused,
    PlainPrompt,
    Prompt,
    ThreadPost,
    ThreadReader,
    chat_identity,
    chat_partition,
)

__all__ = ["BOARD", "CHAT", "PlayedBoard", "PlayedChat", "PlayedThreads", "board_change", "chat_message"]

BOARD = "board"
CHAT = "chat"
_UPDATED = "issue_updated"


def board_change(issue: str, kind: str, *, to: str, by: str, text: str) -> RawWebhook:
    """A change of an issue: ``issue_updated`` with its whole description, ``comment``, or ``assigned``."""
    return RawWebhook(integration=BOARD, recipient=to, sender=by, body=text, metadata={"issue": issue, "kind": kind})


def chat_message(
    channel: str, ts: str, *, to: str, by: str, text: str, thread: str = "", channel_type: str = ""
) -> RawWebhook:
    """A message in a channel, or in a thread of it."""
    place = {"channel": channel, "ts": ts, "thread": thread, "channel_type": channel_type}
    return RawWebhook(integration=CHAT, recipient=to, sender=by, body=text, metadata=place)


class _BoardPrompt(PlainPrompt):
    """An update brings the whole description anew: of an earlier one, only that it happened is still worth telling."""

    def partition_key(self, notice: Notice) -> str:
        return str(notice.metadata["issue"])

    def conversation_identity(self, notice: Notice) -> str:
        return str(notice.metadata["issue"])

    def addressed(self, notice: Notice) -> bool:
        return notice.notification_type == "assigned"

    def requires_recon(self, notice: Notice) -> bool:
        return notice.notification_type == _UPDATED

    def told(self, notice: Notice) -> str:
        issue = notice.metadata["issue"]
        return f"{notice.sender}, {notice.notification_type} of {issue}:\n{notice.body}\n\n## Get Full Context\n{issue}"

    def digest_body(self, notice: Notice) -> str:
        if notice.notification_type == _UPDATED:
            return f"updated {notice.metadata['issue']}"
        return notice.body


class PlayedBoard:
    """A tracker: an issue is a conversation, and what may be merged."""

    name = BOARD
    prompt: Prompt = _BoardPrompt()
    threads: ThreadReader | None = None

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Notice, ...]:
        """One copy for the seat that it names. Raises ``PayloadRefused``."""
        return _copy_of(raw, str(raw.metadata.get("kind", "")), needs="issue")


class _ChatPrompt(PlainPrompt):
    def partition_key(self, notice: Notice) -> str:
        return chat_partition(_place(notice))

    def conversation_identity(self, notice: Notice) -> str:
        return chat_identity(_place(notice))

    def message_key(self, notice: Notice) -> str:
        place = _place(notice)
        return f"{place.channel}:{place.ts}"

    def addressed(self, notice: Notice) -> bool:
        return _place(notice).is_direct


class PlayedThreads:
    """What is said in the threads of the chat, as every seat sees it; ``is_away`` while nobody can read them."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], list[ThreadPost]] = {}
        self.is_away = False

    def say(self, channel: str, root: str, ts: str, *, by: str, text: str) -> None:
        """Add a message to a thread; ``by`` a seat's handle where it is that seat's own."""
        post = ThreadPost(key=f"{channel}:{ts}", sender=by, text=text)
        self._said.setdefault((channel, root), []).append(post)

    async def read(self, handle: str, notice: Notice) -> Sequence[ThreadPost] | None:
        """As said so far. Raises ``Unavailable`` while it is away."""
        await asyncio.sleep(0)
        if self.is_away:
            raise Unavailable("the chat does not answer")
        place = _place(notice)
        if not place.thread:
            return None
        said = self._said.get((place.channel, place.thread), [])
        return [
            ThreadPost(key=post.key, sender=post.sender, text=post.text, is_own=post.sender == handle) for post in said
        ]


class PlayedChat:
    """A chat: channels, threads, direct messages."""

    name = CHAT
    prompt: Prompt = _ChatPrompt()

    def __init__(self) -> None:
        self.threads = PlayedThreads()

    def parse(self, raw: RawWebhook, event: Event) -> tuple[Notice, ...]:
        """One copy for the seat that it names. Raises ``PayloadRefused``."""
        return _copy_of(raw, "message", needs="channel")


def _copy_of(raw: RawWebhook, kind: str, *, needs: str) -> tuple[Notice, ...]:
    if not raw.metadata.get(needs):
        message = f"the payload names no {needs}"
        raise PayloadRefused(message)
    return (
        Notice(
            recipient=raw.recipient, notification_type=kind, sender=raw.sender, body=raw.body, metadata=raw.metadata
        ),
    )


def _place(notice: Notice) -> ChatPlace:
    said = {name: str(notice.metadata.get(name, "")) for name in ("channel", "ts", "thread", "channel_type")}
    return ChatPlace(**said)
