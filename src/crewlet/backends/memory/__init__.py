"""The twins: second implementations that live in this process, held to the same contracts."""

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.backends.memory.queue import MemoryQueue
from crewlet.backends.memory.queue_broker import MemoryBroker
from crewlet.backends.memory.queue_dead_letters import MemoryDeadLetterBox
from crewlet.backends.memory.queue_mail import Mail, StoredMessage
from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore

__all__ = [
    "Mail",
    "MemoryBroker",
    "MemoryBucket",
    "MemoryDeadLetterBox",
    "MemoryLeases",
    "MemoryQueue",
    "MemoryRecordStore",
    "StoredMessage",
]
