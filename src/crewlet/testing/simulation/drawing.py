"""One seed becomes a plan: how big the company is, what happens in it when, and how each handler will behave."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from crewlet import topics
from crewlet.queue import BatchOptions, QueueConfig, Subscription
from crewlet.testing.simulation.plan import Act, ActKind, Aside, AsideVerb, Attach, Plan, Publish, Step, Touch, Verb

__all__ = ["draw_plan"]

_STEPS: Final = (70, 190)
_SUCCESSIONS: Final = 0.06
_PAUSE_S: Final = 4.0
_LONG_PAUSE_S: Final = 40.0
_REPEATED_WITHIN_S: Final = 100.0
_AGE_MAX_S: Final = 90.0
_PATTERNS: Final = 4
_HOLDS: Final = ("pause", "budget", "boot")

_WEIGHTS: Final[dict[type[Publish | Attach] | Verb | AsideVerb, int]] = {
    Publish: 46,
    Attach: 16,
    Verb.DETACH: 5,
    Verb.HOLD: 5,
    Verb.LIFT: 8,
    Verb.QUIESCE: 3,
    Verb.UNQUIESCE: 9,
    Verb.CRASH: 3,
    Verb.RETURN: 7,
    Verb.CUT: 3,
    Verb.HEAL: 9,
    AsideVerb.TELL: 4,
    AsideVerb.LISTEN: 2,
    AsideVerb.FEED: 6,
    AsideVerb.LOOK: 4,
    AsideVerb.MAKE: 2,
    AsideVerb.REMOVE: 2,
    AsideVerb.SERVE: 1,
    AsideVerb.ASK: 3,
    AsideVerb.WAIT: 3,
    AsideVerb.CHANGE: 3,
}


def draw_plan(seed: int) -> Plan:
    """The plan of one seed, the same on every machine."""
    return _Drawing(Random(seed)).plan(seed)


class _Drawing:
    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._config = QueueConfig(ack_wait_s=30.0, max_deliver=chance.randint(2, 6))
        self._clients = chance.randint(2, 4)
        self._mailboxes = _mailboxes(chance.randint(1, 3), shared=self._happens(0.5), foreign=self._happens(0.2))
        self._seats = self._happens(0.5)
        self._attached: dict[int, int] = {}
        self._fed: list[Aside] = []
        self._published: list[tuple[float, Publish]] = []

    def plan(self, seed: int) -> Plan:
        at_s = 0.0
        steps: list[tuple[float, Step]] = [(at_s, self._attach()) for _ in self._mailboxes]
        for _ in range(self._chance.randint(*_STEPS)):
            at_s += self._pause_s()
            for step in self._steps(at_s):
                steps.append((at_s, step))
                at_s += self._pause_s()
        return Plan(seed, self._seats, self._config, self._mailboxes, self._clients, tuple(steps))

    def _pause_s(self) -> float:
        if self._happens(0.45):
            return 0.0
        return round(self._chance.uniform(0.0, _LONG_PAUSE_S if self._happens(0.07) else _PAUSE_S), 3)

    def _steps(self, at_s: float) -> list[Step]:
        if self._attached and self._happens(_SUCCESSIONS):
            return self._succession(at_s)
        kind = self._chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])[0]
        if isinstance(kind, AsideVerb):
            asks = [self._aside(AsideVerb.SERVE), self._aside(AsideVerb.SERVE)] if kind is AsideVerb.ASK else []
            return [*asks, self._feed() if kind is AsideVerb.FEED else self._aside(kind)]
        if isinstance(kind, Verb):
            return [Touch(kind, self._client(), self._mailbox(), self._chance.choice(_HOLDS))]
        return [self._publish(at_s) if kind is Publish else self._attach()]

    def _aside(self, verb: AsideVerb) -> Aside:
        return Aside(verb, self._client(), self._chance.randrange(12))

    def _feed(self) -> Aside:
        """A feed is opened, or one that was opened is closed."""
        if self._fed and self._happens(0.4):
            opened = self._fed.pop()
            return replace(opened, number=opened.number + _PATTERNS)
        self._fed.append(Aside(AsideVerb.FEED, self._client(), self._chance.randrange(_PATTERNS)))
        return self._fed[-1]

    def _succession(self, at_s: float) -> list[Step]:
        """Who attached last to a mailbox has work, vanishes, and somebody else attaches; perhaps it comes back."""
        mailbox, holder = self._chance.choice([*self._attached.items()])
        vanishes, returns = self._chance.choice(((Verb.CRASH, Verb.RETURN), (Verb.CUT, Verb.HEAL)))
        story: list[Step] = [
            self._publish(at_s),
            Touch(vanishes, holder, mailbox, ""),
            self._attach(mailbox, not_by=holder),
        ]
        if self._happens(0.7):
            story.insert(self._chance.randint(2, 3), Touch(returns, holder, mailbox, ""))
        return story

    def _publish(self, at_s: float) -> Publish:
        recent = [one for since_s, one in self._published if at_s - since_s < _REPEATED_WITHIN_S]
        if recent and self._happens(0.12):
            again = self._chance.choice(recent)
            return Publish(self._client(), again.topic, again.event_id, again.key, again.stamp_s, again.acts)
        number = len(self._published)
        publish = Publish(
            self._client(),
            self._mailboxes[self._mailbox()].topic,
            f"e{number:03}",
            self._chance.choice("abc"),
            at_s - round(self._chance.uniform(0.0, _AGE_MAX_S), 3),
            tuple(self._act() for _ in range(self._config.max_deliver)),
        )
        self._published.append((at_s, publish))
        return publish

    def _act(self) -> Act:
        kind = self._chance.choices([*ActKind], [60, 15, 6, 10, 4, 3, 2])[0]
        if kind is ActKind.HANG:
            return Act(kind, self._config.ack_wait_s * round(self._chance.uniform(1.2, 2.0), 2))
        quick = self._happens(0.4)
        return Act(kind, 0.0 if quick else round(self._chance.uniform(0.0, 3.0), 3))

    def _attach(self, mailbox: int | None = None, *, not_by: int | None = None) -> Attach:
        linger_s = self._chance.choice((0.0, 0.0, 1.5, 10.0))
        options = BatchOptions(linger_s=linger_s, max_events=self._chance.choice((1, 2, 5, 20)))
        where = self._mailbox() if mailbox is None else mailbox
        who = self._chance.choice([number for number in range(self._clients) if number != not_by])
        self._attached[where] = who
        return Attach(who, where, self._happens(0.5), options)

    def _happens(self, odds: float) -> bool:
        return self._chance.random() < odds

    def _client(self) -> int:
        return self._chance.randrange(self._clients)

    def _mailbox(self) -> int:
        return self._chance.randrange(len(self._mailboxes))


def _mailboxes(seats: int, *, shared: bool, foreign: bool) -> tuple[Subscription, ...]:
    handles = [f"seat{number}" for number in range(seats)]
    inboxes = tuple(Subscription(topics.agent_inbox(handle), topics.inbox_group(handle)) for handle in handles)
    watchers = (Subscription(inboxes[0].topic, "all.watchers"),) if shared else ()
    shop = (Subscription("shop.orders", "shop"),) if foreign else ()
    return (*inboxes, *watchers, *shop)
