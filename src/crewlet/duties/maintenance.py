"""The duty ``maintenance``: what the company's shared records do not forget by themselves (S1, S0)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crewlet.base.clock import Clock
from crewlet.base.errors import Unavailable
from crewlet.base.fence import Fence
from crewlet.coordination import MARKER_SWEEP_JOB, RecordStore, sweep_markers
from crewlet.duties.duty import Duty
from crewlet.duties.jobs import Job, each_job
from crewlet.duties.mailbox_sweep import MailboxSweep
from crewlet.duties.table import MAINTENANCE

__all__ = ["mailbox_job", "maintenance", "marker_job"]


def maintenance(jobs: Sequence[Job]) -> Duty:
    """The duty with these jobs. Buckets with an age need none: the broker forgets what is in them."""
    return Duty(times=MAINTENANCE, work=each_job(jobs))


def marker_job(stores: Mapping[str, RecordStore], clock: Clock) -> Job:
    """The markers of removed records go, from every bucket that has no age."""

    async def run(_: Fence) -> None:
        sweep = await sweep_markers(stores, clock.now())
        if sweep.failed:
            raise Unavailable(f"not swept: {', '.join(sweep.failed)}")

    return Job(MARKER_SWEEP_JOB, run)


def mailbox_job(sweep: MailboxSweep) -> Job:
    """Removed seats' mailboxes are stamped, and retired once their time is over."""
    return Job("seat_mailboxes", sweep.run)
