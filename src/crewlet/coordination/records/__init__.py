"""The shared records, each written once over the record store's contract."""

from crewlet.coordination.records.channels import Channel, Channels, ChannelStatus, answered, closed, opened
from crewlet.coordination.records.config_pointer import ActiveConfig, ConfigPointer, ConfigPointers
from crewlet.coordination.records.cooldown_pull import CooldownPull
from crewlet.coordination.records.cooldowns import Cooldown, Cooldowns
from crewlet.coordination.records.custody import Custodies, Custody
from crewlet.coordination.records.delivery_claims import ClaimTooLong, DeliveryClaim, DeliveryClaims, Seen
from crewlet.coordination.records.fires import Fire, Fires
from crewlet.coordination.records.follows import Follow, Follows
from crewlet.coordination.records.ledger import Completion, Ledger
from crewlet.coordination.records.node_status import NodeStatus, NodeStatuses
from crewlet.coordination.records.rate_valve import RateValve, RateWindow
from crewlet.coordination.records.rebases import Rebase, Rebases, WorkInstant

__all__ = [
    "ActiveConfig",
    "Channel",
    "ChannelStatus",
    "Channels",
    "ClaimTooLong",
    "Completion",
    "ConfigPointer",
    "ConfigPointers",
    "Cooldown",
    "CooldownPull",
    "Cooldowns",
    "Custodies",
    "Custody",
    "DeliveryClaim",
    "DeliveryClaims",
    "Fire",
    "Fires",
    "Follow",
    "Follows",
    "Ledger",
    "NodeStatus",
    "NodeStatuses",
    "RateValve",
    "RateWindow",
    "Rebase",
    "Rebases",
    "Seen",
    "WorkInstant",
    "answered",
    "closed",
    "opened",
]
