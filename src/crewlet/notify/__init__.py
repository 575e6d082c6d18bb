"""Sources of notifications: verify, parse, partition, identity; and the routing of what they bring."""

from crewlet.notify.chat_keys import ChatPlace, chat_identity, chat_partition
from crewlet.notify.contract import Directory, PayloadRefused, Seat, SkipReason, Source, Valve
from crewlet.notify.operator_source import OPERATOR, OperatorSource
from crewlet.notify.prompt import Notice, PlainPrompt, Prompt, is_cut, notice_of
from crewlet.notify.service import NotificationService, inbound_subscription, wake_id
from crewlet.notify.sources import Sources, namespaced
from crewlet.notify.threads import ThreadBlock, ThreadPost, ThreadReader, thread_block

__all__ = [
    "OPERATOR",
    "ChatPlace",
    "Directory",
    "Notice",
    "NotificationService",
    "OperatorSource",
    "PayloadRefused",
    "PlainPrompt",
    "Prompt",
    "Seat",
    "SkipReason",
    "Source",
    "Sources",
    "ThreadBlock",
    "ThreadPost",
    "ThreadReader",
    "Valve",
    "chat_identity",
    "chat_partition",
    "inbound_subscription",
    "is_cut",
    "namespaced",
    "notice_of",
    "thread_block",
    "wake_id",
]
