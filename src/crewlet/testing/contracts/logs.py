"""Every promise of the log, by the noun it is about."""

from __future__ import annotations

from crewlet.testing.contracts.contract import Contract
from crewlet.testing.contracts.log_appends import FullLogs, LogAppends
from crewlet.testing.contracts.log_reads import LogReads, LogRemains, LogTrims
from crewlet.testing.contracts.log_unheard import LostLogs, UnheardAppends

__all__ = ["LOG_SUITE"]

LOG_SUITE: tuple[type[Contract], ...] = (
    LogAppends,
    FullLogs,
    LogReads,
    LogRemains,
    LogTrims,
    UnheardAppends,
    LostLogs,
)
