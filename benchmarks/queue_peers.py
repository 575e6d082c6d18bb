"""Peers on the same broker, each on a stream of its own: FastStream and taskiq-nats.

Each is set up twice: as its documentation shows it (FastStream logs each message then, into nothing here), and as fast
as its settings make it. Neither waits for the broker to confirm an acknowledgement. They are no dependency: one that is
not installed yields no side, and its figures say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import importlib.util
import logging
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from nats.js import JetStreamContext

from benchmarks.queue_rig import EVENT_BYTES, Counted, Side, fill
from crewlet.backends.nats import EmbeddedBroker

__all__ = ["FASTSTREAM", "FASTSTREAM_FAST", "FASTSTREAM_INBOXES", "TASKIQ", "TASKIQ_FAST", "Peer", "faststream_inboxes"]

_DOCUMENTED_BATCH: Final = 10
_TASKIQ_WRAPPING_BYTES: Final = 133


@dataclass(frozen=True, slots=True)
class Package:
    """A peer that may be installed or not, and in which set-up it is measured."""

    package: str
    name: str

    @property
    def installed(self) -> bool:
        """Whether it can be measured here."""
        return importlib.util.find_spec(self.package) is not None

    @property
    def told(self) -> str:
        """Its name, as a figure gives it."""
        return self.name if self.installed else f"{self.name}: not installed"


@dataclass(frozen=True, slots=True)
class Peer(Package):
    """One that drains a backlog: ``side`` opens it on a broker and yields what drains so many messages in one slice."""

    side: Callable[[EmbeddedBroker, JetStreamContext, int], contextlib.AbstractAsyncContextManager[Side]]


@asynccontextmanager
async def faststream_inboxes(
    broker: EmbeddedBroker, stream: JetStreamContext, inboxes: int, each: int
) -> AsyncGenerator[Side]:
    """Many subscribers that pull one message at a time, each worked before the next is asked for."""
    subjects = [f"faststream-inbox.{number}" for number in range(inboxes)]
    options = {"pull_sub": _faststream().PullSub()}
    async with _faststream_side(broker, stream, subjects, each, options, logs=True) as side:
        yield side


@asynccontextmanager
async def _faststream_documented(
    broker: EmbeddedBroker, stream: JetStreamContext, messages: int
) -> AsyncGenerator[Side]:
    options = {"pull_sub": _faststream().PullSub(batch_size=_DOCUMENTED_BATCH)}
    async with _faststream_side(broker, stream, ["faststream.documented"], messages, options, logs=True) as side:
        yield side


@asynccontextmanager
async def _faststream_fast(broker: EmbeddedBroker, stream: JetStreamContext, messages: int) -> AsyncGenerator[Side]:
    async with _faststream_side(broker, stream, ["faststream-fast.pushed"], messages, {}, logs=False) as side:
        yield side


@asynccontextmanager
async def _faststream_side(
    broker: EmbeddedBroker,
    stream: JetStreamContext,
    subjects: Sequence[str],
    each: int,
    options: dict[str, Any],
    *,
    logs: bool,
) -> AsyncGenerator[Side]:
    nats = _faststream()
    gate, counted = asyncio.Event(), Counted()

    async def handler(message: dict[str, Any]) -> None:  # noqa: ARG001 - FastStream reads its name and its type
        await gate.wait()
        counted.add()

    with _into_nothing():
        peer = nats.NatsBroker(broker.url, nkeys_seed_str=broker.seed, **({} if logs else {"logger": None}))
        space = subjects[0].partition(".")[0]
        for number, subject in enumerate(subjects):
            own = nats.JStream(name=space, subjects=[f"{space}.>"])
            peer.subscriber(subject, stream=own, durable=f"{space}-{number}", **options)(handler)
        await peer.start()
        try:
            yield functools.partial(_slice, stream, subjects, each, None, gate, counted)
        finally:
            gate.set()
            await peer.stop()


async def _slice(
    stream: JetStreamContext,
    subjects: Sequence[str],
    each: int,
    payload: bytes | None,
    gate: asyncio.Event,
    counted: Counted,
) -> float:
    """Seconds from the moment in which handlers may go on until all have been called; what waits was fetched before."""
    gate.clear()
    counted.expect(each * len(subjects))
    await fill(stream, subjects, each, payload)
    began_s = time.perf_counter()
    gate.set()
    await counted.reached()
    return time.perf_counter() - began_s


@asynccontextmanager
async def _taskiq_side(
    kind: str, broker: EmbeddedBroker, stream: JetStreamContext, messages: int
) -> AsyncGenerator[Side]:
    taskiq_nats, api = importlib.import_module("taskiq_nats"), importlib.import_module("taskiq.api")
    name = f"taskiq-{kind}"
    options: dict[str, Any] = {"subject": name, "stream_name": name, "nkeys_seed_str": broker.seed}
    peer: Any = (
        taskiq_nats.PullBasedJetStreamBroker(broker.url, durable=name, **options)
        if kind == "pull"
        else taskiq_nats.PushBasedJetStreamBroker(broker.url, queue=name, **options)
    )
    # It warns of its own end.
    logging.getLogger("taskiq").addHandler(logging.NullHandler())
    gate, counted = asyncio.Event(), Counted()

    async def handler(text: str) -> None:  # noqa: ARG001 - taskiq reads its name and its type
        await gate.wait()
        counted.add()

    task: Any = peer.task(task_name=name)(handler)
    await peer.startup()
    kept: list[bytes] = []

    async def keep(message: Any) -> None:  # noqa: ANN401 - of a package that may be absent
        kept.append(message.message)

    # The bytes of a call as the peer itself would send them.
    send, peer.kick = peer.kick, keep
    await task.kiq("x" * (EVENT_BYTES - _TASKIQ_WRAPPING_BYTES))
    peer.kick = send
    receiver = asyncio.get_running_loop().create_task(api.run_receiver_task(peer))
    try:
        yield functools.partial(_slice, stream, [name], messages, kept[0], gate, counted)
    finally:
        gate.set()
        receiver.cancel()
        with contextlib.suppress(asyncio.CancelledError, TimeoutError):
            await receiver
        await peer.shutdown()


@contextlib.contextmanager
def _into_nothing() -> Generator[None]:
    """What is logged to the terminal goes nowhere, at the cost of its formatting alone."""
    with (
        Path(os.devnull).open("w", encoding="utf-8") as nothing,
        contextlib.redirect_stdout(nothing),
        contextlib.redirect_stderr(nothing),
    ):
        yield


def _faststream() -> Any:  # noqa: ANN401 - a package that may be absent
    return importlib.import_module("faststream.nats")


FASTSTREAM: Final = Peer("faststream", "FastStream, PullSub(batch_size=10)", _faststream_documented)
FASTSTREAM_FAST: Final = Peer("faststream", "FastStream, push, logger=None", _faststream_fast)
FASTSTREAM_INBOXES: Final = Package("faststream", "FastStream, PullSub()")
TASKIQ: Final = Peer("taskiq_nats", "taskiq-nats, pull based", functools.partial(_taskiq_side, "pull"))
TASKIQ_FAST: Final = Peer("taskiq_nats", "taskiq-nats, push based", functools.partial(_taskiq_side, "push"))
