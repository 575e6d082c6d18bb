"""The contracts' suites, for every backend: promises by name, none of which a backend may override."""

from crewlet.testing.contracts.contract import Capability, Contract, needed, needs, promises
from crewlet.testing.contracts.lease_failures import FailedClaims, FailedReleases, StoppedClaims
from crewlet.testing.contracts.lease_gates import ProtocolGates, SuccessorsFields
from crewlet.testing.contracts.lease_harness import LEASE_TTL_S, Claimant, LeaseHarness
from crewlet.testing.contracts.lease_listings import DutyLeases, HeldLeases, LeaseNames
from crewlet.testing.contracts.lease_suite import LEASE_SUITE
from crewlet.testing.contracts.leases import Releases, Renewals, Tenures
from crewlet.testing.contracts.queue_batch_stops import BatchStops
from crewlet.testing.contracts.queue_batches import BatchCollection, BatchSettlement
from crewlet.testing.contracts.queue_broadcast import Broadcast
from crewlet.testing.contracts.queue_dead_letters import DeadLetters, Headroom
from crewlet.testing.contracts.queue_delivery import Outcomes, ServingOrder
from crewlet.testing.contracts.queue_harness import SCALED, DeadLetter, QueueHarness, event
from crewlet.testing.contracts.queue_holds import Holds
from crewlet.testing.contracts.queue_letting_go import LettingGo, TakeOver
from crewlet.testing.contracts.queue_listeners import Listeners
from crewlet.testing.contracts.queue_live_events import LiveEvents
from crewlet.testing.contracts.queue_mailboxes import Mailboxes, MailboxListing, MailboxStates
from crewlet.testing.contracts.queue_publishing import Publishing
from crewlet.testing.contracts.queue_questions import Questions
from crewlet.testing.contracts.queue_unheard import UnheardLetters
from crewlet.testing.contracts.record_harness import AGED, KEPT, SKEW_S, RecordHarness, ShiftedClock
from crewlet.testing.contracts.record_histories import Histories
from crewlet.testing.contracts.record_listing_churn import ListingsUnderChange
from crewlet.testing.contracts.record_listings import Listings
from crewlet.testing.contracts.record_markers import Markers
from crewlet.testing.contracts.record_removals import Removals
from crewlet.testing.contracts.record_times import Ages, StoreTimes
from crewlet.testing.contracts.record_unknowns import LateWrites, LostReplies, Unknowns
from crewlet.testing.contracts.record_watch_answers import WatchAnswers
from crewlet.testing.contracts.record_watch_ends import WatchEnds
from crewlet.testing.contracts.record_watches import Watches
from crewlet.testing.contracts.record_writes import RecordWrites, Revisions
from crewlet.testing.contracts.records import RECORD_SUITE

__all__ = [
    "AGED",
    "KEPT",
    "LEASE_SUITE",
    "LEASE_TTL_S",
    "QUEUE_SUITE",
    "RECORD_SUITE",
    "SCALED",
    "SKEW_S",
    "Ages",
    "BatchCollection",
    "BatchSettlement",
    "BatchStops",
    "Broadcast",
    "Capability",
    "Claimant",
    "Contract",
    "DeadLetter",
    "DeadLetters",
    "DutyLeases",
    "FailedClaims",
    "FailedReleases",
    "Headroom",
    "HeldLeases",
    "Histories",
    "Holds",
    "LateWrites",
    "LeaseHarness",
    "LeaseNames",
    "LettingGo",
    "Listeners",
    "Listings",
    "ListingsUnderChange",
    "LiveEvents",
    "LostReplies",
    "MailboxListing",
    "MailboxStates",
    "Mailboxes",
    "Markers",
    "Outcomes",
    "ProtocolGates",
    "Publishing",
    "Questions",
    "QueueHarness",
    "RecordHarness",
    "RecordWrites",
    "Releases",
    "Removals",
    "Renewals",
    "Revisions",
    "ServingOrder",
    "ShiftedClock",
    "StoppedClaims",
    "StoreTimes",
    "SuccessorsFields",
    "TakeOver",
    "Tenures",
    "UnheardLetters",
    "Unknowns",
    "WatchAnswers",
    "WatchEnds",
    "Watches",
    "event",
    "needed",
    "needs",
    "promises",
]

QUEUE_SUITE: tuple[type[Contract], ...] = (
    Publishing,
    ServingOrder,
    Outcomes,
    DeadLetters,
    Headroom,
    Mailboxes,
    MailboxListing,
    MailboxStates,
    LettingGo,
    Holds,
    TakeOver,
    BatchCollection,
    BatchSettlement,
    BatchStops,
    Listeners,
    Broadcast,
    LiveEvents,
    Questions,
    UnheardLetters,
)
"""Every promise of the event queue, by the noun it is about."""
