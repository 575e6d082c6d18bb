"""Sources of notifications: verify, parse, partition, identity; and the routing of what they bring."""

from crewlet.notify.contract import Directory, PayloadRefused, Routed, Seat, SkipReason, Source
from crewlet.notify.operator_source import OPERATOR, OperatorSource
from crewlet.notify.service import NotificationService, inbound_subscription, wake_id

__all__ = [
    "OPERATOR",
    "Directory",
    "NotificationService",
    "OperatorSource",
    "PayloadRefused",
    "Routed",
    "Seat",
    "SkipReason",
    "Source",
    "inbound_subscription",
    "wake_id",
]
