"""A chat thread as a turn is shown it, and which of its messages that turn thereby answers (S1). Pure but the port."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from crewlet.notify.prompt import Notice

__all__ = ["ThreadBlock", "ThreadPost", "ThreadReader", "thread_block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadPost:
    """One message of a thread: ``key`` as the source's prompt spells it, ``is_own`` for the reading seat's own."""

    key: str
    sender: str
    text: str
    is_own: bool = False


class ThreadReader(Protocol):
    """Reads threads of one source."""

    async def read(self, handle: str, notice: Notice) -> Sequence[ThreadPost] | None:
        """The thread that the notice is in, as the seat sees it, oldest first; ``None`` where it is in none.

        Raises ``Unavailable``.
        """
        ...


@dataclass(frozen=True, slots=True)
class ThreadBlock:
    """What a turn is shown of a thread, and the keys of the messages in it that wait for an answer beside its own."""

    text: str
    waiting: tuple[str, ...] = ()


def thread_block(posts: Sequence[ThreadPost], *, woken_by: Collection[str], max_bytes: int) -> ThreadBlock:
    """The root and the newest posts that fit into ``max_bytes``, and which of these wait.

    Waiting is what others said after the seat's own last word and before the message that woke it. What the bound
    dropped was not shown, so it is not answered by this turn (S-115).
    """
    shown = _shown([_line(post) for post in posts], max_bytes)
    lines: list[str] = []
    for index, post in enumerate(posts):
        if index in shown:
            lines.append(_line(post))
        elif index - 1 in shown:
            lines.append("(some messages are left out here)")
    return ThreadBlock("\n".join(lines), _waiting(posts, shown, woken_by))


def _shown(lines: Sequence[str], max_bytes: int) -> frozenset[int]:
    """Which lines fit: the first, then from the last backwards until one does not."""
    room, shown = max_bytes, set[int]()
    for index in [0, *range(len(lines) - 1, 0, -1)][: len(lines)]:
        room -= len(lines[index].encode()) + 1
        if room < 0:
            break
        shown.add(index)
    return frozenset(shown)


def _waiting(posts: Sequence[ThreadPost], shown: Collection[int], woken_by: Collection[str]) -> tuple[str, ...]:
    woke = [index for index, post in enumerate(posts) if post.key in woken_by]
    if not woke:
        return ()  # Where the waking message is not in what was read, nothing can be told to be before it.
    after = max((index for index, post in enumerate(posts) if post.is_own), default=-1)
    between = range(after + 1, max(woke))
    return tuple(posts[index].key for index in between if index in shown and posts[index].key not in woken_by)


def _line(post: ThreadPost) -> str:
    said = post.text.replace("\n", "\n  ")
    return f"{'you' if post.is_own else post.sender}: {said}"
