"""The record store's suite: every promise, by the noun it is about."""

from __future__ import annotations

from crewlet.testing.contracts.contract import Contract
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

__all__ = ["RECORD_SUITE"]

RECORD_SUITE: tuple[type[Contract], ...] = (
    RecordWrites,
    Revisions,
    Removals,
    Listings,
    ListingsUnderChange,
    WatchAnswers,
    Watches,
    WatchEnds,
    Markers,
    Ages,
    StoreTimes,
    Unknowns,
    LostReplies,
    LateWrites,
    Histories,
)
"""Every promise of the record store, by the noun it is about."""
