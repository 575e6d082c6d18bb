"""What the fleet shares: the record store's contract, leases, the table of slots, and the records themselves."""

from crewlet.coordination.contract import Change, Record, RecordStore, Revision, Watch
from crewlet.coordination.keys import checked_key, checked_pattern, key_token
from crewlet.coordination.leases import Lease, Leases, seat_resource
from crewlet.coordination.records import Channel, Channels, ChannelStatus, Completion, Ledger, answered, closed, opened
from crewlet.coordination.slots import CHANNELS, LEDGER, SLOTS, Slot, leases_slot, swept_slots
from crewlet.coordination.store_time import StoreClock, StoreTime

__all__ = [
    "CHANNELS",
    "LEDGER",
    "SLOTS",
    "Change",
    "Channel",
    "ChannelStatus",
    "Channels",
    "Completion",
    "Lease",
    "Leases",
    "Ledger",
    "Record",
    "RecordStore",
    "Revision",
    "Slot",
    "StoreClock",
    "StoreTime",
    "Watch",
    "answered",
    "checked_key",
    "checked_pattern",
    "closed",
    "key_token",
    "leases_slot",
    "opened",
    "seat_resource",
    "swept_slots",
]
