"""The company's work that one node at a time does: the runner, the table of duties, and maintenance."""

from crewlet.duties.duty import Chore, Duty, DutyFence, DutyStatus
from crewlet.duties.event_retention import event_retention
from crewlet.duties.jobs import Job, JobsFailed, each_job
from crewlet.duties.lane_sweep import LaneSweep
from crewlet.duties.mailbox_retirement import MailboxRetirement, RetirementParts, RunEnder
from crewlet.duties.mailbox_sweep import MailboxSweep
from crewlet.duties.maintenance import mailbox_job, maintenance, marker_job
from crewlet.duties.roster import Roster
from crewlet.duties.runner import DutyOverran, DutyRunner
from crewlet.duties.table import (
    DUTY_TIMES,
    EMBEDDINGS,
    INTEGRATION_RECONCILE,
    LEARNING,
    MAINTENANCE,
    OBJECT_COLLECTOR,
    RETENTION,
    SANDBOX_WAITER,
    SCHEDULER,
    DutyTimes,
)

__all__ = [
    "DUTY_TIMES",
    "EMBEDDINGS",
    "INTEGRATION_RECONCILE",
    "LEARNING",
    "MAINTENANCE",
    "OBJECT_COLLECTOR",
    "RETENTION",
    "SANDBOX_WAITER",
    "SCHEDULER",
    "Chore",
    "Duty",
    "DutyFence",
    "DutyOverran",
    "DutyRunner",
    "DutyStatus",
    "DutyTimes",
    "Job",
    "JobsFailed",
    "LaneSweep",
    "MailboxRetirement",
    "MailboxSweep",
    "RetirementParts",
    "Roster",
    "RunEnder",
    "each_job",
    "event_retention",
    "mailbox_job",
    "maintenance",
    "marker_job",
]
