"""What the fleet shares: the record store's contract, leases, the table of slots, and the records themselves."""

from crewlet.coordination.contract import Record, RecordStore, Revision
from crewlet.coordination.keys import checked_key, key_token
from crewlet.coordination.leases import Lease, Leases, seat_resource
from crewlet.coordination.records import Channel, Channels, ChannelStatus, Completion, Ledger, answered, closed, opened
from crewlet.coordination.slots import CHANNELS, LEDGER, SLOTS, Slot

__all__ = [
    "CHANNELS",
    "LEDGER",
    "SLOTS",
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
    "answered",
    "checked_key",
    "closed",
    "key_token",
    "opened",
    "seat_resource",
]
