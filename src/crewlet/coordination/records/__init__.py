"""The shared records, each written once over the record store's contract."""

from crewlet.coordination.records.channels import Channel, Channels, ChannelStatus, answered, closed, opened
from crewlet.coordination.records.ledger import Completion, Ledger

__all__ = [
    "Channel",
    "ChannelStatus",
    "Channels",
    "Completion",
    "Ledger",
    "answered",
    "closed",
    "opened",
]
