"""What is going to happen in a run, all of it known before the run begins; steps that do not apply are passed over.

How a message's handlers behave is written on the message, by the number of its delivery, and not drawn while they
run: a plan with steps taken out of it is still the same story about the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from crewlet.queue import BatchOptions, QueueConfig, Subscription

__all__ = ["Act", "ActKind", "Aside", "AsideVerb", "Attach", "Plan", "Publish", "Step", "Touch", "Verb"]


class ActKind(StrEnum):
    """What a handler does with a delivery."""

    ACK = "ack"
    NAK = "nak"
    RAISE = "raise"
    DEFER = "defer"
    HANG = "hang"
    SILENT = "silent"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Act:
    """One handler call: what it ends in, after how long.

    One that hangs outlives its ack clock and then acknowledges, as one that is silent does by returning nothing; one
    in which something was cancelled has failed.
    """

    kind: ActKind
    lasts_s: float


@dataclass(frozen=True, slots=True)
class Publish:
    """A client publishes an event; one whose id came before is a repeat, inside the duplicate window."""

    client: int
    topic: str
    event_id: str
    key: str
    stamp_s: float
    acts: tuple[Act, ...]


@dataclass(frozen=True, slots=True)
class Attach:
    """A client attaches, one delivery at a time or in hauls; after a lapse as the successor, who releases first."""

    client: int
    mailbox: int
    hauls: bool
    options: BatchOptions


class Verb(StrEnum):
    """What a step does to a client, or to its attachment to a mailbox."""

    DETACH = "detach"
    HOLD = "hold"
    LIFT = "lift"
    QUIESCE = "quiesce"
    UNQUIESCE = "unquiesce"
    CRASH = "crash"
    RETURN = "return"
    CUT = "cut"
    HEAL = "heal"


@dataclass(frozen=True, slots=True)
class Touch:
    """A verb on a client's attachment, or on the client itself where the verb is the client's."""

    verb: Verb
    client: int
    mailbox: int
    hold: str


class AsideVerb(StrEnum):
    """What a client does beside its mail."""

    TELL = "tell"
    """It publishes an event that no mailbox covers."""
    LISTEN = "listen"
    """It begins to be told of its own publishes, or stops."""
    FEED = "feed"
    """It opens a live feed, or closes it."""
    LOOK = "look"
    """It lists the mailboxes, and looks at one."""
    MAKE = "make"
    """It makes a mailbox that nobody works, beside those that are there."""
    REMOVE = "remove"
    """It destroys one of those."""
    SERVE = "serve"
    """It begins to answer questions, or stops."""
    ASK = "ask"
    """It asks whoever serves."""
    WAIT = "wait"
    """It waits until one of its attachments is idle."""
    CHANGE = "change"
    """The window and the cap of one of its attachments change."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Something that touches no mail that is worked; ``number`` says which mailbox, pattern or window.

    Of a feed's, the lower four open one on a pattern, and the upper four close it.
    """

    verb: AsideVerb
    client: int
    number: int


Step = Publish | Attach | Touch | Aside


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole run: the queue's clocks and budget, the mailboxes, how many clients, and each step at its second.

    Where mailboxes are ``seats``, who is heard of and attached lets go before another attaches; else they compete.
    """

    seed: int
    seats: bool
    config: QueueConfig
    mailboxes: tuple[Subscription, ...]
    clients: int
    steps: tuple[tuple[float, Step], ...]
