"""A message that failed, and a newer one of its thread, whose turn sees both and answers both."""

from __future__ import annotations

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from crewlet.backends.memory.records import MemoryBucket
from crewlet.coordination import LEDGER
from crewlet.events import Event
from crewlet.inbox import Decision
from crewlet.notify import Sources, ThreadPost, thread_block
from crewlet.queue import Ack
from crewlet.testing import VirtualClock
from crewlet.testing.played_sources import PlayedChat, chat_message
from tests.unit.inbox.inbox_kit import BROKE, DONE, Node
from tests.unit.inbox.wakes import wake

pytestmark = pytest.mark.virtual_time


class Chat:
    """A channel with one thread, and the ceo's node that is woken by its messages."""

    def __init__(self) -> None:
        self.chat = PlayedChat()
        self.sources = Sources([self.chat])
        self.bucket = MemoryBucket(LEDGER, VirtualClock())
        self.node = self.holder()
        self._ts = 0

    def holder(self) -> Node:
        """A node that holds the seat; the ledger is the fleet's."""
        return Node(self.bucket, sources=self.sources)

    async def says(self, text: str, *, by: str = "ann", thread: str = "100") -> Event:
        """Somebody writes in the thread; the wake that this becomes."""
        self._ts += 1
        ts = str(100 + self._ts)
        self.chat.threads.say("C9", "100", ts, by=by, text=text)
        raw = chat_message("C9", ts, to="ceo", by=by, text=text, thread=thread)
        return await wake(raw, f"event {ts}", at_s=self._ts, sources=self.sources)


@pytest.fixture
async def chat() -> Chat:
    return Chat()


@pytest.mark.spec("E-063", "S-115")
async def test_a_failed_message_that_a_later_turn_was_shown_is_dropped_when_it_comes_round(chat: Chat) -> None:
    """On whichever node it comes round: the ledger is the fleet's."""
    failed = await chat.says("What about Tuesday?")
    chat.node.does = BROKE
    await chat.node.gets_all(failed)
    newer = await chat.says("Or Wednesday?", by="bob")
    chat.node.does = DONE
    await chat.node.gets_all(newer)
    successor = chat.holder()

    outcome = await successor.gets_all(failed)

    assert outcome == Ack()
    assert successor.steps == []
    assert [skip.reason for skip in successor.skips] == ["a later turn answered it in its thread"]
    thread = chat.node.triggers[-1].thread
    assert thread is not None
    assert "ann: What about Tuesday?" in thread.text


@pytest.mark.spec("E-063", "S-115")
@pytest.mark.parametrize(
    "end", [BROKE, replace(DONE, decision=Decision.FAILED), replace(DONE, decision=Decision.STOPPED)]
)
async def test_a_turn_that_came_to_no_answer_leaves_what_it_was_shown_waiting(chat: Chat, end: object) -> None:
    failed, newer = await chat.says("What about Tuesday?"), await chat.says("Or Wednesday?", by="bob")
    chat.node.does = end  # pyright: ignore[reportAttributeAccessIssue]
    await chat.node.gets_all(newer)
    chat.node.does = DONE

    await chat.node.gets_all(failed)

    assert [each.id for each in chat.node.triggers[-1].events] == [failed.id]


@pytest.mark.spec("E-063")
async def test_a_message_that_no_later_turn_was_shown_still_gets_its_turn(chat: Chat) -> None:
    """At the top of the channel there is no thread to show it in."""
    failed, newer = await chat.says("What about Tuesday?", thread=""), await chat.says("Hello?", thread="")
    await chat.node.gets_all(newer)

    await chat.node.gets_all(failed)

    assert [trigger.events[0].id for trigger in chat.node.triggers] == [newer.id, failed.id]
    assert chat.node.triggers[0].thread is None


@pytest.mark.spec("S-115")
async def test_a_thread_that_cannot_be_read_is_said_to_be_one_and_answers_nothing(chat: Chat) -> None:
    failed, newer = await chat.says("What about Tuesday?"), await chat.says("Hello?")
    chat.chat.threads.is_away = True
    with capture_logs():
        await chat.node.gets_all(newer)
        await chat.node.gets_all(failed)

    shown = chat.node.triggers[0].thread
    assert shown is not None
    assert "could not be read" in shown.text
    assert len(chat.node.triggers) == 2


def posts(*spoken: str) -> list[ThreadPost]:
    """``who: what``, each under its number; ``me`` is the seat."""
    said = [each.split(": ") for each in spoken]
    return [ThreadPost(key=str(n), sender=who, text=what, is_own=who == "me") for n, (who, what) in enumerate(said, 1)]


@pytest.mark.spec("S-115")
@pytest.mark.parametrize(
    ("thread", "woke", "waiting"),
    [
        (("ann: a", "bob: b", "ann: c"), "3", ("1", "2")),
        (("ann: a", "me: b", "ann: c", "ann: d"), "4", ("3",)),
        (("ann: a", "ann: b", "ann: c"), "2", ("1",)),
        (("ann: a", "ann: b", "me: c"), "2", ()),
        (("ann: a", "ann: b"), "9", ()),
    ],
    ids=["before", "after my own", "not what came later", "answered by now", "not in what was read"],
)
def test_what_waits_is_others_after_my_last_word_and_before_what_woke_me(
    thread: tuple[str, ...], woke: str, waiting: tuple[str, ...]
) -> None:
    assert thread_block(posts(*thread), woken_by={woke}, max_bytes=8000).waiting == waiting


@pytest.mark.spec("S-115")
def test_what_the_bound_drops_was_not_shown_and_waits_on() -> None:
    """The root and the newest are kept; that something is missing is said."""
    block = thread_block(posts("ann: root", "bob: middle", "bob: late", "ann: woke"), woken_by={"4"}, max_bytes=31)

    assert block.text.splitlines() == ["ann: root", "(some messages are left out here)", "bob: late", "ann: woke"]
    assert block.waiting == ("1", "3")


def test_no_message_can_pass_for_another_speaker() -> None:
    block = thread_block(posts("ann: x\nyou, I agree"), woken_by={"1"}, max_bytes=8000)

    assert block.text == "ann: x\n  you, I agree"
