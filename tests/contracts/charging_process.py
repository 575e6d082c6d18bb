"""One process of a fleet that charges one record: many tasks at once, each in a lane of its own.

``python charging_process.py URL TOKEN NAME TASKS EACH REPLICAS``: says ``ready``, charges once it is told to go on, and
says how often a charge had no answer. Such a one is made again, under the same number, until it is answered.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Final
from zoneinfo import ZoneInfo

import structlog

from crewlet.backends.nats import JetStream, connect, open_bucket
from crewlet.base.errors import Unavailable
from crewlet.base.ids import RandomIds
from crewlet.coordination import BUDGETS, Budgets, Spend, Windows, windows_at

TOKENS: Final = 7
AT: Final = datetime(2026, 9, 23, 12, tzinfo=UTC)


def calendar() -> Callable[[], Windows]:
    windows = windows_at(AT, ZoneInfo("UTC"))
    return lambda: windows


async def charge_all(budgets: Budgets, name: str, *, tasks: int, each: int) -> int:
    """Make every charge; returns how many answers did not come."""
    windows, unanswered = calendar(), 0

    async def charge(spend: Spend) -> None:
        nonlocal unanswered
        while True:
            try:
                await budgets.charge(spend, windows=windows)
            except Unavailable:
                unanswered += 1
            else:
                return

    async def one(task: int) -> None:
        for number in range(1, each + 1):
            await charge(Spend(tokens=TOKENS, lane=f"{name}-{task}", number=number))

    await asyncio.gather(*(one(task) for task in range(tasks)))
    return unanswered


async def main(url: str, token: str, name: str, tasks: int, each: int, replicas: int) -> None:
    wire = await connect(url, token=token, name=name)
    bucket = await open_bucket(JetStream(wire), BUDGETS, storage="file", ids=RandomIds(), replicas=replicas)
    budgets = Budgets(bucket.store, Random(name))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    print(await charge_all(budgets, name, tasks=tasks, each=each), flush=True)
    await budgets.close()
    await wire.close()


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    _, its_url, its_token, its_name, *numbers = sys.argv
    asyncio.run(main(its_url, its_token, its_name, *map(int, numbers)))
