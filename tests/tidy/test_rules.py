"""Each house rule finds what it is for and lets its neighbours pass."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

import pytest

from tests.tidy import rules


def names(tree: ast.Module) -> Iterable[rules.Finding]:
    return rules.broker_names(tree, lambda text: text == "crewlet.cli")


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (rules.clocks_and_chance, "import time\ntime.time()"),
        (rules.clocks_and_chance, "import time as t\nstart = t.time_ns()"),
        (rules.clocks_and_chance, "from time import time\ntime()"),
        (rules.clocks_and_chance, "from datetime import datetime, UTC\ndatetime.now(UTC)"),
        (rules.clocks_and_chance, "import datetime as dt\ndt.datetime.utcnow()"),
        (rules.clocks_and_chance, "import random\nrandom.choice([1])"),
        (rules.clocks_and_chance, "from random import SystemRandom\nSystemRandom()"),
        (rules.clocks_and_chance, "import uuid\nfield = Field(default_factory=uuid.uuid4)"),
        (rules.clocks_and_chance, "def late():\n    from uuid import uuid1\n    return uuid1()"),
        (rules.orphan_tasks, "import asyncio\nasyncio.create_task(work())"),
        (rules.orphan_tasks, "from asyncio import ensure_future\nensure_future(work())"),
        (rules.orphan_tasks, "import asyncio\nasyncio.get_running_loop().create_task(work())"),
        (rules.orphan_tasks, "self._loop.create_task(work())"),
        (rules.other_channels, "import asyncio\nwakes = asyncio.Queue()"),
        (rules.other_channels, "from queue import SimpleQueue\njobs: SimpleQueue[int] = SimpleQueue()"),
        (rules.other_channels, "import socket\nsocket.socketpair()"),
        (rules.broad_handlers, "try:\n    work()\nexcept Exception:\n    pass"),
        (rules.broad_handlers, "try:\n    work()\nexcept:\n    pass"),
        (rules.broad_handlers, "try:\n    work()\nexcept (ValueError, BaseException) as error:\n    log(error)"),
        (names, "subject = 'crewlet.agent.ceo.inbox'"),
        (names, "subject = f'crewlet.agent.{handle}.inbox'"),
        (names, "stream = 'CREWLET_AGENT'"),
        (names, "bucket = 'crewlet_ledger'"),
        (names, "subject = f'dlq.{group}'"),
        (rules.missing_docstring, "import time"),
        (rules.missing_public_face, '"""A package."""\nfrom crewlet.a import b'),
    ],
)
def test_a_rule_finds_what_it_is_for(rule: Callable[[ast.Module], Iterable[rules.Finding]], source: str) -> None:
    assert list(rule(ast.parse(source)))


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (rules.clocks_and_chance, "import random\nsource = random.Random(7)"),
        (rules.clocks_and_chance, "import time\ntime.monotonic()"),
        (rules.clocks_and_chance, "def f(clock):\n    return clock.now()"),
        (rules.orphan_tasks, "async def f(group):\n    group.create_task(work())"),
        (rules.other_channels, "from crewlet.queue import EventQueue\nasync def f(queue: EventQueue) -> None: ..."),
        (rules.other_channels, "import asyncio\ngate = asyncio.Semaphore(3)"),
        (rules.broad_handlers, "try:\n    work()\nexcept BaseException:\n    undo()\n    raise"),
        (rules.broad_handlers, "try:\n    work()\nexcept ValueError:\n    pass"),
        (names, '"""crewlet.agent.* carries mailboxes."""'),
        (names, "file = 'crewlet.yaml'"),
        (names, "entry = 'crewlet.cli'"),
        (names, "text = 'crewlet run'"),
        (rules.missing_docstring, '"""What it is for."""'),
        (rules.missing_public_face, '"""Only words."""\nfrom __future__ import annotations'),
        (rules.missing_public_face, '"""A package."""\nfrom crewlet.a import b\n__all__ = ["b"]'),
    ],
)
def test_a_rule_lets_its_neighbours_pass(rule: Callable[[ast.Module], Iterable[rules.Finding]], source: str) -> None:
    assert list(rule(ast.parse(source))) == []


def test_length_is_held_to_its_bound() -> None:
    assert list(rules.too_long("\n" * rules.LINES_MAX)) == []
    assert list(rules.too_long("\n" * (rules.LINES_MAX + 1)))
