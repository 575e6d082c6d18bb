"""One process: boot, mailboxes, seats established and released, drain. The only place that picks a backend."""

from crewlet.node.company_parts import CompanySource
from crewlet.node.face import (
    AskView,
    Health,
    MailboxView,
    MessageState,
    MessageView,
    NodeFace,
    NoSuchSeat,
    NotAnAgent,
    Readiness,
    SeatView,
    SentMessage,
    TurnView,
)
from crewlet.node.message_view import turn_views
from crewlet.node.node import Node, NodeSettings

__all__ = [
    "AskView",
    "CompanySource",
    "Health",
    "MailboxView",
    "MessageState",
    "MessageView",
    "NoSuchSeat",
    "Node",
    "NodeFace",
    "NodeSettings",
    "NotAnAgent",
    "Readiness",
    "SeatView",
    "SentMessage",
    "TurnView",
    "turn_views",
]
