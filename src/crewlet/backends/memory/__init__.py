"""The twins: second implementations that live in this process, held to the same contracts."""

from crewlet.backends.memory.leases import MemoryLeases
from crewlet.backends.memory.records import MemoryBucket, MemoryRecordStore

__all__ = ["MemoryBucket", "MemoryLeases", "MemoryRecordStore"]
