"""The twins: second implementations that live in this process, held to the same contracts."""

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.backends.memory.log import MemoryLog, MemoryLogStream, Piece
from crewlet.backends.memory.queue import MemoryQueue
from crewlet.backends.memory.queue_broker import MemoryBroker
from crewlet.backends.memory.queue_dead_letters import MemoryDeadLetterBox
from crewlet.backends.memory.queue_mail import Mail, StoredMessage
from crewlet.backends.memory.record_bucket import MemoryBucket
from crewlet.backends.memory.record_link import MemoryLink
from crewlet.backends.memory.records import MemoryRecordStore

__all__ = [
    "Mail",
    "MemoryBroker",
    "MemoryBucket",
    "MemoryDeadLetterBox",
    "MemoryLeases",
    "MemoryLink",
    "MemoryLog",
    "MemoryLogStream",
    "MemoryQueue",
    "MemoryRecordStore",
    "Piece",
    "StoredMessage",
]
