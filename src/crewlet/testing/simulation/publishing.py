"""Publishing in a run: who must be told of it, by when, and with whose name on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from crewlet import topics
from crewlet.base.errors import Unavailable
from crewlet.events import Event
from crewlet.queue import StreamSubscription
from crewlet.testing.simulation.company import Client
from crewlet.testing.simulation.ledger import Ledger

__all__ = ["Publishing", "ReaderFault"]

_EVENTS: Final = topics.stream_subjects(topics.STREAM_EVENTS)


class ReaderFault(RuntimeError):
    """What a listener or a reader of a feed raises now and then: it is nobody else's trouble."""


@dataclass(slots=True, eq=False)
class _Ears:
    """What tells one client: its listeners by name, its feeds by pattern."""

    listeners: dict[str, Callable[[], None]] = field(default_factory=dict[str, Callable[[], None]])
    feeds: dict[str, StreamSubscription] = field(default_factory=dict[str, StreamSubscription])
    missed: dict[str, set[tuple[str, str]]] = field(default_factory=dict[str, set[tuple[str, str]]])


class Publishing:
    """Every publish of a run goes through here, and what is told of one outside of it is found."""

    def __init__(self, ledger: Ledger) -> None:
        self.stored: set[tuple[str, str]] = set()
        self._ledger = ledger
        self._ears: dict[Client, _Ears] = {}
        self._told: list[tuple[str, str, Event]] = []
        self._now: tuple[str, str] | None = None

    def begins(self, client: Client) -> None:
        """A client is there: one listener that now and then raises, and one behind it."""
        self._ears[client] = _Ears()
        self.listen(client, "that fails")
        self.listen(client, "behind it")

    def ends(self, client: Client) -> None:
        """Its process is gone, and nothing tells it any more."""
        self._ears[client] = _Ears()

    async def publish(self, client: Client, topic: str, event: Event) -> Event:
        """Publish, and compare whom it was told to with who listens. Raises ``Unavailable``."""
        name, is_new = event.node, (topic, event.id) not in self.stored
        wanted = [f"{client.node}'s listener {each}" for each in self._ears[client].listeners]
        feeds = self._feeds_on(topic) if is_new else []
        wanted += [f"{each.node}'s feed {pattern}" for each, pattern in feeds if each.is_heard]
        self._told, self._now = [], (topic, event.id)
        try:
            stamped = await client.queue.publish(topic, event)
        except Unavailable:
            if self._told:
                self._found(f"{event.id} was not stored, and {self._told[0][0]} was told")
            raise
        finally:
            self._now = None
        self.stored.add((topic, event.id))
        for each, pattern in feeds:
            if not each.is_heard:
                self._ears[each].missed[pattern].add((topic, event.id))
        if event.node != name or stamped != replace(event, node=name or client.node):
            self._ledger.found("stamped", f"{event.id} of {name or client.node} became {stamped.node}'s")
        told = Counter(who for who, *_ in self._told)
        if told != Counter(wanted):
            self._found(f"{event.id} on {topic}: {sorted(told.elements())} were told, not {sorted(wanted)}")
        if wrong := [who for who, where, what in self._told if (where, what) != (topic, stamped)]:
            self._found(f"{wrong[0]} was told of another event than {event.id} as it was stored")
        return stamped

    def listen(self, client: Client, name: str) -> None:
        """Add the listener, or remove it where it is there."""
        ears = self._ears[client]
        if name in ears.listeners:
            ears.listeners.pop(name)()
        else:
            ears.listeners[name] = client.queue.add_publish_listener(self._listener(client, name))

    async def close_feed(self, client: Client, pattern: str) -> None:
        """Close the feed on the pattern, where there is one."""
        if feed := self._ears[client].feeds.pop(pattern, None):
            await feed.close()

    async def open_feed(self, client: Client, pattern: str) -> None:
        """Open a feed on the pattern, where there is none. One over several namespaces must be refused."""
        ears = self._ears[client]
        if pattern in ears.feeds:
            return
        try:
            ears.missed[pattern] = set()
            ears.feeds[pattern] = await client.queue.subscribe_stream(pattern, self._reader(client, pattern))
        except ValueError:
            if topics.namespace(pattern) is not None:
                raise
        else:
            if topics.namespace(pattern) is None:
                self._found(f"a feed on {pattern} was opened")

    def healed(self, client: Client) -> None:
        """It was told of what it had missed, at least where that was kept."""
        for pattern, missed in self._ears[client].missed.items():
            kept = [event_id for topic, event_id in missed if topics.matches(_EVENTS, topic)]
            if kept and pattern in self._ears[client].feeds:
                self._found(f"{client.node}'s feed {pattern} was not told of {kept[0]} once it was heard again")
            missed.clear()

    def _feeds_on(self, topic: str) -> list[tuple[Client, str]]:
        found = [(client, pattern) for client, ears in self._ears.items() for pattern in ears.feeds]
        return [(client, pattern) for client, pattern in found if topics.matches(pattern, topic)]

    def _listener(self, client: Client, name: str) -> Callable[[str, Event], Awaitable[None]]:
        async def told(topic: str, event: Event) -> None:
            self._tell(f"{client.node}'s listener {name}", topic, event)
            if (topic, event.id) not in self.stored:
                self._look_whether_stored(topic, event.id)
            if name == "that fails" and event.id.endswith("3"):
                raise ReaderFault(event.id)

        return told

    def _reader(self, client: Client, pattern: str) -> Callable[[str, Event], None]:
        def told(topic: str, event: Event) -> None:
            missed = self._ears[client].missed.get(pattern, set())
            if self._now is None and (topic, event.id) in missed:
                missed.remove((topic, event.id))
                return
            self._tell(f"{client.node}'s feed {pattern}", topic, event)
            if event.id.endswith("7"):
                raise ReaderFault(event.id)

        return told

    def _tell(self, who: str, topic: str, event: Event) -> None:
        self._told.append((who, topic, event))
        if self._now != (topic, event.id):
            self._found(f"{who} was told of {event.id} on {topic}, which nobody publishes just then")

    def _look_whether_stored(self, topic: str, event_id: str) -> None:
        mailbox = next((each for each in self._ledger.mailboxes if each.topic == topic), None)
        if mailbox is not None and event_id not in self._ledger.view.by_id(mailbox):
            self._found(f"a listener was told of {event_id} before it was stored")

    def _found(self, what: str) -> None:
        self._ledger.found("told", what)
